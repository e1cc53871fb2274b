"""Queries over information_schema, carried out by SQLite in memory. Loaded at the first of them.

Tables are filled when a statement names them, and kept as long as their rows are the same; what of
them, of sorting and of intermediate results is more than a few pages lies in temporary files. A
client's statement can do nothing but read them, for a bounded number of steps, and a bounded time.

The first rows of an answer tell its columns; those behind them are computed while they are sent, so
that an answer takes as much memory as a part of it, and as much time as its client wants to see.
"""

from __future__ import annotations

import itertools
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal

from ibbmaster.dialogue.conversion import integer_of, number_of, text_of
from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.dialogue.matching import like
from ibbmaster.dialogue.refusal import RefusedError, not_supported, unknown_column
from ibbmaster.dialogue.relation import Relation, RowValues
from ibbmaster.dialogue.statement import Select, TableName
from ibbmaster.dialogue.variables import LOWER_CASE_TABLE_NAMES
from ibbmaster.sql.result_columns import result_columns
from ibbmaster.sql.sqlite_text import GROUP_CONCAT, SQLITE_OWN, SqliteText, sqlite_text
from ibbmaster.sqltext.expression import Call, Literal
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.token import SqlTokens, Token, TokenKind
from ibbmaster.wire.response import ColumnDefinition, FieldType
from ibbmaster.work import BrokenOffError, check_wanted

STEPS_MAX = 30_000_000  # of SQLite's machine, for one statement: about a second
STEPS_BETWEEN_LOOKS = 20_000
SECONDS_MAX = 15.0  # of work for one statement; waiting for its client does not count
FIRST_SIZE_MAX = 256 << 10  # letters of the rows that tell the columns
TEXT_SIZE_MAX = 16 << 20  # of all that GROUP_CONCAT collects at a time
VALUES_SIZE_MAX = 4 << 20  # letters of the literals and variables of a statement
LONG_VALUE = 1 << 10  # letters; what functions make longer is counted
LONG_VALUES_SIZE_MAX = 64 << 20  # letters of all such values of a statement
ROW_OVERHEAD = 200  # bytes, about, that a collected row takes beside its texts
CACHE_KIB = 1024  # of each database
PAGES_MAX = 1 << 16  # of 4 KiB, that all tables of a session may take
#: What SQLite limits of a statement.
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: TEXT_SIZE_MAX,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 << 20,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 3,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 50_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 1000,
}
_FAILURES = (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError, MemoryError)
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_NUMBERS = (FieldType.TINY, FieldType.SHORT, FieldType.LONG, FieldType.LONGLONG)
_REALS = (FieldType.FLOAT, FieldType.DOUBLE, FieldType.NEWDECIMAL)
#: Columns that a server compares exactly, as the names of files.
_EXACT = frozenset(
    f"{of}_{what}"
    for of in ("TABLE", "CONSTRAINT", "INDEX", "REFERENCED_TABLE", "TRIGGER", "EVENT_OBJECT", "ROUTINE", "EVENT")
    for what in ("SCHEMA", "NAME", "TABLE")
) - {"CONSTRAINT_NAME", "INDEX_NAME", "TRIGGER_NAME", "ROUTINE_NAME", "EVENT_NAME"} | {"SCHEMA_NAME"}
_CLAUSES = {
    "SELECT": "SELECT",
    "WHERE": "WHERE",
    "ON": "ON",
    "GROUP": "GROUP BY",
    "HAVING": "HAVING",
    "ORDER": "ORDER BY",
}
TOO_COSTLY = RefusedError(
    1104,
    "42000",
    "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or "
    "SET MAX_JOIN_SIZE=# if the SELECT is okay",
)


