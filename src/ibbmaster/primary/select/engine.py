"""Carries out one query in SQLite, with its tables, functions of ours, bounds of memory and time."""

import itertools
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ibbmaster.errors import IbbMasterError
from ibbmaster.primary.dialogue.log_tables import TableQuery
from ibbmaster.primary.dialogue.lone_expressions import BLOBS, listed_type, storing
from ibbmaster.primary.dialogue.relation import Relation, text_of
from ibbmaster.primary.dialogue.table_columns import CHARSET, COLLATION, LETTER_SIZE
from ibbmaster.replication.event.rows.charset import character_size
from ibbmaster.replication.wire.refusal import RefusedError, not_supported, out_of_memory
from ibbmaster.replication.wire.response import BlockResultSet, ColumnDefinition, FieldType
from ibbmaster.rows.expr.comparing import cached
from ibbmaster.rows.expr.kinds import definition_of
from ibbmaster.rows.expr.scalars import SqlValue
from ibbmaster.rows.expr.session_facts import QuerySession
from ibbmaster.rows.expr.values import shower
from ibbmaster.rows.expr.weights import key_of
from ibbmaster.schema.collations import sent_collation_number
from ibbmaster.schema.model import TableKind, TableVersion
from ibbmaster.sqltext.expression import DerivedTable, GivenTable, SqlQuery
from ibbmaster.sqltext.sql_mode import (
    MSSQL,
    NO_UNSIGNED_SUBTRACTION,
    ORACLE,
    PAD_CHAR_TO_FULL_LENGTH,
    TIME_ROUND_FRACTIONAL,
    sql_mode_text,
)
from ibbmaster.work import BrokenOffError, check_wanted
from .definitions import column_definition
from .grouping import AGGREGATES
from .row_values import ShownColumn, local_columns
from .scanning import TableScan, in_question, is_scanned
from .sources import Plan, SourceColumn, SourceTable
from .table_reader import ALL_ROWS, FoundRows, RowRange
from .tables import (
    ROWS_BETWEEN_LOOKS,
    KeptDatabase,
    LoadedColumns,
    LoadedTable,
    SqlTable,
    expect_free_space,
    key_makers,
    new_database,
)


class ServerTable(SqlTable):
    def __init__(self, number: int, alias: str, relation: Relation, session: QuerySession) -> None:
        super().__init__(f"s{number}", alias)
        self._relation = relation
        self._columns = [_sent(column, session) for column in relation.columns]
        self._types = [listed_type(column, folds=session.folds_names) for column in self._columns]
        self._wanted: dict[int, tuple[str, str]] = {}  # texts that columns have to equal, and by which collation

    def slots(self) -> Iterator[tuple[str, SqlValue]]:
        """Each column by its name, and in SQL."""
        for place, (column, kind) in enumerate(zip(self._columns, self._types, strict=True)):
            yield column.name, self.slot_at(place, kind)

    def restrict(self, slot: SqlValue, text: str) -> None:
        """Load only rows in which a column compares equal to a text."""
        self._wanted[self.place(slot)] = text, str(slot.type.collation)

    def rows(self, used: LoadedColumns) -> Iterator[tuple[Any, ...]]:
        stores = [(place, storing(self._types[place])) for place in sorted(used.places)]
        given_rows = self._relation.rows
        for place, (text, collation) in self._wanted.items():
            is_wanted = _equal_to(text, cached(key_of(collation)))
            given_rows = [given for given in given_rows if is_wanted(given[place])]
        keys = key_makers(used)
        for count, given in enumerate(given_rows):
            if not count % ROWS_BETWEEN_LOOKS:
                check_wanted()
            row: list[Any] = [None if given[place] is None else store(given[place]) for place, store in stores]
            row += [None if row[index] is None else key(row[index]) for index, key in keys]
            yield tuple(row) or (None,)


