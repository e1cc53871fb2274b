"""Answers to SELECT: from no table, or from one of the few that exist without a schema."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ibbmaster.dialogue.conversion import bytes_of, compare, truth_of
from ibbmaster.dialogue.describing import describe
from ibbmaster.dialogue.evaluating import Evaluator, Row
from ibbmaster.dialogue.refusal import RefusedError, not_supported, unknown_column
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.statement import (
    Call,
    ColumnName,
    Expression,
    Literal,
    Order,
    Select,
    SelectItem,
    Star,
    Subquery,
    SystemVariable,
    TableName,
    Unread,
    Value,
)
from ibbmaster.wire.response import ColumnDefinition

ROW_SIZE_MAX = 16 << 20  # bytes of one row that is made up of expressions
FindTable = Callable[[TableName], Relation]


@dataclass(frozen=True, slots=True)
class Querying:
    """Answers SELECT for one session; `find_table` gives a table, or says why not."""

    evaluator: Evaluator
    find_table: FindTable
    version: int  # of the server, as conditional comments count it

    def answer(self, select: Select) -> Relation:
        """The rows a query gives.

        Raises:
            RefusedError: it names what does not exist, or is of a kind that is not answered here.
        """
        self._look_for_tables(select)
        if not select.tables:
            return self._without_table(select).limited(select.limit)
        table = select.tables[0]
        if len(select.tables) > 1 or select.is_joined or isinstance(table, Subquery):
            raise not_supported("a query of several tables")
        if select.group_by or select.having is not None:
            raise not_supported("GROUP BY")
        return self._from_table(select, self.find_table(table)).limited(select.limit)

    def value(self, select: Select) -> Value:
        """The value of a query in brackets: of its first column in its only row.

        Raises:
            RefusedError: it has several columns or rows.
        """
        rows = list(self.answer(select).rows)
        if len(rows) > 1:
            raise RefusedError(1242, "21000", "Subquery returns more than 1 row")
        if rows and len(rows[0]) != 1:
            raise RefusedError(1241, "21000", "Operand should contain 1 column(s)")
        return rows[0][0] if rows else None

    def _look_for_tables(self, select: Select | Unread) -> None:
        """What is missing is told before anything else."""
        for table in select.tables:
            if isinstance(table, TableName):
                self.find_table(table)
            else:
                self._look_for_tables(table.query)
                if isinstance(table.query, Unread):
                    raise not_supported("this kind of query")

    def _without_table(self, select: Select) -> Relation:
        if select.where is not None:
            is_wanted = truth_of(self.evaluator.evaluate(select.where))
        else:
            is_wanted = True
        values = [self.evaluator.evaluate(item.expression) for item in select.items]
        columns = self._columns(select.items, values)
        row = tuple(_as_shown(item, value) for item, value in zip(select.items, values, strict=True))
        if sum(len(bytes_of(value) or b"") for value in row) > ROW_SIZE_MAX:
            raise RefusedError(1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes")
        return Relation(columns, [row] if is_wanted else [])

    def _columns(self, items: Sequence[SelectItem], values: Sequence[Value]) -> tuple[ColumnDefinition, ...]:
        return tuple(
            describe(item.name, item.expression, value, version=self.version)
            for item, value in zip(items, values, strict=True)
        )

    def _from_table(self, select: Select, table: Relation) -> Relation:
        names = table.names
        if select.where is not None:
            condition = select.where
            self._check_columns(condition, names, "WHERE")
            table = table.where(lambda row: self.evaluator.evaluate(condition, row))
        rows = [dict(zip(names, row, strict=True)) for row in table.rows]
        if _counts(select):
            values: list[Value] = [len(rows) for _ in select.items]
            return Relation(self._columns(select.items, values), [values])
        items = [expanded for item in select.items for expanded in _expanded(item, table.columns)]
        for item in items:
            self._check_columns(item.expression, names, "SELECT")
        rows = self._ordered(rows, select.order_by, items)
        results = [tuple(self.evaluator.evaluate(item.expression, row) for item in items) for row in rows]
        if select.is_distinct:
            results = list(dict.fromkeys(results))
        empty: Row = dict.fromkeys(names)
        first = results[0] if results else [self.evaluator.evaluate(item.expression, empty) for item in items]
        columns = tuple(self._column_of(item, value, table.columns) for item, value in zip(items, first, strict=True))
        return Relation(columns, results)

    def _column_of(self, item: SelectItem, value: Value, columns: Sequence[ColumnDefinition]) -> ColumnDefinition:
        if isinstance(item.expression, ColumnName):
            name = item.expression.parts[-1].lower()
            found = next(column for column in columns if column.name.lower() == name)
            return ColumnDefinition(
                **{field: getattr(found, field) for field in found.__slots__ if field != "name"}, name=item.name
            )
        return describe(item.name, item.expression, value, version=self.version)

    def _check_columns(self, expression: Expression, names: Sequence[str], where: str) -> None:
        """Every column that an expression names is there."""
        match expression:
            case ColumnName(parts=parts):
                if parts[-1].lower() not in names:
                    raise unknown_column(".".join(parts), where)
            case Call(arguments=parts):
                for part in parts:
                    self._check_columns(part, names, where)
            case _:
                for part in getattr(expression, "operands", ()):
                    self._check_columns(part, names, where)

    def _ordered(
        self, rows: list[dict[str, Value]], keys: Sequence[Order], items: Sequence[SelectItem]
    ) -> list[dict[str, Value]]:
        for key in reversed(keys):
            expression = _key_of(key.expression, items)
            values = [self.evaluator.evaluate(expression, row) for row in rows]
            order = sorted(range(len(rows)), key=functools.cmp_to_key(_by(values)), reverse=key.is_descending)
            rows = [rows[place] for place in order]
        return rows


def _by(values: Sequence[Value]) -> Callable[[int, int], int]:
    def order(left: int, right: int) -> int:
        a, b = values[left], values[right]
        found = compare(a, b)
        return found if found is not None else (a is not None) - (b is not None)

    return order


def _key_of(expression: Expression, items: Sequence[SelectItem]) -> Expression:
    """What ORDER BY means: a number is that item, a name may be an alias."""
    match expression:
        case Literal(value=int() as number) if 1 <= number <= len(items):
            return items[number - 1].expression
        case Literal(value=int() as number):
            raise unknown_column(str(number), "ORDER BY")
        case ColumnName(parts=(name,)):
            return next((item.expression for item in items if item.name.lower() == name.lower()), expression)
        case _:
            return expression


def _expanded(item: SelectItem, columns: Sequence[ColumnDefinition]) -> list[SelectItem]:
    if isinstance(item.expression, Star):
        return [SelectItem(ColumnName((column.name,)), column.name) for column in columns]
    return [item]


def _counts(select: Select) -> bool:
    return all(
        isinstance(item.expression, Call)
        and item.expression.name == "count"
        and isinstance((item.expression.arguments or (None,))[0], Star | Literal)
        for item in select.items
    )


def _as_shown(item: SelectItem, value: Value) -> Value:
    """System variables with a fraction have six digits of it."""
    if isinstance(value, float) and isinstance(item.expression, SystemVariable):
        return f"{value:.6f}"
    return value
