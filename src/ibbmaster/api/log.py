"""A binlog as users hold it, to be read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack

from ibbmaster.api.group import Group, RowShapes
from ibbmaster.api.log_files import LogFiles, LogVerification, OnBytes, PagedLogFiles
from ibbmaster.arrow.read_options import parse_schema_mode
from ibbmaster.arrow.schema_reading import schema_of_log, versions_of
from ibbmaster.disk.local import RealDisk
from ibbmaster.disk.place import open_disk, place
from ibbmaster.disk.uploading import is_of_log, made_place
from ibbmaster.dump.error import DumpError
from ibbmaster.dump.request import DumpRequest
from ibbmaster.dump.skipping import GroupFilter
from ibbmaster.dump.start import check_start
from ibbmaster.errors import ConfigurationError, PositionPurgedError, StoreError
from ibbmaster.event.group import EventGroup
from ibbmaster.event.rows.declared import Declaration
from ibbmaster.extras import needed_for
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.log.directory import END_POLL_PERIOD_S
from ibbmaster.log.group_content import RowReader
from ibbmaster.log.history_cache import HistoryCache
from ibbmaster.log.interface import LogEngine, LogFile, ReadPlan, are_paged
from ibbmaster.log.large_rows import large_rows
from ibbmaster.log.locating import expect_logged, locate
from ibbmaster.log.schema_history import LoggedSchema
from ibbmaster.log.seek import SeekPlan
from ibbmaster.log.time_search import TimeStart, parse_time, time_start
from ibbmaster.player.played_log import Pace, PlayedLog
from ibbmaster.player.repeated_log import RepeatedLog
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.rows.shape import SchemaMode
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.schema.name_case import NameCase
from ibbmaster.schema.versions import TableState
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.stages.engine import StagedLog
from ibbmaster.stages.options import StageOptions, expect_only, renamed_table, staged
from ibbmaster.stages.span import LogSpan, span_so_far
from ibbmaster.store.backup import BackupReport, back_up

if TYPE_CHECKING:
    import pyarrow as pa

    from ibbmaster.arrow.read_options import ReadOptions

FOLLOW_PERIOD_S = 1.0  # between two questions to a follower whether to go on
BLOCK_SIZE = 512  # bytes, in which the system counts what a file has of the disk
Position = GtidPosition | Gtid | str  # what may name how far a replica is; text as `0-1-100,1-1-7`


def as_position(position: Position) -> GtidPosition:
    """A position from any of its forms. Raises GtidError: the text is none."""
    if isinstance(position, str):
        return GtidPosition.parse(position)
    return GtidPosition([position]) if isinstance(position, Gtid) else position


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a dump from a GTID position begins, or why there is none.

    `refusal` is the error that a replica gets, `reason` why; both are None where the
    position can be served. Then reading begins at `place`, in file `file_name`, and `state` was
    logged before; `plan` has the steps of the search in `.ibb` files.
    """

    position: GtidPosition
    file_name: str | None = None
    place: LogPosition | None = None
    state: GtidState | None = None
    plan: SeekPlan | None = None
    refusal: str | None = None
    reason: str | None = None

    def explain(self) -> str:
        """The search in words, one step a line."""
        if self.refusal is not None:
            return f"position [{self.position}]\n  refused: {self.refusal}\n  because: {self.reason}"
        if self.plan is not None:
            return str(self.plan)
        assert self.place is not None
        return f"position [{self.position}]\nstart at {self.file_name} offset {self.place.offset}, state [{self.state}]"


