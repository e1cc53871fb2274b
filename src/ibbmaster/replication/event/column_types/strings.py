"""CHAR, VARCHAR, TEXT, BLOB and so on, also compressed ones."""

import zlib
from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.sqltext import literals
from ibbmaster.sqltext.quoting import quoted, quoted_text
from ibbmaster.versions import Difference
from ..rows import charset as charsets
from ..rows.attributes import named_charset
from ..rows.column import LABELLED, Column, ColumnType, ValueKind
from ..rows.value import Convert, Encode, Value
from . import kind as kinds
from .kind import ColumnKind, SqlType

SHORT_LENGTH_MAX = 255  # longer strings have their length in two bytes
STRING_LENGTH_BITS = 0x30  # of the first metadata byte of STRING: inverted, bits 8 and 9 of the length

COMPRESSED_METHOD_SHIFT = 4  # of the first byte of a compressed value: 0 not, 8 zlib
COMPRESSED_METHOD_ZLIB = 8
COMPRESSED_RAW = 0x08  # without zlib's own head and checksum
COMPRESSED_SIZE_MASK = 0x07
COMPRESSED_VALUE_SIZE_MAX = 1 << 30  # as `max_allowed_packet`
COMPRESSION_THRESHOLD = 100  # `column_compression_threshold`: bytes of values that a server compresses
COMPRESSION_LEVEL = 6  # `column_compression_zlib_level`

BYTES = kinds.StoredText(charset="binary", collation=charsets.BINARY_COLLATION, unit=1)
SHOWN_DEFAULT = "utf8mb4"
_BLOBS = (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED)
_VARYING = (ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED, ColumnType.VAR_STRING)
_AS_THEY_ARE = ("utf8mb4", "utf8mb3")
_BYTE_ORDER = (*_AS_THEY_ARE, "ascii", "latin1")  # character sets whose bytes are in the order of their letters
_SIZES_MIN = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}  # bytes of a letter


