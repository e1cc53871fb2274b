"""A schema history as bytes beside its log; others are refused, and folded again. Layout: protocol/schema.md."""

import dataclasses
import enum
import functools
import itertools
import json
import struct
import types
import typing
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ibbmaster.position import LogPosition
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.storage.codec.crc32c import crc32c
from .catalog import StoredProgram
from .folding import DATABASE, PROGRAM, TABLE
from .history import SchemaChange, SchemaHistory
from .model import (
    DatabaseVersion,
    ForeignConstraint,
    IndexPart,
    SchemaPlace,
    SqlType,
    TableColumn,
    TableIndex,
    TableVersion,
    UnknownTable,
)
from .name_case import NameCase

MAGIC = b"ibbschma"
FORMAT = 3
HEADER = struct.Struct("<8sIII")  # magic, format, bytes of JSON, their CRC-32C
_EQUAL = (SqlType, TableColumn, IndexPart, TableIndex, ForeignConstraint)  # equal ones are one
_POOLED = (*_EQUAL, TableVersion, UnknownTable, DatabaseVersion, StoredProgram)  # each after its parts


class SavedHistoryError(ValueError):
    """The bytes are no saved history, or one of another format."""


class LastFolded(NamedTuple):
    """The last folded group, which identifies its log: the GTID state before it, a SHA-256. `rules` names the code."""

    start: LogPosition
    gtid: str
    digest: str
    state: str
    rules: str


def encode_history(history: SchemaHistory, up_to: LastFolded) -> bytes:
    pools = _Writing()
    lines = {
        part: [(key, [(_place(one.since), pools.named(one.value)) for one in line]) for key, line in lines.items()]
        for part, lines in history.lines.items()
    }
    temporary = [
        (thread, [(name, pools.named(table)) for name, table in own.items()])
        for thread, own in history.fold.temporary.items()
        if own
    ]
    content = {
        "up_to": up_to,
        "end": history.end,
        "case": [None if history.fold.finder is not None else int(history.case), history.is_whole],
        "last": [history.fold.last_id, history.fold.last_generation],
        "disagreements": history.disagreements,
        "temporary": temporary,
        "lines": lines,
        "pools": pools.found,
    }
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return HEADER.pack(MAGIC, FORMAT, len(data), crc32c(data)) + data


def _place(place: SchemaPlace | None) -> list[int] | None:
    return None if place is None else [*place.position, place.event_no]


def decode_history(data: bytes) -> tuple[SchemaHistory, LastFolded]:
    """Raises SavedHistoryError."""
    if len(data) < HEADER.size:
        raise SavedHistoryError(f"{len(data)} bytes, too few")
    magic, version, size, checksum = HEADER.unpack_from(data)
    content = data[HEADER.size : HEADER.size + size]
    if (magic, version) != (MAGIC, FORMAT) or len(content) != size or crc32c(content) != checksum:
        raise SavedHistoryError("another magic number, format, size or checksum")
    try:
        return _read(json.loads(content.decode("utf-8", "surrogatepass")))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise SavedHistoryError(f"content that was not written so: {error}") from error


def _read(content: Any) -> tuple[SchemaHistory, LastFolded]:
    pools = _Reading(content["pools"])
    case, is_whole = content["case"]
    name_case = None if case is None else NameCase(_exactly(case, int))
    history = SchemaHistory(case=name_case, is_whole=_exactly(is_whole, bool))
    history.end = _position(content["end"])
    history.disagreements = [_exactly(one, str) for one in content["disagreements"]]
    for part, kind in ((TABLE, (TableVersion, UnknownTable)), (DATABASE, DatabaseVersion), (PROGRAM, StoredProgram)):
        for key, line in content["lines"][part]:
            name = _key(part, key)
            changes = [SchemaChange(_read_place(since), pools.get(value, kind)) for since, value in line]
            if any(one.since >= other.since for one, other in itertools.pairwise(changes)):
                raise ValueError("versions that are not in the order of the log")
            if changes:
                history.take_line(part, name, changes)
    history.note_places()
    last_id, last_generation = content["last"]
    history.fold.last_id, history.fold.last_generation = _exactly(last_id, int), _exactly(last_generation, int)
    for thread, own in content["temporary"]:
        found = {TableName(*_texts(name, 2)): pools.get(table, (TableVersion, UnknownTable)) for name, table in own}
        history.fold.temporary[_exactly(thread, int)] = found
    start, *texts = content["up_to"]
    return history, LastFolded(_position(start), *_texts(texts, 4))


def _key(part: str, key: Any) -> Any:
    if part == DATABASE:
        return _exactly(key, str)
    return TableName(*_texts(key, 2)) if part == TABLE else tuple(_texts(key, 3))


