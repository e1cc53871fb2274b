"""Transactions as tests write them, and the GTIDs they get."""

from __future__ import annotations

import contextlib
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar, Token
from dataclasses import KW_ONLY, dataclass, field, replace
from types import TracebackType
from typing import Any, NamedTuple, Self, TypedDict, Unpack

from ibbmaster.api.statements import THREAD, Origin, is_of_transaction
from ibbmaster.api.writing import OpenGroup, WritableLog, as_gtid, as_xid
from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.gtid_event import (
    ALTER_SEQ_NO,
    GtidEvent,
    GtidExtraFlag,
    GtidFlag,
    GtidXid,
    encode_gtid_event,
)
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, decode_event_header, encode_event
from ibbmaster.replication.event.query import compress
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.clause import AlterTable, CreateTable, NotUnderstoodError
from ibbmaster.schema.ddl import parse_ddl
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.token import TokenKind, tokens
from ibbmaster.storage.ibb.xa import Xid
from .clock import FixtureClock
from .query_events import query_event
from .tables import RowFormat, RowStep

ALONE = GtidFlag.STANDALONE | GtidFlag.ALLOW_PARALLEL
DDL = ALONE | GtidFlag.DDL
XA_PREPARE = struct.Struct("<BIII")  # in one phase, format id, sizes of gtrid and bqual
DUPLICATE_ENTRY = 1062  # the error for which an ALTER of two phases is rolled back
READ_ONLY_ENGINES = 255  # of the engines of an XA transaction, as 10.11 writes


class GtidOptions(TypedDict, total=False):
    """The GTID of a group: `gtid` itself, or the next one, or `seq_no`, of `domain` and `server_id`."""

    gtid: Gtid | str
    domain: int
    server_id: int
    seq_no: int


class TransactionOptions(GtidOptions, total=False):
    """`is_transactional` (True): it ends by XID; else, as for Aria or MyISAM tables, by COMMIT. Transactions of one
    `commit_id` were committed together. `format` is that of its rows."""

    is_transactional: bool
    commit_id: int
    format: RowFormat


class WrittenStatement(NamedTuple):
    gtid: Gtid
    position: LogPosition
    query: bytes  # its event


