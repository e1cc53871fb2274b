"""SELECT over one table at a position of the log."""

from __future__ import annotations

import threading
import weakref
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ibbmaster.dialogue.describing import describe
from ibbmaster.dialogue.log_tables import LogSnapshot, TableQuery
from ibbmaster.dialogue.refusal import RefusedError, not_supported
from ibbmaster.dialogue.statement import Call, ColumnName, Expression, Literal, Operation, SelectItem, Star
from ibbmaster.kernel.loading import kernels
from ibbmaster.log.interface import LogEngine
from ibbmaster.position import LogPosition
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import TableColumn
from ibbmaster.sql.comparing import comparable
from ibbmaster.sql.conditions import Condition, RowConditions
from ibbmaster.sql.contents import TableContents, first_value
from ibbmaster.sql.definitions import ColumnFlag, column_definition
from ibbmaster.sql.folding import ROW_BYTES_MAX, RowFold, SchemaTimeline
from ibbmaster.sql.kept_rows import Interval, KeptRows
from ibbmaster.sql.key_ranges import KeyPart, KeyRanges, ranges_of
from ibbmaster.sql.literals import Constant, stored_value
from ibbmaster.sql.row_blocks import StoredRowBlocks
from ibbmaster.sql.row_file import RowFile
from ibbmaster.sql.row_values import RowValues, ShownColumn
from ibbmaster.sql.stored import StoredColumn, StoredLayout, own_columns, sort_key
from ibbmaster.sql.value_texts import ShownAs
from ibbmaster.wire.response import BlockResultSet, ColumnDefinition, Err, ResultSet

FOLDS_MAX = 4  # positions whose rows are kept
SQLSTATE = "HY000"
UNKNOWN_ROWS = 1105
AGGREGATES = frozenset(("count", "min", "max"))


