"""Carries out one query: SQLite with the tables it names, functions of ours, bounds of memory, and a way to stop."""

from __future__ import annotations

import functools
import itertools
import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from ibbmaster.dialogue.log_tables import AnyQuery
from ibbmaster.dialogue.refusal import RefusedError, not_supported, out_of_memory
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.statement import TableName
from ibbmaster.dialogue.variables import LOWER_CASE_TABLE_NAMES
from ibbmaster.errors import IbbMasterError
from ibbmaster.query import collecting
from ibbmaster.query.kinds import Type, definition_of
from ibbmaster.query.listed import ServerTable
from ibbmaster.query.planning import Planner
from ibbmaster.query.reading import read_query
from ibbmaster.query.scalars import Slot
from ibbmaster.query.session_functions import QuerySession
from ibbmaster.query.showing import shower
from ibbmaster.query.sources import Plan, SourceColumn, SourceTable
from ibbmaster.query.tables import LoadedTable
from ibbmaster.query.tree import NamedTable
from ibbmaster.schema.model import TableKind, TableVersion
from ibbmaster.sql.definitions import column_definition
from ibbmaster.sql.local_values import local_columns
from ibbmaster.sql.select import FoundRows
from ibbmaster.sqltext.sql_mode import (
    MSSQL,
    NO_UNSIGNED_SUBTRACTION,
    ONLY_FULL_GROUP_BY,
    ORACLE,
    PAD_CHAR_TO_FULL_LENGTH,
    TIME_ROUND_FRACTIONAL,
    sql_mode_text,
)
from ibbmaster.wire.response import ColumnDefinition
from ibbmaster.work import BrokenOffError, check_wanted

FIRST_ROWS = 100  # that are computed before the answer begins
STEPS_BETWEEN_LOOKS = 20_000
STEPS_MAX = 30_000_000  # of SQLite's machine, for a query of no table of the log: about a second
CACHE_KIB = 8 << 10
PAGES_MAX = 1 << 20  # of 4 KiB, for the rows and what is sorted of them
VALUE_MAX = 64 << 20  # bytes of one value
FUNCTIONS_MAX = 2_000
FREE_SHARE = 0.1  # of the file system of temporary files, which no query may take: SQLite sorts there without a limit
FREE_BYTES = 1 << 30  # of a large one
OUT_OF_RANGE = 1690
TOO_COSTLY = RefusedError(
    1104,
    "42000",
    "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or "
    "SET MAX_JOIN_SIZE=# if the SELECT is okay",
)
#: What of sql_mode changes values of expressions.
OTHER_VALUES = PAD_CHAR_TO_FULL_LENGTH | NO_UNSIGNED_SUBTRACTION | TIME_ROUND_FRACTIONAL | ORACLE | MSSQL
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: VALUE_MAX,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 << 20,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_COLUMN: 2000,
}
_AGGREGATES: dict[str, tuple[int, Callable[[], Any]]] = {
    "sum_real": (1, collecting.SumReal),
    "avg_real": (1, collecting.AvgReal),
    "min_text": (3, collecting.extreme_text(is_greatest=False)),
    "max_text": (3, collecting.extreme_text(is_greatest=True)),
    "first_row": (1, collecting.FirstRow),
    "same_row": (1, collecting.SameRow),
    "sum_once": (1, collecting.SumOnce),
    "only_row": (1, collecting.OnlyRow),
    "concat_of": (-1, collecting.ConcatOf),
    **{f"{name}_of": (1, collecting.spread(name)) for name in ("std", "stddev", "stddev_pop", "stddev_samp")},
    **{f"{name}_of": (1, collecting.bits(name)) for name in collecting.BITS},
    **{f"{name}_of": (1, collecting.spread(name)) for name in ("variance", "var_pop", "var_samp")},
}

#: Gives the rows of a table at the session's place in the log, with the values of these columns; or refuses.
FindRows = Callable[[TableVersion, Sequence[int]], FoundRows]


