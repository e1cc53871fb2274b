"""One run: each chosen table reaches the log's end, or keeps its rows, and says so."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from ibbmaster.errors import ConfigurationError, IbbMasterError, StoreError
from ibbmaster.lake.placing import only_writer
from ibbmaster.logs.stages.table_pattern import TableChoice, unmatched_error
from ibbmaster.sqltext.table_name import TableName, parse_table_name, parse_table_pattern
from ibbmaster.tables.arrow.options import parse_options, schema_options
from .delta import DeltaLake
from .iceberg import IcebergLake
from .rows import Replaced, TableChanges, TableRows
from .source import LogSource, Read, UncertainRowsError
from .state import TableList, TableState
from .target import ICEBERG, ForeignChangeError, Lake, TargetTable, directory_of, scheme_of

Kind = TableRows | TableChanges
KINDS: dict[str, Callable[[LogSource], Kind]] = {
    "current": TableRows,
    "changes": TableChanges,
    "history": functools.partial(TableRows, has_history=True),
}


@dataclass(slots=True)
class Maintained:
    """The result of a run.

    Attributes:
        start, end: the GTID positions between which it read the log.
        tables: states now, by name.
        written, rewritten: the tables it has written, and those written anew as a whole.
        removed: files of killed runs.
    """

    start: str
    end: str
    tables: dict[str, TableState] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def _lake_of(target: str, place: Path, catalog: str | None) -> tuple[Lake, str]:
    """And how settings call it. Raises ConfigurationError: Delta tables are in no catalog."""
    if scheme_of(target) == ICEBERG:
        return IcebergLake(place, catalog), f"iceberg in catalog {catalog}" if catalog else "iceberg"
    if catalog is not None:
        raise ConfigurationError("--catalog is for iceberg:// alone")
    return DeltaLake(place), "delta"


def maintain(
    path: str,
    target: str,
    *,
    kind: str = "current",
    only: Sequence[str] = (),
    leaves_out: Sequence[str] = (),
    schema: str | None = None,
    name_case: int | None = None,
    zero_dates: str = "null",
    catalog: str | None = None,
    base: Path | None = None,
) -> Maintained:
    """Bring the tables of a lake to the end of a log: `kind` is their content, their `current` rows, all `changes`, or
    the `history` of each row.

    `catalog` is one of PyIceberg's configuration, which then has the tables; the directory has their states. `base` is
    a dump with its GTID position: tables that the log alone does not bring to its end begin anew with it.

    Raises:
        BusyError: another job writes there.
        ConfigurationError: a pattern matches no table, or the tables there were made otherwise; or the dump is none.
        PositionError: the log does not have the position of the last run, or is another log.
        StoreError: the target holds something else, or cannot be written; or there is no log.
    """
    place = directory_of(target, catalog)
    patterns = [parse_table_pattern(one) for one in only], [parse_table_pattern(one) for one in leaves_out]
    given = {"path": path, "zeroDates": zero_dates, **schema_options(schema, name_case)}
    lake, called = _lake_of(target, place, catalog)
    if base is not None and kind == "changes":
        raise ConfigurationError("--base is for --as current and history: a dump has no changes")
    options = parse_options(given)
    settings = {"--as": kind, "--to": called, "--zero-dates": zero_dates}
    with closing(lake), only_writer(place):
        table_list = TableList.read(place, settings)
        with contextlib.ExitStack() as opened:
            source = opened.enter_context(LogSource(options, table_list.position, table_list.history))
            if table_list.position:
                source.expect_same(table_list.marks, table_list.position)
            sources = [source]
            if base is not None:
                since = replace(options, base=str(base), ending_gtid=source.end)
                sources.append(opened.enter_context(LogSource(since)))
            choice = TableChoice(*patterns, lambda: source.history.case)
            known = sorted({name for one in sources for name in one.tables()})
            names = [name for name in known if choice.has_table(name)]
            if choice.unmatched:
                raise unmatched_error(path, choice.unmatched[0], map(str, known))
            return _Run(place, lake, table_list, source, choice).go(names, kind, sources)


class _Run:
    def __init__(self, place: Path, lake: Lake, table_list: TableList, source: LogSource, choice: TableChoice) -> None:
        self._place = place
        self._lake = lake
        self._list = table_list
        self._source = source
        self._choice = choice
        self._done = Maintained(table_list.position, source.end)
        self._files: set[str] = set()  # files of the written table, before that

    def go(self, names: Sequence[TableName], kind: str, sources: Sequence[LogSource]) -> Maintained:
        """Bring tables to the end by the first source that can; sources begin at different places of the log."""
        table_list, source = self._list, self._source
        history, exact = source.known(), set[TableName]()
        self._take_back()
        for self._source in sources:
            waiting = [name for name in names if name not in exact and self._source.has_table(name)]
            with closing(KINDS[kind](self._source)) as rows:
                self._source.gather(self._reads(waiting, rows))
                for name in waiting:
                    state = table_list.tables[str(name)] = self._maintain(name, str(name), rows)
                    exact |= {name} if state.is_exact else set()
            if self._source is not source:
                history = source.known([(name, self._source) for name in waiting if name in exact])
        for full_name in list(table_list.tables):
            name = parse_table_name(full_name)
            if name not in names and self._choice.has_table(name):
                table_list.tables[full_name] = replace(table_list.tables[full_name], seen=source.end, is_gone=True)
        table_list.position = source.end
        table_list.marks |= source.marks()
        table_list.history = history
        table_list.write(self._place)
        self._done.tables = dict(table_list.tables)
        return self._done

    def _reads(self, names: Sequence[TableName], rows: Kind) -> Iterator[Read]:
        for name in names:
            state = self._list.tables.get(str(name), TableState())
            with contextlib.suppress(Exception):
                found = rows.reads(name, self._source.known_table(name), state.rows_at)
                if found is not None:
                    yield found

    def _take_back(self) -> None:
        if self._list.begun is not None:
            full_name, files = self._list.begun
            table = self._lake.table(full_name)
            with contextlib.suppress(StoreError, OSError):
                self._done.removed = [f"{full_name}/{name}" for name in table.remove_orphans(set(files))]
            self._list.begun = None

    def _maintain(self, name: TableName, full_name: str, rows: Kind) -> TableState:
        """Bring a table to the log's end; returns its state. Any error is a verdict on this table alone."""
        target = self._lake.table(full_name)
        state = replace(self._list.tables.get(full_name, TableState()), seen=self._source.end, is_gone=False)
        try:
            if target.number() != state.commit:
                state = target.committed() or TableState()
            target.expect_own()
            return self._brought(name, full_name, rows, target, state)
        except UncertainRowsError as error:
            since, because = error.args
        except Exception as error:
            since, because = self._source.end, _reason(error)
        if full_name in self._done.written:  # nothing has come of it
            self._done.written.remove(full_name)
            with contextlib.suppress(StoreError, OSError):
                target.remove_orphans(self._files)
        return replace(state, seen=self._source.end, since=since, because=because)

    def _brought(
        self, name: TableName, full_name: str, rows: Kind, target: TargetTable, state: TableState
    ) -> TableState:
        table = self._source.known_table(name)
        end = self._source.end
        found = rows.find(name, table, state.rows_at)
        if not (found is None or isinstance(found, Replaced) or target.can_reshape(found.reshape)):
            found = rows.find(name, table, None)
        doubted = state.doubted
        if not (doubted[1] and isinstance(rows, TableChanges)) or isinstance(found, Replaced):
            doubt = rows.doubt(name)
            doubted = ("", "") if doubt is None else (doubt.gtid, doubt.reason)
        if found is None:
            return TableState(commit=state.commit, rows_at=end, seen=end).doubted_since(*doubted)
        state = self._begin(full_name, target, state).doubted_since(*doubted)
        if not isinstance(found, Replaced):
            if target.merge(found.keys, found.changes, found.reshape, state):
                return state
            found = rows.find(name, table, None)
            state = self._begin(full_name, target, state)
        assert isinstance(found, Replaced)
        try:
            target.replace(found.rows, state)
        except Exception as error:
            raise (found.faults or [error])[0] from None
        if state.commit > 1:
            self._done.rewritten.append(full_name)
        return state

    def _begin(self, full_name: str, target: TargetTable, state: TableState) -> TableState:
        self._files = target.files()
        self._list.begun = full_name, sorted(self._files)
        self._list.write(self._place)
        self._list.begun = None
        if full_name not in self._done.written:
            self._done.written.append(full_name)
        return TableState(commit=state.commit + 1, rows_at=self._source.end, seen=self._source.end)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    is_foreseen = isinstance(error, (IbbMasterError, ForeignChangeError, OSError))
    return text if is_foreseen and text else f"{type(error).__name__}: {text}"
