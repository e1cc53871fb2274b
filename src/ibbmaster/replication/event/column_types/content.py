"""UUID, INET4 and INET6: stored as BINARY(size) and shown as text. Only the declared type distinguishes them."""

import re
import uuid
from abc import abstractmethod
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Any, ClassVar

from ibbmaster.sqltext import literals
from ..rows.charset import BINARY_COLLATION
from ..rows.column import Column, ColumnType, ValueKind
from ..rows.value import Convert, Value
from .kind import ColumnKind, DeclaredType, ResultType, RowReading, SqlType, WrittenType

UUID_SIZE, INET4_SIZE, INET6_SIZE = 16, 4, 16
UUID_VARIANT_BIT = 0x80
REORDERED_VARIANT_BYTE = 6  # where a stored UUID in reverse order has its variant ...
REORDERED_VERSION_BYTE = 8  # ... and its version
REORDERED_VERSION_END = 0x60  # later versions sort by time as they are, and are stored so
_UUID_TEXT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class FixedContent(ColumnKind):
    """Values that compare with texts by their stored bytes."""

    octets: ClassVar[int]
    width: ClassVar[int]  # letters of the longest text
    has_name = True
    compares_size = True
    is_shown_as_text = True

    def __init__(self, word: str, text: Callable[[bytes], str]) -> None:
        """`text` raises ValueError for another number of bytes."""
        super().__init__(word, ColumnType.STRING)
        self.text = text
        self.key_size, self.line = self.octets, (word.upper(), self.octets, 0)

    @abstractmethod
    def written(self, text: str) -> bytes:
        """For row events. Raises ValueError: the text is none."""

    @abstractmethod
    def kept(self, value: literals.Value) -> bytes:
        """A constant as a server stores and compares it. Raises ValueError: it is none."""

    def length_size(self, column: Column) -> int:
        return 1

    def convert(self, column: Column) -> Convert:
        read, octets = self.text, self.octets
        return lambda data: read(data.ljust(octets, b"\0"))  # zeros at the end do not travel

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        declared.expect(column, column.type == ColumnType.STRING and column.size == self.octets)
        return {"kind": self.content}

    def write(self, declared: DeclaredType) -> WrittenType:
        metadata = bytes([ColumnType.STRING, self.octets])
        return WrittenType(ColumnType.STRING, metadata, self._encode, collation=BINARY_COLLATION)

    def _encode(self, value: object) -> bytes:
        data = self.written(str(value)).rstrip(b"\0")
        return bytes([len(data)]) + data

    def size_of(self, sql: SqlType) -> int | None:
        return self.octets

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        return self.kept(value)

    def result(self, sql: SqlType) -> ResultType:
        return ResultType(ColumnType.STRING, self.width, 0, ("BINARY", "UNSIGNED"), is_text=True)

    def reading(self, column: Column, frame_type: str) -> RowReading:
        return RowReading("RAW_PREFIXED", 1, 0, "shown")

    def text_op(self, column: Column) -> tuple[str, int]:
        return self.word.upper(), self.octets


class Uuid(FixedContent):
    content = ValueKind.UUID
    octets, width = UUID_SIZE, 36
    is_ordered = False
    zero = "'00000000-0000-0000-0000-000000000000'"

    def written(self, text: str) -> bytes:
        return uuid_bytes(text)

    def kept(self, value: literals.Value) -> bytes:
        data = value if isinstance(value, bytes) else bytes.fromhex(str(value).replace("-", ""))
        if len(data) != UUID_SIZE:
            raise ValueError(f"{value!r} is no UUID")
        if data[8] & UUID_VARIANT_BIT and 0 < data[6] < REORDERED_VERSION_END:
            return data[10:16] + data[8:10] + data[6:8] + data[4:6] + data[0:4]  # in the order of time
        return data

    def fitted(self, value: Value, column: Column) -> Value:
        return value.lower() if isinstance(value, str) and _UUID_TEXT.fullmatch(value.lower()) else None


