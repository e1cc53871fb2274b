"""The changes of a table, done again one after the other by the key of their rows: what is there, and what was.

Slow and obvious: what folds of whole columns come to is compared with it. Which values a row has is said by numbers of
changes; values are copied at the end.
"""

from __future__ import annotations

import bisect
import datetime
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ibbmaster.errors import EventError
from ibbmaster.lake.pasts import Place, Truncation

if TYPE_CHECKING:
    import pyarrow as pa

Key = tuple[object, ...]
End = tuple[Place, datetime.datetime, str]  # of a version: where, when, and by which group
Source = int | tuple[int | None, ...]  # the change that has the values of a row: of all its columns, or of each


class Step(NamedTuple):
    """What a change does to the row of a key; `row` is its number. `op` is insert, update or delete."""

    row: int
    op: str
    key: Key


class Period(NamedTuple):
    """A version of a row: where its values are, and the changes that began and ended it."""

    source: Source
    first: int
    end: int | None


def absent_columns(changes: pa.Table) -> dict[int, list[str]]:
    """Which columns the images of some changes leave out, by the number of the change."""
    import pyarrow.compute as pc

    absent = changes["_absent"].combine_chunks()
    numbers = pc.indices_nonzero(pc.list_value_length(absent)).to_pylist()
    return dict(zip(numbers, absent.take(numbers).to_pylist(), strict=True)) if numbers else {}


def steps_of(changes: pa.Table, keys: Sequence[str]) -> Iterator[Step]:
    """What each change does, in their order; an update of a key is a delete and an insert.

    Raises:
        EventError: a key changes, and the image of the new row is not whole.
    """
    absent = absent_columns(changes)
    own = list(zip(*(changes[name].to_pylist() for name in keys), strict=True))
    before: Key = ()
    for row, kind in enumerate(changes["_change_type"].to_pylist()):
        if kind in ("insert", "delete"):
            yield Step(row, kind, own[row])
        elif kind == "update_postimage":
            lacking = absent.get(row, ())
            key = tuple(old if name in lacking else new for name, old, new in zip(keys, before, own[row], strict=True))
            if key == before:
                yield Step(row, "update", key)
            elif lacking:
                gtid = changes["_gtid"][row].as_py()
                raise EventError(f"{gtid}: the key of a row changes, and its image is not whole")
            else:
                yield Step(row, "delete", before)
                yield Step(row, "insert", key)
        before = own[row]


class Turns:
    """Whether each row comes and goes as a row does: inserted where it is not there, else changed or deleted.

    `cuts` are where all rows went.
    """

    def __init__(self, changes: pa.Table, cuts: Sequence[Truncation] = ()) -> None:
        self.are_sound = True
        self._places: list[Place] = []
        if cuts:
            self._places = list(zip(changes["_file_no"].to_pylist(), changes["_offset"].to_pylist(), strict=True))
        self._cuts = cuts
        self._passed = 0
        self._there: set[Key] = set()

    def take(self, step: Step) -> None:
        """A step comes next."""
        while self._passed < len(self._cuts) and self._cuts[self._passed].place < self._places[step.row]:
            self._passed += 1
            self._there.clear()
        if (step.op == "insert") == (step.key in self._there):
            self.are_sound = False
        if step.op == "delete":
            self._there.discard(step.key)
        else:
            self._there.add(step.key)


class RowSources:
    """The rows of a table while changes are done again."""

    def __init__(self, changes: pa.Table, names: Sequence[str], keys: Sequence[str]) -> None:
        self._keys = keys
        self._changes = changes
        self._names = names
        self._absent = absent_columns(changes)

    def source(self, step: Step, old: Source | None) -> Source:
        """Where the values of a row are after a step, which had its values there before."""
        lacking = self._absent.get(step.row) if step.op == "update" else None
        if not lacking:
            return step.row
        olds = old if isinstance(old, tuple) else (old,) * len(self._names)
        olds = (step.row - 1 if name in self._keys else one for name, one in zip(self._names, olds, strict=True))
        return tuple(one if name in lacking else step.row for name, one in zip(self._names, olds, strict=True))

    def taken(self, sources: Sequence[Source]) -> list[pa.ChunkedArray]:
        """The columns of rows whose values are there."""
        import pyarrow as pa

        if all(isinstance(one, int) for one in sources):
            indices = pa.array(sources, pa.int64())
            return [self._changes[name].take(indices) for name in self._names]
        return [
            self._changes[name].take(
                pa.array([one if isinstance(one, int) else one[number] for one in sources], pa.int64())
            )
            for number, name in enumerate(self._names)
        ]


