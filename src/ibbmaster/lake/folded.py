"""A table as the fold of its rows leaves it: the same that SELECT reads, where changes alone are not enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ibbmaster.arrow.cell import value_cell
from ibbmaster.arrow.reading import Row, batches
from ibbmaster.arrow.shape import ShapeField
from ibbmaster.dialogue.log_tables import LogSnapshot
from ibbmaster.errors import UndecodableError
from ibbmaster.event.rows.kinds.registry import kind_of
from ibbmaster.fold.contents import InexactRowsError
from ibbmaster.fold.row_doubts import UnknownRows
from ibbmaster.fold.stored import own_columns
from ibbmaster.schema.model import TableVersion
from ibbmaster.select.table_reader import FoundRows, TableReader, UnknownRowsError

if TYPE_CHECKING:
    import pyarrow as pa


def folded_batches(
    reader: TableReader, snapshot: LogSnapshot, table: TableVersion, fields: Sequence[ShapeField]
) -> Iterator[pa.RecordBatch]:
    """The rows of a table, its columns as `fields` call them and have them, in their order.

    Raises:
        UnknownRowsError: the log does not tell the rows.
        IbbMasterError: the log cannot be read.
    """
    table = table.shown
    found = reader.rows_of(snapshot, table, [column.id for column in table.columns])
    return batches(tuple(fields), _rows(found, table, fields))


def _rows(found: FoundRows, table: TableVersion, fields: Sequence[ShapeField]) -> Iterator[Row]:
    contents = found.contents
    own = contents.layouts.add(own_columns(table))
    shown = [
        (kind_of(one.column).convert(one.column), value_cell(field.type))
        for one, field in zip(own.columns, fields, strict=True)
    ]
    for place in found.places:
        layout_no, image = contents.kept.rows.read(place)
        try:
            values = contents.values_in(own, contents.layouts[layout_no], image)
        except InexactRowsError as error:
            raise UnknownRowsError(table, UnknownRows(table.gtid or "", str(error))) from None
        cells: list[object] = []
        for value, (convert, to_cell) in zip(values, shown, strict=True):
            try:
                cells.append(None if value is None else to_cell(convert(value)))
            except (ValueError, OverflowError) as error:
                column = own.columns[len(cells)].column
                raise UndecodableError(table.full_name, column.name, column.type_name, str(error)) from None
        yield tuple(cells)
