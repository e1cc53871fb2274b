"""Each version of each row, and when it held: what changes make of them, and which versions they end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ibbmaster.lake.maintain.last_changes import (
    DELETED,
    PATCHED,
    WHOLE,
    LastChanges,
    PartialChangeError,
    expect_turns,
    is_first_of,
    row_steps,
)
from ibbmaster.lake.pasts import Truncation

if TYPE_CHECKING:
    import pyarrow as pa

BEGIN, END = ("_valid_from", "_gtid_from"), ("_valid_to", "_gtid_to")
SECOND_US = 1_000_000
_OF_GROUP = ("_commit_ts", "_gtid")
NONE = -1  # the number of a row that no key names


class NewVersions(NamedTuple):
    """What changes add to the versions of rows that were known before.

    Attributes:
        rows: new versions, with `_valid_from`, `_valid_to`, `_gtid_from`, `_gtid_to` and `_is_current`.
        ended: keys whose version of before has ended, with the columns `END`.
        is_sound: whether each row came where it was not, and was changed or went where it was.
    """

    rows: pa.Table
    ended: pa.Table
    is_sound: bool


def new_versions(
    changes: pa.Table,
    keys: Sequence[str],
    names: Sequence[str],
    nulls: Collection[str] | None,
    cuts: Sequence[Truncation] = (),
) -> NewVersions:
    """The versions that changes make, which are in the order of the log.

    `changes` has `_change_type`, `_absent`, `_file_no`, `_offset`, `_commit_ts`, `_gtid` and the columns `names`.
    `cuts` are where the table was emptied.

    `nulls` are the columns that an INSERT leaves NULL where it does not have them. With None changes are taken as they
    are, also where they are not enough or contradict each other: values that none has are NULL.

    Raises:
        PartialChangeError: the changes alone are not enough, or contradict each other.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    steps, codes, absent = row_steps(changes, keys, names, nulls)
    epochs = _epochs(changes, cuts)
    places = np.flatnonzero(steps >= 0)
    places = places[np.lexsort((places, epochs[places], codes[places]))]
    kinds, epoch = steps[places], epochs[places]
    group = codes[places] * (len(cuts) + 1) + epoch
    is_first = is_first_of(group)
    is_last = np.ones(len(places), dtype=bool)
    is_last[:-1] = is_first[1:]
    is_sound = True
    try:
        expect_turns(kinds, is_first)
    except PartialChangeError:
        if nulls is not None:
            raise
        is_sound = False

    following = np.append(places[1:], 0)[: len(places)]
    ends = {name: changes[of].take(pa.array(following, mask=is_last)) for name, of in zip(END, _OF_GROUP, strict=True)}
    for number, cut in enumerate(cuts):
        emptied = pa.array(is_last & (epoch == number))
        moment = pa.scalar(cut.timestamp * SECOND_US, pa.int64()).cast(ends[END[0]].type)
        ends |= {name: pc.if_else(emptied, one, ends[name]) for name, one in zip(END, (moment, cut.gtid), strict=True)}
    is_cut = is_last & (epoch < len(cuts))
    columns = {
        name: changes[name].take(_sources(name, places, kinds, is_first, absent, keys, is_strict=nulls is not None))
        for name in names
    }
    columns |= {name: changes[of].take(pa.array(places)) for name, of in zip(BEGIN, _OF_GROUP, strict=True)}
    columns |= ends
    columns["_is_current"] = pa.array(is_last & ~is_cut)
    ordered = [*names, BEGIN[0], END[0], BEGIN[1], END[1], "_is_current"]
    table = pa.table({name: columns[name] for name in ordered})

    ending = pa.array(places[is_first & (kinds != WHOLE)])
    ended = {name: table[name].filter(pa.array(is_first & (kinds != WHOLE))) for name in keys}
    ended |= {name: changes[of].take(ending) for name, of in zip(END, _OF_GROUP, strict=True)}
    return NewVersions(table.filter(pa.array(kinds != DELETED)), pa.table(ended), is_sound)


def _epochs(changes: pa.Table, cuts: Sequence[Truncation]) -> Any:
    """How often the table was emptied before each change."""
    import numpy as np

    files, offsets = changes["_file_no"].to_numpy(), changes["_offset"].to_numpy()
    epochs = np.zeros(len(changes), dtype=np.int64)
    for (file_no, offset), *_ in cuts:
        epochs += (files > file_no) | ((files == file_no) & (offsets > offset))
    return epochs


