"""Which columns the images of a change have, as binlog_row_image says."""

from __future__ import annotations

import enum
from collections.abc import Collection

from ibbmaster.event.rows.changes import ChangeKind
from ibbmaster.event.rows.column import ColumnType
from ibbmaster.event.rows.encoding import Columns, WrittenTable

BLOBS = (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED)


class RowImage(enum.Enum):
    """How much of a row its images have, as binlog_row_image has it."""

    FULL = "FULL"
    MINIMAL = "MINIMAL"  # before: the key; after: what the statement gave
    NOBLOB = "NOBLOB"  # no BLOB or TEXT that did not change
    FULL_NODUP = "FULL_NODUP"  # after an update only what the statement wrote


def image_columns(
    table: WrittenTable, image: RowImage, kind: ChangeKind, given: Collection[int]
) -> tuple[Columns, Columns]:
    """The columns of the image before a change and of the one after it, in order.

    `given` are those that the statement wrote, as they were or not. Where `kind` has only one image the other is
    of no use. Rows of a table without a key are always whole.

    Source: MariaDB 12.3, sql_class.cc, THD::binlog_prepare_row_images(), and what 11.8 writes.
    """
    everything = tuple(range(len(table.columns)))
    blobs = {number for number in everything if table.columns[number].type in BLOBS}
    if not table.primary_key:
        return everything, everything
    match image:
        case RowImage.MINIMAL:
            return tuple(sorted(table.primary_key)), tuple(sorted(given))
        case RowImage.NOBLOB:
            kept = tuple(number for number in everything if number not in blobs or number in table.primary_key)
            return kept, tuple(number for number in everything if number in kept or number in given)
        case RowImage.FULL_NODUP if kind is ChangeKind.UPDATE:
            return everything, tuple(sorted(given))
        case _:
            return everything, everything