class TableReader:
    """Answers queries over the tables of a log, each at its own position. Thread-safe.

    What was read for one query is there for the next one, and for later positions it is only
    read on from there. Positions are kept as long as a session has them frozen, the last ones
    also longer. The rows of one position take `bytes_max` of temporary disk space at most.
    """

    def __init__(self, engine: LogEngine, timeline: SchemaTimeline, *, bytes_max: int = ROW_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._engine = engine
        self._timeline = timeline
        self._lock = threading.Lock()
        self._folds: list[RowFold] = []  # the last one that was used at the end
        self._users: list[tuple[weakref.ref[LogSnapshot], LogPosition]] = []

    def columns(self, query: TableQuery) -> tuple[ColumnDefinition, ...]:
        """The columns of an answer; nothing is read.

        Raises:
            RefusedError: it is of a kind that is not answered.
        """
        return _Answer(query).definitions

    def read(self, query: TableQuery) -> ResultSet | BlockResultSet:
        """The answer to a query.

        Raises:
            RefusedError: it is of a kind that is not answered, or the rows of the table are not known.
            IbbMasterError: the log cannot be read.
        """
        answer = _Answer(query)
        with self._lock:
            fold = self._fold_at(query.snapshot)
            contents = fold.contents_of(query.table)
            answer.check_known(contents)
            return answer.rows(contents)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            for fold in self._folds:
                fold.close()
            self._folds.clear()

    def _fold_at(self, snapshot: LogSnapshot) -> RowFold:
        """The rows at a position: those that are there, read on, or read anew."""
        self._users = [(user, place) for user, place in self._users if user() is not None]
        self._users.append((weakref.ref(snapshot), snapshot.end))
        fold = next((fold for fold in self._folds if fold.position == snapshot.end), None)
        if fold is None:
            before = [fold for fold in self._folds if fold.position < snapshot.end]
            fold = max(before, key=lambda fold: fold.position, default=None)
            if fold is None:
                start = self._engine.start_of_file().position
                fold = RowFold(self._engine, self._timeline, KeptRows(RowFile()), start, self._bytes_max)
                self._folds.append(fold)
            elif any(place == fold.position for _, place in self._users):
                fold = fold.fork()
                self._folds.append(fold)
            try:
                fold.advance(snapshot.end)
            except BaseException:
                self._folds.remove(fold)  # what is half done is of no use
                fold.close()
                raise
        self._folds.remove(fold)
        self._folds.append(fold)
        while len(self._folds) > FOLDS_MAX:
            self._folds.pop(0).close()
        return fold


@dataclass(frozen=True, slots=True)
class _Order:
    """How rows are ordered: by the key, or the other way round."""

    is_descending: bool = False


class _Answer:
    """One query, understood: its columns, and how its rows are found."""

    def __init__(self, query: TableQuery) -> None:
        self._query = query
        self._select = query.select
        self._table = query.table
        self._index = row_key(query.table.indexes, query.table.columns)
        self._own = {column.id: column for column in own_columns(query.table)}
        self._names = {column.name: column for column in query.table.columns}
        self._check()
        self._aggregates = [item for item in self._select.items if _is_aggregate(item.expression)]
        self._shown = [] if self._aggregates else [self._shown_column(item) for item in self._select.items]
        self.definitions = tuple(column.definition for column in self._shown) or tuple(
            self._aggregate_definition(item) for item in self._select.items
        )

    def _check(self) -> None:
        select = self._select
        if select.is_joined or len(select.tables) != 1:
            raise not_supported("a query of several tables")
        if select.is_distinct or select.group_by or select.having is not None:
            raise not_supported("DISTINCT, GROUP BY and HAVING over tables of the log")
        if any(_is_aggregate(item.expression) for item in select.items) and not all(
            _is_aggregate(item.expression) for item in select.items
        ):
            raise not_supported("columns beside COUNT, MIN and MAX")

    # Columns ----------------------------------------------------------------------------------

    def _shown_column(self, item: SelectItem) -> ShownColumn:
        match item.expression:
            case ColumnName((name,)):
                column = self._names[name]
                return ShownColumn(self._definition(column, item.name), column, self._own[column.id])
            case Literal(value=value):
                definition = describe(item.name, item.expression, value, version=self._query.version)
                return ShownColumn(definition, text=_literal_text(value))
        raise not_supported("expressions over columns of a table")

    def _definition(self, column: TableColumn, name: str) -> ColumnDefinition:
        return column_definition(
            self._table,
            column,
            name,
            alias=self._select.tables[0].alias,  # type: ignore[union-attr]
            text_charset=self._query.text_charset,
            text_collation_id=self._query.text_collation_id,
        )

    def _aggregate_definition(self, item: SelectItem) -> ColumnDefinition:
        assert isinstance(item.expression, Call)
        if item.expression.name == "count":
            return describe(item.name, item.expression, 0, version=self._query.version)
        column = self._aggregated(item.expression)
        found = self._definition(column, item.name)
        kept = found.flags & (ColumnFlag.UNSIGNED | ColumnFlag.ZEROFILL | ColumnFlag.BINARY | ColumnFlag.BLOB)
        if column.type.charset is None:
            kept |= ColumnFlag.BINARY
        return replace(found, flags=kept, original_name="", schema="", table="", original_table="")

    def _aggregated(self, call: Call) -> TableColumn:
        match call.arguments:
            case (ColumnName((name,)),):
                return self._names[name]
        raise not_supported(f"{call.written}() of an expression")

    # Rows -------------------------------------------------------------------------------------

    def check_known(self, contents: TableContents) -> None:
        """
        Raises:
            RefusedError: rows or values that the query is about are not known.
        """
        unknown = contents.unknown
        if unknown is None:
            for number in self._touched():
                unknown = unknown or contents.unknown_columns.get(number)
        if unknown is not None:
            text = f"the rows of {self._table.full_name} are not known since GTID {unknown.gtid}: {unknown.reason}"
            raise RefusedError(UNKNOWN_ROWS, SQLSTATE, text)

    def _touched(self) -> list[int]:
        """The columns that a query is about; those of the key order the rows."""
        names = set()
        for item in self._select.items:
            names |= _names_in(item.expression)
        if self._select.where is not None:
            names |= _names_in(self._select.where)
        for order in self._select.order_by:
            names |= _names_in(order.expression)
        key = [] if self._index is None else [part.column_id for part in self._index.parts]
        return [*(self._names[name].id for name in names), *key]

    def rows(self, contents: TableContents) -> ResultSet | BlockResultSet:
        """The rows, found now and encoded as they are asked for."""
        ranges = ranges_of(self._select.where, self._key_parts())
        condition = None if ranges.is_exact else self._conditions(contents)
        if self._aggregates:
            return self._aggregate(contents, ranges, condition)
        order = self._order()
        skip, limit = self._select.limit or (0, None)
        is_exact = condition is None
        places = _places(contents, ranges, order, None if limit is None or not is_exact else skip + limit)
        if is_exact and skip:
            places, skip = places[skip:], 0
        if is_exact and limit is not None:
            places, limit = places[:limit], None
        shown = ShownAs(self._query.text_charset, self._query.time_zone_s)
        values = RowValues(self._shown, contents.layouts, shown, is_binary=self._query.is_binary, used=contents.used)
        name = self._table.full_name
        blocks = StoredRowBlocks(
            contents.kept.rows,
            places,
            values,
            condition=condition,
            skip=skip,
            limit=limit,
            kernels=kernels(),
            on_error=lambda error: Err(code=UNKNOWN_ROWS, sqlstate=SQLSTATE, text=f"a row of {name}: {error}"),
        )
        return BlockResultSet(columns=self.definitions, blocks=blocks)

    def _key_parts(self) -> list[KeyPart]:
        if self._index is None:
            return []
        names = {column.id: column for column in self._table.columns}
        parts = []
        for part in self._index.parts:
            column, stored = names[part.column_id], self._own[part.column_id]
            parts.append(KeyPart(column.name, self._key_encoder(stored, part.is_descending), part.is_descending))
        return parts

    def _key_encoder(self, stored: StoredColumn, is_descending: bool):  # type: ignore[no-untyped-def]
        make = sort_key(stored, is_descending=is_descending)
        is_shifted = stored.type.word == "timestamp" and self._query.time_zone_s != 0

        def encode(value: Constant) -> bytes:
            if is_shifted or stored.type.word in ("enum", "set", "float", "double"):
                raise ValueError("compared value by value")
            data = stored_value(stored.column, stored.type, value)
            if data is None:
                raise ValueError("NULL")
            return make(data)

        return encode

    def _conditions(self, contents: TableContents):  # type: ignore[no-untyped-def]
        """The whole condition, for rows in ranges that may not meet it."""
        where = self._select.where
        assert where is not None
        key = frozenset(part.column_id for part in self._index.parts) if self._index is not None else frozenset()
        conditions = RowConditions(self._table, self._own, key, self._query.time_zone_s)
        for layout in [contents.layouts.add(list(self._own.values()))]:
            conditions.of(where, layout)  # what is not answered is said before the first row
        return lambda layout: conditions.of(where, layout)

    def _order(self) -> _Order:
        """The order of the rows.

        Raises:
            RefusedError: it is none of the key.
        """
        wanted = [(order.expression, order.is_descending) for order in self._select.order_by]
        if not wanted:
            return _Order()
        parts = [] if self._index is None else list(self._index.parts)
        fixed = _fixed_names(self._select.where)
        is_reverse: bool | None = None
        names = {column.id: column.name for column in self._table.columns}
        for expression, is_descending in wanted:
            name = expression.parts[-1] if isinstance(expression, ColumnName) else None
            while parts and names[parts[0].column_id] != name and names[parts[0].column_id] in fixed:
                parts.pop(0)
            if self._index is not None and not parts:
                break  # the key is unique: what follows decides nothing
            if not parts or names[parts[0].column_id] != name:
                if name in fixed:
                    continue
                raise not_supported(f"ORDER BY other columns than those of the key of {self._table.full_name}")
            is_opposite = is_descending != parts.pop(0).is_descending
            if is_reverse not in (None, is_opposite):
                raise not_supported("ORDER BY in both directions")
            is_reverse = is_opposite
        return _Order(bool(is_reverse))

    def _aggregate(self, contents: TableContents, ranges: KeyRanges, condition) -> ResultSet:  # type: ignore[no-untyped-def]
        """COUNT, MIN and MAX."""
        skip, limit = self._select.limit or (0, None)
        if condition is None and all(_counts_rows(item.expression) for item in self._select.items):
            count = sum(contents.kept.count_in(contents.number, one) for one in ranges.intervals)
            row: list[bytes | None] = [b"%d" % count for _ in self._select.items]
        else:
            row = self._aggregate_rows(contents, ranges, condition)
        rows = [] if skip or limit == 0 else [tuple(row)]
        return ResultSet(columns=self.definitions, rows=rows, is_binary=self._query.is_binary)

    def _aggregate_rows(self, contents, ranges, condition):  # type: ignore[no-untyped-def]
        conditions: dict[int, Condition] = {}
        sums = [_Aggregate(self, item, contents) for item in self._select.items]
        for place in _places(contents, ranges, _Order(), None):
            layout_no, image = contents.kept.rows.read(place)
            layout = contents.layouts[layout_no]
            spans = layout.spans(image)[0]
            if condition is not None:
                if layout_no not in conditions:
                    conditions[layout_no] = condition(layout)
                if conditions[layout_no](image, spans) is not True:
                    continue
            for one in sums:
                one.take(layout, image, spans)
        return [one.text() for one in sums]

    def value_of(self, call: Call, layout: StoredLayout):  # type: ignore[no-untyped-def]
        """How the value of the column of an aggregate is taken, compared and shown."""
        column = self._aggregated(call)
        place = layout.places.get(column.id)
        stored = self._own[column.id] if place is None else layout.columns[place]
        key = frozenset(part.column_id for part in self._index.parts) if self._index is not None else frozenset()
        found = comparable(stored, is_key=column.id in key, time_zone_s=self._query.time_zone_s)
        shown = ShownAs(self._query.text_charset, self._query.time_zone_s)
        from ibbmaster.sql.value_texts import text_of

        constant = first_value(column, stored) if place is None else None
        return place, constant, found, text_of(stored.column, column.type, shown)


class _Aggregate:
    """One COUNT, MIN or MAX."""

    def __init__(self, answer: _Answer, item: SelectItem, contents: TableContents) -> None:
        assert isinstance(item.expression, Call)
        self._answer = answer
        self._call = item.expression
        self._counts_rows = _counts_rows(item.expression)
        self._count = 0
        self._best = None
        self._text: bytes | None = None
        self._plans: dict[int, tuple] = {}  # type: ignore[type-arg]
        if self._call.name != "count":
            plan = answer.value_of(self._call, contents.layouts.add(list(answer._own.values())))
            if not plan[2].has_order:
                raise not_supported(f"{self._call.written}() of this type")

    def take(self, layout: StoredLayout, image: bytes, spans) -> None:  # type: ignore[no-untyped-def]
        if self._counts_rows:
            self._count += 1
            return
        plan = self._plans.get(layout.number)
        if plan is None:
            plan = self._plans[layout.number] = self._answer.value_of(self._call, layout)
        place, constant, found, text = plan
        span = None if place is None else spans[place]
        data = constant if place is None else None if span is None else image[span[0] : span[1]]
        if data is None:
            return
        self._count += 1
        if self._call.name == "count":
            return
        value = found.of_stored(data)
        if self._best is None or (value < self._best if self._call.name == "min" else value > self._best):
            self._best, self._text = value, text(data)

    def text(self) -> bytes | None:
        """The result."""
        return b"%d" % self._count if self._call.name == "count" else self._text


def _places(contents: TableContents, ranges: KeyRanges, order: _Order, limit: int | None) -> array[int]:
    """Where the rows of ranges of keys are, in order."""
    found = array("q")
    intervals: Sequence[Interval] = ranges.intervals[::-1] if order.is_descending else ranges.intervals
    for interval in intervals:
        left = None if limit is None else limit - len(found)
        if left == 0:
            break
        found.extend(contents.kept.places(contents.number, interval, is_descending=order.is_descending, limit=left))
    return found


def _is_aggregate(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.name in AGGREGATES


def _counts_rows(expression: Expression) -> bool:
    return (
        isinstance(expression, Call)
        and expression.name == "count"
        and isinstance((expression.arguments or (None,))[0], Star | Literal)
    )


def _names_in(expression: Expression) -> set[str]:
    match expression:
        case ColumnName(parts=parts):
            return {parts[-1]}
        case Operation(operands=operands) | Call(arguments=operands):
            return {name for operand in operands for name in _names_in(operand)}
    return set()


def _fixed_names(where: Expression | None) -> set[str]:
    """Columns that have one value in all rows that meet a condition."""
    match where:
        case Operation("AND", operands):
            return {name for operand in operands for name in _fixed_names(operand)}
        case Operation("=", (ColumnName((name,)), Literal())) | Operation("=", (Literal(), ColumnName((name,)))):
            return {name}
    return set()


def _literal_text(value: Constant) -> bytes | None:
    from ibbmaster.dialogue.conversion import bytes_of

    return bytes_of(value)
