"""The rows of a dump that the log goes on from, as images."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.log.base_file import base_position, base_rows
from ibbmaster.rows.expr.stored_values import stored_value
from ibbmaster.schema.base_dump import BaseRows
from ibbmaster.schema.model import TableColumn, TableVersion
from .stored import StoredLayout, StoredRow

ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseDump:
    """The tables where the log begins for us. `read` gives their rows, anew each time."""

    position: GtidPosition
    read: Callable[[], Iterable[BaseRows]]

    @classmethod
    def of_file(cls, path: Path) -> "BaseDump":
        """Raises ConfigurationError: the file is no dump, or has no position; StoreError: it cannot be read."""
        return cls(position=base_position(path), read=partial(base_rows, path))

    def has(self, domain_id: int, seq_no: int) -> bool:
        reached = self.position.get(domain_id)
        return reached is not None and seq_no <= reached.seq_no


def stored_rows(table: TableVersion, layout: StoredLayout, inserted: BaseRows) -> Iterator[list[StoredRow]]:
    """The rows of an INSERT as images, some at a time. Raises ConfigurationError: a row does not fit the table."""
    places = [layout.places[column.id] for column in _named(table, inserted)]
    found = []
    for number, row in enumerate(inserted.rows, 1):
        where = f"the dump's rows of {table.full_name}: row {number}"
        if len(row) != len(places):
            raise ConfigurationError(f"{where} has {len(row)} values, expected {len(places)}")
        values: list[bytes | None] = [None] * len(layout.columns)
        for place, value in zip(places, row, strict=True):
            column = layout.columns[place]
            try:
                values[place] = stored_value(column.column, column.type, value)
            except ValueError as error:
                raise ConfigurationError(f"{where} column {column.column.name}: {error}") from None
        found.append(layout.row(values))
        if len(found) == ROWS_AT_ONCE:
            yield found
            found = []
    yield found


def columns_left_out(table: TableVersion, inserted: BaseRows) -> list[TableColumn]:
    """The columns an INSERT leaves out: those that the server computes. Raises ConfigurationError: it names an unknown
    column."""
    told = {column.id for column in _named(table, inserted)}
    return [column for column in table.columns if column.id not in told and column.period is None]


def _named(table: TableVersion, inserted: BaseRows) -> list[TableColumn]:
    if inserted.columns is None:
        return [column for column in table.columns if not column.is_hidden and not column.is_invisible]
    found = []
    for name in inserted.columns:
        column = table.column(name)
        if column is None:
            raise ConfigurationError(
                f"the dump's rows of {table.full_name}: column {name}, which the table does not have"
            )
        found.append(column)
    return found