class SqliteEngine:
    """`InformationEngine` of one session."""

    def __init__(self) -> None:
        self._evaluator: Evaluator | None = None  # of the statement that is carried out
        self._error: RefusedError | None = None  # of a function in it
        self._steps_left = 0.0
        self._seconds_left = 0.0
        self._since = 0.0  # when it went on to work, on a clock that only grows
        self._long_size = 0  # of all long values that functions have made
        self._collected_size = 0
        self._cursor: sqlite3.Cursor | None = None  # of an answer of which rows are left
        self._broken: BrokenOffError | None = None
        self._rows: dict[tuple[str, str], Iterable[RowValues]] = {}  # what a table was filled with
        self._functions: set[str] = set()
        self._database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        for name in ("information_schema", "mysql"):
            self._database.execute(f"ATTACH '' AS {name}")  # a temporary file, which only outgrown pages get to
            self._database.execute(f"PRAGMA {name}.max_page_count = {PAGES_MAX}")
        for name in ("main", "information_schema", "mysql"):
            self._database.execute(f"PRAGMA {name}.cache_size = -{CACHE_KIB}")
        for category, most in _LIMITS.items():
            self._database.setlimit(category, most)
        self._database.create_collation("FOLDED", _folded_order)
        self._database.create_collation("EXACT", _exact_order)
        self._database.create_function("like", 2, _like, deterministic=True)
        self._database.create_function("like", 3, _like, deterministic=True)
        self._database.create_aggregate(GROUP_CONCAT, -1, lambda: _GroupConcat(self._collect))  # type: ignore[arg-type, return-value]
        self._database.set_progress_handler(self._look, STEPS_BETWEEN_LOOKS)

    def answer(
        self,
        tokens: SqlTokens,
        select: Select | None,
        tables: Sequence[TableName],
        find: Callable[[TableName], Relation],
        evaluator: Evaluator,
    ) -> Relation:
        """The rows of a query; see `InformationEngine`."""
        self.forget_rows()
        self._evaluator, self._error, self._broken = evaluator, None, None
        relations = {table: find(table) for table in tables}
        text = sqlite_text(tokens.tokens, evaluator, self._has_function, tokens.sql_mode)
        for table, relation in relations.items():
            self._fill(table.database or evaluator.who.database, table.name, relation)
        cursor = self._begin(text, tokens)
        rows = self._rows_of(cursor, tokens)
        first = self._first(rows)
        is_all = self._cursor is None
        columns = result_columns(
            tokens, select, list(relations.values()), first, len(cursor.description or ()), is_all=is_all
        )
        if is_all:
            return Relation(columns, first)
        return Relation(columns, itertools.chain(first, _fitted(rows, columns)), is_open=True)

    def forget_rows(self) -> None:
        """The rows that are left of the last answer are not wanted any more."""
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def close(self) -> None:
        """Forget everything."""
        self.forget_rows()
        self._database.close()

    def _fill(self, database: str, name: str, relation: Relation) -> None:
        key = database.lower(), name.lower()
        if self._rows.get(key) is relation.rows:
            return
        table = f"{key[0]}.`{key[1]}`"
        assert self._evaluator is not None
        folds = bool(self._evaluator.settings.value(LOWER_CASE_TABLE_NAMES))
        columns = ", ".join(f"`{column.name}` {_declared(column, folds=folds)}" for column in relation.columns)
        marks = ", ".join("?" * len(relation.columns))
        self._go_on(math.inf)
        execute = self._database.execute
        execute("BEGIN")
        try:
            execute(f"DROP TABLE IF EXISTS {table}")
            execute(f"CREATE TABLE {table} ({columns})")
            rows = (tuple(map(_stored, row)) for row in relation.rows)
            self._database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            execute("COMMIT")
        except BaseException as error:
            self._rows.pop(key, None)
            with suppress(sqlite3.Error):  # it has gone back by itself
                execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise self._broken or TOO_COSTLY from None
            raise
        if not isinstance(relation.rows, Iterator):  # others are read once
            self._rows[key] = relation.rows

    def _begin(self, text: SqliteText, tokens: SqlTokens) -> sqlite3.Cursor:
        """Carry a statement out up to its first row.

        Raises:
            RefusedError: it cannot be carried out, or takes too long.
            BrokenOffError: nobody waits for it.
        """
        if sum(len(value) for value in text.values if isinstance(value, str | bytes)) > VALUES_SIZE_MAX:
            raise TOO_COSTLY
        self._long_size = self._collected_size = 0
        self._seconds_left = SECONDS_MAX
        self._go_on(STEPS_MAX)
        self._database.set_authorizer(_authorize)
        try:
            self._cursor = self._database.execute(text.sql, tuple(map(_stored, text.values)))
        except _FAILURES as error:
            raise self._cause(error, tokens) from None
        finally:
            self._database.set_authorizer(None)
            self._pause()
        return self._cursor

    def _rows_of(self, cursor: sqlite3.Cursor, tokens: SqlTokens) -> Iterator[RowValues]:
        """The rows, computed as they are asked for; raises as `_begin`."""
        while True:
            self._since = time.monotonic()
            try:
                row = next(cursor, None)
            except _FAILURES as error:
                self._cursor = None
                raise self._cause(error, tokens) from None
            finally:
                self._pause()
            if row is None:
                cursor.close()
                self._cursor = None
                return
            yield row

    def _first(self, rows: Iterator[RowValues]) -> list[RowValues]:
        """All rows, or so many that they tell the columns."""
        first: list[RowValues] = []
        size = 0
        for row in rows:
            first.append(row)
            size += sum(len(str(value)) for value in row) + ROW_OVERHEAD
            if size > FIRST_SIZE_MAX:
                break
        return first

    def _go_on(self, steps: float) -> None:
        self._steps_left, self._since = steps, time.monotonic()

    def _pause(self) -> None:
        """What passes from now on is the time of the client."""
        self._seconds_left -= time.monotonic() - self._since

    def _cause(self, error: Exception, tokens: SqlTokens) -> Exception:
        return self._broken or self._error or _refusal(str(error), tokens)

    def _look(self) -> int:
        """Called by SQLite while it works; not 0 ends the statement."""
        self._steps_left -= STEPS_BETWEEN_LOOKS
        is_filling = self._steps_left == math.inf
        is_over = not is_filling and time.monotonic() - self._since > self._seconds_left
        return int(self._steps_left <= 0 or is_over or self._is_broken())

    def _is_broken(self) -> bool:
        try:
            check_wanted()
        except BrokenOffError as error:
            self._broken = error
        return self._broken is not None

    def _collect(self, size: int) -> None:
        """Count what GROUP_CONCAT keeps; negative where it is done.

        Raises:
            RefusedError: it is too much.
        """
        self._collected_size += size
        if size > 0 and self._collected_size > TEXT_SIZE_MAX:
            self._error = TOO_COSTLY
            raise TOO_COSTLY

    def _has_function(self, name: str) -> bool:
        """Whether a function can be called; those that dialogue computes are handed to SQLite as they are met."""
        if name in self._functions:
            return True
        if not Evaluator.is_function(name) or name in SQLITE_OWN:
            return False

        def call(*arguments: Value) -> str | int | float | None:
            assert self._evaluator is not None
            try:
                check_wanted()
                self._evaluator.begin_row()
                value = _stored(self._evaluator.evaluate(Call(name, name, tuple(map(Literal, arguments)))))
                if isinstance(value, str) and len(value) > LONG_VALUE:
                    self._long_size += len(value)
                    if self._long_size > LONG_VALUES_SIZE_MAX:
                        raise TOO_COSTLY
                return value
            except RefusedError as error:
                self._error = error
                raise
            except BrokenOffError as error:
                self._broken = error
                raise

        self._database.create_function(name, -1, call)
        self._functions.add(name)
        return True


