"""The changes of a table as Arrow has them, in one process, and what is asked of them before a table is folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ibbmaster.arrow.plan import find_fields, plan_tasks
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.reading import read_task
from ibbmaster.arrow.shape import arrow_schema
from ibbmaster.lake.doubts import Condition, Seen
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


class ArrowChanges:
    """Those of a table in their order, as `lake.doubts` asks for them."""

    def __init__(self, options: ReadOptions, changes: pa.Table) -> None:
        self._options = options
        self._changes = changes

    def after(self, place: Place) -> pa.Table:
        """Those of groups after a place."""
        import pyarrow as pa

        return self._changes.filter(pa.array(_is_after(self._changes, place)))

    def first(self, conditions: Mapping[str, Condition], begin: Place) -> dict[str, Seen]:
        changes = self.after(begin)
        found = {}
        for name, condition in conditions.items():
            numbers = _mask(changes, condition).nonzero()[0]
            if len(numbers):
                found[name] = _seen(changes, int(numbers[0]))
        return found

    def first_of(self, table: str, kinds: Sequence[str], begin: Place) -> Seen | None:
        columns = ("_file_no", "_offset", "_gtid", "_change_type")
        changes = read_table(replace(self._options, table=None, tables=(table,), columns=columns))
        numbers = (_is_after(changes, begin) & _mask(changes, Condition(tuple(kinds)))).nonzero()[0]
        return _seen(changes, int(numbers[0])) if len(numbers) else None


def _seen(changes: pa.Table, number: int) -> Seen:
    file_no, offset, gtid = (changes[name][number].as_py() for name in ("_file_no", "_offset", "_gtid"))
    return (file_no, offset), gtid


def _is_after(changes: pa.Table, place: Place) -> Any:
    """A mask of the changes after a place."""
    files, offsets = changes["_file_no"].to_numpy(), changes["_offset"].to_numpy()
    return (files > place[0]) | ((files == place[0]) & (offsets > place[1]))


def _mask(changes: pa.Table, condition: Condition) -> Any:
    """Which changes are so."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    mask = np.ones(len(changes), dtype=bool)
    if condition.kinds:
        mask &= pc.is_in(changes["_change_type"], pa.array(condition.kinds)).to_numpy(zero_copy_only=False)
    if condition.lacks is not None:
        mask &= _lacking(changes, condition.lacks) > 0
    if condition.has_all:
        mask &= _lacking(changes, condition.has_all) == 0
    if condition.has_some is not None:
        mask &= _lacking(changes, condition.has_some) < len(set(condition.has_some))
    if condition.null is not None:
        mask &= changes[condition.null].is_null().to_numpy(zero_copy_only=False)
        mask &= _lacking(changes, (condition.null,)) == 0
    return mask


def _lacking(changes: pa.Table, names: Sequence[str]) -> Any:
    """How many of some columns the image of each change leaves out."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    absent = changes["_absent"].combine_chunks()
    is_named = pc.is_in(pc.list_flatten(absent), pa.array(names, pa.string()))
    parents = pc.list_parent_indices(absent).filter(is_named).to_numpy(zero_copy_only=False)
    return np.bincount(parents, minlength=len(changes))