class Log:
    """A binlog: a directory of `.ibb` files, or traditional files. Made by `ibbmaster.open`. May be used by many
    threads; what `groups` gives belongs to its caller. The log may grow meanwhile."""

    is_written = False
    stages: tuple[StageOptions, ...] = ()  # that it has gone through, if it is a part of the log of its files
    spans: tuple[LogSpan | None, ...] = ()  # which part, by each of them

    def __init__(
        self,
        path: Path,
        engine: LogEngine,
        *,
        stored: LogFiles | None = None,
        schema: Mapping[str, Declaration] | None = None,
        name_case: NameCase | None = None,
        row_event_max: int | None = None,
    ) -> None:
        self.path = path
        self.row_event_max = row_event_max  # bytes of one, put together and unpacked; None: what a log can have
        self.name_case = name_case  # how its server compares names of tables; None: what the log says
        self._engine = engine
        self.stored = stored or PagedLogFiles(path, engine)  # what its kind of files answers
        key = (name_case or NameCase.EXACT).key
        self._schema = {key(table): declared for table, declared in (schema or {}).items()}
        self._logged_schema: LoggedSchema | None = None
        self._history: SchemaHistory | None = None  # as far as it was asked for
        self._history_lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}>"

    @property
    def engine(self) -> LogEngine:
        """What serves it: for `ibbmaster.serve`."""
        return self._engine

    @property
    def files(self) -> list[LogFile]:
        """Every file with name and size in bytes, the oldest first."""
        return [file for file in self._engine.files() if file.size]

    @property
    def state(self) -> GtidState:
        """What is logged: the last sequence number of each domain and server."""
        return self._engine.state()

    @property
    def position(self) -> GtidPosition:
        """The latest GTID of each domain: where a replica is that has everything."""
        return self.state.position()

    @property
    def history_cache(self) -> HistoryCache:
        """Where its schema history is kept."""
        return HistoryCache(self.path, is_written=self.is_written)

    # Reading --------------------------------------------------------------------------------

    def groups(
        self,
        after: Position | None = None,
        until: Position | None = None,
        *,
        schema_mode: str = "asWritten",
        asks_statements: bool = False,
        at_end: Callable[[], bool] | None = None,
    ) -> Iterator[Group]:
        """The groups of the log in order; with `after` those that a replica at that position lacks.

        With `until` those up to its GTIDs, these included; domains that it does not name have
        none. Ends at the end of the log as it is when it is reached.

        Rows have the names and types that their table had when they were written; with
        `schema_mode` "latest" those it has at the end of the log, with "at:GTID" those after that
        position, and what is known there of columns that came later: docs/spark-reference.md.

        Types that no event says (UUID, INET4, INET6, VECTOR: bytes) are taken from the statements of the log
        where names are, and with `asks_statements` everywhere.

        With `at_end` it waits for more at the end of the log, and asks that there first, and about every second: it
        ends where the answer is False.

        Raises:
            ConfigurationError: `schema_mode` is none of these.
            GtidError: a text is no position.
            PositionPurgedError: a group that is wanted is in no file any more.
            PositionError: a GTID is not in this log.
            FormatError, ClassicFormatError, StoreError: the log cannot be read; perhaps only on the way.
        """
        engine, state = self._engine, self.state
        shapes = self._row_shapes(schema_mode)
        end = None if until is None else as_position(until)
        position = GtidPosition() if after is None else as_position(after)
        for gtid in (*position.values(), *(end or GtidPosition()).values()):
            expect_logged(gtid, state)
        if after is None:
            plan = engine.start_of_file()
            position = plan.state.position()
        else:
            plan = engine.seek(position)
        request = DumpRequest(replica_server_id=0, position=position, until=end)
        judge = GroupFilter(request, check_start(request, state), start_state=plan.state, current_state=engine.state)
        return self._read(plan, judge, shapes, asks_seldom=shapes is None and not asks_statements, at_end=at_end)

    def __iter__(self) -> Iterator[Group]:
        return self.groups()

    def _row_shapes(self, schema_mode: str) -> RowShapes | None:
        mode, gtid = parse_schema_mode("schema_mode", schema_mode)
        if mode is SchemaMode.AS_WRITTEN:
            return None
        place = self._engine.end()
        if gtid is not None:
            place = max(locate(self._engine, as_position(gtid)).values())
        with self._history_lock:  # where statements do not define all tables rows define the others, from now on
            self._history = history = self._schema_of_log().history(
                lambda found: not versions_of(found, lambda _: True).are_defined(), up_to=LOG_START
            )
        return RowShapes(lambda database, table: history.table_at(database, table, SchemaPlace(place, 0)))

    def _table_at(self, database: str, table: str, place: SchemaPlace) -> TableState | None:
        """The version of a table; the statements of the log are folded as far as they are asked for."""
        with self._history_lock:
            if self._history is None or place.position >= self._history.end:
                self._history = self._schema_of_log().history(up_to=place.position)
            return self._history.table_at(database, table, place)

    def _schema_of_log(self) -> LoggedSchema:
        if self._logged_schema is None:
            self._logged_schema = schema_of_log(
                self._engine.with_past, self._schema, self.history_cache, case=self.name_case
            )
        return self._logged_schema

    def forget_history(self) -> None:
        """The log begins anew: what its tables were is nothing to go on from."""
        with self._history_lock:
            self._logged_schema = self._history = None

    def _read(
        self,
        plan: ReadPlan,
        judge: GroupFilter,
        shapes: RowShapes | None,
        *,
        asks_seldom: bool,
        at_end: Callable[[], bool] | None = None,
    ) -> Iterator[Group]:
        rows = RowReader(
            declarations=self._schema,
            keeps_bytes=True,
            find_version=self._table_at,
            asks_seldom=asks_seldom,
            large=large_rows(self.row_event_max),
        )
        with closing(self._engine.groups(plan)) as reader:
            while not judge.is_until_reached:
                found = reader.next_group()
                if found is None:
                    if not (are_paged(reader) and reader.expects_more):
                        if at_end is None or self._engine.is_over or not at_end():
                            break
                        self._engine.wait_for_growth(FOLLOW_PERIOD_S)
                        continue
                    time.sleep(END_POLL_PERIOD_S)  # another process writes there; an end before the end is damage
                elif found.gtid is not None and judge.judge(found.gtid).is_wanted:
                    group = Group(found, rows=rows, shapes=shapes, find=self._find, place=self.stored.place)
                    yield group
                    group.detach()

    def _find(self, start: LogPosition) -> Generator[EventGroup]:
        """The group that begins at a place; nothing if it is gone. It is good until the next group is read."""
        try:
            plan = self.stored.plan_of_group(start)
        except LookupError:
            return
        with closing(self._engine.groups(plan)) as reader:
            while (found := reader.next_group()) is not None and found.start <= start:
                if found.start == start:
                    yield found

    def through(self, **options: Unpack[StageOptions]) -> StagedView:
        """A part of this log, and what is left of it: a log like any other, to be read, served or copied.

        `after` and `until` are GTIDs, as in `groups`, or times, as in `seek_time`; `only` and `except_` patterns for
        tables, as "shop.*", `domain` and `server` numbers, `kinds` some of "rows", "statements" and "ddl", each one or
        several, also as text with commas between. A transaction of which nothing is left keeps its GTID and is empty,
        with `drop_empty` it is left out. A statement under a filter of tables that is not understood is an error when
        it is read. `rename` gives databases and tables other names, as "shop=stage", `map_server_id` and `map_domain`
        other numbers, as "1=7". docs/playing.md has the details.

        Raises:
            ConfigurationError: an option cannot be used with this log; or a pattern of `only` matches no table, though
                neither `after` nor `until` is given. The error names those that there are.
            GtidError: a text is no position.
            PositionError, FormatError, ClassicFormatError, StoreError: as `groups`.
        """
        log = staged(self._engine, options, self.name_case, self._folded_schema)
        expect_only(log, options)
        return StagedView(self, log, options)

    def played(self, pace: str = "original", *, rounds: int | None = 1, starts_when_read: bool = False) -> PlayedView:
        """This log as a recording that is played: a log that grows, to be served.

        `pace` is "original", a factor as "x10" or "x0.5", "max", or "step": then each `player.step()` logs one
        transaction. It comes `rounds` times, without end if that is None, each round with newer GTIDs and later
        times. The clock runs from now on, or with `starts_when_read` from the first reader on. What is appended to
        the log later is not part of the recording.

        Raises ConfigurationError: `pace` is none of these, there is nothing to play, or the numbers of a domain end in
        these rounds; FormatError, ClassicFormatError, StoreError: the log cannot be read.
        """
        speed = Pace.parse(pace)
        if rounds is not None and rounds < 1:
            raise ConfigurationError(f"{rounds} rounds: expected at least 1")
        if not self.state:
            raise ConfigurationError(f"{self.path}: there is no transaction to play")
        engine = self._engine
        if not engine.is_over:
            engine = StagedLog(engine, span=span_so_far(engine))
        if rounds != 1:
            engine = RepeatedLog(engine, rounds)
        return PlayedView(self, PlayedLog(engine, speed, time.monotonic, starts_when_read=starts_when_read))

    def _folded_schema(self) -> SchemaHistory:
        """What the statements of the log have made of its tables, up to now."""
        with self._history_lock:
            return self._schema_of_log().history()

    def seek(self, position: Position) -> Start:
        """Where a dump from a GTID position begins, and how that is found; or why it is refused. Raises GtidError: the
        text is no position; StoreError: there is nothing to look in, or it cannot be read."""
        wanted = as_position(position)
        if not self.files:
            raise StoreError(f"{self.path}: no binlog files (binlog-000000.ibb and so on)")
        try:
            check_start(DumpRequest(replica_server_id=0, position=wanted), self.state)
            plan = self._engine.seek(wanted)
        except DumpError as error:
            return Start(position=wanted, refusal=error.text, reason=error.explanation)
        except PositionPurgedError as error:
            return Start(position=wanted, refusal="the position is too old", reason=str(error))
        return Start(
            position=wanted,
            file_name=self._engine.file_name(plan.position.file_no),
            place=self.stored.place(plan.position),
            state=plan.state,
            plan=plan if isinstance(plan, SeekPlan) else None,
        )

    def seek_time(self, time: str) -> TimeStart:
        """The first transaction that is not older than a time, as "2026-11-20 14:03:05+01:00", found by halving.

        The time of a transaction is when it, or its only statement, was committed or began, as its server's clock said;
        docs/playing.md says what that means where these times are not in order. Without a zone the time is a local one.

        Raises ConfigurationError: the text is no time, or the log begins later; StoreError, FormatError,
        ClassicFormatError: there is nothing in it, or it cannot be read.
        """
        return time_start(self._engine, parse_time("time", time))

    def to_arrow(
        self,
        *,
        table: str | None = None,
        after: Position | None = None,
        until: Position | None = None,
        columns: Sequence[str] = (),
        schema_mode: str = "latest",
        complete_keys: bool = False,
    ) -> pa.Table:
        """Every change of every row, or with `table` ("database.table") those of one, with columns of its own types.

        The columns are those of the DataFrames that docs/spark-reference.md describes; `columns` takes some of them.
        `schema_mode` says which columns a table has that the log alters: "latest", "asWritten" or "at:GTID". With
        `complete_keys` an image after an update has the values of the one before it in columns that it leaves out, as
        under binlog_row_image=MINIMAL its key. `after` and `until` are as in `groups`. It is the log as its files have
        it, which of one that another process writes may be a second old; all of it is in memory.

        Raises:
            ConfigurationError: there is no such table or column, or its columns have no names; or pyarrow is missing.
            DamageError: groups are in the redo log of a writer that is gone, and not in the files.
            EventError: a value cannot be read.
            PositionError, FormatError, ClassicFormatError, StoreError: as `groups`.
        """
        with needed_for("to_arrow"):
            import numpy  # noqa: F401  # wanted by what is imported later
            import pyarrow as pa

        from ibbmaster.arrow.plan import find_fields, plan_tasks
        from ibbmaster.arrow.reading import read_task
        from ibbmaster.arrow.shape import arrow_schema

        options = self._changes_options(
            "to_arrow",
            tables=() if table is None else (table,),
            after=after,
            until=until,
            columns=columns,
            schema_mode=schema_mode,
            complete_keys=complete_keys,
        )
        options = replace(options, table=next(iter(options.tables), None))
        fields = find_fields(options)
        batches = [batch for task in plan_tasks(options, fields) for batch in read_task(task)]
        return pa.Table.from_batches(batches, schema=arrow_schema(fields))

    def to_arrow_tables(
        self,
        tables: str | Sequence[str] = "*.*",
        *,
        after: Position | None = None,
        until: Position | None = None,
        schema_mode: str = "latest",
        complete_keys: bool = False,
    ) -> dict[str, pa.Table]:
        """The changes of several tables, each as `to_arrow` gives them, by name: the log's rows are read once for all.

        `tables` is a pattern, or several, as "shop.*". Every table that is there at the end, or was written to, is
        among them, by its name there. Other arguments, and errors, are those of `to_arrow`.

        Raises ConfigurationError: a pattern matches no table; the error names those that there are.
        """
        with needed_for("to_arrow_tables"):
            import numpy  # noqa: F401  # wanted by what is imported later
            import pyarrow as pa

        from ibbmaster.arrow.many_tables import find_tables, plan_tables, read_tables
        from ibbmaster.arrow.shape import arrow_schema

        patterns = (tables,) if isinstance(tables, str) else tuple(tables)
        options = self._changes_options(
            "to_arrow_tables",
            tables=patterns,
            after=after,
            until=until,
            schema_mode=schema_mode,
            complete_keys=complete_keys,
        )
        found = find_tables(options)
        batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in found}
        for task in plan_tables(options, found):
            for name, batch in read_tables(task):
                batches[name].append(batch)
        return {name: pa.Table.from_batches(batches[name], arrow_schema(fields)) for name, fields in found.items()}

    def _changes_options(
        self,
        reader: str,
        *,
        tables: tuple[str, ...],
        after: Position | None,
        until: Position | None,
        columns: Sequence[str] = (),
        schema_mode: str,
        complete_keys: bool,
    ) -> ReadOptions:
        """The options with which a reader gets the changes of tables; errors as `to_arrow`."""
        from ibbmaster.arrow.read_options import with_keys
        from ibbmaster.kernel.loading import do_pay

        mode, schema_at = parse_schema_mode("schema_mode", schema_mode)
        self._expect_files(reader)
        return with_keys(
            self.read_options(
                stages=self.stages,
                spans=self.spans,
                tables=tables,
                starting_gtid=None if after is None else str(as_position(after)),
                ending_gtid=None if until is None else str(as_position(until)),
                columns=tuple(columns),
                schema_mode=mode,
                schema_at=schema_at,
                completes_keys=complete_keys,
                uses_kernels=do_pay(self.stored_bytes),
            )
        )

    def snapshot(
        self,
        table: str,
        at: Position | None = None,
        *,
        key: Sequence[str] = (),
        zero_dates: str = "null",
        base: str | Path | None = None,
        on_doubt: Callable[[str], object] | None = None,
    ) -> pa.Table:
        """The rows that a table ("database.table") has at a GTID position, or at the end of the log.

        They are exactly those that its server had there, and the metadata of the result say so, under
        `exact at GTID`; else it is an error that says since which GTID they are not, and why. With `on_doubt` that
        hears it instead, and the rows are what the changes of rows come to, distinguished by `key`, or the primary key.
        `zero_dates` "text" makes texts of dates, so that `0000-00-00` is kept. `base` is the path of
        a dump with the GTID position that the log goes on from, as `mariadb-dump --master-data --gtid` writes it. The
        same is answered by `ibbmaster lake snapshot`.

        Raises:
            InexactError: rows have changed in ways that the log does not show.
            ConfigurationError: there is no such table, its columns have no names, or pyarrow is missing.
            DamageError, EventError, PositionError, FormatError, ClassicFormatError, StoreError: as `to_arrow`.
        """
        with needed_for("snapshot"):
            import pyarrow  # noqa: F401  # wanted by what is imported later

        from ibbmaster.lake.arrow_snapshots import arrow_snapshot

        return arrow_snapshot(self._table_options(table, at, zero_dates, base), key=key, on_doubt=on_doubt)

    def history(
        self,
        table: str,
        at: Position | None = None,
        *,
        key: Sequence[str] = (),
        zero_dates: str = "null",
        base: str | Path | None = None,
        on_doubt: Callable[[str], object] | None = None,
    ) -> pa.Table:
        """Every version that each row of a table has had up to a GTID position, or to the end of the log.

        Beside its values it has `_valid_from` and `_valid_to`, when it held, `_gtid_from` and `_gtid_to`, and
        `_is_current`. Other arguments, metadata and errors are those of `snapshot`.
        """
        with needed_for("history"):
            import pyarrow  # noqa: F401  # wanted by what is imported later

        from ibbmaster.lake.arrow_snapshots import arrow_history

        options = self._table_options(table, at, zero_dates, base, reader="history")
        return arrow_history(options, key=key, on_doubt=on_doubt)

    def difference(
        self,
        table: str,
        after: Position,
        until: Position | None = None,
        *,
        zero_dates: str = "null",
        base: str | Path | None = None,
    ) -> pa.Table:
        """How the rows of a table at one GTID position differ from those at a later one, or at the end of the log.

        `_change_type` is "insert", "delete", or "update_preimage" with "update_postimage" after it; a row that has
        come and gone meanwhile, or has its old values again, is in none. The columns are those of the later position,
        and those that the table has had since then alone are NULL in earlier rows, and no difference by themselves.

        Raises: as `snapshot`; ConfigurationError also where a column has values of other types at the two.
        """
        with needed_for("difference"):
            import pyarrow  # noqa: F401  # wanted by what is imported later

        from ibbmaster.lake.arrow_snapshots import arrow_difference

        options = self._table_options(table, until, zero_dates, base, reader="difference")
        return arrow_difference(replace(options, starting_gtid=str(as_position(after))))

    def _table_options(
        self,
        table: str,
        at: Position | None,
        zero_dates: str,
        base: str | Path | None = None,
        *,
        reader: str = "snapshot",
    ) -> ReadOptions:
        """The options for one table up to a position. Raises ConfigurationError: an argument is none that is known."""
        from ibbmaster.arrow.read_options import ZeroDates
        from ibbmaster.kernel.loading import do_pay

        table = str(parse_table_name(table))
        if zero_dates not in ("null", "text"):
            raise ConfigurationError(f"zero_dates is {zero_dates[:60]!r}, expected null or text")
        self._expect_files(reader)
        if base is not None and self.stages:
            raise ConfigurationError("a base is of a log as it is written, and this one goes through stages")
        return self.read_options(
            base=None if base is None else str(base),
            stages=self.stages,
            spans=self.spans,
            table=table,
            tables=(table,),
            ending_gtid=None if at is None else str(as_position(at)),
            zero_dates=ZeroDates(zero_dates),
            uses_kernels=do_pay(self.stored_bytes),
        )

    def _expect_files(self, what: str) -> None:
        """See that the files of the log have all that `what` is to read. Raises ConfigurationError: it cannot be read
        from files; DamageError: groups are in the redo log of a writer that is gone, and not in the files."""
        self.bring_to_files()
        self.stored.expect_whole()

    def read_options(self, **given: Any) -> ReadOptions:
        """The options with which record batches of this log are read; `given` are more of their fields."""
        from ibbmaster.arrow.read_options import ReadOptions

        return ReadOptions(
            path=str(self.path.absolute()),
            is_classic=self.stored.is_classic,
            declarations={name: dict(declared) for name, declared in self._schema.items()},
            name_case=self.name_case,
            row_event_max=self.row_event_max,
            **given,
        )

    @property
    def stored_bytes(self) -> int:
        """What its files take on the disk: less than their sizes where they were made for what is to come."""
        paths = (self.path if self.path.is_file() else self.path / file.name for file in self.files)
        return sum(path.stat().st_blocks * BLOCK_SIZE for path in paths if path.exists())

    def verify(self, *, jobs: int = 1, on_bytes: OnBytes = lambda count: None) -> LogVerification:
        """Everything that is wrong, found while it is iterated over; nothing if the log is sound.

        `jobs` threads check `.ibb` files at the same time, each its own; `on_bytes` hears how
        many more bytes were read, from any of them.
        """
        return LogVerification(self.path, self.stored, jobs=jobs, on_bytes=on_bytes, bring_to_files=self.bring_to_files)

    def back_up(self, to: Path | str, *, on_bytes: OnBytes = lambda count: None) -> BackupReport:
        """Copy the log to a new directory, as it is at one moment, also while it is written.

        The copy is read from its first page to its last, as by `verify`. With a URL it is made among the temporary
        files, and then uploaded.

        Raises DamageError, FormatError: the log is damaged; nothing is left at `to`; StoreError: there is something at
        `to`, or the log cannot be copied.
        """
        with (
            made_place(place(to), is_kept=is_of_log) as staging,
            closing(open_disk(self.path)) as source,
            closing(RealDisk(staging)) as target,
        ):
            return back_up(source, target, progress=on_bytes)

    def bring_to_files(self) -> None:
        """Have in the files what is in the log, as far as it is ours."""

    # Life -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Release what is held; a second call does nothing."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LogView(Log):
    """What is made of a log. What copies or checks files does that with all of a log, and is refused here."""

    def __init__(self, log: Log, engine: LogEngine) -> None:
        super().__init__(log.path, engine, stored=log.stored, name_case=log.name_case, row_event_max=log.row_event_max)
        self._schema = log._schema
        self._whole = log

    @property
    def history_cache(self) -> HistoryCache:
        return HistoryCache(self.path, is_written=False, keeps=False)

    def bring_to_files(self) -> None:
        self._whole.bring_to_files()

    def _expect_files(self, what: str) -> None:
        self._whole._expect_files(what)

    def verify(self, **options: object) -> NoReturn:
        raise self._refused("verify")

    def back_up(self, *given: object, **options: object) -> NoReturn:
        raise self._refused("back_up")

    def _refused(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"{what} reads the files of a log, and a log after stages has none: `ibbmaster convert` writes them with "
            "the same options"
        )


