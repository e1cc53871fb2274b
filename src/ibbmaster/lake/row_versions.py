"""Folds a table's changes by key: into every version of each row, or into what each row becomes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ibbmaster.tables.arrow.shape import own_name
from ibbmaster.tables.fold.whole_rows import LIKE_A_REPLACE
from .pasts import Truncation
from .statements import are_after

DELETED, PATCHED, WHOLE = 0, 1, 2  # gone; changed in known columns; known whole
BEGIN, END = ("_valid_from", "_gtid_from"), ("_valid_to", "_gtid_to")
SECOND_US = 1_000_000
CONTRADICTION = "an INSERT of a key that is there already, or a change of a row that is not there"
_OF_GROUP = ("_commit_ts", "_gtid")
_CODES_MAX = 1 << 48


class PartialChangeError(Exception):
    """Changes alone do not tell a row: the table has to be followed row by row."""


class FoldedColumns(NamedTuple):
    keys: Sequence[str]
    names: Sequence[str]
    nulls: Collection[str] = ()  # NULL where an INSERT lacks them
    made: Mapping[str, Collection[str]] = {}
    dates: Collection[str] = ()


class LastChanges(NamedTuple):
    """One entry a key."""

    outcomes: Any
    were_there: Any
    rows: pa.Table  # afterwards; the key also where it is gone
    known: dict[str, Any]  # by column, in which rows it is known; without those always known


class NewVersions(NamedTuple):
    """What changes add to known versions of rows."""

    rows: pa.Table  # with the columns BEGIN, END and `_is_current`
    ended: pa.Table  # ended keys, with the columns END
    is_sound: bool  # whether rows came where none was, and changed or went where one was


class Images:
    """Images of changes in order. `changes` has `_change_type`, `_absent` and the columns."""

    def __init__(self, changes: pa.Table, columns: FoldedColumns) -> None:
        self.changes, self.columns = changes, columns
        self._absent = absent_columns(changes, columns.names)

    def of(self, kind: str) -> Any:
        return pc.equal(self.changes["_change_type"], kind).to_numpy()

    def lack(self, *names: str) -> Any:
        found = [self._absent[name] for name in names if name in self._absent]
        return np.any([np.zeros(len(self.changes), dtype=bool), *found], axis=0)

    @property
    def partial(self) -> Collection[str]:
        return self._absent.keys()

    def untold(self) -> Iterator[tuple[str, Any]]:
        """Why changes alone do not tell rows, and which: only the server knew something."""
        keys, names = self.columns.keys, self.columns.names
        inserted, after = self.of("insert"), self.of("update_postimage")
        if self._absent:
            reason = "an INSERT has no value for some columns, which the server has filled in"
            yield reason, inserted & self.lack(*(set(names) - set(self.columns.nulls)))
            yield "an image has no value for columns of the key", self.lack(*keys) & ~after
            yield LIKE_A_REPLACE, after & self.lack(*(set(names) - set(keys))) & ~self.lack(*keys)
            for name, sources in self.columns.made.items():
                if name in self._absent and (other := [~self.lack(one) for one in sources]):
                    reason = f"an UPDATE has no value for the generated column {own_name(name)}"
                    yield reason, after & self.lack(name) & sum(other).astype(bool)
        for name in self.columns.dates:
            reason = f"a value of the key column {own_name(name)} is no date: --zero-dates text keeps it"
            yield reason, self.changes[name].is_null().to_numpy() & ~self.lack(name)

    def expect_told(self) -> None:
        """Raises PartialChangeError: see `untold`."""
        for reason, mask in self.untold():
            if mask.any():
                raise PartialChangeError(reason)


class RowSteps:
    """The steps of rows, each row's side by side, in order.

    Attributes:
        places: numbers of changes.
        kinds: the row's state afterwards.
        epochs: how often the table was emptied before.
        is_first, is_last: of its row in its epoch.
        are_sound: whether rows began where none was, and changed or ended where one was.
    """

    def __init__(self, images: Images, cuts: Sequence[Truncation] = ()) -> None:
        """Raises PartialChangeError: an update has no image before it, or changes a key and leaves out other values."""
        self.images = images
        all_kinds, codes = self._each()
        places = np.flatnonzero(all_kinds >= 0)
        emptied = (are_after(images.changes, cut.place).astype(np.int64) for cut in cuts)
        epochs = sum(emptied, np.zeros(len(all_kinds), dtype=np.int64))[places]
        rows = codes[places] * (len(cuts) + 1) + epochs
        if not (rows[1:] > rows[:-1]).all():
            order = np.argsort(rows, kind="stable")
            places, epochs, rows = places[order], epochs[order], rows[order]
        self.places, self.epochs, self.kinds = places, epochs, all_kinds[places]
        self.is_first = np.ones(len(rows), dtype=bool)
        self.is_first[1:] = rows[1:] != rows[:-1]
        self.is_last = np.roll(self.is_first, -1)
        was_there = self.kinds[:-1] != DELETED
        inserts = self.kinds[1:] == WHOLE
        self.are_sound = not ((was_there == inserts) & ~self.is_first[1:]).any()

    def _each(self) -> tuple[Any, Any]:
        """The row's state after each change, -1 for an image before an update unless the row leaves that key; and a
        number for each key."""
        images, keys = self.images, self.images.columns.keys
        before, after = images.of("update_preimage"), images.of("update_postimage")
        updates = np.flatnonzero(after)
        if len(updates) and (not updates[0] or not before[updates - 1].all()):
            raise PartialChangeError("an image after an update has none before it")
        own = {name: images.changes[name] for name in keys}
        for name in images.partial & own.keys():  # the image before an update has it
            own[name] = own[name].take(pa.array(np.arange(len(after)) - (images.lack(name) & after)))
        codes = numbers_of_keys(pa.table(own), keys)
        moved = updates[codes[updates] != codes[updates - 1]]
        if images.lack(*images.partial)[moved].any():
            raise PartialChangeError("the key of a row changes, and its image is not whole")
        kinds = np.full(len(after), -1, dtype=np.int8)
        kinds[images.of("delete")], kinds[after], kinds[images.of("insert")] = DELETED, PATCHED, WHOLE
        kinds[moved - 1], kinds[moved] = DELETED, WHOLE
        return kinds, codes

    def last_where(self, mask: Any) -> Any:
        """For each step its row's last one so far where a mask is true; -1 without one."""
        numbers = np.arange(len(mask))
        found = np.maximum.accumulate(np.where(mask, numbers, -1))
        return np.where(found < np.maximum.accumulate(np.where(self.is_first, numbers, 0)), -1, found)

    def sources(self, name: str) -> Any:
        """For each step the change with its row's value of a column: its own, or an earlier one; -1 without one."""
        if name not in self.images.partial:
            return self.places
        lacks = self.images.lack(name)[self.places]
        if name in self.images.columns.keys:  # the image before an update has it
            return self.places - (lacks & (self.kinds == PATCHED))
        found = self.last_where(~lacks | (self.kinds == WHOLE))
        return np.where(found < 0, -1, self.places[found])

    def taken(self, name: str, numbers: Any) -> pa.ChunkedArray:
        """NULL for -1."""
        column = self.images.changes[name]
        if len(numbers) == len(column) and (numbers == np.arange(len(numbers))).all():
            return column
        return column.take(pa.array(numbers, mask=numbers < 0))


