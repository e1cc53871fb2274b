"""Strings of characters or bytes, and what is stored in such: UUID, INET4, INET6, VECTOR, GEOMETRY."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Any, NamedTuple

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.column_types.kind import ColumnKind, DeclaredType, Layout, StoredText, WrittenType
from ibbmaster.event.column_types.net import (
    INET4_SIZE,
    INET6_SIZE,
    UUID_SIZE,
    inet4_text,
    inet6_text,
    uuid_bytes,
    uuid_text,
)
from ibbmaster.event.column_types.vector import VECTOR_NUMBER_SIZE, vector_bytes, vector_of
from ibbmaster.event.rows.attributes import named_charset
from ibbmaster.event.rows.charset import (
    BINARY_COLLATION,
    CODECS,
    OF_PLANE_0,
    UNICODE,
    character_size,
    decode_text,
    encode_text,
)
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.value import Encode, Value

SHORT_LENGTH_MAX = 255  # longer strings have their length in two bytes
STRING_LENGTH_BITS = 0x30  # of the first metadata byte of STRING: inverted, bits 8 and 9 of the length

COMPRESSED_METHOD_SHIFT = 4  # of the first byte of a compressed value: 0 not, 8 zlib
COMPRESSED_METHOD_ZLIB = 8
COMPRESSED_RAW = 0x08  # without zlib's own head and checksum
COMPRESSED_SIZE_MASK = 0x07
COMPRESSED_VALUE_SIZE_MAX = 1 << 30  # as `max_allowed_packet`
COMPRESSION_THRESHOLD = 100  # bytes of which `column_compression_threshold` has a server compress values
COMPRESSION_LEVEL = 6  # `column_compression_zlib_level`

_BLOB_SIZES = {  # word -> bytes of the length
    **dict.fromkeys(("tinytext", "tinyblob"), 1),
    **dict.fromkeys(("text", "blob"), 2),
    **dict.fromkeys(("mediumtext", "mediumblob"), 3),
    **dict.fromkeys(("longtext", "longblob", "json"), 4),
}
_TEXTS = frozenset(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"))
GEOMETRIES = (  # in the order of their numbers in a TABLE_MAP
    *("geometry", "point", "linestring", "polygon"),
    *("multipoint", "multilinestring", "multipolygon", "geometrycollection"),
)
_BINARIES = frozenset(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"))
_BLOBS = (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED, ColumnType.GEOMETRY)
_BYTES = StoredText(charset="binary", collation=BINARY_COLLATION, unit=1)
_COMPRESSED = (ColumnType.VARCHAR_COMPRESSED, ColumnType.BLOB_COMPRESSED)


class _Content(NamedTuple):
    """What is stored in strings of bytes, of which TABLE_MAP says nothing."""

    kind: ValueKind
    type: ColumnType
    size: int | None  # of the column, if it is always the same
    read: Callable[[bytes], Value]
    write: Callable[[str], bytes] | None = None  # from text


_CONTENTS = {  # by the word of CREATE TABLE
    "uuid": _Content(ValueKind.UUID, ColumnType.STRING, UUID_SIZE, uuid_text, uuid_bytes),
    "inet4": _Content(
        ValueKind.INET4, ColumnType.STRING, INET4_SIZE, inet4_text, lambda text: IPv4Address(text).packed
    ),
    "inet6": _Content(
        ValueKind.INET6, ColumnType.STRING, INET6_SIZE, inet6_text, lambda text: IPv6Address(text).packed
    ),
    "vector": _Content(ValueKind.VECTOR, ColumnType.VARCHAR, None, vector_of),
}
_READ = {content.kind: content.read for content in _CONTENTS.values()}
_SIZED = frozenset(content.kind for content in _CONTENTS.values() if content.size is not None)


class Strings(ColumnKind):
    """CHAR, VARCHAR, TEXT, BLOB and their like, compressed ones, too; each value after its length."""

    values = {
        ColumnType.STRING: ValueKind.BINARY,
        ColumnType.VARCHAR: ValueKind.BINARY,
        ColumnType.VAR_STRING: ValueKind.BINARY,
        ColumnType.VARCHAR_COMPRESSED: ValueKind.BINARY,
        ColumnType.BLOB: ValueKind.BINARY,
        ColumnType.BLOB_COMPRESSED: ValueKind.BINARY,
        ColumnType.GEOMETRY: ValueKind.GEOMETRY,
    }
    words = _TEXTS | _BINARIES | frozenset(_CONTENTS) | frozenset(GEOMETRIES)
    metadata_sizes = {kind: 1 if kind in _BLOBS else 2 for kind in values}
    big_endian = frozenset((ColumnType.VAR_STRING, ColumnType.STRING))
    has_collation = True

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> Layout:
        if column_type in _BLOBS:
            if not 1 <= metadata <= 4:
                raise EventError(f"{where} has lengths of {metadata} bytes")
            return Layout(column_type, metadata)
        if column_type not in (ColumnType.STRING, ColumnType.VAR_STRING):
            return Layout(column_type, metadata)
        first, length = raw
        real = first | STRING_LENGTH_BITS  # ENUM and SET travel as STRING
        if real in (ColumnType.STRING, ColumnType.VAR_STRING):
            real = column_type  # old servers call the CHAR of a table with variable rows a VAR_STRING
            length |= (first & STRING_LENGTH_BITS ^ STRING_LENGTH_BITS) << 4
        elif real not in (ColumnType.ENUM, ColumnType.SET) or length > 8:
            raise EventError(f"{where} has string metadata {metadata:#06x}")
        return Layout(real, length)

    def length_size(self, column: Column) -> int:
        if column.type in _BLOBS:
            return column.size
        return 1 if column.size <= SHORT_LENGTH_MAX else 2

    def keeps_values(self, old: Column, new: Column) -> bool:
        match old.kind, new.kind:
            case ValueKind.TEXT, ValueKind.TEXT:
                is_trimmed = new.type == ColumnType.STRING != old.type  # CHAR has no spaces at its end
                return _has_characters(old, new) and _bytes_needed(old, new) <= bytes_max(new) and not is_trimmed
            case ValueKind.BINARY, ValueKind.BINARY:
                return bytes_max(old) <= bytes_max(new) and new.type != ColumnType.STRING
        return super().keeps_values(old, new)

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        read = self._content(column)
        if column.type == ColumnType.STRING and (column.charset == "binary" or column.kind in _SIZED):
            size = column.size  # fixed binary strings travel without the zeros at their end
            return lambda data: read(data.ljust(size, b"\0"))
        return _decompressed(read) if column.type in _COMPRESSED else read

    @staticmethod
    def _content(column: Column) -> Callable[[bytes], Value]:
        """What the bytes of a string mean."""
        if column.kind is not ValueKind.TEXT:
            return _READ.get(column.kind, bytes)
        charset = column.charset or "utf8mb4"
        return lambda data: decode_text(data, charset)

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        content = _CONTENTS.get(declared.word)
        if content is not None:
            is_so = column.type == content.type and content.size in (None, column.size)
            declared.expect(column, is_so)
            return {"kind": content.kind}
        declared.expect(
            column, column.type in self.values and (column.type == ColumnType.GEOMETRY) is (declared.word in GEOMETRIES)
        )
        if column.type == ColumnType.GEOMETRY:
            return {}
        if declared.word in _BINARIES:
            is_text = column.charset not in (None, "binary")  # as the event says, which goes first
            return {} if is_text else {"kind": ValueKind.BINARY, "charset": "binary"}
        name = _charset(column, declared.text)
        if name not in CODECS:
            raise ConfigurationError(f"{declared.where}: character set {name} is not known")
        return {"kind": ValueKind.BINARY if name == "binary" else ValueKind.TEXT, "charset": name}

    def write(self, declared: DeclaredType) -> WrittenType | None:
        word, length, is_packed = declared.word, declared.length, declared.is_compressed
        storage = declared.storage if word in _TEXTS else _BYTES
        if CODECS.get(storage.charset) is None and storage is not _BYTES:
            problem = f"{declared.text!r} is text in {storage.charset}, of which no codec is known"
            raise ConfigurationError(f"{declared.where}: {problem}")
        if word in _BLOB_SIZES:
            prefix = _BLOB_SIZES[word]
            encode = _encoder(prefix, (1 << 8 * prefix) - 1, storage, is_packed=is_packed)
            kind = ColumnType.BLOB_COMPRESSED if is_packed else ColumnType.BLOB
            return WrittenType(kind, bytes([prefix]), encode, collation=storage.collation)
        if word in ("varchar", "varbinary"):
            size = (length or 0) * storage.unit + is_packed
            if length is None or size > 0xFFFF:
                raise ConfigurationError(f"{declared.where}: {declared.text!r} needs a length of at most 65535 bytes")
            prefix = 1 if size <= SHORT_LENGTH_MAX else 2
            encode = _encoder(prefix, size - is_packed, storage, length=length, is_packed=is_packed)
            kind = ColumnType.VARCHAR_COMPRESSED if is_packed else ColumnType.VARCHAR
            return WrittenType(kind, size.to_bytes(2, "little"), encode, collation=storage.collation)
        if word in ("char", "binary"):
            length = 1 if length is None else length
            if length > 255:
                raise ConfigurationError(f"{declared.where}: {declared.text!r} is too long")
            size = length * storage.unit
            metadata = bytes([ColumnType.STRING ^ ((size & 0x300) >> 4), size & 0xFF])
            encode = _encoder(1 if size <= SHORT_LENGTH_MAX else 2, size, storage, length=length, is_trimmed=True)
            return WrittenType(ColumnType.STRING, metadata, encode, collation=storage.collation)
        if word in GEOMETRIES:
            number, encode = GEOMETRIES.index(word), _encoder(4, 0xFFFFFFFF, _BYTES)
            return WrittenType(ColumnType.GEOMETRY, b"\4", encode, collation=BINARY_COLLATION, geometry_type=number)
        return _written_content(declared)


def bytes_max(column: Column) -> int:
    """Of the longest value of a string."""
    if column.type in _BLOBS:
        return (1 << 8 * column.size) - 1
    return column.size - (column.type == ColumnType.VARCHAR_COMPRESSED)


def characters_max(column: Column) -> int | None:
    """Of the longest text of a CHAR or VARCHAR; None where bytes are what counts."""
    return None if column.type in _BLOBS else bytes_max(column) // character_size(column.charset)


def _has_characters(old: Column, new: Column) -> bool:
    """Whether every text of one character set can be said in that of another column."""
    if old.charset == new.charset or new.charset in UNICODE:
        return True
    return new.charset in OF_PLANE_0 and old.charset not in UNICODE


def _bytes_needed(old: Column, new: Column) -> int:
    """For the longest text of one column in the character set of another."""
    if old.charset == new.charset:
        return bytes_max(old)
    characters = characters_max(old)
    return (bytes_max(old) if characters is None else characters) * character_size(new.charset)


def _written_content(declared: DeclaredType) -> WrittenType | None:
    content = _CONTENTS[declared.word]
    if content.size is not None and content.write is not None:
        metadata = bytes([ColumnType.STRING, content.size])
        return WrittenType(ColumnType.STRING, metadata, _content_encoder(content.write), collation=BINARY_COLLATION)
    size = (declared.length or 0) * VECTOR_NUMBER_SIZE
    if not 0 < size <= 0xFFFF:
        raise ConfigurationError(f"{declared.where}: {declared.text!r} needs a length from 1 to 16383")
    encode = _vector_encoder(1 if size <= SHORT_LENGTH_MAX else 2, size)
    return WrittenType(ColumnType.VARCHAR, size.to_bytes(2, "little"), encode, collation=BINARY_COLLATION)


def _vector_encoder(prefix: int, size: int) -> Encode:
    def encode(value: object) -> bytes:
        data = vector_bytes(value)
        if len(data) != size:
            raise ValueError(f"a vector of {len(data)} bytes, expected {size}")
        return len(data).to_bytes(prefix, "little") + data

    return encode


def _content_encoder(write: Callable[[str], bytes]) -> Encode:
    def encode(value: object) -> bytes:
        data = write(str(value)).rstrip(b"\0")  # as in every fixed string of bytes
        return bytes([len(data)]) + data

    return encode


def _charset(column: Column, text: str) -> str:
    """The character set of a text column: the one the event names, else the declared one.

    The event goes first: the table may have been converted since. But what it has as binary, or
    in a collation that is not known here, is what the user says.
    """
    named = None if column.charset == "binary" else column.charset
    if named in CODECS:
        return named
    return named_charset(text) or named or "utf8mb4"


def _decompressed(convert: Callable[[bytes], Value]) -> Callable[[bytes], Value]:
    """Values of COMPRESSED columns: a byte of method and size of the size, the size (big-endian), the data.

    Source: MariaDB 12.3, field_comp.cc.
    """

    def read(data: bytes) -> Value:
        if not data:
            return convert(data)
        method = data[0] >> COMPRESSED_METHOD_SHIFT
        if not method:
            return convert(data[1:])
        if method != COMPRESSED_METHOD_ZLIB:
            raise ValueError(f"compression method {method} is not known")
        start = 1 + (data[0] & COMPRESSED_SIZE_MASK)
        size = int.from_bytes(data[1:start], "big")
        if size > COMPRESSED_VALUE_SIZE_MAX:
            raise ValueError(f"a compressed value claims {size} bytes")
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS if data[0] & COMPRESSED_RAW else zlib.MAX_WBITS)
        try:
            unpacked = unpacker.decompress(data[start:], size + 1)
        except zlib.error as error:
            raise ValueError(f"a compressed value does not unpack: {error}") from None
        if len(unpacked) != size or not unpacker.eof:
            raise ValueError(f"a compressed value of {len(unpacked)} bytes or more claims {size}")
        return convert(unpacked)

    return read


def _compressed(data: bytes) -> bytes:
    """A value as COMPRESSED columns have it: compressed where that makes it shorter, which small ones are not tried."""
    if not data:
        return data
    if len(data) >= COMPRESSION_THRESHOLD:
        packer = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        size = len(data).to_bytes(4, "big").lstrip(b"\0")
        head = bytes([COMPRESSED_METHOD_ZLIB << COMPRESSED_METHOD_SHIFT | COMPRESSED_RAW | len(size)])
        packed = head + size + packer.compress(data) + packer.flush()
        if len(packed) <= len(data):
            return packed
    return b"\0" + data


def _bytes_of(value: object, charset: str) -> bytes:
    """The bytes of a string: text in its character set, and for binary columns also hexadecimal digits after 0x."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    text = str(value)
    if charset != "binary":
        return encode_text(text, charset)
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()


def _encoder(
    prefix: int,
    size_max: int,
    storage: StoredText,
    *,
    length: int | None = None,
    is_trimmed: bool = False,
    is_packed: bool = False,
) -> Encode:
    """Writes strings after their length; those of a fixed length travel without what fills them up."""
    charset = storage.charset
    filling = b"\0" if charset == "binary" else encode_text(" ", charset)

    def encode(value: object) -> bytes:
        data = _bytes_of(value, charset)
        if len(data) > size_max:
            raise ValueError(f"a string of {len(data)} bytes, at most {size_max}")
        if length is not None and charset != "binary" and isinstance(value, str) and len(value) > length:
            raise ValueError(f"a text of {len(value)} characters, at most {length}")
        while is_trimmed and data.endswith(filling):
            data = data[: -len(filling)]
        if is_packed:
            data = _compressed(data)
        return len(data).to_bytes(prefix, "little") + data

    return encode
