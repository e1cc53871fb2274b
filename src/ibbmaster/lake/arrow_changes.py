"""The changes of a table in Arrow, in the order in which they took effect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ibbmaster.arrow.plan import find_fields, plan_tasks
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.reading import read_task
from ibbmaster.arrow.shape import arrow_schema
from ibbmaster.lake.pasts import Place
from ibbmaster.lake.statements import Logged, completions

if TYPE_CHECKING:
    import pyarrow as pa

SECOND_US = 1_000_000


def read_table(options: ReadOptions) -> pa.Table:
    """All that options select, in the order of the log."""
    import pyarrow as pa

    fields = find_fields(options)
    batches = [batch for task in plan_tasks(options, fields) for batch in read_task(task)]
    return pa.Table.from_batches(batches, schema=arrow_schema(fields))


def effective(changes: pa.Table, statements: Iterable[Logged]) -> pa.Table:
    """The changes that have taken effect, each at the group that made it do so: those of XA transactions later."""
    import pyarrow as pa

    prepared = dict(completions(statements))
    if not prepared:
        return changes
    places = zip(changes["_file_no"].to_pylist(), changes["_offset"].to_pylist(), strict=True)
    ends = [prepared.get(place, place) for place in places]
    is_done = [end is not None for end in ends]
    changes = changes.filter(pa.array(is_done, pa.bool_()))
    moved = [end if isinstance(end, Logged) else None for end in ends if end is not None]
    values: dict[str, list[int | str | None]] = {
        "_file_no": [one and one.file_no for one in moved],
        "_offset": [one and one.file_offset for one in moved],
        "_commit_ts": [one and one.timestamp * SECOND_US for one in moved],
        "_gtid": [one and one.gtid for one in moved],
    }
    for name, column in values.items():
        if name not in changes.column_names:
            continue
        old = changes[name].combine_chunks()
        new = pa.array(column, old.type)
        changes = changes.set_column(changes.column_names.index(name), name, new.fill_null(old))
    return changes.sort_by([(name, "ascending") for name in ("_file_no", "_offset", "_change_no")])


def after(changes: pa.Table, place: Place) -> pa.Table:
    """Those of groups after a place."""
    import pyarrow as pa

    files, offsets = changes["_file_no"].to_numpy(), changes["_offset"].to_numpy()
    kept = (files > place[0]) | ((files == place[0]) & (offsets > place[1]))
    return changes if kept.all() else changes.filter(pa.array(kept))