class _GroupConcat:
    """GROUP_CONCAT: the first argument says how it was written, the second is the separator."""

    def __init__(self, collect: Callable[[int], None]) -> None:
        """`collect` is told what is kept."""
        self._collect = collect
        self._rows: list[tuple[tuple[Value, ...], str]] = []
        self._form = "0 1 "
        self._separator = ","
        self._size = 0

    def step(self, form: str, separator: str, *arguments: Value) -> None:
        self._form, self._separator = form, separator
        _, count, _ = form.split(" ")
        values, keys = arguments[: int(count)], arguments[int(count) :]
        if any(value is None for value in values):
            return
        text = "".join(map(text_of, values))
        size = ROW_OVERHEAD + len(text) + len(separator) + sum(len(key) for key in keys if isinstance(key, str | bytes))
        self._collect(size)
        self._size += size
        self._rows.append((keys, text))

    def finalize(self) -> Value:
        self._collect(-self._size)
        if not self._rows:
            return None
        is_distinct, _, directions = self._form.split(" ")
        for no in reversed(range(len(directions))):
            self._rows.sort(key=lambda row: _sort_key(row[0][no]), reverse=directions[no] == "-")
        texts = [text for _, text in self._rows]
        return self._separator.join(dict.fromkeys(texts) if is_distinct == "1" else texts)


def _sort_key(value: Value) -> tuple[int, float, str]:
    if value is None:
        return (0, 0, "")
    return (1, value, "") if isinstance(value, int | float) else (2, 0, text_of(value).casefold())