def _texts(found: Any, count: int) -> list[str]:
    if len(_exactly(found, list)) != count:
        raise ValueError(f"{len(found)} texts, expected {count}")
    return [_exactly(one, str) for one in found]


def _position(found: Any) -> LogPosition:
    file_no, offset = found
    return LogPosition(_exactly(file_no, int), _exactly(offset, int))


def _read_place(found: Any) -> SchemaPlace:
    return SchemaPlace(_position(found[:2]), _exactly(found[2], int))


def _exactly(found: Any, kind: type) -> Any:
    if type(found) is not kind:
        raise TypeError(f"a {type(found).__name__}, expected a {kind.__name__}")
    return found


class _Writing:
    """Values that versions share, once each: lists of fields, by class."""

    def __init__(self) -> None:
        self.found: dict[str, list[list[Any]]] = {kind.__name__: [] for kind in _POOLED}
        self._numbers: dict[Any, int] = {}

    def put(self, value: Any) -> Any:
        if isinstance(value, enum.Enum):
            return value.name
        if isinstance(value, SchemaPlace):
            return _place(value)
        if isinstance(value, Mapping):
            return dict(value)
        if isinstance(value, tuple):
            return [self.put(one) for one in value]
        if not dataclasses.is_dataclass(value):
            return value
        kind = type(value)
        fields = (getattr(value, field.name) for field in dataclasses.fields(value))
        if kind not in _POOLED:
            return [self.put(one) for one in fields]
        key = (kind, value) if kind in _EQUAL else (kind, id(value))
        number = self._numbers.get(key)
        if number is None:
            pool = self.found[kind.__name__]
            pool.append([self.put(one) for one in fields])
            number = self._numbers[key] = len(pool) - 1
        return number

    def named(self, value: Any) -> Any:
        return [type(value).__name__, self.put(value)] if type(value) in _POOLED else self.put(value)


class _Reading:
    """Makes values in the order of `_POOLED`, so that each exists before its use."""

    def __init__(self, pools: Any) -> None:
        self._found: dict[str, list[Any]] = {}
        for kind in _POOLED:
            self.of(kind).extend([self.made(kind, fields) for fields in _exactly(pools[kind.__name__], list)])

    def of(self, kind: type) -> list[Any]:
        return self._found.setdefault(kind.__name__, [])

    def get(self, found: Any, kind: type | tuple[type, ...]) -> Any:
        if found is None:
            return None
        name, number = found
        value = self._found[_exactly(name, str)][_expect_index(number)]
        if not isinstance(value, kind):
            raise TypeError(f"a {name} in the wrong place")
        return value

    def made(self, kind: type, fields: Any) -> Any:
        readers = _readers(kind)
        if len(_exactly(fields, list)) != len(readers):
            raise ValueError(f"{len(fields)} fields of {kind.__name__}, expected {len(readers)}")
        return kind(**{name: read(self, value) for (name, read), value in zip(readers, fields, strict=True)})


def _expect_index(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"number {number!r} of a shared value")
    return number


def _expect_indexes(numbers: Any) -> list[int]:
    if numbers and min(_exactly(numbers, list)) < 0:
        raise ValueError("a negative number of a shared value")
    return _exactly(numbers, list)  # type: ignore[no-any-return]


Read = Callable[[_Reading, Any], Any]


@functools.cache
def _readers(kind: type) -> tuple[tuple[str, Read], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field.name, _reader(hints[field.name])) for field in dataclasses.fields(kind))


def _reader(hint: Any) -> Read:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        (inner,) = (one for one in arguments if one is not type(None))
        read = _reader(inner)
        return lambda pools, value: None if value is None else read(pools, value)
    if origin is tuple and arguments[0] in _POOLED:
        return lambda pools, value: tuple(map(pools.of(arguments[0]).__getitem__, _expect_indexes(value)))
    if origin is tuple and arguments[-1] is Ellipsis:
        read_each = _reader(arguments[0])
        return lambda pools, value: tuple([read_each(pools, one) for one in _exactly(value, list)])
    if origin is tuple:
        readers = [_reader(one) for one in arguments]
        return lambda pools, value: tuple(
            read(pools, one) for read, one in zip(readers, _exactly(value, list), strict=True)
        )
    if origin is not None and issubclass(origin, Mapping):
        return lambda pools, value: MappingProxyType(
            {name: _exactly(one, str) for name, one in _exactly(value, dict).items()}
        )
    if hint is SchemaPlace:
        return lambda pools, value: _read_place(value)
    if issubclass(hint, enum.Enum):
        return lambda pools, value: hint[_exactly(value, str)]
    if hint in _POOLED:
        return lambda pools, value: pools.of(hint)[_expect_index(value)]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return lambda pools, value: pools.made(hint, value)
    return lambda pools, value: _exactly(value, hint)