def current_rows(changes: pa.Table, names: Sequence[str], keys: Sequence[str]) -> tuple[pa.Table, bool]:
    """The rows that are there after all changes; and whether each came and went as a row does.

    It is not so where a key is inserted that is there, or one is changed that is not.
    """
    import pyarrow as pa

    rows, turns = RowSources(changes, names, keys), Turns(changes)
    there: dict[Key, Source] = {}
    alive: dict[Key, bool] = {}
    for step in steps_of(changes, keys):
        turns.take(step)
        there[step.key] = rows.source(step, there.get(step.key))
        alive[step.key] = step.op != "delete"
    left = [source for key, source in there.items() if alive[key]]
    return pa.table(rows.taken(left), names=list(names)), turns.are_sound


def periods_of(changes: pa.Table, names: Sequence[str], keys: Sequence[str], turns: Turns) -> Iterator[Period]:
    """Every version of each row, those of a row after each other; `turns` gets each step."""
    rows = RowSources(changes, names, keys)
    of_key: dict[Key, list[tuple[Step, Source]]] = {}
    for step in steps_of(changes, keys):
        turns.take(step)
        found = of_key.setdefault(step.key, [])
        found.append((step, rows.source(step, found[-1][1] if found else None)))
    for found in of_key.values():
        ends = [step.row for step, _ in found[1:]]
        for (step, source), end in zip(found, [*ends, None], strict=True):
            if step.op != "delete":
                yield Period(source, step.row, end)


def versions_of_rows(
    changes: pa.Table, names: Sequence[str], keys: Sequence[str], cuts: Sequence[Truncation]
) -> tuple[pa.Table, bool]:
    """Every version of each row, with the moments and GTIDs between which it held; and whether rows came and went so.

    `cuts` are where all rows ended.
    """
    import pyarrow as pa

    turns = Turns(changes, cuts)
    periods = list(periods_of(changes, names, keys, turns))
    moments, gtids = changes["_commit_ts"], changes["_gtid"]
    places: list[Place] = list(zip(changes["_file_no"].to_pylist(), changes["_offset"].to_pylist(), strict=True))
    first = pa.array([one.first for one in periods], pa.int64())
    end = pa.array([one.end for one in periods], pa.int64())
    ends = [
        _sooner(None if one.end is None else (places[one.end], *what), _end_of_all(places[one.first], cuts))
        for one, *what in zip(periods, moments.take(end).to_pylist(), gtids.take(end).to_pylist(), strict=True)
    ]
    columns = RowSources(changes, names, keys).taken([one.source for one in periods])
    added = {
        "_valid_from": moments.take(first),
        "_valid_to": pa.array([None if one is None else one[1] for one in ends], moments.type),
        "_gtid_from": gtids.take(first),
        "_gtid_to": pa.array([None if one is None else one[2] for one in ends], gtids.type),
        "_is_current": pa.array([one is None for one in ends], pa.bool_()),
    }
    return pa.table([*columns, *added.values()], names=[*names, *added]), turns.are_sound


def _end_of_all(place: Place, cuts: Sequence[Truncation]) -> End | None:
    """Where the rows of a group ended, all at once; None if they never did."""
    for cut in cuts[bisect.bisect_left(cuts, place, key=lambda cut: cut.place) :][:1]:
        return cut.place, datetime.datetime.fromtimestamp(cut.timestamp, datetime.UTC), cut.gtid
    return None


def _sooner(one: End | None, other: End | None) -> End | None:
    return min((end for end in (one, other) if end is not None), default=None)