class Strings(ColumnKind):
    values = dict.fromkeys((*_VARYING, ColumnType.STRING, *_BLOBS), ValueKind.BINARY)
    metadata_sizes = {kind: 1 if kind in _BLOBS else 2 for kind in values}
    big_endian = frozenset((ColumnType.VAR_STRING, ColumnType.STRING))
    has_collation = True

    def __init__(self, word: str, *codes: ColumnType, twin: str | None = None, ddl_names: str = "") -> None:
        super().__init__(word, *codes, ddl_names=ddl_names)
        self.twin, self.has_letters = twin, twin is not None
        self.is_varying = codes[0] != ColumnType.STRING
        self.family = "TEXT" if self.has_letters else "BYTES"

    # In a TABLE_MAP, and in rows

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> kinds.Layout:
        if column_type in _BLOBS:
            if not 1 <= metadata <= 4:
                raise EventError(f"{where} has lengths of {metadata} bytes")
            return kinds.Layout(column_type, metadata)
        if column_type not in (ColumnType.STRING, ColumnType.VAR_STRING):
            return kinds.Layout(column_type, metadata)
        first, length = raw
        real = first | STRING_LENGTH_BITS  # ENUM and SET travel as STRING
        if real in (ColumnType.STRING, ColumnType.VAR_STRING):
            real = column_type  # old servers call the CHAR of a table with variable rows a VAR_STRING
            length |= (first & STRING_LENGTH_BITS ^ STRING_LENGTH_BITS) << 4
        elif real not in LABELLED or length > 8:
            raise EventError(f"{where} has string metadata {metadata:#06x}")
        return kinds.Layout(real, length)

    def length_size(self, column: Column) -> int:
        if column.type in _BLOBS:
            return column.size
        return length_bytes(column.size)

    def keeps_values(self, old: Column, new: Column) -> bool:
        match old.kind, new.kind:
            case ValueKind.TEXT, ValueKind.TEXT:
                is_trimmed = new.type == ColumnType.STRING != old.type  # CHAR has no spaces at its end
                return _has_characters(old, new) and _bytes_needed(old, new) <= bytes_max(new) and not is_trimmed
            case ValueKind.BINARY, ValueKind.BINARY:
                return bytes_max(old) <= bytes_max(new) and new.type != ColumnType.STRING
        return super().keeps_values(old, new)

    def convert(self, column: Column) -> Convert:
        read: Convert = bytes
        if column.kind is ValueKind.TEXT:
            charset = column.charset or "utf8mb4"
            read = lambda data: charsets.decode_text(data, charset)  # noqa: E731
        if column.type == ColumnType.STRING and column.charset == "binary":
            size = column.size  # fixed binary strings travel without the zeros at their end
            return lambda data: read(data.ljust(size, b"\0"))
        return _decompressed(read) if column.is_compressed else read

    # As DDL declares it

    def declare(self, column: Column, declared: kinds.DeclaredType) -> dict[str, Any]:
        declared.expect(column, column.type in self.values)
        if not self.has_letters:
            is_text = column.charset not in (None, "binary")  # the event goes first
            return {} if is_text else {"kind": ValueKind.BINARY, "charset": "binary"}
        name = _charset(column, declared.text)
        if name not in charsets.CODECS:
            raise ConfigurationError(f"{declared.where}: character set {name} is not known")
        return {"kind": ValueKind.BINARY if name == "binary" else ValueKind.TEXT, "charset": name}

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType | None:
        storage = declared.storage if self.has_letters else BYTES
        if charsets.CODECS.get(storage.charset) is None and storage is not BYTES:
            problem = f"{declared.text!r} is text in {storage.charset}, of which no codec is known"
            raise ConfigurationError(f"{declared.where}: {problem}")
        return self._written(declared, storage)

    @abstractmethod
    def _written(self, declared: kinds.DeclaredType, storage: kinds.StoredText) -> kinds.WrittenType | None: ...

    def derived(self, column: Column, unit: int | None) -> tuple[str, int | None, int | None]:
        if column.type in _BLOBS:
            known = BLOBS if unit is None else TEXTS
            return known[column.size - 1 if 0 < column.size <= len(known) else -1].word, None, column.scale or None
        kind = CHAR if column.type == ColumnType.STRING else VARCHAR
        length = bytes_max(column) // (unit or 1)
        return (kind.twin or "" if unit is None else kind.word), length, column.scale or None

    def shows_alike(self, column: Column, old: SqlType, new: SqlType) -> bool:
        return column.kind is ValueKind.TEXT or not column.is_fixed_length

    # Literals and texts

    def kept_literal(self, sql: SqlType, value: kinds.Literal, written: str) -> str:
        return quoted(kinds.text_of(value)) if self.has_letters else written

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        if column.kind is not ValueKind.TEXT:
            data = kinds.bytes_of(value)
            return data.rstrip(b"\0") if column.is_fixed_length else data
        charset = column.charset or "utf8mb4"
        data = value if isinstance(value, bytes) else charsets.encoded(str(value), charset)
        if data is not value and charsets.decode_text(data, charset) != str(value):
            raise ValueError(f"{value!r} cannot be said in {charset}")
        return data.rstrip(b" ") if column.is_fixed_length else data

    def key_value(self, column: Column, sql: SqlType, value: literals.Value, zone_s: int) -> literals.Value:
        if column.kind is ValueKind.TEXT:
            has_order = (sql.collation or "").endswith("_bin") and sql.charset in _BYTE_ORDER
            return value if has_order and isinstance(value, str) else None
        is_plain = not column.is_fixed_length and not column.is_compressed
        return value if is_plain and isinstance(value, bytes) else None

    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        read = self.convert(column)
        if column.kind is not ValueKind.TEXT:
            size = filled_size(sql)
            if size:
                return lambda data: data.ljust(size, b"\0")
            return lambda data: bytes(read(data))  # type: ignore[call-overload]
        stored, wanted = column.charset or "utf8mb4", wanted_charset(sql, settings.charset)
        if column.is_compressed:
            return lambda data: charsets.encoded(str(read(data)), stored if wanted in (None, "binary") else wanted)
        if is_copied(stored, wanted):
            return bytes
        assert wanted is not None
        if charsets.is_of_single_bytes(stored):
            table = charsets.byte_texts(stored, wanted)
            return lambda data: b"".join([table[byte] for byte in data])
        return lambda data: charsets.encoded(charsets.lenient_text(data, stored), wanted)

    def fitted(self, value: Value, column: Column) -> Value:
        if column.kind is not ValueKind.TEXT:
            if isinstance(value, str) and value.isascii():
                value = value.encode()
            if not isinstance(value, bytes):
                return None
            return value.ljust(column.size, b"\0") if column.is_fixed_length else value
        if not isinstance(value, str | int | Decimal):
            return None
        text = kinds.text_of(value)
        is_sized = not column.is_blob and not column.is_compressed
        if is_sized and len(text) > column.size // charsets.character_size(column.charset or "utf8mb4"):
            return None
        return text.rstrip(" ") if column.is_fixed_length else text

    # In DataFrames and kernels

    def frame_type(self, column: Column, *, keeps_zeros: bool) -> str:
        return "string" if column.kind is ValueKind.TEXT else "binary"

    def reading(self, column: Column, frame_type: str) -> kinds.RowReading:
        what = "value"
        if not column.is_compressed and column.kind is not ValueKind.TEXT:
            what = "bytes"
        elif not column.is_compressed and _has_letters(column):
            what = "text"
        return kinds.RowReading("RAW_PREFIXED", self.length_size(column), 0, what)

    def line_op(self, column: Column) -> tuple[str, int, int]:
        if column.is_compressed:
            return "SIDE", 0, 0
        if column.kind is not ValueKind.TEXT:
            is_filled = column.is_fixed_length and column.charset == "binary"
            return "BASE64", column.size if is_filled else 0, 0
        if (column.charset or "utf8mb4") in _AS_THEY_ARE:
            return "UTF8", 0, 0
        return ("LETTERS" if _has_letters(column) else "SIDE"), 0, 0

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> kinds.Step | None:
        if column.is_compressed or column.kind is ValueKind.TEXT:
            return None
        size = filled_size(sql)
        return ("PAD", size, 0, 0, 0) if size else kinds.COPY


