"""Answers: OK, ERR, EOF and text result sets. Layout: protocol/wire/response.md."""

import enum
import functools
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from ibbmaster.errors import RemoteProtocolError
from ibbmaster.storage.codec import lenenc
from ibbmaster.storage.codec.buffer import Buffer
from .capability import Capability, StatusFlag

OK_MARK = 0x00
EOF_MARK = 0xFE
ERR_MARK = 0xFF
EOF_SIZE_MAX = 8  # a longer payload that begins with EOF_MARK is something else
SQLSTATE_MARK = b"#"
COLUMNS_FOLLOW = b"\x01"
DECIMALS_NOT_FIXED = 39  # of strings, and of numbers without a fixed scale
COLLATION_BINARY = 63  # of numbers
COLLATION_DEFAULT = 45  # utf8mb4_general_ci

KEPT_COLUMNS, KEPT_NAME_SIZE = 256, 64  # encoded columns that are kept, and the longest name of one

_STATUS_AND_WARNINGS = struct.Struct("<HH")
_EOF = struct.Struct("<BHH")
_COLUMN_TAIL = struct.Struct("<BHIBHBH")
_COLUMN_TAIL_SIZE = 0x0C  # what the first byte of the tail counts
_NULL = bytes((lenenc.NULL,))


class FieldType(enum.IntEnum):
    """Those that decide on the encoding of values. Source: MariaDB 12.3, include/mysql.h.pp, enum_field_types."""

    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    BIT = 16
    NEWDECIMAL = 246
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254


class ColumnFlag(enum.IntFlag):
    """Source: MariaDB 12.3, include/mysql_com.h."""

    NOT_NULL = 1
    PRIMARY_KEY = 2
    UNIQUE_KEY = 4
    MULTIPLE_KEY = 8
    BLOB = 16
    UNSIGNED = 32
    ZEROFILL = 64
    BINARY = 128
    ENUM = 256
    AUTO_INCREMENT = 512
    TIMESTAMP = 1024
    SET = 2048
    NO_DEFAULT = 4096
    ON_UPDATE_NOW = 8192
    PART_OF_KEY = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class Ok:
    affected_rows: int = 0
    insert_id: int = 0
    status: int = StatusFlag.AUTOCOMMIT
    warning_count: int = 0
    message: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Err:
    code: int
    sqlstate: str  # five characters; none where a server knows nothing of its client yet
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Eof:
    status: int = StatusFlag.AUTOCOMMIT
    warning_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    name: str
    column_type: int
    length: int  # bytes of the longest value
    collation_id: int = COLLATION_DEFAULT
    flags: int = 0
    decimals: int = 0
    original_name: str = ""
    schema: str = ""
    table: str = ""
    original_table: str = ""
    catalog: str = "def"
    extended_metadata: bytes = b""  # on the wire only if Capability.EXTENDED_METADATA is agreed


Row: TypeAlias = Sequence[bytes | None]


class EndedRowsError(Exception):
    """Rows end here: the client gets `err` in place of the last EOF."""

    def __init__(self, err: Err) -> None:
        super().__init__(err.text)
        self.err = err


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSet:
    """`rows` is read once, while the answer is sent: perhaps a generator that raises EndedRowsError."""

    columns: tuple[ColumnDefinition, ...]
    rows: Iterable[Row] = ()
    status: int = StatusFlag.AUTOCOMMIT
    warning_count: int = 0
    is_binary: bool = False  # the rows are sent as a prepared statement has them


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedResultSet(ResultSet):
    """For many clients: `rows` can be read again. `frames`: its packets, and the number after the last, by the first
    number and capabilities."""

    rows: tuple[Row, ...] = ()
    frames: dict[tuple[int, Capability], tuple[bytes, int]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )


class RowBlocks(Protocol):
    def next_block(self, sequence: int) -> tuple[Buffer, int] | Err | None:
        """The packets of more rows from `sequence` on, and the number after the last; None at the end. An error
        replaces the EOF."""

    def close(self) -> None:
        """A second call does nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockResultSet:
    """Rows in blocks, read once while the answer is sent."""

    columns: tuple[ColumnDefinition, ...]
    blocks: RowBlocks
    status: int = StatusFlag.AUTOCOMMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedOk:
    statement_id: int
    parameters: tuple[ColumnDefinition, ...] = ()
    columns: tuple[ColumnDefinition, ...] = ()
    status: int = StatusFlag.AUTOCOMMIT


Response: TypeAlias = Ok | Err | Eof | Text | ResultSet | BlockResultSet | PreparedOk


def encode_ok(ok: Ok) -> bytes:
    if not (ok.affected_rows or ok.insert_id or ok.message):  # as nearly all of them
        return b"\x00\x00\x00" + _STATUS_AND_WARNINGS.pack(ok.status, ok.warning_count)
    counts = lenenc.encode_int(ok.affected_rows) + lenenc.encode_int(ok.insert_id)
    message = lenenc.encode_bytes(ok.message) if ok.message else b""
    return b"\x00" + counts + _STATUS_AND_WARNINGS.pack(ok.status, ok.warning_count) + message


def encode_err(err: Err) -> bytes:
    assert len(err.sqlstate) in (0, 5), err.sqlstate
    state = SQLSTATE_MARK + err.sqlstate.encode() if err.sqlstate else b""
    return b"\xff" + err.code.to_bytes(2, "little") + state + err.text.encode("utf-8", "replace")


def encode_eof(eof: Eof) -> bytes:
    return _EOF.pack(EOF_MARK, eof.warning_count, eof.status)


def encode_column(column: ColumnDefinition, capabilities: Capability = Capability.PROTOCOL_41) -> bytes:
    if len(column.name) <= KEPT_NAME_SIZE:
        return _encode_kept(column, Capability.EXTENDED_METADATA in capabilities)
    return _encode_column(column, Capability.EXTENDED_METADATA in capabilities)


def _encode_column(column: ColumnDefinition, is_extended: bool) -> bytes:
    of_table = column.catalog, column.schema, column.table, column.original_table
    names = *of_table, column.name, column.original_name
    parts = [lenenc.encode_bytes(text.encode("utf-8", "replace")) for text in names]
    if is_extended:
        parts.append(lenenc.encode_bytes(column.extended_metadata))
    parts.append(
        _COLUMN_TAIL.pack(
            _COLUMN_TAIL_SIZE, column.collation_id, column.length, column.column_type, column.flags, column.decimals, 0
        )
    )
    return b"".join(parts)


_encode_kept = functools.lru_cache(KEPT_COLUMNS)(_encode_column)  # many clients ask for the same


def encode_row(row: Row) -> bytes:
    return b"".join([_NULL if value is None else lenenc.encode_bytes(value) for value in row])


def with_more_results(response: Response) -> Response:
    if isinstance(response, Ok | Eof | ResultSet | BlockResultSet):
        return replace(response, status=response.status | StatusFlag.MORE_RESULTS)
    return response


def decode_ok(payload: Buffer) -> Ok:
    """Without session tracking. Raises RemoteProtocolError: the payload is no OK packet."""
    try:
        _expect_mark(payload, OK_MARK, "an OK packet")
        affected_rows, offset = lenenc.decode_int(payload, 1)
        insert_id, offset = lenenc.decode_int(payload, offset)
        status, warning_count = _STATUS_AND_WARNINGS.unpack_from(payload, offset)
        offset += _STATUS_AND_WARNINGS.size
        message = b""
        if offset < len(payload):
            message, offset = lenenc.decode_bytes(payload, offset)
    except (ValueError, struct.error) as error:
        raise RemoteProtocolError(f"an OK packet that cannot be read: {error}") from None
    return Ok(
        affected_rows=affected_rows, insert_id=insert_id, status=status, warning_count=warning_count, message=message
    )


def decode_err(payload: Buffer) -> Err:
    """With HY000 if it has no SQLSTATE. Raises RemoteProtocolError: the payload is no ERR packet."""
    _expect_mark(payload, ERR_MARK, "an ERR packet")
    if len(payload) < 3:
        raise RemoteProtocolError(f"an ERR packet of {len(payload)} bytes, expected at least 3")
    code = int.from_bytes(payload[1:3], "little")
    text = bytes(payload[3:])
    sqlstate = "HY000"
    if text[:1] == SQLSTATE_MARK and len(text) >= 6:
        sqlstate, text = text[1:6].decode("latin-1"), text[6:]
    return Err(code=code, sqlstate=sqlstate, text=text.decode("utf-8", "replace"))


def is_eof(payload: Buffer) -> bool:
    return 0 < len(payload) <= EOF_SIZE_MAX and payload[0] == EOF_MARK


def _expect_mark(payload: Buffer, mark: int, what: str) -> None:
    if not len(payload) or payload[0] != mark:
        found = f"byte {payload[0]:#04x}" if len(payload) else "nothing"
        raise RemoteProtocolError(f"{found} where {what} was expected")
