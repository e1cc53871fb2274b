"""The changes of a table folded by its key: what each row that they touch becomes, whatever it was before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

DELETED, PATCHED, WHOLE = 0, 1, 2  # gone; changed in the columns that are known; all of it is known
_CODES_MAX = 1 << 62


class PartialChangeError(Exception):
    """The changes alone do not say what becomes of a row: the table has to be followed row by row."""


class LastChanges(NamedTuple):
    """One entry a key.

    Attributes:
        outcomes: what becomes of each row.
        were_there: which of the rows were there before.
        rows: its columns afterwards; those of the key also where it is gone.
        known: by column, of which rows it is known; columns that are always known are left out.
    """

    outcomes: Any
    were_there: Any
    rows: pa.Table
    known: dict[str, Any]


class RowSteps(NamedTuple):
    """What each change is to a row.

    Attributes:
        steps: one of the outcomes; -1 for an image before an update, unless the row leaves that key.
        codes: a number for each key.
        absent: by column, which images leave it out; columns that all have are left out.
    """

    steps: Any
    codes: Any
    absent: dict[str, Any]


def row_steps(changes: pa.Table, keys: Sequence[str], names: Sequence[str], nulls: Collection[str] | None) -> RowSteps:
    """The steps of changes that are in the order of the log; the arguments are those of `new_versions`.

    Raises:
        PartialChangeError: an image leaves out what only the table itself, or the server, knows.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = changes["_change_type"].combine_chunks()
    inserted, deleted, before, after = (
        pc.equal(kind, name).to_numpy(zero_copy_only=False)
        for name in ("insert", "delete", "update_preimage", "update_postimage")
    )
    absent = absent_columns(changes, names)
    if nulls is not None:
        _expect_known(absent, keys, inserted, after, nulls)
    updates = np.flatnonzero(after)
    if len(updates) and (not updates[0] or not before[updates - 1].all()):
        raise PartialChangeError("an image after an update has none before it")
    own = {name: changes[name] for name in keys}
    for name in absent.keys() & own.keys():  # the image before an update has it
        own[name] = own[name].take(pa.array(np.arange(len(changes)) - (absent[name] & after)))
    codes = numbers_of_keys(pa.table(own), keys)
    moved = updates[codes[updates] != codes[updates - 1]]
    if any(mask[moved].any() for mask in absent.values()):
        raise PartialChangeError("the key of a row changes, and its image is not whole")
    steps = np.full(len(kind), -1, dtype=np.int8)
    steps[deleted], steps[after], steps[inserted] = DELETED, PATCHED, WHOLE
    steps[moved - 1], steps[moved] = DELETED, WHOLE
    return RowSteps(steps, codes, absent)


def last_changes(changes: pa.Table, keys: Sequence[str], names: Sequence[str], nulls: Collection[str]) -> LastChanges:
    """Fold changes in the order of the log.

    `changes` has `_change_type`, `_absent` and the columns `names`; `nulls` are those that an INSERT leaves NULL
    where it does not have them.

    Raises:
        PartialChangeError: an image leaves out what only the table itself, or the server, knows; or the log contradicts
            itself.
    """
    import numpy as np
    import pyarrow as pa

    steps, codes, absent = row_steps(changes, keys, names, nulls)
    places = np.flatnonzero(steps >= 0)
    found, last = _last(codes[places], places)
    outcomes = steps[last]
    were_there = steps[places[np.unique(codes[places], return_index=True)[1]]] != WHOLE
    order = np.argsort(codes[places], kind="stable")
    expect_turns(steps[places][order], is_first_of(codes[places][order]))
    bases = places[steps[places] != PATCHED]
    based, base = _last(codes[bases], bases)
    is_based = np.isin(found, based)
    base_steps = np.full(len(found), PATCHED, dtype=np.int8)
    base_steps[is_based] = steps[base]
    if ((outcomes == PATCHED) & (base_steps == DELETED)).any():
        raise PartialChangeError("a change of a row that is not there")
    outcomes = np.where(outcomes == PATCHED, base_steps, outcomes)
    columns, known = [], {}
    for name in names:
        source = last
        if name in absent:
            wanted = places[(steps[places] != DELETED) & ~(absent[name][places] & (steps[places] == PATCHED))]
            if name in keys:
                wanted = places[~absent[name][places]]
            of, sources = _last(codes[wanted], wanted)
            is_known = np.isin(found, of)
            source = last.copy()
            source[is_known] = sources
            if name in keys:  # those of an image before it
                source = _sources_of_key(found, codes, absent[name])
            else:
                known[name] = is_known
        columns.append(changes[name].take(pa.array(source)))
    return LastChanges(outcomes, were_there, pa.table(dict(zip(names, columns, strict=True))), known)