def last_changes(changes: pa.Table, columns: FoldedColumns) -> LastChanges:
    """What each row becomes, whatever it was. Raises PartialChangeError: an image leaves out what only the table, or
    the server, knows; or the log contradicts itself."""
    images = Images(changes, columns)
    images.expect_told()
    steps = RowSteps(images)
    if not steps.are_sound:
        raise PartialChangeError(CONTRADICTION)
    last = np.flatnonzero(steps.is_last)
    base = steps.last_where(steps.kinds != PATCHED)[last]
    sources = {name: steps.sources(name)[last] for name in columns.names}
    known = {name: sources[name] >= 0 for name in columns.names if name in images.partial and name not in columns.keys}
    return LastChanges(
        np.where(base < 0, PATCHED, steps.kinds[base]),
        steps.kinds[steps.is_first] != WHOLE,
        pa.table({name: steps.taken(name, numbers) for name, numbers in sources.items()}),
        known,
    )


def new_versions(
    changes: pa.Table, columns: FoldedColumns, cuts: Sequence[Truncation] = (), *, is_strict: bool = True
) -> NewVersions:
    """The versions that changes make; they also need `_file_no`, `_offset`, `_commit_ts` and `_gtid`. `cuts` are where
    the table was emptied. Unless it `is_strict`, insufficient or contradicting changes count, and unknown values are
    NULL. Raises PartialChangeError: changes alone are not enough, or contradict each other."""
    images = Images(changes, columns)
    if is_strict:
        images.expect_told()
    steps = RowSteps(images, cuts)
    if is_strict and not steps.are_sound:
        raise PartialChangeError(CONTRADICTION)
    places, kinds, is_first, is_last = steps.places, steps.kinds, steps.is_first, steps.is_last
    following = np.where(is_last, -1, np.roll(places, -1))
    ends = {name: steps.taken(of, following) for name, of in zip(END, _OF_GROUP, strict=True)}
    for number, cut in enumerate(cuts):
        emptied = pa.array(is_last & (steps.epochs == number))
        moment = pa.scalar(cut.timestamp * SECOND_US, pa.int64()).cast(ends[END[0]].type)
        ends |= {name: pc.if_else(emptied, one, ends[name]) for name, one in zip(END, (moment, cut.gtid), strict=True)}
    found = {}
    for name in columns.names:
        sources = steps.sources(name)
        if is_strict and ((sources < 0) & (kinds == PATCHED)).any():
            raise PartialChangeError("an image after an update leaves out what only the version before it has")
        found[name] = steps.taken(name, sources)
    times = {name: steps.taken(of, places) for name, of in zip(BEGIN, _OF_GROUP, strict=True)} | ends
    found |= {name: times[name] for name in (BEGIN[0], END[0], BEGIN[1], END[1])}
    found["_is_current"] = pa.array(is_last & (steps.epochs == len(cuts)))

    ending = is_first & (kinds != WHOLE)
    ended = {name: found[name].filter(pa.array(ending)) for name in columns.keys}
    ended |= {name: steps.taken(of, places[ending]) for name, of in zip(END, _OF_GROUP, strict=True)}
    return NewVersions(pa.table(found).filter(pa.array(kinds != DELETED)), pa.table(ended), steps.are_sound)


def absent_columns(changes: pa.Table, names: Sequence[str]) -> dict[str, Any]:
    lists = changes["_absent"].combine_chunks()
    texts, rows = pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy()
    found = {}
    for name in set(pc.unique(texts).to_pylist()) & set(names):
        mask = np.zeros(len(lists), dtype=bool)
        mask[rows[pc.equal(texts, name).to_numpy(zero_copy_only=False)]] = True
        found[name] = mask
    return found


def numbers_of_keys(rows: pa.Table, keys: Sequence[str]) -> Any:
    """A number for each row, equal for equal values of these columns."""
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