class StagedView(LogView):
    """A log after stages: `staged`, those of `options` the last."""

    def __init__(self, log: Log, engine: StagedLog, options: StageOptions | None = None) -> None:
        super().__init__(log, engine)
        self.staged = engine
        if options:
            self.stages, self.spans = (*log.stages, options), (*log.spans, engine.span)
            case = log.name_case or NameCase.EXACT
            self._schema = {
                str(renamed_table(parse_table_name(name), options, lambda: case)): one
                for name, one in log._schema.items()
            }


class FileView(StagedView):
    """What one `.ibb` file of a log has."""

    def __init__(self, log: Log, engine: StagedLog, name: str) -> None:
        super().__init__(log, engine)
        self.stages, self.spans = (StageOptions(),), (engine.span,)
        self._name = name

    @property
    def files(self) -> list[LogFile]:
        return [file for file in super().files if file.name == self._name]

    def _refused(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"{what} reads whole logs, and {self.path / self._name} is one file: name {self.path}"
        )


class PlayedView(LogView):
    """A recording that is played by `player`."""

    def __init__(self, log: Log, engine: PlayedLog) -> None:
        super().__init__(log, engine)
        self.stored = log.stored.named_by(engine)
        self.player = engine

    def _expect_files(self, what: str) -> None:
        raise ConfigurationError(f"{what} reads the files of a log, and a recording that is played has none: read that")