def _sent(column: ColumnDefinition, session: QuerySession) -> ColumnDefinition:
    if FieldType(column.column_type) not in (FieldType.VAR_STRING, *BLOBS):
        return column
    charset, collation_id = session.charset, session.collation_id
    number = collation_id if charset is not None else sent_collation_number(COLLATION) or collation_id
    length = column.length // LETTER_SIZE * character_size(charset if charset not in (None, "binary") else CHARSET)
    return replace(column, collation_id=number, length=column.length if charset == "utf8mb4" else length)


def _equal_to(text: str, key: Callable[[str], bytes]) -> Callable[[Any], bool]:
    wanted = key(text)
    return lambda value: value is not None and (value == text or key(text_of(value)) == wanted)


FIRST_ROWS = 100  # that are computed before the answer begins
STEPS_BETWEEN_LOOKS = 4_000  # each may make a long value
LOOKS_AT_SPACE = 8  # one of them is also at the file system
STEPS_MAX = 30_000_000  # of SQLite's machine, for a query of no table of the log: about a second
STEPS_OF_TABLES = 10_000_000_000  # likewise, of tables of the log: some minutes
PAGES_MAX = 1 << 20  # of 4 KiB, for rows and for sorting them
FUNCTIONS_MAX = 2_000
TOO_COSTLY = RefusedError(
    1104,
    "42000",
    "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE, or ask elsewhere, of rows as "
    "Log.snapshot gives them",
)
#: Bits of sql_mode that change values of expressions.
OTHER_VALUES = PAD_CHAR_TO_FULL_LENGTH | NO_UNSIGNED_SUBTRACTION | TIME_ROUND_FRACTIONAL | ORACLE | MSSQL

#: Finds rows of a table at the session's place in the log, with the values of these columns; or refuses.
FindRows = Callable[[TableVersion, Sequence[int], RowRange], FoundRows]


