import os
import random
from pathlib import Path

import pytest

from ibbmaster.tables.fold.kept_rows import READ_SIZE, UNWRITTEN_MAX, KeptRows, RowFile


@pytest.fixture
def kept() -> KeptRows:
    return KeptRows(RowFile())


def test_rows_are_found_by_ranges_of_their_keys_in_order(kept: KeptRows) -> None:
    keys = [bytes((number,)) for number in range(0, 200, 2)]
    shuffled = random.sample(keys, len(keys))
    assert kept.insert(1, shuffled, [key[0] for key in shuffled])

    assert list(kept.places(1)) == [key[0] for key in keys]
    assert list(kept.places(1, (b"\x03", b"\x09"))) == [4, 6, 8]
    assert list(kept.places(1, (b"\x03", None), is_descending=True, limit=2)) == [198, 196]
    assert kept.count_in(1, (b"\x03", b"\x09")) == 3
    assert kept.count_in(1) == 100


def test_what_contradicts_the_rows_that_are_there_is_told(kept: KeptRows) -> None:
    assert kept.insert(1, [b"a", b"b"], [1, 2])

    assert not kept.insert(1, [b"b"], [3])
    assert not kept.move(1, [b"a", b"x"], [4, 5])
    assert not kept.delete(1, [b"x"])
    assert kept.delete(1, [b"a", b"b"])
    assert not kept.has(1)


def test_rows_without_a_key_are_there_as_often_as_they_were_added(kept: KeptRows) -> None:
    kept.add(1, [b"same", b"same", b"other"], [10, 20, 30])

    assert kept.remove(1, b"same")
    assert list(kept.places(1)) == [20, 30]
    assert kept.replace(1, b"same", b"new", 40)
    assert not kept.remove(1, b"same")
    assert kept.remove(1, b"new")
    assert list(kept.places(1)) == [30]


def test_what_was_done_since_a_savepoint_is_undone_tables_included(kept: KeptRows) -> None:
    kept.insert(1, [b"a"], [1])
    kept.savepoint("s")
    kept.insert(1, [b"b"], [2])
    kept.insert(2, [b"c"], [3])

    kept.undo("s")
    kept.release("s")

    assert list(kept.places(1)) == [1]
    assert not kept.has(2)
    assert kept.insert(2, [b"c"], [3])


def test_a_fork_goes_on_by_itself(kept: KeptRows) -> None:
    kept.insert(1, [b"a"], [1])
    fork = kept.fork()

    kept.delete(1, [b"a"])
    fork.insert(1, [b"b"], [2])

    assert (list(kept.places(1)), list(fork.places(1))) == ([], [1, 2])


def test_compacting_leaves_out_rows_that_are_gone(kept: KeptRows) -> None:
    places = kept.rows.append(7, [b"gone", b"there"])
    kept.insert(1, [b"a", b"b"], places)
    kept.delete(1, [b"a"])
    before = kept.rows.data()

    kept.compact()

    (place,) = kept.places(1)
    assert kept.rows.read(place) == (7, b"there")
    assert kept.rows.size < len(before)
    assert bytes(before[places[0] + 6 :][:4]) == b"gone"  # whoever reads it still can


def test_a_dropped_table_has_no_rows(kept: KeptRows) -> None:
    kept.add(1, [b"x"], [1])
    kept.drop(1)

    assert list(kept.places(1)) == []
    assert kept.numbers() == []
    kept.add(1, [b"x"], [2])
    assert list(kept.places(1)) == [2]


def test_whatever_happens_to_rows_every_question_about_them_has_the_answer_of_a_model(kept: KeptRows) -> None:
    compare_with_a_model(kept)


def compare_with_a_model(kept: KeptRows, *, undoes: bool = True) -> None:
    tables: dict[int, dict[bytes, int]] = {1: {}, 2: {}}
    undone: list[dict[int, dict[bytes, int]]] = []
    for step in range(400):
        number = random.choice((1, 1, 2))
        rows = tables[number]
        some = random.sample(sorted(rows), min(len(rows), random.randint(1, 3)))
        new = [key for key in {random.randbytes(1) for _ in range(3)} if key not in rows]
        match random.choice(("insert", "insert", "move", "delete", "drop", "savepoint", "undo", "ask", "ask", "ask")):
            case "insert":
                assert kept.insert(number, new, range(step * 10, step * 10 + len(new)))
                rows |= dict(zip(new, range(step * 10, step * 10 + len(new)), strict=True))
            case "move":
                assert kept.move(number, some, range(step * 10, step * 10 + len(some)))
                rows |= dict(zip(some, range(step * 10, step * 10 + len(some)), strict=True))
            case "delete":
                assert kept.delete(number, some)
                for key in some:
                    del rows[key]
            case "drop" if random.random() < 0.1:
                kept.drop(number)
                rows.clear()
            case "savepoint" if undoes and not undone:
                kept.savepoint("s")
                undone.append({one: dict(other) for one, other in tables.items()})
            case "undo" if undone:
                kept.undo("s")
                kept.release("s")
                tables = undone.pop()
            case "ask":
                in_order = [rows[key] for key in sorted(rows)]
                first, end = sorted((random.randbytes(1), random.randbytes(1)))
                assert list(kept.all_places(number)) == list(kept.places(number)) == in_order
                assert list(kept.places(number, is_descending=True)) == in_order[::-1]
                between = [rows[key] for key in sorted(rows) if first <= key < end]
                assert list(kept.places(number, (first, end))) == between
                assert (kept.count_in(number), kept.count_in(number, (first, end))) == (len(rows), len(between))
                if undoes or random.random() < 0.01:  # else it would soon be in a file
                    assert [kept.place(number, key) for key in some] == [rows[key] for key in some]


def test_rows_are_read_as_they_were_added_written_or_not() -> None:
    rows = RowFile()
    images = [random.randbytes(random.choice([0, 1, 50, READ_SIZE, UNWRITTEN_MAX // 3])) for _ in range(40)]

    places = [rows.append(number, [image])[0] for number, image in enumerate(images)]

    assert [rows.read(place) for place in places] == list(enumerate(images))
    data = rows.data()
    rows.append(1, [b"later"])
    assert bytes(data[places[-1] + 6 :]) == images[-1]  # what was handed out stays as it is
    assert [rows.read(place) for place in places] == list(enumerate(images))


def test_nothing_of_it_is_left_on_the_disk(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = RowFile()
    rows.append(1, [bytes(UNWRITTEN_MAX)])

    assert list(tmp_path.iterdir()) == []
    descriptors = len(os.listdir("/proc/self/fd"))
    del rows
    assert len(os.listdir("/proc/self/fd")) == descriptors - 1


def test_a_file_without_rows_has_no_bytes() -> None:
    assert bytes(RowFile().data()) == b""
