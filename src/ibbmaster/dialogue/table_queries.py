"""The plain form of a query over one table of the log: its columns found, and computed what depends on no row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.dialogue.log_tables import LogSnapshot, TableQuery
from ibbmaster.dialogue.refusal import not_supported, unknown_column
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.settings import Settings
from ibbmaster.dialogue.statement import GivenTable, Order, Select, SelectItem, Unread
from ibbmaster.dialogue.variables import LOWER_CASE_TABLE_NAMES
from ibbmaster.schema.model import TableColumn, TableKind, TableVersion
from ibbmaster.schema.name_case import NameCase
from ibbmaster.sqltext.expression import Call, ColumnName, Expression, Literal, Operation, Star

#: A table of every server as its rows, or one of a user.
FoundTable = Relation | TableVersion


@dataclass(frozen=True, slots=True)
class TableQuerying:
    """Reads queries of one session; `find` gives a table, or says why not."""

    evaluator: Evaluator
    find: Callable[[GivenTable], FoundTable]
    version: int

    def read(
        self, query: Select | Unread, snapshot: Callable[[], LogSnapshot], *, is_binary: bool
    ) -> TableQuery | None:
        """What is to be asked of the log, of a query of one table of it; None of one without such a table.

        Raises:
            RefusedError: it names what does not exist, or is of another form.
        """
        source = query.source
        assert source is not None
        tables = {table: self.find(table) for table in source.tables}
        users = [found for found in tables.values() if isinstance(found, TableVersion)]
        if not users:
            return None
        if isinstance(query, Unread) or len(tables) > 1 or not query.tables:
            raise not_supported("a query of several tables")
        (table,) = users
        name = query.tables[0]
        if table.kind is TableKind.VIEW:
            raise not_supported(f"SELECT from a {table.kind.value.lower()}")
        settings = self.evaluator.settings
        charset = results_charset(settings)
        return TableQuery(
            snapshot=snapshot(),
            table=table,
            select=Resolver(self.evaluator, table, name).resolve(query),
            text_charset=charset,
            text_collation_id=settings.results_collation_number,
            time_zone_s=settings.time_zone_s,
            is_binary=is_binary,
            version=self.version,
        )


def results_charset(settings: Settings) -> str | None:
    """What texts are sent in; None: as they are stored."""
    charset = settings.value("character_set_results")
    return None if charset is None else str(charset)


class Resolver:
    """Finds the columns that a SELECT of one table names, and computes what depends on none."""

    def __init__(self, evaluator: Evaluator, table: TableVersion, name: GivenTable) -> None:
        self._evaluator = evaluator
        self._table = table
        self._columns = {column.name.lower(): column for column in table.columns if not column.is_hidden}
        self._qualifiers = {(name.alias,)} if name.alias is not None else {(table.name,), (table.database, table.name)}

    def resolve(self, select: Select) -> Select:
        """The same with columns called as the table calls them.

        Raises:
            RefusedError: there is no such column.
        """
        items = tuple(item for each in select.items for item in self._item(each))
        return replace(
            select,
            items=items,
            where=None if select.where is None else self._expression(select.where, "WHERE"),
            group_by=tuple(self._key(key, items, "GROUP BY") for key in select.group_by),
            having=None if select.having is None else self._expression(select.having, "HAVING"),
            order_by=tuple(
                Order(self._key(key.expression, items, "ORDER BY"), key.is_descending) for key in select.order_by
            ),
            source=None,
        )

    def _item(self, item: SelectItem) -> Sequence[SelectItem]:
        if isinstance(item.expression, Star):
            if item.expression.table and not self._is_this(tuple(item.expression.table)):
                raise unknown_column(".".join(item.expression.table) + ".*", "SELECT")
            shown = (column for column in self._columns.values() if not column.is_invisible)
            return [SelectItem(ColumnName((column.name,)), column.name) for column in shown]
        return [SelectItem(self._expression(item.expression, "SELECT"), item.name)]

    def _key(self, key: Expression, items: Sequence[SelectItem], where: str) -> Expression:
        """What ORDER BY or GROUP BY means: a number is that item, a name may be that of an item."""
        match key:
            case Literal(value=int() as number):
                if not 1 <= number <= len(items):
                    raise unknown_column(str(number), where)
                return items[number - 1].expression
            case ColumnName(parts=(name,)):
                for item in items:
                    if item.name.lower() == name.lower():
                        return item.expression
        return self._expression(key, where)

    def _expression(self, expression: Expression, where: str) -> Expression:
        match expression:
            case Literal(charset=None):
                return expression
            case Operation("=", (Literal(value=int() as one), Literal(value=int() as other))):
                return Literal(int(one == other))  # as tools write TRUE and FALSE
            case ColumnName(parts=parts):
                return ColumnName((self._column(parts, where).name,))
            case Operation(operator=operator, operands=operands):
                return Operation(operator, tuple(self._expression(operand, where) for operand in operands))
            case Call(arguments=arguments):
                return replace(expression, arguments=tuple(self._expression(each, where) for each in arguments))
            case Star():
                return expression
            case _:
                raise not_supported("this kind of expression over a table")

    def _column(self, parts: tuple[str, ...], where: str) -> TableColumn:
        found = self._columns.get(parts[-1].lower())
        if found is None or (len(parts) > 1 and not self._is_this(parts[:-1])):
            raise unknown_column(".".join(parts), where)
        return found

    def _is_this(self, name: tuple[str, ...]) -> bool:
        """Whether a name in front of a column is that of the table."""
        if name in self._qualifiers:
            return True
        key = NameCase(int(self._evaluator.settings.value(LOWER_CASE_TABLE_NAMES) or 0)).key
        return tuple(map(key, name)) in {tuple(map(key, one)) for one in self._qualifiers}