def _declared(column: ColumnDefinition, *, folds: bool) -> str:
    """A column for SQLite; where capitals do not matter in names, all texts are compared alike."""
    if column.column_type in _NUMBERS:
        return "INTEGER"
    if column.column_type in _REALS:
        return "NUMERIC"
    return f"TEXT COLLATE {'EXACT' if column.name in _EXACT and not folds else 'FOLDED'}"


def _stored(value: Value) -> str | int | float | None:
    """A value as SQLite takes it."""
    match value:
        case Decimal():
            return float(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case str() if not value.isascii():
            return value.encode("utf-8", "replace").decode("utf-8")
        case _:
            return value


def _fitted(rows: Iterable[RowValues], columns: Sequence[ColumnDefinition]) -> Iterator[RowValues]:
    """Rows whose numbers are numbers: what a column is told to be, it stays."""
    integers = [no for no, column in enumerate(columns) if column.column_type in _NUMBERS]
    reals = [no for no, column in enumerate(columns) if column.column_type in _REALS]
    for row in rows:
        if all(isinstance(row[no], int | None) for no in integers) and not any(
            isinstance(row[no], str | bytes) for no in reals
        ):
            yield row
            continue
        values = list(row)
        for no in integers:
            values[no] = integer_of(row[no])
        for no in reals:
            values[no] = number_of(row[no])
        yield values


def _authorize(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _folded_order(left: str, right: str) -> int:
    """Without regard to case and blanks behind."""
    one, other = left.rstrip(" ").upper(), right.rstrip(" ").upper()
    return (one > other) - (one < other)


def _exact_order(left: str, right: str) -> int:
    """Equal is only what is the same; but the order is that of other texts."""
    return _folded_order(left, right) or (left > right) - (left < right)


def _like(pattern: Value, text: Value, escape: Value = "\\") -> int | None:
    if pattern is None or text is None:
        return None
    return int(like(text_of(pattern), text_of(text), escape=text_of(escape) if escape is not None else "\\"))


def _refusal(problem: str, tokens: SqlTokens) -> RefusedError:
    """What a server would say to what SQLite says."""
    kind, _, rest = problem.partition(": ")
    match kind:
        case "no such column":
            return unknown_column(rest, _clause_of(rest, tokens.tokens))
        case "ambiguous column name":
            clause = _clause_of(rest, tokens.tokens)
            return RefusedError(1052, "23000", f"Column '{rest}' in {clause} is ambiguous")
        case "no such table":
            return RefusedError(1146, "42S02", f"Table '{rest}' doesn't exist")
    if "BY term out of range" in problem:
        clause = "ORDER BY" if "ORDER BY" in problem else "GROUP BY"
        return unknown_column(_number_behind(clause, tokens.tokens), clause)
    if problem == "interrupted":
        return TOO_COSTLY
    if "do not have the same number of result columns" in problem:
        return RefusedError(1222, "21000", "The used SELECT statements have a different number of columns")
    if problem.startswith(("misuse of aggregate", "misuse of window")):
        return RefusedError(1111, "HY000", "Invalid use of group function")
    if problem.startswith("wrong number of arguments"):
        return RefusedError(1582, "42000", "Incorrect parameter count in the call to native function")
    if problem.startswith("sub-select returns"):
        return RefusedError(1241, "21000", "Operand should contain 1 column(s)")
    if "too big" in problem or "too long" in problem or "too large" in problem:
        return TOO_COSTLY
    return not_supported("this query over tables")


def _number_behind(clause: str, tokens: Sequence[Token]) -> str:
    """The number behind ORDER BY that is none of an item: the largest one."""
    start = max((no for no, token in enumerate(tokens) if token.is_word(clause.split()[0])), default=0)
    numbers = [int(token.text) for token in tokens[start:] if token.kind is TokenKind.NUMBER and token.text.isdecimal()]
    return str(max(numbers, default=0))


def _clause_of(column: str, tokens: Sequence[Token]) -> str:
    """The clause in which a column stands first."""
    wanted = column.rpartition(".")[2].lower()
    clause = "SELECT"
    for token in tokens:
        if token.kind is TokenKind.WORD:
            clause = _CLAUSES.get(token.text.upper(), clause)
        if token.is_name and token.text.lower() == wanted:
            return clause
    return "SELECT"
