"""Tables that every server has, in SQLite: information_schema, and others that need no log."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ibbmaster.primary.dialogue.lone_expressions import BLOBS, listed_type, storing
from ibbmaster.primary.dialogue.relation import Relation, text_of
from ibbmaster.primary.dialogue.table_columns import CHARSET, COLLATION, LETTER_SIZE
from ibbmaster.replication.event.rows.charset import character_size
from ibbmaster.replication.wire.response import ColumnDefinition, FieldType
from ibbmaster.rows.expr.comparing import cached
from ibbmaster.rows.expr.scalars import SqlValue
from ibbmaster.rows.expr.session_facts import QuerySession
from ibbmaster.rows.expr.weights import key_of
from ibbmaster.schema.collations import sent_collation_number
from ibbmaster.work import check_wanted
from .tables import ROWS_BETWEEN_LOOKS, LoadedColumns, SqlTable, key_makers


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
