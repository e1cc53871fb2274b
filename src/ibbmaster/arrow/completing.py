"""Images after an update that leave columns out, completed by those before it: a MERGE by key finds the key."""

from __future__ import annotations

from ibbmaster.event.rows.changes import ABSENT, Image
from ibbmaster.event.rows.column import TableSchema
from ibbmaster.schema.model import TableVersion


def completed_columns(schema: TableSchema, version: TableVersion | None) -> int:
    """The columns whose values an update leaves as they were where its second image does not have them, a bit each.

    Those are all but what a server computes; where nobody knows which these are, the columns of the primary key.
    """
    if version is None or version.undefined_because:
        return sum(1 << number for number in schema.primary_key)
    known = zip(range(len(schema.columns)), version.columns, strict=False)
    return sum(1 << number for number, column in known if column.expression is None and column.period is None)


def completed(before: Image, after: Image, columns: int) -> Image:
    """The second image of an update, with the values of the first in these columns where it has none."""
    return tuple(
        old if new is ABSENT and columns >> number & 1 else new
        for number, (old, new) in enumerate(zip(before, after, strict=True))
    )
