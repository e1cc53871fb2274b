"""Rows of a DataFrame as groups of a log: tasks write sorted runs of records, which the driver merges.

A record is one event, or one change of a row, with its group's place.
"""

import datetime
import heapq
import itertools
import os
import shutil
import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ibbmaster.errors import ConfigurationError, EventError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.gtid_order import Overlap, is_newer
from ibbmaster.logs.log.history_cache import CACHE_FILE
from ibbmaster.logs.store.appending import AppendedLog, open_log
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.position import NOWHERE
from ibbmaster.replication.event.control import encode_xid
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, decode_gtid, encode_gtid_event
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.rows.changes import ChangeKind
from ibbmaster.replication.event.rows.encoding import WrittenTable, encode_rows, encode_table_map
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.file_name import parse_file_name
from ibbmaster.tables.arrow.shape import field_name
from .write_options import WriteOptions

RUN_BYTES = 64 << 20  # of records, sorted in memory
HEAD = struct.Struct("<QQIIQQIBI")
READ_BYTES = 1 << 20
STAGING = ".{name}.writing-{token}"
EVENT, INSERT, DELETE, UPDATE_BEFORE, UPDATE_AFTER = range(5)
CHANGE_CODES = {"insert": INSERT, "delete": DELETE, "update_preimage": UPDATE_BEFORE, "update_postimage": UPDATE_AFTER}


class Record(NamedTuple):
    """In the order of the log. Without a GTID, server id and sequence number are 0."""

    first: int  # file number, or sequence number, or task
    second: int  # offset in the file, or group in the task
    domain_id: int
    server_id: int
    seq_no: int
    number: int  # in its group
    timestamp: int  # seconds since 1970
    code: int
    data: bytes  # the event; or the name of the table, its length in front, and the image

    @property
    def group(self) -> tuple[int, ...]:
        return self[:5]


def staging_path(path: str, token: str | None = None) -> Path:
    """Beside the written directory, so that moving runs is one step."""
    target = Path(path)
    return target.parent / STAGING.format(name=target.name, token=token or uuid.uuid4().hex)


class RunWriter:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._records: list[Record] = []
        self._bytes = 0
        self._paths: list[str] = []

    def add(self, record: Record) -> None:
        self._records.append(record)
        self._bytes += HEAD.size + len(record.data)
        if self._bytes >= RUN_BYTES:
            self._write()

    def finish(self) -> list[str]:
        self._write()
        return self._paths

    def _write(self) -> None:
        if not self._records:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"run-{uuid.uuid4().hex}"
        self._records.sort(key=lambda record: record[:6])
        with path.open("wb") as file:
            for record in self._records:
                file.write(HEAD.pack(*record[:8], len(record.data)))
                file.write(record.data)
        self._paths.append(str(path))
        self._records, self._bytes = [], 0


def read_run(path: str) -> Iterator[Record]:
    """Raises StoreError: the run cannot be read, or ends early."""
    try:
        with Path(path).open("rb", buffering=READ_BYTES) as file:
            while head := file.read(HEAD.size):
                *numbers, size = HEAD.unpack(head)
                data = file.read(size)
                if len(data) != size:
                    raise StoreError(f"{path} ends inside a record")
                yield Record._make((*numbers, data))
    except (OSError, struct.error) as error:
        raise StoreError(f"{path}: {error}") from error


# Rows to records, in a task ----------------------------------------------------------------------