class _Address(FixedContent):
    def key_value(self, column: Column, sql: SqlType, value: literals.Value, zone_s: int) -> literals.Value:
        return value if isinstance(value, str) else None

    def kept(self, value: literals.Value) -> bytes:
        return value if isinstance(value, bytes) else self.written(str(value))


class Inet4(_Address):
    content = ValueKind.INET4
    octets, width = INET4_SIZE, 15
    zero = "'0.0.0.0'"

    def written(self, text: str) -> bytes:
        return IPv4Address(text).packed

    def kept(self, value: literals.Value) -> bytes:
        if isinstance(value, bytes):
            return value
        parts = [int(part) for part in str(value).split(".")]
        if len(parts) != INET4_SIZE:
            raise ValueError(f"{str(value)!r} is no address")
        return bytes(parts)

    def fitted(self, value: Value, column: Column) -> Value:
        parts = value.split(".") if isinstance(value, str) else []
        is_plain = all(part.isdecimal() and part == str(int(part)) and int(part) < 256 for part in parts)
        return value if len(parts) == INET4_SIZE and is_plain else None


class Inet6(_Address):
    content = ValueKind.INET6
    octets, width = INET6_SIZE, 39
    zero = "'::'"

    def written(self, text: str) -> bytes:
        return IPv6Address(text).packed

    def fitted(self, value: Value, column: Column) -> Value:
        return value if value == "::" else None


def uuid_text(data: bytes) -> str:
    """Of a row event's bytes, as it reads, or as a server stores it: versions 1 to 5 with their segments in reverse
    order, to sort by time. No value has both meanings. Raises ValueError. Source: MariaDB 12.3, sql_type_uuid.h."""
    if len(data) != UUID_SIZE:
        raise ValueError(f"a UUID of {len(data)} bytes")
    if data[REORDERED_VARIANT_BYTE] & UUID_VARIANT_BIT and 0 < data[REORDERED_VERSION_BYTE] < REORDERED_VERSION_END:
        data = data[12:] + data[10:12] + data[8:10] + data[6:8] + data[:6]
    text = data.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def uuid_bytes(text: str) -> bytes:
    """As servers write it into row events: as it reads, whatever its version. Raises ValueError: no UUID."""
    return uuid.UUID(text).bytes


def inet4_text(data: bytes) -> str:
    """Raises ValueError: not 4 bytes."""
    if len(data) != INET4_SIZE:
        raise ValueError(f"an INET4 of {len(data)} bytes")
    return ".".join(map(str, data))


def inet6_text(data: bytes) -> str:
    """As MariaDB writes it: the longest run of zero words short, even of one word, IPv4 in decimals. Raises ValueError:
    not 16 bytes. Source: MariaDB 12.3, plugin/type_inet/sql_type_inet.cc, Inet6::to_string()."""
    if len(data) != INET6_SIZE:
        raise ValueError(f"an INET6 of {len(data)} bytes")
    words = [int.from_bytes(data[start : start + 2], "big") for start in range(0, INET6_SIZE, 2)]
    gap_start, gap_size = _longest_gap(words)
    is_compatible = gap_start == 0 and gap_size == 6
    is_mapped = gap_start == 0 and gap_size == 5 and words[5] == 0xFFFF
    count = 6 if is_compatible or is_mapped else 8
    tail = [inet4_text(data[12:])] if count == 6 else []
    texts = [*(f"{word:x}" for word in words[:count]), *tail]
    if not gap_size:
        return ":".join(texts)
    return f"{':'.join(texts[:gap_start])}::{':'.join(texts[gap_start + gap_size :])}"


def _longest_gap(words: list[int]) -> tuple[int, int]:
    best = (0, 0)
    start = 0
    for index, word in enumerate([*words, 1]):
        if word:
            if index - start > best[1]:
                best = (start, index - start)
            start = index + 1
    return best


KINDS = (Uuid("uuid", uuid_text), Inet4("inet4", inet4_text), Inet6("inet6", inet6_text))
