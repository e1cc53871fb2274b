"""One query over a table, understood: its columns, and how its rows are found, ordered and counted."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace

from ibbmaster.dialogue.conversion import bytes_of
from ibbmaster.dialogue.describing import describe
from ibbmaster.dialogue.log_tables import TableQuery
from ibbmaster.dialogue.refusal import RefusedError, not_supported
from ibbmaster.dialogue.statement import SelectItem
from ibbmaster.event.rows.column import ValueKind
from ibbmaster.fold.comparing import Comparable, comparable, is_text
from ibbmaster.fold.contents import TableContents
from ibbmaster.fold.kept_rows import EVERYTHING, Interval
from ibbmaster.fold.key_ranges import KeyPart, KeyRanges, ranges_of
from ibbmaster.fold.literals import stored_value
from ibbmaster.fold.row_doubts import UnknownRows
from ibbmaster.fold.stored import StoredColumn, StoredLayout, own_columns, sort_key
from ibbmaster.fold.value_texts import TextSettings
from ibbmaster.kernel.loading import kernels
from ibbmaster.kernel.parts import KernelSet
from ibbmaster.rows.certainty import doubt_text
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.sql.aggregates import AGGREGATES, Aggregates, counts_rows
from ibbmaster.sql.conditions import Condition, RowConditions
from ibbmaster.sql.definitions import column_definition
from ibbmaster.sql.local_values import local_columns
from ibbmaster.sql.row_blocks import StoredRowBlocks
from ibbmaster.sql.row_values import RowValues, ShownColumn
from ibbmaster.sqltext.expression import Call, ColumnName, Expression, Literal, Operation
from ibbmaster.sqltext.literals import Value
from ibbmaster.wire.response import COLLATION_DEFAULT, BlockResultSet, ColumnDefinition, ColumnFlag, Err, ResultSet

SQLSTATE = "HY000"
UNKNOWN_ROWS = 1105
ROWS_MAX = 1 << 62  # more than any table has
OF_VALUES = ColumnFlag.UNSIGNED | ColumnFlag.ZEROFILL | ColumnFlag.BINARY | ColumnFlag.BLOB

MakeCondition = Callable[[StoredLayout], Condition]


class UnknownRowsError(RefusedError):
    """The log does not tell the rows of a table; `unknown` says since when, and why."""

    def __init__(self, table: TableVersion, unknown: UnknownRows) -> None:
        text = f"{table.full_name}: {doubt_text(unknown.gtid, unknown.reason)}"
        super().__init__(UNKNOWN_ROWS, SQLSTATE, text)
        self.unknown = unknown


class Answer:
    """What a query is answered.

    Attributes:
        definitions: the columns.

    Raises:
        RefusedError: the query is of a kind that is not answered.
    """

    def __init__(self, query: TableQuery) -> None:
        self._query = query
        self._select = query.select
        self._table = query.table
        self._index = row_key(query.table)
        self._key = frozenset(part.column_id for part in self._index.parts) if self._index is not None else frozenset()
        self._own = {column.id: column for column in own_columns(query.table)}
        self._names = {column.name: column for column in query.table.columns}
        self._shown_as = TextSettings(query.text_charset, query.time_zone_s)
        self._calls = [item.expression for item in self._select.items if _is_aggregate(item.expression)]
        self._local = local_columns(query.table)
        self._check()
        self._shown = [] if self._calls else [self._shown_column(item) for item in self._select.items]
        self.definitions = tuple(column.definition for column in self._shown) or tuple(
            self._aggregate_definition(item) for item in self._select.items
        )

    def _check(self) -> None:
        select = self._select
        if select.is_distinct or select.group_by or select.having is not None:
            raise not_supported("DISTINCT, GROUP BY and HAVING over tables of the log")
        if self._calls and len(self._calls) < len(select.items):
            raise not_supported("columns beside COUNT, MIN and MAX")
        others = [*self._calls, *(order.expression for order in select.order_by)]
        others += [] if select.where is None else [select.where]
        for name in (name for expression in others for name in _names_in(expression)):
            if name in self._names and self._names[name].id in self._local:
                raise self._is_local(self._names[name])

    # Columns ----------------------------------------------------------------------------------

    def _shown_column(self, item: SelectItem) -> ShownColumn:
        match item.expression:
            case ColumnName((name,)):
                column = self._names[name]
                definition = self._definition(column, item.name)
                if (local := self._local.get(column.id)) is None:
                    return ShownColumn(definition, column, self._own[column.id])
                if local.source is None:
                    raise self._is_local(column)
                return ShownColumn(definition, local.source, self._own[local.source.id], change=local.change)
            case Literal(value=value):
                definition = describe(item.name, item.expression, value, version=self._query.version)
                if definition.collation_id == COLLATION_DEFAULT and self._query.text_charset == "utf8mb4":
                    definition = replace(definition, collation_id=self._query.text_collation_id)
                return ShownColumn(definition, text=bytes_of(value))
        raise not_supported("expressions over columns of a table")

    def _is_local(self, column: TableColumn) -> RefusedError:
        text = (
            f"column {column.name} of {self._table.full_name} is VIRTUAL, and each reader's session computes it anew: "
            f"its values are not known for ({column.expression})"
        )
        return RefusedError(UNKNOWN_ROWS, SQLSTATE, text)

    def _definition(self, column: TableColumn, name: str) -> ColumnDefinition:
        table = self._select.tables[0]
        return column_definition(
            self._table,
            column,
            name,
            alias=table.alias,
            text_charset=self._query.text_charset,
            text_collation_id=self._query.text_collation_id,
        )

    def _aggregate_definition(self, item: SelectItem) -> ColumnDefinition:
        assert isinstance(item.expression, Call)
        if item.expression.name == "count":
            return describe(item.name, item.expression, 0, version=self._query.version)
        column = self.aggregated(item.expression)
        found = self._definition(column, item.name)
        flags = found.flags & OF_VALUES | (ColumnFlag.BINARY if column.type.charset is None else 0)
        return replace(found, flags=flags, original_name="", schema="", table="", original_table="")

    def aggregated(self, call: Call) -> TableColumn:
        """The column that an aggregate is about.

        Raises:
            RefusedError: it is about something else.
        """
        match call.arguments:
            case (ColumnName((name,)),) if call.name == "count" or self._names[name].type.word != "bit":
                return self._names[name]
        raise not_supported(f"{call.written}() of an expression")

    # Rows -------------------------------------------------------------------------------------

    def check_known(self, contents: TableContents) -> None:
        """
        Raises:
            RefusedError: rows or values that the query is about are not known.
        """
        expect_known(
            contents, self._table, self._touched(), None if self._select.where is None else self._ranges().intervals
        )

    def _touched(self) -> list[int]:
        """The columns that a query is about; those of the key order the rows."""
        expressions = [item.expression for item in self._select.items]
        expressions += [order.expression for order in self._select.order_by]
        if self._select.where is not None:
            expressions.append(self._select.where)
        names = {name for expression in expressions for name in _names_in(expression)}
        return [*(self._names[name].id for name in names), *self._key]

    def rows(self, contents: TableContents) -> ResultSet | BlockResultSet:
        """The rows: their places are found now, they themselves are read and encoded as they are asked for."""
        ranges = self._ranges()
        condition = None if ranges.is_exact else self._condition(contents)
        if self._calls:
            return self._aggregate(contents, ranges, condition)
        skip, limit = self._select.limit or (0, None)
        last = None if limit is None or condition is not None else min(skip + limit, ROWS_MAX)
        places = _places(contents, ranges, is_descending=self._is_descending(), limit=last)
        if condition is None:
            places, skip, limit = places[skip:] if skip else places, 0, None
        values = RowValues(
            self._shown, contents.layouts, self._shown_as, is_binary=self._query.is_binary, used=contents.used
        )
        name = self._table.full_name
        blocks = StoredRowBlocks(
            contents.kept.rows,
            places,
            values,
            condition=condition,
            skip=skip,
            limit=limit,
            kernels=kernels(KernelSet.SELECT),
            on_error=lambda error: Err(code=UNKNOWN_ROWS, sqlstate=SQLSTATE, text=f"a row of {name}: {error}"),
        )
        return BlockResultSet(columns=self.definitions, blocks=blocks)

    def _ranges(self) -> KeyRanges:
        """The ranges of keys in which the rows are."""
        return ranges_of(self._select.where, self._key_parts())

    def _key_parts(self) -> list[KeyPart]:
        if self._index is None:
            return []
        names = {column.id: column.name for column in self._table.columns}
        return [
            KeyPart(
                names[part.column_id],
                self._key_encoder(self._own[part.column_id], part.is_descending),
                part.is_descending,
            )
            for part in self._index.parts
        ]

    def _key_encoder(self, stored: StoredColumn, is_descending: bool) -> Callable[[Value], bytes]:
        make = sort_key(stored, is_descending=is_descending)
        try:
            known = comparable(stored)
        except RefusedError:
            known = Comparable(bytes, _no_key)
        is_shifted = stored.type.word == "timestamp" and self._query.time_zone_s != 0

        def encode(value: Value) -> bytes:
            if is_shifted or stored.column.kind is ValueKind.UUID:
                raise ValueError("compared value by value")
            known.of_constant(value)
            data = stored_value(stored.column, stored.type, value)
            assert data is not None
            return make(data)

        return encode

    def _condition(self, contents: TableContents) -> MakeCondition:
        """The whole condition, for rows in ranges that may not meet it.

        Raises:
            RefusedError: it is of a kind that is not answered.
        """
        where = self._select.where
        assert where is not None
        conditions = RowConditions(self._table, self._own, self._query.time_zone_s)
        conditions.of(where, contents.layouts.add(list(self._own.values())))  # so that it is said before the first row
        return lambda layout: conditions.of(where, layout)

    def _is_descending(self) -> bool:
        """Whether rows go against the order of their keys.

        Raises:
            RefusedError: they are ordered by something else.
        """
        parts = [] if self._index is None else list(self._index.parts)
        names = {column.id: column.name for column in self._table.columns}
        fixed = _fixed_names(self._select.where)
        found: bool | None = None
        for order in self._select.order_by:
            name = order.expression.parts[-1] if isinstance(order.expression, ColumnName) else ""
            while parts and names[parts[0].column_id] != name and names[parts[0].column_id] in fixed:
                parts.pop(0)
            if self._index is not None and not parts:
                break  # the key is unique: what follows decides nothing
            if name in fixed and (not parts or names[parts[0].column_id] != name):
                continue
            if not parts or names[parts[0].column_id] != name:
                raise not_supported(f"ORDER BY other columns than those of the key of {self._table.full_name}")
            part = parts.pop(0)
            own = self._own[part.column_id]
            if own.column.kind is ValueKind.UUID or (is_text(own) and not (own.type.collation or "").endswith("_bin")):
                raise not_supported(f"ORDER BY {name}, whose order is not that of its bytes")
            is_opposite = order.is_descending != part.is_descending
            if found not in (None, is_opposite):
                raise not_supported("ORDER BY in both directions")
            found = is_opposite
        return bool(found)

    def _is_at_an_end(self, call: Call) -> bool:
        """Whether the first row or the last one in the order of the key has what an aggregate looks for."""
        if call.name == "count" or self._index is None:
            return False
        first = self._own[self._index.parts[0].column_id]
        return self.aggregated(call).id == first.id and first.column.kind in (ValueKind.INTEGER, ValueKind.DECIMAL)

    def _aggregate(self, contents: TableContents, ranges: KeyRanges, condition: MakeCondition | None) -> ResultSet:
        """COUNT, MIN and MAX."""
        calls = [call for call in self._calls if isinstance(call, Call)]
        if condition is None and all(map(counts_rows, calls)):
            count = sum(contents.kept.count_in(contents.number, one) for one in ranges.intervals)
            row: tuple[bytes | None, ...] = (b"%d" % count,) * len(calls)
        else:
            columns = [None if counts_rows(call) else self.aggregated(call) for call in calls]
            sums = Aggregates(calls, columns, contents, self._own, self._shown_as)
            if condition is None and all(map(self._is_at_an_end, calls)):
                ends = _places(contents, ranges, limit=1) + _places(contents, ranges, is_descending=True, limit=1)
                row = sums.of(ends, None)
            else:
                row = sums.of(_places(contents, ranges), condition)
        skip, limit = self._select.limit or (0, None)
        rows = [] if skip or limit == 0 else [row]
        return ResultSet(columns=self.definitions, rows=rows, is_binary=self._query.is_binary)


def expect_known(
    contents: TableContents,
    table: TableVersion,
    column_ids: Sequence[int],
    intervals: Sequence[Interval] | None = None,
) -> None:
    """See that rows are known, and their values of these columns; `intervals` of keys: only of rows that are in these.

    Raises:
        UnknownRowsError: they are not.
    """
    for interval in (EVERYTHING,) if intervals is None else intervals:
        unknown = contents.unknown_in(interval, column_ids)
        if unknown is not None:
            raise UnknownRowsError(table, unknown)


def _places(
    contents: TableContents, ranges: KeyRanges, *, is_descending: bool = False, limit: int | None = None
) -> array[int]:
    """Where the rows of ranges of keys are, in order."""
    if ranges.intervals == (EVERYTHING,) and limit is None and not is_descending:
        return contents.kept.all_places(contents.number)
    found = array("q")
    intervals: Sequence[Interval] = ranges.intervals[::-1] if is_descending else ranges.intervals
    for interval in intervals:
        left = None if limit is None else limit - len(found)
        if left == 0:
            break
        found.extend(contents.kept.places(contents.number, interval, is_descending=is_descending, limit=left))
    return found


def _no_key(value: Value) -> bytes:
    raise ValueError("a column that is compared by other than its bytes")


def _is_aggregate(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.name in AGGREGATES


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