class SizedStrings(Strings):
    """CHAR, VARCHAR, BINARY and VARBINARY."""

    is_string = True
    compares_size = True

    @property
    def is_fixed(self) -> bool:
        return not self.is_varying

    def length_of(self, written: int | None) -> int | None:
        return 1 if written is None and self.is_fixed else written

    def size_of(self, sql: SqlType) -> int | None:
        return None if sql.length is None else sql.length * charsets.character_size(sql.charset) + sql.is_compressed

    def sizes(self, sql: SqlType) -> kinds.TypeSizes:
        octets = None if sql.length is None else sql.length * charsets.character_size(sql.charset)
        return kinds.TypeSizes(sql.length, octets)

    def _written(self, declared: kinds.DeclaredType, storage: kinds.StoredText) -> kinds.WrittenType:
        length, is_packed = declared.length, declared.is_compressed
        if self.is_fixed:
            length = 1 if length is None else length
            if length > 255:
                raise ConfigurationError(f"{declared.where}: {declared.text!r} is too long")
            size = length * storage.unit
            metadata = bytes([ColumnType.STRING ^ ((size & 0x300) >> 4), size & 0xFF])
            encode = string_encoder(length_bytes(size), size, storage, length=length, is_trimmed=True)
            return kinds.WrittenType(ColumnType.STRING, metadata, encode, collation=storage.collation)
        size = (length or 0) * storage.unit + is_packed
        if length is None or size > 0xFFFF:
            raise ConfigurationError(f"{declared.where}: {declared.text!r} needs a length of at most 65535 bytes")
        encode = string_encoder(length_bytes(size), size - is_packed, storage, length=length, is_packed=is_packed)
        metadata = size.to_bytes(2, "little")
        return kinds.WrittenType(self.codes[is_packed], metadata, encode, collation=storage.collation)

    def literal(self, sql: SqlType, value: kinds.Literal, version: int) -> str:
        if self.has_letters:
            return super().literal(sql, value, version)
        data = kinds.bytes_of(kinds.text_of(value))
        data = data.ljust(filled_size(sql) or 0, b"\x00")
        if Difference.HEX_DEFAULTS.holds(version):
            return f"x'{data.hex().upper()}'"
        return quoted_text(data.decode("utf-8", "surrogateescape"))

    def kept_literal(self, sql: SqlType, value: kinds.Literal, written: str) -> str:
        if not (self.has_letters and self.is_fixed):
            return super().kept_literal(sql, value, written)
        return quoted(kinds.text_of(value).rstrip(" "))

    def result(self, sql: SqlType) -> kinds.ResultType:
        code = ColumnType.STRING if self.is_fixed else ColumnType.VAR_STRING
        length = self.digits(sql)
        if not self.has_letters:
            return kinds.ResultType(code, length + sql.is_compressed, 0, ("BINARY",))
        if not self.is_fixed:  # with the byte that says how it is compressed
            unit = charsets.character_size(sql.charset or "utf8mb4")
            length = ((sql.length or 0) * unit + sql.is_compressed) // unit
        return kinds.ResultType(code, length, is_text=True)

    def digits(self, sql: SqlType) -> int:
        return (sql.length or 0) if sql.length is not None or not self.is_fixed else 1