class Recorder:
    """Makes records of a task's rows. Raises ConfigurationError: a row cannot be written; the text says which and
    why."""

    def __init__(self, options: WriteOptions, task: int) -> None:
        self._options = options
        self._tables = options.tables()
        self._task = task
        self._count = 0

    def records(self, row: Mapping[str, object]) -> Iterator[Record]:
        """None for the first row of an update that the second holds whole."""
        number = self._count
        self._count += 1
        options = self._options
        if options.is_of_events:
            yield self._record(row, _as_int(row, "event_no"), EVENT, _as_bytes(row, "data"))
            return
        kind = str(row.get("_change_type") or "insert")
        code = CHANGE_CODES.get(kind)
        if code is None:
            raise ConfigurationError(f"_change_type {kind!r}, expected one of {', '.join(CHANGE_CODES)}")
        place = row.get("_change_no")
        number = number if place is None else int(place)  # type: ignore[call-overload]
        if options.table is not None:
            table = self._tables[options.table]
            cells = [row[field_name(column.name)] for column in table.columns]
            yield self._record(row, number, code, self._image(table, cells))
            return
        if code == UPDATE_BEFORE:
            return
        name = str(row["_table"])
        if name not in self._tables:
            raise ConfigurationError(f"table {name} is not declared; option schema has {', '.join(self._tables)}")
        images = ("before", "after") if code == UPDATE_AFTER else ("after",) if code == INSERT else ("before",)
        for step, which in enumerate(images):
            code_of = UPDATE_BEFORE if len(images) == 2 and not step else code
            cells = _cells(self._tables[name], row[which])
            yield self._record(row, 2 * number + step, code_of, self._image(self._tables[name], cells))

    def _image(self, table: WrittenTable, cells: list[object]) -> bytes:
        name = table.name.encode()
        try:
            return bytes([len(name)]) + name + table.image(cells)
        except ValueError as error:
            raise ConfigurationError(str(error)) from None

    def _record(self, row: Mapping[str, object], number: int, code: int, data: bytes) -> Record:
        timestamp = _seconds(row.get("_commit_ts"))
        if not self._options.has_gtids:
            group = (self._count - 1) // self._options.group_rows
            return Record(self._task, group, self._options.domain_id, 0, 0, number, timestamp, code, data)
        gtid = Gtid.parse(str(row["_gtid"]))
        first, second = gtid.seq_no, 0
        if "_file_no" in row and "_offset" in row:
            first, second = _as_int(row, "_file_no"), _as_int(row, "_offset")
        return Record(first, second, gtid.domain_id, gtid.server_id, gtid.seq_no, number, timestamp, code, data)


def _as_int(row: Mapping[str, object], name: str) -> int:
    value = row[name]
    if not isinstance(value, int) or value < 0:
        raise ConfigurationError(f"column {name} is {value!r}, expected a number from 0 on")
    return value


def _as_bytes(row: Mapping[str, object], name: str) -> bytes:
    value = row[name]
    if not isinstance(value, bytes | bytearray):
        raise ConfigurationError(f"column {name} is {type(value).__name__}, expected binary")
    return bytes(value)


def _seconds(moment: object) -> int:
    if not isinstance(moment, datetime.datetime):
        return 0
    return max(0, int((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()))


def _cells(table: WrittenTable, image: object) -> list[object]:
    if isinstance(image, list):
        image = dict(image)
    if not isinstance(image, Mapping):
        raise ConfigurationError(f"{table.name}: a change without its image")
    missing = [column.name for column in table.columns if column.name not in image]
    if missing:
        raise ConfigurationError(
            f"{table.name}: an image without column {missing[0]}: changes of a log with binlog_row_image other than "
            "FULL cannot be written as they are"
        )
    return [image[column.name] for column in table.columns]


# Records to a log, on the driver ------------------------------------------------------------------


@dataclass(slots=True)
class Written:
    groups: int = 0
    skipped: int = 0


def write_log(paths: Iterable[str], options: WriteOptions, staging: Path) -> Written:
    """Write all runs' records: into a new log, which takes its place in one step, or after the log there is. Raises
    ConfigurationError: the records make no groups; BusyError: another process has the directory; StoreError: the
    directory cannot be written, or its log has another group of a GTID."""
    target = Path(options.path)
    is_new = options.overwrites or not _has_log(target)
    directory = staging / "log" if is_new else target
    directory.mkdir(parents=True, exist_ok=True)
    written = Written()
    with open_log(
        RealDisk(directory), max_file_bytes=options.max_file_bytes, state_interval_bytes=options.state_interval_bytes
    ) as log:
        groups = _Groups(options, log)
        known = Overlap(log.logged, log.state, GtidState())
        merged = heapq.merge(*map(read_run, paths), key=lambda record: record[:6])
        for _, records in itertools.groupby(merged, key=lambda record: record.group):
            gtid, gtid_event, body = groups.assemble(list(records))
            if not is_newer(log.state, gtid):
                again = EventGroup(gtid=gtid, gtid_event=gtid_event, body=iter(body), start=NOWHERE, end=NOWHERE)
                if not known.has(again):
                    raise StoreError(f"group {gtid} is written twice, and the log has it once")
                written.skipped += 1
                continue
            log.write_group(gtid, gtid_event, body)
            written.groups += 1
    if is_new:
        _replace(directory, target)
    return written


def _has_log(target: Path) -> bool:
    names = [path.name for path in target.iterdir()] if target.is_dir() else []
    return any(parse_file_name(name) is not None or name in SEGMENT_NAMES for name in names)


def _replace(directory: Path, target: Path) -> None:
    old = None
    if target.exists():
        foreign = [
            path.name
            for path in target.iterdir()
            if parse_file_name(path.name) is None and path.name not in (*SEGMENT_NAMES, CACHE_FILE)
        ]
        if foreign:
            raise StoreError(f"{target}: holds {foreign[0]}, which is no binlog file: nothing was replaced")
        old = directory.parent / "old"
        os.rename(target, old)
    target.parent.mkdir(parents=True, exist_ok=True)
    os.rename(directory, target)
    if old is not None:
        shutil.rmtree(old)


class _Groups:
    def __init__(self, options: WriteOptions, writer: AppendedLog) -> None:
        self._options = options
        self._tables = options.tables()
        self._writer = writer
        self._next_seq_no = (writer.state.highest_seq_no(options.domain_id) or 0) + 1
        if options.creates_tables and not options.has_gtids and not options.is_of_events:
            for table in self._tables.values():
                for statement in table.statements:
                    self._write_statement(statement)

    def assemble(self, records: list[Record]) -> tuple[Gtid, bytes, list[bytes]]:
        """GTID, GTID event and the other events."""
        if self._options.is_of_events:
            return _whole_group(records)
        first = records[0]
        gtid = Gtid(domain_id=first.domain_id, server_id=first.server_id, seq_no=first.seq_no)
        if not self._options.has_gtids:
            gtid = self._next_gtid()
        body: list[bytes] = []
        server_id, timestamp = gtid.server_id, first.timestamp
        for (name, kind), changes in itertools.groupby(_changes(records), key=lambda change: change[:2]):
            table = self._tables[name]
            body.append(encode_table_map(table, server_id=server_id, timestamp=timestamp))
            body += encode_rows(
                table, kind, ((change[2], change[3]) for change in changes), server_id=server_id, timestamp=timestamp
            )
        body.append(encode_xid(gtid.seq_no, server_id=server_id, timestamp=timestamp))
        event = encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.TRANSACTIONAL), timestamp=first.timestamp)
        return gtid, event, body

    def _next_gtid(self) -> Gtid:
        seq_no, self._next_seq_no = self._next_seq_no, self._next_seq_no + 1
        return Gtid(domain_id=self._options.domain_id, server_id=self._options.server_id, seq_no=seq_no)

    def _write_statement(self, text: str) -> None:
        gtid = self._next_gtid()
        query = Query(
            thread_id=1, seconds=0, error_code=0, status=b"", database=b"", text=text.encode(), is_compressed=False
        )
        event = encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.STANDALONE | GtidFlag.DDL))
        self._writer.write_group(gtid, event, [encode_query(query, server_id=gtid.server_id)])


