"""Changes folded by key are what a dictionary becomes that takes them one by one."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

from ibbmaster.lake.maintain.last_changes import DELETED, PATCHED, WHOLE, PartialChangeError, last_changes

NAMES = ["id", "part", "a", "b"]
KEYS = ["id", "part"]


def changes_of(steps: list[tuple[str, tuple, list[str]]]) -> pa.Table:
    """`_change_type`, a row, and what its image leaves out."""
    columns = {name: [row[number] for _, row, _ in steps] for number, name in enumerate(NAMES)}
    return pa.table(
        {
            "_change_type": pa.array([kind for kind, _, _ in steps], pa.string()),
            "_absent": pa.array([absent for _, _, absent in steps], pa.list_(pa.string())),
            **{name: pa.array(cells, pa.int64()) for name, cells in columns.items()},
        }
    )


def applied(before: dict, found) -> dict:
    """Rows by their key, with what changes make of them."""
    rows = dict(before)
    for number, row in enumerate(found.rows.to_pylist()):
        key = tuple(row[name] for name in KEYS)
        assert (key in before) == bool(found.were_there[number])
        outcome = found.outcomes[number]
        if outcome == DELETED:
            rows.pop(key, None)
            continue
        assert outcome == WHOLE or key in rows
        old = rows.get(key, ())
        rows[key] = tuple(
            old[place] if outcome == PATCHED and name in found.known and not found.known[name][number] else row[name]
            for place, name in enumerate(NAMES)
        )
    return rows


def test_the_fold_is_what_a_dictionary_becomes() -> None:
    for _ in range(60):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        expect_fold(random.Random(seed))


def expect_fold(rng: random.Random) -> None:
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
    found = last_changes(changes_of(steps), KEYS, NAMES, set())
    assert applied(before, found) == rows


REFUSED = json.loads(Path(__file__).with_suffix(".json").read_text())


@pytest.mark.parametrize("steps", REFUSED.values(), ids=REFUSED)
def test_what_only_a_table_or_a_server_knows_is_not_guessed(steps) -> None:
    with pytest.raises(PartialChangeError):
        last_changes(changes_of(steps), KEYS, NAMES, set())


def test_a_column_whose_default_is_null_may_be_left_out_of_an_insert() -> None:
    found = last_changes(changes_of([("insert", (1, 1, None, 2), ["a"])]), KEYS, NAMES, {"a"})
    assert found.outcomes.tolist() == [WHOLE]
    assert found.rows.to_pylist() == [{"id": 1, "part": 1, "a": None, "b": 2}]


def test_keys_of_many_columns_with_many_values_stay_apart() -> None:
    count = 3000
    wide = {f"k{number}": pa.array([one % (count - number) for one in range(count)]) for number in range(6)}
    kinds = pa.array(["insert"] * count), pa.array([[]] * count, pa.list_(pa.string()))
    changes = pa.table({"_change_type": kinds[0], "_absent": kinds[1], **wide})
    assert len(last_changes(changes, list(wide), list(wide), set()).outcomes) == count
