"""What may make the rows that changes leave others than those that the server had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ibbmaster.arrow.plan import open_log
from ibbmaster.arrow.read_options import ReadOptions, ZeroDates
from ibbmaster.arrow.shape import field_name, own_name
from ibbmaster.fold.contents import LIKE_A_REPLACE
from ibbmaster.fold.folding import WITHOUT_BEGINNING
from ibbmaster.lake.arrow_changes import after, read_table
from ibbmaster.lake.maintain.last_changes import absent_columns
from ibbmaster.lake.pasts import START, Doubt, Past
from ibbmaster.rows.shape import TableShape, holds_dates
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.reading import named_in

if TYPE_CHECKING:
    import pyarrow as pa

POST_IMAGE = "update_postimage"
IMAGES_BEFORE = ("delete", "update_preimage")
PARENT_CHANGES = ("delete", POST_IMAGE)


def find_doubts(
    options: ReadOptions,
    changes: pa.Table,
    past: Past,
    shape: TableShape,
    keys: Sequence[str],
    *,
    with_history: bool = False,
) -> list[Doubt]:
    """All that may make the rows of a table uncertain, in the order of the log, of its changes that took effect.

    With history rows count that are gone now, too.
    """
    doubts = [*(past.past_doubts if with_history else ()), *past.doubts]
    changes = after(changes, START if with_history else past.begin)
    for reason, mask in _reasons(changes, past, shape, keys, options):
        doubts += _first(changes, mask, reason)
    if not past.cuts:
        doubts.append(Doubt(START, _start_of(options), WITHOUT_BEGINNING))
    if len(changes):
        doubts += _cascaded(options, past)
    return sorted(set(doubts))


def _start_of(options: ReadOptions) -> str:
    """Where the log begins; empty if at its very beginning."""
    with closing(open_log(options)) as log:
        return str(log.start_of_file().state.position())


def _first(changes: pa.Table, mask: Any, reason: str) -> Iterator[Doubt]:
    """The first change of a mask, if there is one, as a doubt."""
    for number in mask.nonzero()[0][:1].tolist():
        file_no, offset, gtid = (changes[name][number].as_py() for name in ("_file_no", "_offset", "_gtid"))
        yield Doubt((file_no, offset), gtid, reason)


def _reasons(
    changes: pa.Table, past: Past, shape: TableShape, keys: Sequence[str], options: ReadOptions
) -> Iterator[tuple[str, Any]]:
    """Reasons, and which changes are so: images of each kind that lack what only the server knew."""
    import numpy as np

    names = {column.name: field_name(column.name) for column in shape.columns}
    absent = absent_columns(changes, list(names.values()))

    def lacks(some: Iterable[str]) -> Any:
        return np.any([np.zeros(len(changes), dtype=bool), *(absent[name] for name in some if name in absent)], axis=0)

    inserted, updated = (_are_of(changes, [kind]) for kind in ("insert", POST_IMAGE))
    reason = "an INSERT has no value for some columns, which the server has filled in"
    yield reason, inserted & lacks(set(names.values()) - past.nulls)
    yield "an image has no value for columns of the key", lacks(keys) & _are_of(changes, IMAGES_BEFORE)
    yield LIKE_A_REPLACE, updated & lacks(set(names.values()) - set(keys)) & ~lacks(keys)
    lower = {name.lower(): field for name, field in names.items()}
    for column in past.state.columns if isinstance(past.state, TableVersion) else ():
        if column.expression is None or column.name not in names:
            continue
        sources = {lower[name] for name in named_in(column.expression) if name in lower}
        has_one = ~np.all([np.ones(len(changes), dtype=bool), *(lacks([name]) for name in sources)], axis=0)
        reason = f"an UPDATE has no value for the generated column {column.name}"
        yield reason, updated & lacks([names[column.name]]) & has_one
    if options.zero_dates is ZeroDates.NULL:
        for name in (names[column.name] for column in shape.columns if holds_dates(column)):
            if name in keys:
                reason = f"a value of the key column {own_name(name)} is no date: --zero-dates text keeps it"
                yield reason, changes[name].is_null().to_numpy(zero_copy_only=False) & ~lacks([name])


def _are_of(changes: pa.Table, kinds: Sequence[str]) -> Any:
    """Which changes are of some kinds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(changes["_change_type"], pa.array(kinds)).to_numpy(zero_copy_only=False)


def _cascaded(options: ReadOptions, past: Past) -> Iterator[Doubt]:
    """Changes of parents whose foreign keys may have changed rows without an event, also in several steps."""
    columns = ("_file_no", "_offset", "_gtid", "_change_type")
    for table in map(str, sorted(past.ancestors)):
        changes = after(read_table(replace(options, table=None, tables=(table,), columns=columns)), past.begin)
        reason = f"its foreign key to {table} deletes or changes rows without an event"
        yield from _first(changes, _are_of(changes, PARENT_CHANGES), reason)