class FixtureTransaction:
    """An open transaction. Made by `FixturePrimary.transaction`. As a context it takes the changes of tables inside,
    commits at the end, and rolls back after an exception. Without changes it is not logged."""

    def __init__(self, writer: FixtureWriter, options: TransactionOptions) -> None:
        self.writer = writer
        self._options = options
        named = writer.named(options)
        self.server_id, self.domain = named.server_id, named.domain_id
        self.is_transactional = options.get("is_transactional", True)
        self.format = options.get("format", writer.format)
        self.gtid: Gtid | None = None  # once it is committed
        self.is_open = True
        self._group: OpenGroup = writer.log.begin(server_id=self.server_id)
        self._steps: list[RowStep] = []
        self._savepoints: dict[str, int] = {}
        self._has_events = False
        self._token: Token[tuple[FixtureTransaction, ...]] | None = None

    # What it takes

    def statement(self, sql: str, *, database: str = "") -> None:
        """Log a statement that changes rows as its text, unnoticed by any `FixtureTable`. Raises ConfigurationError: it
        is a group by itself, as DDL is."""
        if not is_of_transaction(sql):
            raise ConfigurationError(f"{sql[:60]!r} is a group by itself, as it is in MariaDB: give it to ddl()")
        self.take([_packed(self._query(sql, database), sql, self.format)], ())

    def annotate(self, sql: str) -> None:
        """Name the statement of the next row changes in an ANNOTATE_ROWS event."""
        timestamp = self.writer.clock.timestamp
        body = sql.encode()
        event = encode_event(
            event_type=EventType.ANNOTATE_ROWS, body=body, server_id=self.server_id, timestamp=timestamp
        )
        self.take([event], ())

    def take(self, events: Iterable[bytes], steps: Sequence[RowStep]) -> None:
        self._expect_open()
        self._group.write(b"".join(events))
        self._steps += steps
        self._has_events = True

    def savepoint(self, name: str) -> None:
        """Remember this place, instead of an earlier one of that name."""
        self.take([self._query(f"SAVEPOINT `{name}`")], ())
        self._group.savepoint(name)
        self._savepoints[name] = len(self._steps)

    def roll_back_to(self, name: str) -> None:
        """Undo everything since a savepoint. Raises ConfigurationError: none has that name."""
        self._expect_open()
        if name not in self._savepoints:
            known = ", ".join(self._savepoints) or "none"
            raise ConfigurationError(f"there is no savepoint {name!r}; there are: {known}")
        self._group.roll_back_to(name)
        count = self._savepoints[name]
        self._undo(self._steps[count:])
        del self._steps[count:]
        self._savepoints = {kept: steps for kept, steps in self._savepoints.items() if steps <= count}

    # How it ends

    def commit(self) -> Gtid | None:
        """Log it; None if it changed nothing. Raises GtidOrderError: its GTID is not newer than those of its domain."""
        self._expect_open()
        if not self._has_events:
            self.roll_back()
            return None
        flags = GtidFlag.ALLOW_PARALLEL | (GtidFlag.TRANSACTIONAL if self.is_transactional else GtidFlag(0))
        try:
            with self.writer.next_gtid(self._options) as gtid:
                origin = self.writer.origin(self.server_id)
                self._group.write(origin.xid(gtid.seq_no) if self.is_transactional else self._query("COMMIT"))
                self._group.commit(gtid, self._gtid_event(gtid, flags))
        except BaseException:
            self.roll_back()
            raise
        self._end()
        self.gtid = gtid
        return gtid

    def roll_back(self) -> None:
        """Undo everything; a second call does nothing."""
        if self.is_open:
            self._group.roll_back()
            self._undo(self._steps)
            self._end()

    def prepare(self, xid: Xid | str) -> None:
        """XA PREPARE: its rows wait for `xa_commit` or `xa_rollback` of its primary. A log of 12.3 has nothing of it
        before the commit, that of a traditional primary a group."""
        self._expect_open()
        name = as_xid(xid)
        if name in self.writer.prepared:
            raise ConfigurationError(f"{name.gtrid!r} is the name of a prepared transaction already")
        if self.writer.has_prepared_groups:
            shown = GtidXid(format_id=name.format_id, gtrid=name.gtrid, bqual=name.bqual)
            origin = self.writer.origin(self.server_id)
            with self.writer.next_gtid(self._options) as gtid:
                self._group.write(self._query(f"XA END {shown}"))
                self._group.write(_xa_prepare_event(name, origin))
                flags = GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL | GtidFlag.PREPARED_XA
                self._group.commit(gtid, self._gtid_event(gtid, flags, shown))
            self.gtid = gtid
        else:
            self._group.write(self._query("COMMIT"))
            self._group.prepare(name)
        self._undo(self._steps)
        self.writer.prepared[name] = self._steps
        self._end()

    def __enter__(self) -> Self:
        self._token = OPEN.set((*OPEN.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            OPEN.reset(self._token)
            self._token = None
        if not self.is_open:
            return
        if error is None:
            self.commit()
        else:
            self.roll_back()

    def _end(self) -> None:
        self.is_open = False
        self._steps = []

    def _expect_open(self) -> None:
        if not self.is_open:
            raise ConfigurationError("the transaction has ended: begin another one")

    def _query(self, sql: str, database: str = "") -> bytes:
        return self.writer.query(sql, self.writer.origin(self.server_id, database))

    def _gtid_event(self, gtid: Gtid, flags: GtidFlag, xid: GtidXid | None = None) -> bytes:
        commit_id = self._options.get("commit_id")
        value = GtidEvent(
            gtid=gtid,
            flags=flags | (GtidFlag(0) if commit_id is None else GtidFlag.GROUP_COMMIT),
            commit_id=commit_id,
            xid=xid,
            extra_flags=None if xid is None else GtidExtraFlag.MULTI_ENGINE,
            engine_count=None if xid is None else READ_ONLY_ENGINES,
        )
        return self.writer.gtid_event(value)

    @staticmethod
    def _undo(steps: Sequence[RowStep]) -> None:
        for step in reversed(steps):
            step.undo()


#: The transactions that are open as contexts where the test is now, the innermost last.
OPEN: ContextVar[tuple[FixtureTransaction, ...]] = ContextVar("OPEN", default=())


@dataclass(eq=False)
class FixtureWriter:
    """The part of a `FixturePrimary` that writes its log."""

    log: WritableLog
    clock: FixtureClock
    _: KW_ONLY
    writes_as: int  # the server id of its groups
    domain: int
    format: RowFormat
    has_prepared_groups: bool  # XA PREPARE is a group of its own, as before 12.3
    is_new: bool  # as `query_events.is_new`
    history: SchemaHistory
    prepared: dict[Xid, list[RowStep]] = field(default_factory=dict, init=False)  # changes
    _alters: dict[Gtid, tuple[str, str]] = field(default_factory=dict, init=False)  # statements, databases
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)  # of whatever takes the next GTID

    def transaction(self, **options: Unpack[TransactionOptions]) -> FixtureTransaction:
        """Begin a transaction: `with primary.transaction(domain=1): ...` takes the changes of tables inside. Raises
        GtidError: that is no GTID."""
        return FixtureTransaction(self, options)

    @contextlib.contextmanager
    def taking(self, *, is_apart: bool = False) -> Iterator[FixtureTransaction]:
        """The transaction that is open here, or one of a single statement. Rollbacks and commits leave out what is
        logged with `is_apart`."""
        here = next((one for one in reversed(OPEN.get()) if one.writer is self and one.is_open), None)
        if here is not None and not (is_apart and here.is_transactional):
            yield here
            return
        options: TransactionOptions = {"is_transactional": not is_apart}
        if here is not None:
            options |= {"domain": here.domain, "server_id": here.server_id, "format": here.format}
        with FixtureTransaction(self, options) as alone:
            yield alone

    def _log_ddl(self, sql: str, database: str, options: GtidOptions) -> WrittenStatement:
        if is_of_transaction(sql):
            raise ConfigurationError(f"{sql[:60]!r} changes rows: give it to transaction().statement()")
        expect_statement(sql, database)
        is_of_sequence = Cursor(tokens(sql)).takes_words("ALTER", "SEQUENCE")
        return self._log_statement(sql, database, options, flags=ALONE if is_of_sequence else DDL)

    def start_alter(self, sql: str, *, database: str = "", **options: Unpack[GtidOptions]) -> Gtid:
        """Log START ALTER, as with `binlog_alter_two_phase`; the table stays as it was. Raises ConfigurationError: it
        is no ALTER TABLE."""
        if not sql.lstrip().upper().startswith("ALTER"):
            raise ConfigurationError(f"{sql[:60]!r} is no ALTER TABLE")
        expect_statement(sql, database)
        started = self._log_statement(sql, database, options, phase=GtidExtraFlag.START_ALTER)
        self._alters[started.gtid] = sql, database
        return started.gtid

    def rollback_alter(self, started: Gtid | str, **options: Unpack[GtidOptions]) -> Gtid:
        """Log ROLLBACK ALTER for the START of that GTID. Raises ConfigurationError: there is no such START."""
        return self._end_alter(started, GtidExtraFlag.ROLLBACK_ALTER, options).gtid

    def _end_alter(self, started: Gtid | str, end: GtidExtraFlag, options: GtidOptions) -> WrittenStatement:
        start = as_gtid(started)
        alter = self._alters.get(start)
        if alter is None:
            known = ", ".join(map(str, self._alters)) or "none"
            raise ConfigurationError(f"no ALTER has begun with {start}; begun have: {known}")
        options = {"domain": start.domain_id, "server_id": start.server_id, **options}
        ended = self._log_statement(*alter, options, phase=end, started=start.seq_no)
        del self._alters[start]
        return ended

    def _log_statement(
        self,
        sql: str,
        database: str,
        options: GtidOptions,
        *,
        flags: GtidFlag = DDL,
        phase: GtidExtraFlag | None = None,
        started: int | None = None,
    ) -> WrittenStatement:
        part = b"" if phase is None else bytes([phase]) + (b"" if started is None else ALTER_SEQ_NO.pack(started))
        is_done = phase in (None, GtidExtraFlag.COMMIT_ALTER)
        error_code = DUPLICATE_ENTRY if phase is GtidExtraFlag.ROLLBACK_ALTER else 0
        with self.next_gtid(options) as gtid:
            origin = self.origin(gtid.server_id, database)
            number = gtid.seq_no if is_done else None
            event = self.query(sql, origin, number=number, alter=part, error_code=error_code)
            query = _packed(event, sql, self.format)
            head = self.gtid_event(GtidEvent(gtid=gtid, flags=flags, extra_flags=phase, alter_seq_no=started))
            return WrittenStatement(gtid, self.log.append(gtid, [head, query]), query)

    def xa_commit(self, xid: Xid | str, **options: Unpack[GtidOptions]) -> Gtid:
        """XA COMMIT of a prepared transaction. Raises ConfigurationError: none has that name."""
        name = self._prepared_name(xid)
        if self.has_prepared_groups:
            gtid = self._end_prepared("XA COMMIT", name, options)
        else:
            with self.next_gtid(options) as gtid:
                flags = GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL
                self.log.xa_commit(name, gtid, self.gtid_event(GtidEvent(gtid=gtid, flags=flags)))
        for step in self.prepared.pop(name):
            step.redo()
        return gtid

    def xa_rollback(self, xid: Xid | str, **options: Unpack[GtidOptions]) -> Gtid | None:
        """XA ROLLBACK of a prepared transaction; None if the log says nothing of it. Raises ConfigurationError: none
        has that name."""
        name = self._prepared_name(xid)
        gtid = None
        if self.has_prepared_groups:
            gtid = self._end_prepared("XA ROLLBACK", name, options)
        else:
            self.log.xa_rollback(name)
        del self.prepared[name]
        return gtid

    def gtid_event(self, value: GtidEvent) -> bytes:
        if self.is_new:
            extra_flags = (value.extra_flags or GtidExtraFlag(0)) | GtidExtraFlag.THREAD_ID
            value = replace(value, extra_flags=extra_flags, thread_id=THREAD)
        return encode_gtid_event(value, timestamp=self.clock.timestamp)

    def query(self, sql: str, origin: Origin, **given: Any) -> bytes:
        """The QUERY event of a statement that runs now; options as of `query_event`."""
        now = self.clock.microseconds
        return query_event(sql, origin, self.history.at(), is_new=self.is_new, microseconds=now, **given)

    def origin(self, server_id: int, database: str = "") -> Origin:
        return Origin(server_id=server_id, timestamp=self.clock.timestamp, database=database)

    def named(self, options: GtidOptions) -> Gtid:
        """The GTID of a group that began now. Raises GtidError: one of its numbers is too large, or negative."""
        if "gtid" in options:
            return as_gtid(options["gtid"])
        domain = options.get("domain", self.domain)
        latest = self.log.state.latest(domain)
        seq_no = options.get("seq_no", 1 if latest is None else latest.seq_no + 1)
        return Gtid.parse(f"{domain}-{options.get('server_id', self.writes_as)}-{seq_no}")

    @contextlib.contextmanager
    def next_gtid(self, options: GtidOptions) -> Iterator[Gtid]:
        """The GTID of the next group, to be logged inside of this context."""
        with self._lock:
            yield self.named(options)

    def _prepared_name(self, xid: Xid | str) -> Xid:
        name = as_xid(xid)
        if name not in self.prepared:
            known = ", ".join(repr(one.gtrid.decode("utf-8", "replace")) for one in self.prepared) or "none"
            raise ConfigurationError(f"no transaction {xid!r} is prepared; prepared are: {known}")
        return name

    def _end_prepared(self, verb: str, name: Xid, options: GtidOptions) -> Gtid:
        """A traditional log ends in a group what it has prepared in another one."""
        shown = GtidXid(format_id=name.format_id, gtrid=name.gtrid, bqual=name.bqual)
        flags = GtidFlag.STANDALONE | GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL | GtidFlag.COMPLETED_XA
        with self.next_gtid(options) as gtid:
            head = self.gtid_event(GtidEvent(gtid=gtid, flags=flags, xid=shown))
            self.log.append(gtid, [head, self.query(f"{verb} {shown}", self.origin(gtid.server_id))])
        return gtid


def expect_statement(sql: str, database: str) -> None:
    """Raises ConfigurationError: a server would not take the statement, or its definitions cannot be read."""
    problem = _problem_of(sql, database)
    if problem:
        raise ConfigurationError(
            f"{sql[:60]!r} is not a statement that is known here: {problem}; "
            "if a server takes it, log.append(gtid, sql) logs it as it is"
        )


def _problem_of(sql: str, database: str) -> str:
    cut = list(tokens(sql))
    if not cut:
        return "it is empty"
    signs = [token.text for token in cut if token.kind is TokenKind.SIGN]
    if signs.count("(") != signs.count(")"):
        return f"it has {signs.count('(')} brackets that open and {signs.count(')')} that close"
    try:
        found = parse_ddl(sql, database)
    except NotUnderstoodError as error:
        return str(error)
    if not isinstance(found, (CreateTable, AlterTable)):
        return ""
    if found.problem is None and isinstance(found, CreateTable):
        has_columns = found.definitions or found.like is not None or found.selects
        return "" if has_columns else "a table has at least one column"
    return found.problem or ""


def _packed(query: bytes, sql: str, format: RowFormat) -> bytes:
    """As `log_bin_compress` writes it, or unchanged."""
    if not format.is_compressed:
        return query
    text, header = sql.encode(), decode_event_header(query)
    return encode_event(
        event_type=EventType.QUERY_COMPRESSED,
        body=query[EVENT_HEADER_SIZE : len(query) - len(text)] + compress(text),
        server_id=header.server_id,
        timestamp=header.timestamp,
        flags=header.flags,
    )


def _xa_prepare_event(name: Xid, origin: Origin) -> bytes:
    body = XA_PREPARE.pack(0, name.format_id, len(name.gtrid), len(name.bqual)) + name.gtrid + name.bqual
    return encode_event(
        event_type=EventType.XA_PREPARE, body=body, server_id=origin.server_id, timestamp=origin.timestamp
    )
