"""A binlog as users hold it, to be read."""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NoReturn, Self, Unpack

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.log.directory import END_POLL_PERIOD_S
from ibbmaster.logs.log.group_content import RowReader
from ibbmaster.logs.log.history_cache import HistoryCache
from ibbmaster.logs.log.interface import LogEngine, LogFile, ReadPlan, are_paged
from ibbmaster.logs.log.large_rows import large_rows
from ibbmaster.logs.log.locating import expect_logged, locate
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.logs.log.time_search import TimeStart, parse_time, time_start
from ibbmaster.logs.player.played_log import Pace, PlayedLog
from ibbmaster.logs.player.repeated_log import RepeatedLog
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.logs.stages.options import StageOptions, expect_only, renamed_table, staged
from ibbmaster.logs.stages.span import span_so_far
from ibbmaster.logs.store.backup import BackupReport, back_up
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.dump.skipping import GroupFilter
from ibbmaster.replication.dump.start import check_start
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.rows.declared import Declaration
from ibbmaster.rows.shape import SchemaMode
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.schema.name_case import NameCase
from ibbmaster.schema.versions import TableState
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.place import open_disk, place
from ibbmaster.storage.disk.uploading import is_of_log, made_place
from ibbmaster.tables.arrow.read_options import parse_schema_mode
from ibbmaster.tables.arrow.schema_reading import schema_of_log, versions_of
from .group import Group, RowShapes
from .log_files import LogFiles, LogVerification, OnBytes, PagedLogFiles, one_file_refusal
from .log_tables import TabularLog
from .seeking import Position, Start, as_position, start_at

FOLLOW_PERIOD_S = 1.0  # between two questions to a follower whether to go on


class Log(TabularLog):
    """A binlog of `.ibb` or traditional files, which may grow. Made by `ibbmaster.open`. Any thread may use it; each
    caller owns the result of its `groups`."""

    is_written = False

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
        self.row_event_max = row_event_max
        self.name_case = name_case
        self._engine = engine
        self.served: LogEngine | None = None  # with more of its past
        self.stored = stored or PagedLogFiles(path, engine)
        key = (name_case or NameCase.EXACT).key
        self._schema = {key(table): declared for table, declared in (schema or {}).items()}
        self._logged_schema: LoggedSchema | None = None
        self._history: SchemaHistory | None = None  # as far as it was asked for
        self._history_lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}>"

    @property
    def engine(self) -> LogEngine:
        """For `ibbmaster.serve`."""
        return self._engine if self.served is None else self.served

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
        """The groups of the log in order: with `after` those that a replica at that position lacks, with `until` those
        up to and including its GTIDs, none of the domains that it does not name. Ends at the end of the log.

        Rows have the names and types of their table when they were written; `schema_mode` "latest" gives those at the
        end of the log, "at:GTID" those after that position, with later columns where known: docs/spark-reference.md.
        Types that events do not tell (UUID, INET4, INET6, VECTOR: bytes) come from the statements of the log where
        columns have names, and with `asks_statements` everywhere.

        At the end of the log `at_end` is asked at once and then about every second whether to wait for more.

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

    def through(self, **options: Unpack[StageOptions]) -> "StagedView":
        """A part of this log as a log like any other, to be read, served or copied.

        `after` and `until` are GTIDs, as in `groups`, or times, as in `seek_time`; `only` and `except_` patterns for
        tables, as "shop.*", `domain` and `server` numbers, `kinds` some of "rows", "statements" and "ddl": one,
        several, or a text with commas. A transaction that loses all its contents keeps its GTID, unless `drop_empty`
        drops it. Reading a statement that is not understood under a filter of tables is an error. `rename` renames
        databases and tables, as "shop=stage", `map_server_id` and `map_domain` numbers, as "1=7". docs/playing.md has
        the details.

        Raises:
            ConfigurationError: an option cannot be used with this log; or a pattern of `only` matches no table, though
                neither `after` nor `until` is given. The error names those that there are.
            GtidError: a text is no position.
            PositionError, FormatError, ClassicFormatError, StoreError: as `groups`.
        """
        log = staged(self.engine, options, self.name_case, self._folded_schema)
        expect_only(log, options)
        return StagedView(self, log, options)

    def played(self, pace: str = "original", *, rounds: int | None = 1, starts_when_read: bool = False) -> "PlayedView":
        """This log as a recording: a log to be served that grows as this one did, without what is appended here later.

        `pace` is "original", a factor as "x10" or "x0.5", "max", or "step": then each `player.step()` logs one
        transaction. The recording repeats for `rounds`, or endlessly if that is None, each round with newer GTIDs and
        later times. Its clock starts now, or with the first reader if `starts_when_read`.

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
        with self._history_lock:
            return self._schema_of_log().history()

    def seek(self, position: Position) -> Start:
        """Where a dump from a GTID position begins, or the refusal. Raises GtidError: the text is no position;
        StoreError: the log is empty, or cannot be read."""
        return start_at(self.path, self._engine, self.stored, position)

    def seek_time(self, time: str) -> TimeStart:
        """The first transaction at or after a time, as "2026-11-20 14:03:05+01:00" or without a zone for local time, by
        halving.

        The server's clock gave each transaction the time when its COMMIT or only statement began; docs/playing.md
        explains times that are out of order.

        Raises ConfigurationError: the text is no time, or the log begins later; StoreError, FormatError,
        ClassicFormatError: there is nothing in it, or it cannot be read.
        """
        return time_start(self._engine, parse_time("time", time))

    def verify(self, *, jobs: int = 1, on_bytes: OnBytes = lambda count: None) -> LogVerification:
        """The faults of the log, found while the caller iterates. `jobs` threads check `.ibb` files; `on_bytes` hears
        how many more bytes were read."""
        return LogVerification(self.path, self.stored, jobs=jobs, on_bytes=on_bytes, bring_to_files=self.bring_to_files)

    def back_up(self, to: Path | str, *, on_bytes: OnBytes = lambda count: None) -> BackupReport:
        """Copy the log as it is at one moment, also while it is written, to a new directory; to a URL by way of
        temporary files. The copy is then read as by `verify`.

        Raises DamageError, FormatError: the log is damaged; nothing is left at `to`; StoreError: there is something at
        `to`, or the log cannot be copied.
        """
        with (
            made_place(place(to), is_kept=is_of_log) as staging,
            closing(open_disk(self.path)) as source,
            closing(RealDisk(staging)) as target,
        ):
            return back_up(source, target, progress=on_bytes)

    # Life -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Release what is held; a second call does nothing."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LogView(Log):
    """A log made from a log. It refuses to copy and check files."""

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
        return one_file_refusal(what, self.path / self._name)


class PlayedView(LogView):
    def __init__(self, log: Log, engine: PlayedLog) -> None:
        super().__init__(log, engine)
        self.stored = log.stored.named_by(engine)
        self.player = engine

    def _expect_files(self, what: str) -> None:
        raise ConfigurationError(f"{what} reads the files of a log, and a recording that is played has none: read that")
