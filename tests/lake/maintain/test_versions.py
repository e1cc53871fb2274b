"""Versions of rows are those of a dictionary that keeps when each came and went, told at once or piece by piece."""

import datetime
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from ibbmaster.lake.maintain.last_changes import DELETED, PATCHED, WHOLE, LastChanges, PartialChangeError, last_changes
from ibbmaster.lake.maintain.versions import NONE, as_changed, as_ended, new_versions, numbers_of
from ibbmaster.lake.pasts import Truncation
from tests.lake.maintain.replayed import current_rows, versions_of_rows

NAMES, KEYS = ["id", "a", "b"], ["id"]
Step = tuple[int, str, tuple, list[str]]  # the group, the kind of change, the row, what its image leaves out


def at(group: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(group, datetime.UTC)


def changes_of(steps: list[Step]) -> pa.Table:
    columns = {name: pa.array([row[n] for _, _, row, _ in steps], pa.int64()) for n, name in enumerate(NAMES)}
    return pa.table(
        {
            "_file_no": pa.array([0] * len(steps), pa.int64()),
            "_offset": pa.array([group for group, *_ in steps], pa.int64()),
            "_gtid": pa.array([f"0-1-{group}" for group, *_ in steps], pa.string()),
            "_commit_ts": pa.array([at(group) for group, *_ in steps], pa.timestamp("us", tz="UTC")),
            "_change_type": pa.array([kind for _, kind, _, _ in steps], pa.string()),
            "_absent": pa.array([absent for *_, absent in steps], pa.list_(pa.string())),
            **columns,
        }
    )


def random_steps(rng: random.Random) -> tuple[list[Step], list[int], list[tuple]]:
    """Changes, the groups after which the table was emptied, and the versions: the row, from which group, to which."""
    rows: dict[int, tuple[tuple, int]] = {}
    steps: list[Step] = []
    versions, cuts = [], []
    for group in range(1, rng.randint(1, 25)):
        key, value = rng.randrange(4), rng.randrange(9)
        if rng.random() < 0.06:
            versions += [(*row, since, group) for row, since in rows.values()]
            rows.clear()
            cuts.append(group)
        elif key not in rows:
            rows[key] = (key, value, value), group
            steps.append((group, "insert", (key, value, value), []))
        else:
            row, since = rows.pop(key)
            versions.append((*row, since, group))
            if rng.random() < 0.3:
                steps.append((group, "delete", row, []))
                continue
            new = key if rng.random() < 0.7 or key + 10 in rows else key + 10
            after, is_whole = (new, value, row[2]), new != key or rng.random() < 0.5
            if is_whole:
                steps += [(group, "update_preimage", row, []), (group, "update_postimage", after, [])]
            else:
                steps.append((group, "update_preimage", (key, None, None), ["a", "b"]))
                steps.append((group, "update_postimage", (None, value, None), ["id", "b"]))
            rows[new] = after, group
    return steps, cuts, versions + [(*row, since, None) for row, since in rows.values()]


def by_first(versions: list[tuple]) -> list[tuple]:
    return sorted(versions, key=repr)


def test_versions_are_those_of_a_dictionary() -> None:
    for _ in range(80):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        steps, cuts, versions = random_steps(random.Random(seed))
        found = new_versions(changes_of(steps), KEYS, NAMES, set(), truncations(cuts))
        assert by_first(plain(found.rows)) == by_first(versions)
        assert len(found.ended) == 0
        for row in found.rows.to_pylist():
            assert row["_is_current"] == (row["_valid_to"] is None)


def truncations(cuts: list[int]) -> list[Truncation]:
    return [Truncation((0, cut), cut, f"0-1-{cut}") for cut in cuts]


def plain(rows: pa.Table) -> list[tuple]:
    """Versions with the moments of their groups, which have the same numbers."""
    for row in rows.to_pylist():
        assert row["_gtid_to"] == (row["_valid_to"] and f"0-1-{int(row['_valid_to'].timestamp())}")
    return [
        (
            *(row[name] for name in NAMES),
            int(row["_valid_from"].timestamp()),
            None if row["_valid_to"] is None else int(row["_valid_to"].timestamp()),
        )
        for row in rows.to_pylist()
    ]


def test_versions_told_in_two_pieces_are_the_same() -> None:
    for _ in range(80):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        rng = random.Random(seed)
        steps, cuts, versions = random_steps(rng)
        if cuts:
            continue
        middle = rng.randint(0, 25)
        first = new_versions(changes_of([one for one in steps if one[0] <= middle]), KEYS, NAMES, set())
        try:
            second = new_versions(changes_of([one for one in steps if one[0] > middle]), KEYS, NAMES, set())
        except PartialChangeError:
            continue  # it needs the version of before
        kept = plain(first.rows)
        for row in second.ended.to_pylist():
            (old,) = [one for one in kept if one[0] == row["id"] and one[-1] is None]
            kept[kept.index(old)] = (*old[:-1], int(row["_valid_to"].timestamp()))
            assert row["_gtid_to"] == f"0-1-{int(row['_valid_to'].timestamp())}"
        assert by_first(kept + plain(second.rows)) == by_first(versions)


@pytest.mark.parametrize(
    "steps",
    [
        [(1, "insert", (1, 1, 1), []), (2, "insert", (1, 1, 1), [])],
        [(1, "delete", (1, 1, 1), []), (2, "delete", (1, 1, 1), [])],
        [(1, "update_preimage", (1, None, None), ["a", "b"]), (1, "update_postimage", (None, 5, None), ["id", "b"])],
    ],
    ids=["inserted twice", "deleted twice", "without the version before"],
)
def test_changes_that_are_not_enough_or_contradict_each_other_are_refused(steps) -> None:
    with pytest.raises(PartialChangeError):
        new_versions(changes_of(steps), KEYS, NAMES, set())


def mutated(rng: random.Random, steps: list[Step]) -> list[Step]:
    """The same changes, of which perhaps one is missing, twice there, or another one's."""
    changes = [steps[n : n + 2] if one[1] == "update_preimage" else [one] for n, one in enumerate(steps)]
    changes = [one for one in changes if one[0][1] != "update_postimage"]
    if changes and rng.random() < 0.6:
        number = rng.randrange(len(changes))
        match rng.choice(("missing", "twice", "moved")):
            case "missing":
                del changes[number]
            case "twice":
                changes.insert(number, changes[number])
            case _:
                changes.insert(rng.randrange(len(changes)), changes.pop(number))
    return [(group + 1, *step[1:]) for group, change in enumerate(changes) for step in change]  # type: ignore[misc]


def test_both_folds_of_changes_have_the_same_versions_and_rows_and_refuse_the_same() -> None:
    """The slow one follows rows one by one, also through contradictions, as the fast one does if asked."""
    refused = 0
    for _ in range(300):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        rng = random.Random(seed)
        steps = mutated(rng, random_steps(rng)[0])
        changes, cuts = changes_of(steps), [rng.randint(1, 20)] if rng.random() < 0.3 else []
        truncated = truncations(cuts)
        slow, is_sound = versions_of_rows(changes, NAMES, KEYS, truncated)
        fast = versions_or_none(changes, cuts)
        assert is_sound == (fast is not None)
        if fast is not None:
            assert by_first(plain(slow)) == by_first(plain(fast))
            assert sorted(slow.column_names) == sorted(fast.column_names)
        rows, is_sound = current_rows(changes, NAMES, KEYS)
        lenient = new_versions(changes, KEYS, NAMES, None)
        assert (lenient.is_sound and not len(lenient.ended)) == is_sound
        slow, _ = versions_of_rows(changes, NAMES, KEYS, ())
        assert by_first(plain(lenient.rows)) == by_first(plain(slow))
        there = lenient.rows.filter(lenient.rows["_is_current"]).select(NAMES)
        assert sorted(there.to_pylist(), key=repr) == sorted(rows.to_pylist(), key=repr)
        kept = rows_or_none(changes)
        assert is_sound == (kept is not None)
        if kept is not None:
            assert sorted(rows.to_pylist(), key=repr) == sorted(kept, key=repr)
        refused += not is_sound
    assert 30 < refused < 250


def versions_or_none(changes: pa.Table, cuts: list[int]) -> pa.Table | None:
    """The versions of rows of a table that began empty; None if changes are refused."""
    try:
        found = new_versions(changes, KEYS, NAMES, set(), truncations(cuts))
    except PartialChangeError:
        return None
    return None if len(found.ended) else found.rows


def rows_or_none(changes: pa.Table) -> list[dict] | None:
    try:
        found = last_changes(changes, KEYS, NAMES, set())
    except PartialChangeError:
        return None
    if found.were_there.any():
        return None
    return found.rows.filter(pa.array(found.outcomes == WHOLE)).to_pylist()


DAY = datetime.date(2026, 1, 1)
KINDS_OF_KEYS = {
    "numbers": lambda number: number,
    "texts": lambda number: f"{number}",
    "bytes": lambda number: bytes([number % 256, number // 256]),
    "decimals": lambda number: Decimal(100_000 + number) / 100,
    "days": lambda number: DAY + datetime.timedelta(number),
    "moments": lambda number: datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(hours=number),
}


@pytest.mark.parametrize("kind", KINDS_OF_KEYS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_each_row_is_found_by_all_columns_of_its_key(kind, count) -> None:
    key = lambda: tuple(KINDS_OF_KEYS[kind](random.randrange(1 + 300 // count**3)) for _ in range(count))  # noqa: E731
    names = [f"k{number}" for number in range(count)]
    wanted = sorted({key() for _ in range(100)}, key=repr)
    rows = [key() for _ in range(400)]
    table = lambda keys: pa.table(dict(zip(names, map(list, zip(*keys, strict=True)), strict=True)))  # noqa: E731
    chunked = pa.concat_tables([table(rows[:150]), table(rows[150:])])
    expected = [wanted.index(one) if one in wanted else NONE for one in rows]
    assert numbers_of(chunked, table(wanted), names).tolist() == expected
    assert NONE in expected
    assert max(expected) >= 0


def test_a_row_without_a_value_and_a_search_for_nothing_find_nothing() -> None:
    rows = pa.table({"id": pa.array([None, 1], pa.int32())})
    assert numbers_of(rows, pa.table({"id": pa.array([1], pa.int32())}), ["id"]).tolist() == [NONE, 0]
    assert numbers_of(rows, pa.table({"id": pa.array([], pa.int32())}), ["id"]).tolist() == [NONE, NONE]


def test_rows_are_gone_or_have_the_values_that_are_known() -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "a": ["a", "b", "c", "d"], "v": [[1.0], [2.0], None, [4.0]]})
    changes = LastChanges(
        outcomes=np.array([DELETED, PATCHED, WHOLE]),
        were_there=np.array([True, True, True]),
        rows=pa.table({"id": [3, 1, 4], "a": [None, "A", None], "v": [None, [9.0], [8.0]]}, rows.schema),
        known={"v": np.array([False, False, True])},
    )
    numbers = numbers_of(rows, changes.rows, ["id"])
    expected = [{"id": 1, "a": "A", "v": [1.0]}, {"id": 2, "a": "b", "v": [2.0]}, {"id": 4, "a": None, "v": [8.0]}]
    assert as_changed(rows, numbers, changes).to_pylist() == expected


def test_versions_end_where_they_are_named() -> None:
    rows = pa.table({"id": [1, 2], "_valid_to": [None, 5], "_gtid_to": [None, "0-1-5"], "_is_current": [True, False]})
    ended = pa.table({"id": [1], "_valid_to": [7], "_gtid_to": ["0-1-7"]})
    assert as_ended(rows, np.array([0, NONE]), ended).to_pylist() == [
        {"id": 1, "_valid_to": 7, "_gtid_to": "0-1-7", "_is_current": False},
        {"id": 2, "_valid_to": 5, "_gtid_to": "0-1-5", "_is_current": False},
    ]
