"""Rows in arrays: what many changes at once make of them is what a model makes of them one by one."""

import random

import pytest

np = pytest.importorskip("numpy")

from ibbmaster.kernel.fields import ChangeOp  # noqa: E402
from ibbmaster.tables.fold.kept_rows import WrongChangeError  # noqa: E402
from ibbmaster.tables.fold.sorted_rows import RowChanges, SortedRows, keys_in, keys_of  # noqa: E402


def some_key(kind: str) -> bytes:
    if kind == "number":
        return random.randbytes(1) * 4 + b"\0\0\0" + random.choice([b"\0", b"\xff"])
    some = bytes([random.randint(1, 255)]) * 6  # a zero in a key is "\0\xff", so that no key begins another one
    return random.choice([b"", b"\1", b"a", b"a\0\xff", b"\xff" * 6, b"\xff\0\xff\0\xff", some]) + b"\0\0"


@pytest.mark.parametrize("kind", ["number", "text"])
def test_many_changes_at_once_are_as_one_by_one(kind: str) -> None:
    model: dict[bytes, int] = {}
    rows = SortedRows()
    place = 0
    for _ in range(200):
        portions = []
        for _ in range(random.randint(1, 3)):
            changes = []
            for _ in range(random.randint(1, 6)):
                place += 1
                key = some_key(kind)
                op = random.choice([ChangeOp.DELETE, ChangeOp.REPLACE]) if key in model else ChangeOp.INSERT
                changes.append((key, op, place))
                if op is ChangeOp.DELETE:
                    del model[key]
                else:
                    model[key] = place
            keys, ops, places = zip(*changes, strict=True)
            is_plain = all(op is ChangeOp.INSERT for op in ops)
            portions.append(RowChanges(None if is_plain else np.array(ops), keys_of(keys), np.array(places)))
        rows = rows.changed(portions)

        assert list(zip(rows.key_bytes(), rows.all_places(), strict=True)) == sorted(model.items())
        first, end = sorted((some_key(kind), some_key(kind)))
        between = [model[key] for key in sorted(model) if first <= key < end]
        assert rows.places[rows.rows_in((first, end))].tolist() == between
        assert rows.places[rows.rows_in((first[:3], None))].tolist() == [
            model[key] for key in sorted(model) if key >= first[:3]
        ]


@pytest.mark.parametrize(
    "ops",
    [
        [ChangeOp.INSERT] * 2,
        [ChangeOp.DELETE],
        [ChangeOp.REPLACE],
        [ChangeOp.INSERT, ChangeOp.DELETE, ChangeOp.REPLACE],
    ],
)
def test_changes_that_contradict_each_other_are_seen(ops: list[ChangeOp]) -> None:
    keys = keys_of([bytes(8)] * len(ops))
    with pytest.raises(WrongChangeError):
        SortedRows().changed([RowChanges(np.array(ops), keys, np.arange(len(ops)))])


def test_keys_of_one_size_are_numbers_and_others_bytes() -> None:
    for keys in ([b"12345678", b"\0" * 8], [b"a\0\0", b"abcdefghij\0\0"], [b"\0\0"]):
        matrix = np.zeros((len(keys), 64), dtype=np.uint8)
        for row, key in enumerate(keys):
            matrix[row, : len(key)] = memoryview(key)
        found = keys_in(matrix, np.array([len(key) for key in keys]))
        matrix[:] = 7  # it is used again
        assert SortedRows(found).key_bytes() == SortedRows(keys_of(keys)).key_bytes() == keys
        assert found.dtype.kind == keys_of(keys).dtype.kind