def _sources(
    name: str, places: Any, kinds: Any, is_first: Any, absent: dict[str, Any], keys: Sequence[str], *, is_strict: bool
) -> pa.Array:
    """For each version the change that has its value of a column: its own, or an earlier one of the row."""
    import numpy as np
    import pyarrow as pa

    if name not in absent:
        return pa.array(places)
    if name in keys:  # the image before an update has it
        return pa.array(places - (absent[name][places] & (kinds == PATCHED)))
    is_known = ~absent[name][places] | (kinds == WHOLE)
    numbers = np.arange(len(places))
    source = np.maximum.accumulate(np.where(is_known, numbers, -1))
    first = np.maximum.accumulate(np.where(is_first, numbers, 0))
    is_unknown = (source < first) & (kinds == PATCHED)
    if is_strict and is_unknown.any():
        raise PartialChangeError("an image after an update leaves out what only the version before it has")
    return pa.array(places[np.maximum(source, 0)], mask=is_unknown)


def numbers_of(rows: pa.Table, wanted: pa.Table, keys: Sequence[str]) -> Any:
    """For each row the number of the wanted one with its key, or `NONE`; no key is wanted twice."""
    import numpy as np
    import pyarrow.compute as pc

    found, numbers = np.zeros(len(rows), dtype=np.int64), np.zeros(len(wanted), dtype=np.int64)
    is_there = np.ones(len(rows), dtype=bool)
    for key in keys:
        values = pc.unique(wanted[key])
        places = pc.index_in(rows[key].cast(values.type), value_set=values)
        is_there &= pc.is_valid(places).to_numpy()
        found = found * len(values) + pc.fill_null(places, 0).to_numpy()
        numbers = numbers * len(values) + pc.index_in(wanted[key], value_set=values).to_numpy()
        # Numbers stay below that of the wanted rows, so that many columns do not make them too large.
        known, numbers = np.unique(numbers, return_inverse=True)
        places = np.searchsorted(known, found)
        places[places == len(known)] = 0
        is_there &= len(known) > 0 and known[places] == found
        found = places
    order = np.empty(len(wanted), dtype=np.int64)
    order[numbers] = np.arange(len(wanted))
    return np.where(is_there, order[found], NONE) if len(order) else np.full(len(rows), NONE)


def as_changed(rows: pa.Table, numbers: Any, changes: LastChanges) -> pa.Table:
    """Rows as changes leave them; `numbers` says for each which change is its own."""
    import numpy as np
    import pyarrow as pa

    kept = np.ones(len(rows), dtype=bool)
    kept[numbers >= 0] = changes.outcomes[numbers[numbers >= 0]] != DELETED
    places = np.flatnonzero(kept)
    numbers = numbers[kept]
    columns = {}
    for name in rows.column_names:
        is_new = numbers >= 0
        if name in changes.known:
            is_new[is_new] = changes.known[name][numbers[is_new]]
        columns[name] = _chosen(rows[name], changes.rows[name], np.where(is_new, len(rows) + numbers, places))
    return pa.table(columns, rows.schema)


def as_ended(rows: pa.Table, numbers: Any, ended: pa.Table) -> pa.Table:
    """Versions of rows of which some have ended; `numbers` says for each which end is its own."""
    import numpy as np
    import pyarrow as pa

    is_ended = numbers >= 0
    places = np.where(is_ended, len(rows) + numbers, np.arange(len(rows)))
    columns = {name: rows[name] for name in rows.column_names}
    columns |= {name: _chosen(rows[name], ended[name], places) for name in END}
    columns["_is_current"] = pa.array(~is_ended & rows["_is_current"].to_numpy())
    return pa.table(columns, rows.schema)


def _chosen(one: pa.ChunkedArray, other: pa.ChunkedArray, places: Any) -> pa.ChunkedArray:
    """Values of two columns by their places in one behind the other."""
    import pyarrow as pa

    chunks = [*one.chunks, *other.cast(one.type).chunks]
    return pa.chunked_array([pa.chunked_array(chunks, one.type).take(pa.array(places)).combine_chunks()], one.type)
