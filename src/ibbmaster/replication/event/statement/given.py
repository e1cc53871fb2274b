"""INTVAR, RAND, USER_VAR: input from the session for the next statement. Layout: protocol/event/others.md."""

import struct
from dataclasses import dataclass
from decimal import Decimal

from ibbmaster.errors import EventError
from ibbmaster.storage.codec.buffer import Buffer
from ..column_types.decimals import DIGITS_MAX, SCALE_MAX, decimal_reader, decimal_size
from ..header import decode_body
from ..types import EventType

INTVAR = struct.Struct("<BQ")  # which, value
LAST_INSERT_ID, INSERT_ID = 1, 2
RAND = struct.Struct("<QQ")  # both seeds
NAME_SIZE = struct.Struct("<I")
USER_VAR = struct.Struct("<BII")  # type, number of the collation, size of the value
TEXT, REAL, INTEGER, DECIMAL = 0, 1, 2, 4
UNSIGNED = 0x01  # of the flags after the value
DOUBLE = struct.Struct("<d")
INT64_SIZE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedVariable:
    """A text is bytes in the character set of `collation`, None is NULL."""

    name: str
    value: bytes | float | int | Decimal | None
    collation: int = 0


def decode_intvar(event: Buffer) -> tuple[str, int]:
    """`insert_id` or `last_insert_id`, and its value. Raises EventError. Source: MariaDB 12.3, log_event.cc,
    Intvar_log_event."""
    _, body = decode_body(event, EventType.INTVAR)
    if len(body) != INTVAR.size:
        raise EventError(f"INTVAR with a body of {len(body)} bytes, expected {INTVAR.size}")
    which, value = INTVAR.unpack(body)
    if which not in (LAST_INSERT_ID, INSERT_ID):
        raise EventError(f"INTVAR of kind {which}, expected 1 or 2")
    return ("insert_id" if which == INSERT_ID else "last_insert_id"), value


def decode_rand(event: Buffer) -> tuple[int, int]:
    """Both seeds. Raises EventError: another type or size. Source: MariaDB 12.3, log_event.cc, Rand_log_event."""
    _, body = decode_body(event, EventType.RAND)
    if len(body) != RAND.size:
        raise EventError(f"RAND with a body of {len(body)} bytes, expected {RAND.size}")
    first, second = RAND.unpack(body)
    return first, second


def decode_user_var(event: Buffer) -> LoggedVariable:
    """Raises EventError: another type or value, or it ends early. Source: MariaDB 12.3, log_event.cc,
    User_var_log_event."""
    _, body = decode_body(event, EventType.USER_VAR)
    if len(body) < NAME_SIZE.size:
        raise EventError(f"USER_VAR with a body of {len(body)} bytes")
    offset = NAME_SIZE.size + NAME_SIZE.unpack_from(body)[0]
    if offset >= len(body):
        raise EventError("USER_VAR whose name runs over its end")
    name = bytes(body[NAME_SIZE.size : offset]).decode("utf-8", "surrogateescape")
    if body[offset]:
        return LoggedVariable(name=name, value=None)
    start = offset + 1 + USER_VAR.size
    if start > len(body):
        raise EventError(f"USER_VAR {name!r} ends before its value")
    kind, collation, size = USER_VAR.unpack_from(body, offset + 1)
    data = bytes(body[start : start + size])
    if len(data) < size:
        raise EventError(f"USER_VAR {name!r} whose value of {size} bytes runs over its end")
    is_unsigned = len(body) > start + size and bool(body[start + size] & UNSIGNED)
    return LoggedVariable(name=name, value=_value(name, kind, data, is_unsigned=is_unsigned), collation=collation)


def _value(name: str, kind: int, data: bytes, *, is_unsigned: bool) -> bytes | float | int | Decimal:
    if kind == TEXT:
        return data
    if kind == REAL and len(data) == DOUBLE.size:
        return float(DOUBLE.unpack(data)[0])
    if kind == INTEGER and len(data) == INT64_SIZE:
        return int.from_bytes(data, "little", signed=not is_unsigned)
    if kind == DECIMAL and len(data) > 2:
        digits, scale = data[0], data[1]
        is_possible = 0 < digits <= DIGITS_MAX and scale <= min(digits, SCALE_MAX)
        if is_possible and len(data) == 2 + decimal_size(digits, scale):
            try:
                return decimal_reader(digits, scale)(data[2:])
            except ValueError as error:
                raise EventError(f"USER_VAR {name!r}: {error}") from None
    raise EventError(f"USER_VAR {name!r} of type {kind} with {len(data)} bytes")
