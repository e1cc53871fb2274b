"""Whether a value that was told is the one that was logged, whichever way a language writes it."""

from __future__ import annotations

import contextlib
import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from ibbmaster.replication.event.rows.charset import encode_text

FLOAT_ERROR = 1e-6  # of a FLOAT, of which 24 bits are kept
MOMENT_SIZE_MAX = 40  # characters


class BitValue(int):
    """A value of a BIT column, for which some libraries give digits of 0 and 1, or bytes."""


class PaddedBytes(bytes):
    """A value of a BINARY column, which some libraries give without the zeros at its end, as in the log."""


class EncodedText(str):
    """Text of a character set, whose bytes some libraries do not decode."""

    charset: str

    def __new__(cls, text: str, charset: str) -> EncodedText:
        """`charset` by MariaDB's name."""
        made = super().__new__(cls, text)
        made.charset = charset
        return made


def is_same_value(logged: Any, told: Any) -> bool:
    if logged is None or told is None:
        return logged is None and told is None
    if isinstance(logged, bytes):
        return isinstance(told, str) and _is_same_bytes(logged, told)
    if isinstance(logged, float):
        found = _number(told)
        return found is not None and abs(float(found) - logged) <= FLOAT_ERROR * max(1.0, abs(logged))
    if isinstance(logged, int | Decimal):
        return _number(told) == Decimal(logged) or (isinstance(logged, BitValue) and _bits(told) == logged)
    text = str(logged)
    if not isinstance(told, str):
        return _number(text) is not None and _number(text) == _number(told)
    if text == told or _moment(text) == _moment(told):
        return True
    if _is_same_bytes(_encoded(logged), told):
        return True
    return text[:1] in ("{", "[") and _is_same_json(text, told)


def _bits(told: Any) -> int | None:
    if not isinstance(told, str) or not told or set(told) - {"0", "1"}:
        return int(told[2:], 16) if isinstance(told, str) and re.fullmatch("0x[0-9a-fA-F]{1,16}", told) else None
    return int(told, 2)


def _number(value: Any) -> Decimal | None:
    if not isinstance(value, str | int | float | Decimal):
        return None
    try:
        number = Decimal(str(int(value) if isinstance(value, bool) else value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _is_same_bytes(logged: bytes, told: str) -> bool:
    found = [told.encode("utf-8", "surrogatepass")]
    if told.startswith("0x"):
        with contextlib.suppress(ValueError):
            found.append(bytes.fromhex(told[2:]))
    if isinstance(logged, PaddedBytes):
        return logged.rstrip(b"\0") in [one.rstrip(b"\0") for one in found]
    return logged in found


def _encoded(text: str) -> bytes:
    with contextlib.suppress(ValueError):
        if isinstance(text, EncodedText):
            return encode_text(text, text.charset)
    return str(text).encode()


_MOMENT = re.compile(r"(-?[\d:-]*\d)(?:[T ](\d[\d:]*))?(?:\.(\d*))?(?:Z|\+00:?00)?")


def _moment(text: str) -> str:
    match = _MOMENT.fullmatch(text) if len(text) <= MOMENT_SIZE_MAX else None
    if match is None or not ("-" in text or ":" in text):
        return text
    fraction = (match[3] or "").rstrip("0")
    return f"{match[1]}{f' {match[2]}' if match[2] else ''}{f'.{fraction}' if fraction else ''}"


def _is_same_json(logged: str, told: str) -> bool:
    try:
        return bool(json.loads(logged) == json.loads(told))
    except (ValueError, RecursionError):
        return False


def shown_value(value: Any) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"[:80]
    return str(value)[:80] if not isinstance(value, str) else repr(value[:80])