class QueryRun:
    """One query, from its tokens to its rows. Used once."""

    def __init__(self, query: AnyQuery, rows_of: FindRows) -> None:
        self._tokens = query.tokens
        self._session = _session_of(query)
        self._find = query.find
        self._rows_of = rows_of
        self._tables: dict[str, LoadedTable] = {}
        self._listed: dict[str, ServerTable] = {}
        self._parameters: dict[str, Any] = {}
        self._functions: list[tuple[str, int, Callable[..., Any]]] = []
        self._error: Exception | None = None
        self._is_limited = False
        self._steps_left = math.inf
        self._database: sqlite3.Connection | None = None

    # What the planner asks --------------------------------------------------------------------

    def function(self, compute: Callable[..., Any], count: int) -> str:
        """As `SqlFunctions` has it."""
        if len(self._functions) >= FUNCTIONS_MAX:
            raise not_supported(f"more than {FUNCTIONS_MAX} expressions")
        name = f"f{len(self._functions)}"
        self._functions.append((name, count, compute))
        return name

    def parameter(self, value: Any) -> str:
        """As `SqlFunctions` has it."""
        name = f"p{len(self._parameters)}"
        self._parameters[name] = value
        return f":{name}"

    def key_column(self, slot: Slot) -> str | None:
        """As `SqlFunctions` has it."""
        table = self._tables.get(slot.table) or self._listed.get(slot.table)
        return None if table is None else table.key_column(slot)

    def source(self, table: NamedTable, sql_alias: str) -> tuple[str, SourceTable]:
        """As `Tables` has it."""
        found = self._find(TableName(table.name, table.database))
        if isinstance(found, Relation):
            return self._listed_source(table, found, sql_alias)
        assert isinstance(found, TableVersion)
        if found.kind is not TableKind.BASE:
            raise not_supported(f"SELECT from a {found.kind.value.lower()}")
        definitions = {
            column.id: column_definition(
                found,
                column,
                column.name,
                alias=table.alias,
                text_charset=self._session.charset,
                text_collation_id=self._session.collation_id,
            )
            for column in found.columns
        }
        loaded = next((one for one in self._tables.values() if one.table is found), None)
        if loaded is None:
            loaded = LoadedTable(len(self._tables), found, definitions)
            self._tables[loaded.name] = loaded
        columns = []
        by_id = {}
        for column, slot in loaded.slots(sql_alias, definitions):
            columns.append(SourceColumn(column.name, slot, not column.is_invisible))
            by_id[column.id] = slot
        key = tuple(by_id[number] for number in loaded.row_key if number in by_id)
        is_whole = len(key) == len(loaded.row_key)
        database = table.database or self._session.evaluator.who.database
        indexed = {
            by_id[part.column_id]
            for index in found.indexes
            if index is not found.primary_key
            for part in index.parts
            if part.column_id in by_id
        }
        source = SourceTable(table.alias or table.name, database, columns, key if is_whole else (), frozenset(indexed))
        source.is_clustered = found.options.get("ENGINE", "InnoDB").lower() == "innodb" and found.partitioning is None
        return loaded.name, source

    def restrict(self, slot: Slot, text: str) -> None:
        """As `Tables` has it; tables of the log are read whole."""
        table = self._listed.get(slot.table)
        if table is not None:
            table.restrict(slot, text)

    def _listed_source(self, table: NamedTable, relation: Relation, sql_alias: str) -> tuple[str, SourceTable]:
        session = self._session
        loaded = ServerTable(
            len(self._listed), sql_alias, relation, session.charset, session.collation_id,
            folds=bool(session.evaluator.settings.value(LOWER_CASE_TABLE_NAMES)),
        )  # fmt: skip
        self._listed[loaded.name] = loaded
        columns = [SourceColumn(name, slot) for name, slot in loaded.slots()]
        database = table.database or session.evaluator.who.database
        source = SourceTable(table.alias or table.name, database, columns)
        source.is_clustered = source.is_listed = True
        return loaded.name, source

    # Rows -------------------------------------------------------------------------------------

    def columns(self) -> tuple[ColumnDefinition, ...]:
        """The columns of the answer; no row is read."""
        plan = self._plan()
        return tuple(self._definition(column.name, column.type) for column in plan.columns)

    def answer(self) -> Relation:
        """
        Raises:
            RefusedError: the query is not answered here as MariaDB does it, or its tables are not known.
        """
        plan = self._plan()
        definitions = tuple(self._definition(column.name, column.type) for column in plan.columns)
        database = self._open()
        try:
            self._load(plan.sql)
            self._steps_left = math.inf if self._tables else STEPS_MAX
            cursor = self._execute(plan.sql)
            shows = [shower(column.type, self._session) for column in plan.columns]
            rows = self._rows(cursor, shows)
            first = list(itertools.islice(rows, FIRST_ROWS))
        except BaseException:
            database.close()
            raise
        is_all = len(first) < FIRST_ROWS
        return Relation(definitions, first if is_all else itertools.chain(first, rows), is_open=not is_all)

    def _plan(self) -> Plan:
        query = read_query(self._tokens)
        sql_mode = self._tokens.sql_mode
        if sql_mode & OTHER_VALUES:
            raise not_supported(f"a query of this form under sql_mode {sql_mode_text(sql_mode & OTHER_VALUES)}")
        planner = Planner(self._session, self, self, has_full_groups=bool(sql_mode & ONLY_FULL_GROUP_BY))
        self._is_limited = any(token.is_word("LIMIT") for token in self._tokens.tokens)
        return planner.plan(query)

    def _definition(self, name: str, kind: Type) -> ColumnDefinition:
        return definition_of(kind, name, self._session.charset, self._session.collation_id)

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database = database
        database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA journal_mode = OFF")
        database.execute(f"PRAGMA max_page_count = {PAGES_MAX}")
        for category, most in _LIMITS.items():
            database.setlimit(category, most)
        for name, count, compute in self._functions:
            database.create_function(name, count, self._guarded(compute))
        for name, (count, made) in _AGGREGATES.items():
            database.create_aggregate(name, count, self._guarded_class(made))
        for name, made in (("sum_exact", collecting.SumExact), ("avg_exact", collecting.AvgExact)):
            database.create_window_function(name, 3, self._guarded_class(made))
        database.set_progress_handler(self._look, STEPS_BETWEEN_LOOKS)
        return database

    def _guarded(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose errors are found again behind SQLite."""

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
            _expect_free_space()
            self._steps_left -= STEPS_BETWEEN_LOOKS
            if self._steps_left < 0:
                raise TOO_COSTLY
        except (BrokenOffError, RefusedError) as error:
            self._error = error
            return 1
        return 0

    def _load(self, sql: str) -> None:
        assert self._database is not None
        for listed in self._listed.values():
            made, filled, rows = listed.load(sql)
            self._fill(made, filled, rows, "information_schema")
        for table in self._tables.values():
            used = table.used_columns(sql)
            local = local_columns(table.table)
            for _, column in used:
                if column.id in local:
                    raise not_supported(
                        f"column {column.name}, which each reader's session computes anew, in such a query"
                    )
            found = self._rows_of(table.table, [column.id for _, column in used])
            rows = table.rows(found, used, self._session.time_zone_s)
            self._fill(table.create(used), table.insert(used), rows, table.table.full_name)

    def _fill(self, made: str, filled: str, rows: Iterable[tuple[Any, ...]], name: str) -> None:
        assert self._database is not None
        self._database.execute(made)
        self._database.execute("BEGIN")
        try:
            self._database.executemany(filled, rows)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            raise self._cause(error, f"rows of {name}") from None
        self._database.execute("COMMIT")

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
            while True:
                try:
                    row = next(cursor, None)
                except (sqlite3.Error, ValueError, OverflowError) as error:
                    raise self._cause(error, "a query") from None
                if row is None:
                    return
                yield tuple(
                    None if value is None or show is None else show(value)
                    for value, show in zip(row, shows, strict=True)
                )
        finally:
            with suppress(sqlite3.Error):
                if self._database is not None:
                    self._database.close()

    def _cause(self, error: Exception, what: str) -> Exception:
        """What is to be said of a failure."""
        if isinstance(self._error, RefusedError) and self._error.err.code == OUT_OF_RANGE and self._is_limited:
            return not_supported("LIMIT over rows of which some have a value out of range")  # perhaps never computed
        if self._error is not None and isinstance(self._error, RefusedError | BrokenOffError | IbbMasterError):
            return self._error
        if isinstance(error, IbbMasterError):
            return error
        problem = str(self._error or error)
        if "full" in problem or "too big" in problem or "memory" in problem:
            return out_of_memory(f"{what} of so many rows")
        return not_supported(f"{what} of this form: {problem}")


def _session_of(query: AnyQuery) -> QuerySession:
    """What the values of a query depend on."""
    settings = query.evaluator.settings
    digits = settings.value("div_precision_increment")
    return QuerySession(
        evaluator=query.evaluator,
        collation=settings.collation,
        charset=query.text_charset,
        collation_id=query.text_collation_id,
        time_zone_s=settings.time_zone_s,
        division_digits=digits if isinstance(digits, int) else 4,
        version=query.version,
        is_binary=query.is_binary,
    )


def _expect_free_space() -> None:
    """See that the file system in which SQLite sorts is not about to be full.

    Raises:
        RefusedError: there is too little left.
    """
    directory = _temporary_directory()
    system = os.statvfs(directory)
    free, all_bytes = system.f_bavail * system.f_frsize, system.f_blocks * system.f_frsize
    if free < min(FREE_SHARE * all_bytes, FREE_BYTES):
        raise out_of_memory(f"{free >> 20} MiB are left in {directory} for what queries sort")


@functools.cache
def _temporary_directory() -> str:
    """Where SQLite puts its temporary files. Source: its documentation, "Temporary Files Used By SQLite"."""
    named = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp")
    return next((name for name in named if name and os.path.isdir(name) and os.access(name, os.W_OK | os.X_OK)), ".")
