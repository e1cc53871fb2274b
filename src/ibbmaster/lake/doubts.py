"""Whether changes of rows tell all of a table, and why not.

Where they do not, `fold` follows the rows one by one, with the effects of statements, and may still know them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ibbmaster.rows.shape import holds_dates
from ibbmaster.schema.reading import named_in
from ibbmaster.tables.arrow.read_options import ZeroDates
from ibbmaster.tables.arrow.shape import TableFields, field_name
from ibbmaster.tables.fold.applying import WITHOUT_BEGINNING
from .pasts import START, Doubt, Past, Place
from .row_versions import FoldedColumns, Images
from .statements import after, effective, read_table

if TYPE_CHECKING:
    from .maintain.source import LogSource

OF_PARENTS = ("_file_no", "_offset", "_change_no", "_gtid", "_change_type")


def untold_changes(
    source: LogSource, past: Past, since: Place = START, gtids: str = "", *, has_gone: bool = False
) -> list[Doubt]:
    """Changes after a place that no event shows, in order; from position `gtids` all of them are readable. If it
    `has_gone`, rows that are gone count, too."""
    found = [*(past.past_doubts if has_gone else ()), *past.doubts]
    begin = since if has_gone else max(since, past.begin)
    cascaded = _cascaded(source, past, begin, gtids) if past.ancestors else ()
    return sorted({*(one for one in found if one.place > since), *cascaded})


def find_doubts(source: LogSource, past: Past, *, has_gone: bool, is_whole: bool) -> list[Doubt]:
    """Why the changes up to the end, since the table was emptied or all, may not tell its rows. It `is_whole` if no row
    preceded them."""
    found = untold_changes(source, past, has_gone=has_gone)
    if not is_whole:
        found.append(Doubt(START, str(source.log.start_of_file().state.position()), WITHOUT_BEGINNING))
    return sorted(found)


def image_doubts(changes: pa.Table, columns: FoldedColumns) -> Iterator[Doubt]:
    """The first change of each kind that lacks values only the server knew."""
    for reason, mask in Images(changes, columns).untold():
        yield from _first(changes, mask.nonzero()[0], reason)


def _first(changes: pa.Table, numbers: Sequence[int], reason: str) -> Iterator[Doubt]:
    for number in numbers[:1]:
        file_no, offset, gtid = (changes[name][int(number)].as_py() for name in ("_file_no", "_offset", "_gtid"))
        yield Doubt((file_no, offset), gtid, reason)


def folded_columns(fields: TableFields, keys: Iterable[str], past: Past, zero_dates: ZeroDates) -> FoldedColumns:
    shape, keys = fields.shape, list(keys)
    names = {column.name.lower(): field_name(column.name) for column in shape.columns}
    made = {
        names[column.name.lower()]: {names[one] for one in named_in(column.expression) if one in names}
        for column in (() if shape.version is None else shape.version.columns)
        if column.expression is not None and column.name.lower() in names
    }
    dates = {field_name(column.name) for column in shape.columns if holds_dates(column)}
    has_none = zero_dates is ZeroDates.NULL
    return FoldedColumns(keys, list(names.values()), past.nulls, made, dates.intersection(keys) if has_none else ())


def _cascaded(source: LogSource, past: Past, begin: Place, gtids: str) -> Iterator[Doubt]:
    options = replace(source.options, starting_gtid=source.readable_from(begin, gtids), columns=OF_PARENTS)
    for table in map(str, sorted(past.ancestors & source.written_since(gtids))):
        changes = after(effective(read_table(replace(options, tables=(table,))), source.statements), begin)
        is_other = pc.is_in(changes["_change_type"], pa.array(["delete", "update_postimage"])).to_numpy()
        reason = f"its foreign key to {table} deletes or changes rows without an event"
        yield from _first(changes, np.flatnonzero(is_other).tolist(), reason)