class LargeStrings(Strings):
    """TEXT and BLOB. `prefix`: bytes of their length."""

    is_large = True
    compares_size = True

    def __init__(self, word: str, prefix: int, twin: str | None = None, ddl_names: str = "", names: str = "") -> None:
        super().__init__(word, *_BLOBS, twin=twin, ddl_names=ddl_names)
        self.prefix, self.names = prefix, tuple(names.split())
        self.bytes_max = (1 << 8 * prefix) - 1

    def length_of(self, written: int | None) -> int | None:
        return written if self.prefix == 2 else None

    def size_of(self, sql: SqlType) -> int | None:
        return self.prefix

    def sizes(self, sql: SqlType) -> kinds.TypeSizes:
        return kinds.TypeSizes(self.bytes_max, self.bytes_max)

    def _written(self, declared: kinds.DeclaredType, storage: kinds.StoredText) -> kinds.WrittenType:
        encode = string_encoder(self.prefix, self.bytes_max, storage, is_packed=declared.is_compressed)
        kind = self.codes[declared.is_compressed]
        return kinds.WrittenType(kind, bytes([self.prefix]), encode, collation=storage.collation)

    def result(self, sql: SqlType) -> kinds.ResultType:
        if not self.has_letters:
            return kinds.ResultType(ColumnType.BLOB, self.bytes_max, 0, ("BINARY", "BLOB"))
        letters = self.bytes_max // _SIZES_MIN.get(sql.charset or "", 1)
        return kinds.ResultType(ColumnType.BLOB, letters, 0, ("BLOB",), is_text=True)

    def digits(self, sql: SqlType) -> int:
        return min(self.bytes_max * 4, kinds.LENGTH_MAX)


class XmlType(Strings):
    def __init__(self, word: str) -> None:
        super().__init__(word, *_BLOBS)
        self.family, self.is_varying = "OPAQUE", False

    def declare(self, column: Column, declared: kinds.DeclaredType) -> dict[str, Any]:
        return {}

    def _written(self, declared: kinds.DeclaredType, storage: kinds.StoredText) -> None:
        return None

    def size_of(self, sql: SqlType) -> int | None:
        return 4

    def result(self, sql: SqlType) -> kinds.ResultType:
        return kinds.ResultType(ColumnType.VAR_STRING, 0, is_text=True)


def length_bytes(size: int) -> int:
    """Of the length before a value of at most `size` bytes."""
    return 1 if size <= SHORT_LENGTH_MAX else 2


