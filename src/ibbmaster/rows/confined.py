"""What an UPDATE in statement format may change that sets some columns of one table, whatever its expressions are."""

from __future__ import annotations

from collections.abc import Collection

from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.reading import named_in


def columns_touched(table: TableVersion, names: Collection[str]) -> set[int] | None:
    """The ids of the columns that have other values once these are set; None if rows are not told apart any more."""
    key = row_key(table)
    known = {column.name.lower(): column for column in table.columns}
    if key is None or table.is_versioned or not known.keys() >= set(names):
        return None
    touched = {*names, *(name for name, column in known.items() if column.on_update is not None)}
    while True:
        made = {
            name
            for name, column in known.items()
            if name not in touched and column.expression is not None and named_in(column.expression) & touched
        }
        if not made:
            break
        touched |= made
    ids = {known[name].id for name in touched}
    return None if ids & {part.column_id for part in key.parts} else ids