def _whole_group(records: list[Record]) -> tuple[Gtid, bytes, list[bytes]]:
    """Raises ConfigurationError: an event is missing, is there twice, or is none."""
    first = records[0]
    name = f"{first.domain_id}-{first.server_id}-{first.seq_no}"
    try:
        for number, record in enumerate(records):
            if record.number != number:
                problem = f"event {number} is missing" if record.number > number else f"event {record.number} twice"
                raise ConfigurationError(f"group {name}: {problem}")
            header = decode_event_header(record.data)
            if header.size != len(record.data):
                raise EventError(f"event {number} says it has {header.size} bytes, it has {len(record.data)}")
        header = decode_event_header(first.data)
        if header.event_type != EventType.GTID:
            raise EventError("its first event is no GTID event")
        gtid, _ = decode_gtid(header, first.data)
    except EventError as error:
        raise ConfigurationError(f"group {name}: {error}") from None
    if str(gtid) != name:
        raise ConfigurationError(f"group {name}: its GTID event says {gtid}")
    return gtid, first.data, [record.data for record in records[1:]]


def _changes(records: list[Record]) -> Iterator[tuple[str, ChangeKind, bytes | None, bytes | None]]:
    """Table, kind and images, joining the two of an update. Raises ConfigurationError: one of these is missing."""
    before: tuple[str, bytes] | None = None
    for record in records:
        size = record.data[0]
        name, image = record.data[1 : 1 + size].decode(), record.data[1 + size :]
        if (record.code == UPDATE_AFTER) != (before is not None) or (before is not None and before[0] != name):
            raise ConfigurationError(f"an update of {name} has only one of its two images")
        if before is not None:
            yield name, ChangeKind.UPDATE, before[1], image
            before = None
        elif record.code == INSERT:
            yield name, ChangeKind.INSERT, None, image
        elif record.code == DELETE:
            yield name, ChangeKind.DELETE, image, None
        else:
            before = name, image
    if before is not None:
        raise ConfigurationError(f"an update of {before[0]} has only one of its two images")