def large_kind(known: Sequence[LargeStrings], size: int) -> LargeStrings:
    return next((kind for kind in known if size <= kind.bytes_max), known[-1])


def filled_size(sql: SqlType) -> int:
    """Bytes that zeros fill shown values up to."""
    return (1 if sql.length is None else sql.length) if sql.word == BINARY.word else 0


def wanted_charset(sql: SqlType, shown: str | None) -> str | None:
    """Of shown texts; else the column's current one."""
    return sql.charset if shown in (None, "binary") else shown


def is_copied(stored: str | None, wanted: str | None) -> bool:
    return wanted in (None, "binary", stored) or (stored, wanted) == ("utf8mb3", "utf8mb4")


def _has_letters(column: Column) -> bool:
    charset = column.charset or "utf8mb4"
    return charset in _AS_THEY_ARE or charsets.letters_of(charset) is not None


def bytes_max(column: Column) -> int:
    if column.type in _BLOBS:
        return (1 << 8 * column.size) - 1
    return column.size - (column.type == ColumnType.VARCHAR_COMPRESSED)


def characters_max(column: Column) -> int | None:
    """Of the longest CHAR or VARCHAR."""
    return None if column.type in _BLOBS else bytes_max(column) // charsets.character_size(column.charset)


def _has_characters(old: Column, new: Column) -> bool:
    if old.charset == new.charset or new.charset in charsets.UNICODE:
        return True
    return new.charset in charsets.OF_PLANE_0 and old.charset not in charsets.UNICODE


def _bytes_needed(old: Column, new: Column) -> int:
    if old.charset == new.charset:
        return bytes_max(old)
    characters = characters_max(old)
    return (bytes_max(old) if characters is None else characters) * charsets.character_size(new.charset)


def _charset(column: Column, text: str) -> str:
    """The event's, as the table may have been converted since; the declared one where that is binary or unknown."""
    named = None if column.charset == "binary" else column.charset
    if named in charsets.CODECS:
        return named
    return named_charset(text) or named or "utf8mb4"


def _decompressed(convert: Convert) -> Convert:
    """A byte of method and size of the size, the size (big-endian), the data. Source: MariaDB 12.3, field_comp.cc."""

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


def _bytes_in(value: object, charset: str) -> bytes:
    """Text in its character set; in binary columns also hexadecimal digits after 0x."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    text = str(value)
    if charset != "binary":
        return charsets.encode_text(text, charset)
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()


def string_encoder(
    prefix: int,
    size_max: int,
    storage: kinds.StoredText,
    *,
    length: int | None = None,
    is_trimmed: bool = False,
    is_packed: bool = False,
) -> Encode:
    """Strings of a fixed length travel without their filling."""
    charset = storage.charset
    filling = b"\0" if charset == "binary" else charsets.encode_text(" ", charset)

    def encode(value: object) -> bytes:
        data = _bytes_in(value, charset)
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


CHAR = SizedStrings("char", ColumnType.STRING, ColumnType.VAR_STRING, twin="binary", ddl_names="character nchar")
BINARY = SizedStrings("binary", ColumnType.STRING, ColumnType.VAR_STRING)
VARCHAR = SizedStrings("varchar", *_VARYING, twin="varbinary", ddl_names="varchar2 varcharacter nvarchar")
VARBINARY = SizedStrings("varbinary", *_VARYING, ddl_names="raw")
TEXTS = (
    LargeStrings("tinytext", 1, "tinyblob"),
    LargeStrings("text", 2, "blob"),
    LargeStrings("mediumtext", 3, "mediumblob"),
    LargeStrings("longtext", 4, "longblob", ddl_names="clob"),
)
BLOBS = tuple(LargeStrings(kind.twin or "", kind.prefix) for kind in TEXTS)
BLOBS[1].in_oracle = BLOBS[-1].word
KINDS = (VARCHAR, CHAR, BINARY, VARBINARY, *TEXTS, *BLOBS, LargeStrings("json", 4, "longblob"), XmlType("xmltype"))