def is_first_of(groups: Any) -> Any:
    """Which of some numbers differ from the one before them."""
    import numpy as np

    is_first = np.ones(len(groups), dtype=bool)
    is_first[1:] = groups[1:] != groups[:-1]
    return is_first


def expect_turns(kinds: Any, is_first: Any) -> None:
    """See that a row that is there is not inserted, and one that is not there is neither changed nor deleted.

    `kinds` are steps, those of a row after each other; `is_first` says where those of another one begin.

    Raises:
        PartialChangeError: it is not so.
    """
    was_there = kinds[:-1] != DELETED
    inserts = kinds[1:] == WHOLE
    if ((was_there == inserts) & ~is_first[1:]).any():
        raise PartialChangeError("an INSERT of a key that is there already, or a change of a row that is not there")


def _sources_of_key(found: Any, codes: Any, absent: Any) -> Any:
    """For each key an image that has it."""
    import numpy as np

    places = np.flatnonzero(~absent)
    of, source = _last(codes[places], places)
    return source[np.searchsorted(of, found)]


def absent_columns(changes: pa.Table, names: Sequence[str]) -> dict[str, Any]:
    """By column, which images leave it out; columns that all have are left out."""
    import numpy as np
    import pyarrow.compute as pc

    lists = changes["_absent"].combine_chunks()
    texts, rows = pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy()
    found = {}
    for name in set(pc.unique(texts).to_pylist()) & set(names):
        mask = np.zeros(len(lists), dtype=bool)
        mask[rows[pc.equal(texts, name).to_numpy(zero_copy_only=False)]] = True
        found[name] = mask
    return found


def _expect_known(
    absent: dict[str, Any], keys: Sequence[str], inserted: Any, after: Any, nulls: Collection[str]
) -> None:
    import numpy as np

    if not absent:
        return
    for name, mask in absent.items():
        if name not in nulls and (mask & inserted).any():
            raise PartialChangeError("an INSERT has no value for some columns, which the server has filled in")
        if name in keys and (mask & ~after).any():
            raise PartialChangeError("an image has no value for columns of the key")
    nothing = np.zeros(len(after), dtype=bool)
    partial = np.any([mask & after for mask in absent.values()], axis=0)
    for name in keys:
        if (partial & ~absent.get(name, nothing)).any():
            raise PartialChangeError("an image after an update has a key, and not all of its row")


def numbers_of_keys(rows: pa.Table, keys: Sequence[str]) -> Any:
    """A number for each row: equal ones have the same values in these columns."""
    import numpy as np
    import pyarrow as pa

    codes, count = np.zeros(len(rows), dtype=np.int64), 1
    for name in keys:
        column = rows[name].combine_chunks()
        if pa.types.is_list(column.type):
            column = pa.array(map(repr, column.to_pylist()), pa.string())
        column = column.dictionary_encode(null_encoding="encode")
        size = max(len(column.dictionary), 1)
        if count * size >= _CODES_MAX:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
            count = max(len(codes), 1)
        codes = codes * size + column.indices.to_numpy()
        count *= size
    return codes


def _last(codes: Any, places: Any) -> tuple[Any, Any]:
    """Each code, in order, and the last of its places."""
    import numpy as np

    found, index = np.unique(codes[::-1], return_index=True)
    return found, places[::-1][index]