class QueryRun:
    """Used once."""

    def __init__(
        self, query: TableQuery, rows_of: FindRows, kept: KeptDatabase | None = None, place: object = None
    ) -> None:
        """`kept`: the table of an earlier query; at the same `place` it has the same rows."""
        self._kept, self._place = kept, place
        self._key: object = None  # of the loaded table, if it can be kept
        self._query = query.query
        self._sql_mode = query.sql_mode
        self._session = query.session
        self._find = query.find
        self._rows_of = rows_of
        self._table: LoadedTable | None = None
        self._listed: dict[str, ServerTable] = {}
        self._parameters: dict[str, Any] = {}
        self._functions: list[tuple[str, int, Callable[..., Any]]] = []
        self._error: Exception | None = None
        self._scan: TableScan | None = None
        self._steps_left = math.inf
        self._looks = 0
        self._database: sqlite3.Connection | None = None

    def function(self, compute: Callable[..., Any], count: int) -> str:
        if len(self._functions) >= FUNCTIONS_MAX:
            raise not_supported(f"more than {FUNCTIONS_MAX} expressions")
        name = f"f{len(self._functions)}"
        self._functions.append((name, count, compute))
        return name

    def parameter(self, value: Any) -> str:
        name = f"p{len(self._parameters)}"
        self._parameters[name] = value
        return f":{name}"

    def key_column(self, slot: SqlValue) -> str | None:
        table = self._listed.get(slot.table) or (self._table if slot.table else None)
        return None if table is None else table.key_column(slot)

    def source(self, table: GivenTable, sql_alias: str) -> tuple[str, SourceTable]:
        found = self._find(table)
        if isinstance(found, Relation):
            return self._listed_source(table, found, sql_alias)
        assert isinstance(found, TableVersion)
        if found.kind is TableKind.VIEW:
            raise not_supported(f"SELECT from a {found.kind.value.lower()}")
        if self._table is None or self._table.table != found:
            self._table = LoadedTable(sql_alias, found)
        loaded = self._table
        columns = []
        for place, column in enumerate(loaded.columns):
            definition = column_definition(
                found, column, alias=table.alias, charset=self._session.charset, collation_id=self._session.collation_id
            )
            columns.append(SourceColumn(column.name, loaded.slot(place, definition), not column.is_invisible))
        return loaded.name, SourceTable(table.alias or table.name, table.database or self._session.database, columns)

    def restrict(self, slot: SqlValue, text: str) -> None:
        table = self._listed.get(slot.table)
        if table is not None:  # those of the log are read whole
            table.restrict(slot, text)

    def _listed_source(self, table: GivenTable, relation: Relation, sql_alias: str) -> tuple[str, SourceTable]:
        loaded = ServerTable(len(self._listed), sql_alias, relation, self._session)
        self._listed[loaded.name] = loaded
        columns = [SourceColumn(name, slot) for name, slot in loaded.slots()]
        database = table.database or self._session.database
        return loaded.name, SourceTable(table.alias or table.name, database, columns, is_listed=True)

    def columns(self) -> tuple[ColumnDefinition, ...]:
        shown, plan = self._planned()
        return tuple(column.definition for column in shown) if plan is None else self._definitions(plan)

    def answer(self) -> Relation | BlockResultSet:
        """Raises RefusedError: MariaDB's answer is not computed here, or its tables are not known."""
        shown, plan = self._planned()
        if plan is not None and not (self._scan is not None and self._scan.counts_rows):
            return self._computed(plan)
        assert self._scan is not None
        if plan is None:
            return self._scan.answer(shown, self._rows_of)
        return self._scan.count(self._definitions(plan), self._rows_of)

    def _planned(self) -> tuple[list[ShownColumn], Plan | None]:
        shown = self._shown()
        return ([], self._plan()) if shown is None else (shown, None)

    def _shown(self) -> list[ShownColumn] | None:
        query = block = self._query
        if isinstance(query.source, DerivedTable):
            block = query.source.query
        if not is_scanned(block) or not isinstance(block.source, GivenTable):
            return None
        name, source = self.source(block.source, "a1")
        if name in self._listed:
            del self._listed[name]  # the plan asks for it again, and only what it has is loaded
            return None
        assert self._table is not None
        self._scan = TableScan(block, source, self._table, self._session)
        if block is not query:
            return None  # of which only the rows are loaded that it gives
        others = PAD_CHAR_TO_FULL_LENGTH if self._scan.ranges.is_exact else OTHER_VALUES
        return None if self._sql_mode & others else self._scan.shown()

    def _computed(self, plan: Plan) -> Relation:
        try:
            self._load(plan.sql)
            self._steps_left = STEPS_MAX if self._table is None else STEPS_OF_TABLES
            cursor = self._execute(plan.sql)
            shows = [shower(column.type, self._session) for column in plan.columns]
            rows = self._rows(cursor, shows)
            first = list(itertools.islice(rows, FIRST_ROWS))
        except BaseException:
            self._close()
            raise
        is_all = len(first) < FIRST_ROWS
        return Relation(self._definitions(plan), first if is_all else itertools.chain(first, rows), is_open=not is_all)

    def _plan(self) -> Plan:
        from .planning import Planner

        plan = Planner(self._session, self, self).plan(self._query)
        if modes := self._sql_mode & OTHER_VALUES:
            raise not_supported(f"a query of this form under sql_mode {sql_mode_text(modes)}")
        return plan

    def _definitions(self, plan: Plan) -> tuple[ColumnDefinition, ...]:
        charset, number = self._session.charset, self._session.collation_id
        return tuple(definition_of(column.type, column.name, charset, number) for column in plan.columns)

    def _open(self, database: sqlite3.Connection) -> None:
        self._database = database
        for name, count, compute in self._functions:
            database.create_function(name, count, self._guarded(compute))
        for name, (count, made) in AGGREGATES.items():
            database.create_aggregate(name, count, self._guarded_class(made))
        database.set_progress_handler(self._look, STEPS_BETWEEN_LOOKS)

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()

    def _give_back(self) -> None:
        database, kept = self._database, self._kept
        assert database is not None
        assert kept is not None
        database.set_progress_handler(None, 0)
        for name, count, _ in self._functions:
            database.create_function(name, count, None)
        for name, (count, _) in AGGREGATES.items():
            database.create_aggregate(name, count, None)  # type: ignore[arg-type]
        kept.give(self._key, database)
        self._database = None

    def _guarded(self, compute: Callable[..., Any]) -> Callable[..., Any]:

        def call(*arguments: Any) -> Any:
            try:
                return compute(*arguments)
            except Exception as error:
                self._error = self._error or error
                raise

        return call

    def _guarded_class(self, made: Callable[[], Any]) -> Any:
        guard = self._guarded

        class Guarded(made):  # type: ignore[misc, valid-type]
            def __init__(self) -> None:
                super().__init__()
                self.step = guard(super().step)
                self.finalize = guard(super().finalize)

        return Guarded

    def _look(self) -> int:
        try:
            check_wanted()
            self._steps_left -= STEPS_BETWEEN_LOOKS
            self._looks += 1
            if not self._looks % LOOKS_AT_SPACE:
                expect_free_space()
            if self._steps_left < 0:
                raise TOO_COSTLY
        except (BrokenOffError, RefusedError) as error:
            self._error = error
            return 1
        return 0

    def _load(self, sql: str) -> None:
        if (table := self._table) is None:
            self._open(new_database(PAGES_MAX))
            for listed in self._listed.values():
                used = listed.used(sql)
                self._fill(*listed.statements(used), listed.rows(used), "information_schema")
            return
        wanted = ALL_ROWS if self._scan is None else self._scan.wanted()
        named, local = table.used(sql), local_columns(table.table)
        columns = table.of_places(named)
        for column in columns:
            if column.id in local:
                raise not_supported(f"column {column.name}, which each reader's session computes anew, in such a query")
        if self._kept is not None:
            self._key = self._place, table.table, named, wanted, self._session.time_zone_s
            if (database := self._kept.take(self._key)) is not None:
                self._open(database)
                return
        self._open(new_database(PAGES_MAX))
        found = self._rows_of(table.table, [column.id for column in columns], wanted)
        rows = table.rows(found, named, self._session.time_zone_s)
        self._fill(*table.statements(named), rows, table.table.full_name)

    def _fill(self, made: str, filled: str, rows: Iterable[tuple[Any, ...]], name: str) -> None:
        assert self._database is not None
        database = self._database
        try:
            database.execute(made)
            database.execute("BEGIN")
            database.executemany(filled, rows)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            raise self._cause(error, f"rows of {name}") from None
        database.execute("COMMIT")

    def _execute(self, sql: str) -> sqlite3.Cursor:
        assert self._database is not None
        try:
            return self._database.execute(sql, self._parameters)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            raise self._cause(error, "a query") from None

    def _rows(
        self, cursor: sqlite3.Cursor, shows: Sequence[Callable[[Any], bytes] | None]
    ) -> Iterator[tuple[bytes | None, ...]]:
        try:
            while (row := next(cursor, None)) is not None:
                yield tuple(
                    None if value is None or show is None else show(value)
                    for value, show in zip(row, shows, strict=True)
                )
            cursor.close()
            if self._key is not None:
                with suppress(sqlite3.Error):  # all rows are out: then the table is not kept
                    self._give_back()
        except (sqlite3.Error, ValueError, OverflowError) as error:
            raise self._cause(error, "a query") from None
        finally:
            with suppress(sqlite3.Error):
                self._close()

    def _cause(self, error: Exception, what: str) -> Exception:
        if isinstance(self._error, RefusedError):
            return in_question(self._error, is_limited=_is_limited(self._query))
        if isinstance(self._error, BrokenOffError | IbbMasterError):
            return self._error
        if isinstance(error, IbbMasterError):
            return error
        problem = str(self._error or error)
        if "full" in problem or "too big" in problem or "memory" in problem:
            return out_of_memory(f"{what} of this many rows")
        return not_supported(f"{what} of this form: {problem}")


def _is_limited(query: SqlQuery) -> bool:
    return query.limit is not None or (isinstance(query.source, DerivedTable) and _is_limited(query.source.query))
