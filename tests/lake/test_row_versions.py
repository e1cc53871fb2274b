"""The fold of changes is what a dictionary becomes that takes them one by one: its rows, and each version of them."""

import datetime
import random

import pyarrow as pa
import pytest

from ibbmaster.lake.pasts import Truncation
from ibbmaster.lake.row_versions import (
    DELETED,
    PATCHED,
    WHOLE,
    FoldedColumns,
    PartialChangeError,
    last_changes,
    new_versions,
)
from tests.case_table import data_beside

COLUMNS = FoldedColumns(["id"], ["id", "a", "b"])
OF_TWO = FoldedColumns(["id", "part"], ["id", "part", "a", "b"])
Step = tuple[int, str, tuple, list[str]]  # the group, the kind of change, the row, what its image leaves out


def changes_of(steps: list[Step], columns: FoldedColumns = COLUMNS) -> pa.Table:
    cells = {name: pa.array([row[n] for _, _, row, _ in steps], pa.int64()) for n, name in enumerate(columns.names)}
    moments = [datetime.datetime.fromtimestamp(group, datetime.UTC) for group, *_ in steps]
    return pa.table(
        {
            "_file_no": pa.array([0] * len(steps), pa.int64()),
            "_offset": pa.array([group for group, *_ in steps], pa.int64()),
            "_gtid": pa.array([f"0-1-{group}" for group, *_ in steps], pa.string()),
            "_commit_ts": pa.array(moments, pa.timestamp("us", tz="UTC")),
            "_change_type": pa.array([kind for _, kind, _, _ in steps], pa.string()),
            "_absent": pa.array([absent for *_, absent in steps], pa.list_(pa.string())),
            **cells,
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


def seeded(count: int):
    for _ in range(count):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        yield random.Random(seed)


def by_first(versions: list[tuple]) -> list[tuple]:
    return sorted(versions, key=repr)


def test_versions_are_those_of_a_dictionary() -> None:
    for rng in seeded(80):
        steps, cuts, versions = random_steps(rng)
        found = new_versions(changes_of(steps), COLUMNS, truncations(cuts))
        assert by_first(plain(found.rows)) == by_first(versions)
        assert len(found.ended) == 0
        for row in found.rows.to_pylist():
            assert row["_is_current"] == (row["_valid_to"] is None)


def truncations(cuts: list[int]) -> list[Truncation]:
    return [Truncation((0, cut), cut, f"0-1-{cut}") for cut in cuts]


def plain(rows: pa.Table) -> list[tuple]:
    for row in rows.to_pylist():
        assert row["_gtid_to"] == (row["_valid_to"] and f"0-1-{int(row['_valid_to'].timestamp())}")
    return [
        (
            *(row[name] for name in COLUMNS.names),
            int(row["_valid_from"].timestamp()),
            None if row["_valid_to"] is None else int(row["_valid_to"].timestamp()),
        )
        for row in rows.to_pylist()
    ]


def test_versions_told_in_two_pieces_are_the_same() -> None:
    for rng in seeded(80):
        steps, cuts, versions = random_steps(rng)
        if cuts:
            continue
        middle = rng.randint(0, 25)
        first = new_versions(changes_of([one for one in steps if one[0] <= middle]), COLUMNS)
        try:
            second = new_versions(changes_of([one for one in steps if one[0] > middle]), COLUMNS)
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
        new_versions(changes_of(steps), COLUMNS)


def mutated(rng: random.Random, steps: list[Step]) -> list[Step]:
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


def followed(steps: list[Step], cuts: list[int]) -> dict | None:
    """The rows that steps leave, each of them whole; None if they contradict each other, or leave something out."""
    rows: dict[int, tuple] = {}
    passed = 0
    for group, kind, row, absent in steps:
        emptied = sum(cut < group for cut in cuts)
        rows = rows if emptied == passed else {}
        passed = emptied
        if kind in ("delete", "update_preimage"):
            if row[0] not in rows:
                return None
            old = rows.pop(row[0])
        else:
            new = tuple(old[n] if name in absent else row[n] for n, name in enumerate(COLUMNS.names))
            if new[0] in rows:
                return None
            rows[new[0]] = new
    return rows if passed == len(cuts) else {}


def test_changes_that_contradict_each_other_are_refused_and_no_others() -> None:
    refused = 0
    for rng in seeded(300):
        steps = mutated(rng, random_steps(rng)[0])
        cuts = [rng.randint(1, 20)] if rng.random() < 0.3 else []
        for known in (cuts, []):
            rows, found = followed(steps, known), versions_or_none(changes_of(steps), known)
            assert (rows is None) == (found is None)
            if rows is not None and found is not None:
                there = found.filter(found["_is_current"]).select(COLUMNS.names).to_pylist()
                assert sorted(tuple(row.values()) for row in there) == sorted(rows.values())
        lenient = new_versions(changes_of(steps), COLUMNS, is_strict=False)
        assert (lenient.is_sound and not len(lenient.ended)) == (rows is not None)
        kept = rows_or_none(changes_of(steps))
        assert (kept is None) == (rows is None)
        if rows is not None and kept is not None:
            assert sorted(tuple(row.values()) for row in kept) == sorted(rows.values())
        refused += rows is None
    assert 30 < refused < 250


def versions_or_none(changes: pa.Table, cuts: list[int]) -> pa.Table | None:
    """The versions of rows of a table that began empty; None if changes are refused."""
    try:
        found = new_versions(changes, COLUMNS, truncations(cuts))
    except PartialChangeError:
        return None
    return None if len(found.ended) else found.rows


def rows_or_none(changes: pa.Table) -> list[dict] | None:
    try:
        found = last_changes(changes, COLUMNS)
    except PartialChangeError:
        return None
    if found.were_there.any():
        return None
    return found.rows.filter(pa.array(found.outcomes == WHOLE)).to_pylist()


def applied(before: dict, found) -> dict:
    rows = dict(before)
    for number, row in enumerate(found.rows.to_pylist()):
        key = tuple(row[name] for name in OF_TWO.keys)
        assert (key in before) == bool(found.were_there[number])
        outcome = found.outcomes[number]
        if outcome == DELETED:
            rows.pop(key, None)
            continue
        assert outcome == WHOLE or key in rows
        old = rows.get(key, ())
        rows[key] = tuple(
            old[place] if outcome == PATCHED and name in found.known and not found.known[name][number] else row[name]
            for place, name in enumerate(OF_TWO.names)
        )
    return rows


def test_the_fold_is_what_a_dictionary_becomes() -> None:
    for rng in seeded(60):
        before = {(one % 4, one // 4): (one % 4, one // 4, one, None) for one in rng.sample(range(12), 5)}
        rows, steps = dict(before), []
        for _ in range(rng.randint(0, 20)):
            key = rng.randrange(4), rng.randrange(3)
            values = rng.choice([None, *range(9)]), rng.randrange(9)
            if key not in rows:
                rows[key] = (*key, *values)
                steps.append(("insert", rows[key], []))
            elif rng.random() < 0.3:
                steps.append(("delete", rows.pop(key), []))
            elif rng.random() < 0.3:
                other = rng.randrange(4), rng.randrange(3)
                if other not in rows:
                    old = rows.pop(key)
                    rows[other] = (*other, *values)
                    steps += [("update_preimage", old, []), ("update_postimage", rows[other], [])]
            elif rng.random() < 0.5:
                old, rows[key] = rows[key], (*key, *values)
                steps += [("update_preimage", old, []), ("update_postimage", rows[key], [])]
            else:  # an image without what has not changed
                rows[key] = (*key, values[0], rows[key][3])
                steps.append(("update_preimage", (*key, None, None), ["a", "b"]))
                steps.append(("update_postimage", (None, None, values[0], None), ["id", "part", "b"]))
        assert applied(before, last_changes(changes_of([(1, *one) for one in steps], OF_TWO), OF_TWO)) == rows


REFUSED = data_beside(__file__)


@pytest.mark.parametrize("steps", REFUSED.values(), ids=REFUSED)
def test_what_only_a_table_or_a_server_knows_is_not_guessed(steps) -> None:
    with pytest.raises(PartialChangeError):
        last_changes(changes_of([(1, *one) for one in steps], OF_TWO), OF_TWO)


def test_a_column_whose_default_is_null_may_be_left_out_of_an_insert() -> None:
    found = last_changes(changes_of([(1, "insert", (1, 1, None, 2), ["a"])], OF_TWO), OF_TWO._replace(nulls={"a"}))
    assert found.outcomes.tolist() == [WHOLE]
    assert found.rows.to_pylist() == [{"id": 1, "part": 1, "a": None, "b": 2}]


def test_keys_of_many_columns_with_many_values_stay_apart() -> None:
    count = 3000
    wide = {f"k{number}": pa.array([one % (count - number) for one in range(count)]) for number in range(6)}
    kinds = pa.array(["insert"] * count), pa.array([[]] * count, pa.list_(pa.string()))
    changes = pa.table({"_change_type": kinds[0], "_absent": kinds[1], **wide})
    assert len(last_changes(changes, FoldedColumns(list(wide), list(wide))).outcomes) == count
