import random

import pytest
from lanes.answers import OurTables

import ibbmaster
from ibbmaster.kernel import loading
from ibbmaster.primary.select import table_reader
from ibbmaster.primary.select.table_reader import ALONE_MAX, TableReader
from ibbmaster.replication.event.rows.changes import ChangeKind
from ibbmaster.replication.event.rows.encoding import encode_rows, encode_table_map, written_table
from ibbmaster.tables.fold import fast_folding, fast_kept_rows
from ibbmaster.tables.fold.fast_folding import FastRowFold
from tests.primary.select.test_table_reader import everything, places_in
from tests.tables.fold.test_folding import CAPTURES
from tests.written_log import deleted, inserted, updated, write_log


@pytest.fixture(autouse=True)
def kernels() -> None:
    if loading.load() is None:
        pytest.skip("no kernels here")


def both(ours: OurTables, monkeypatch: pytest.MonkeyPatch, places) -> tuple[list, list]:
    found = []
    for has_kernels in (True, False):
        ours.reader = TableReader(ours.engine, ours)
        ours.reader._asked.update((str(number), "") for number in range(ALONE_MAX))  # so that it reads all at once
        with monkeypatch.context() as patch:
            if not has_kernels:
                patch.setattr(table_reader, "kernels_at_hand", lambda *_: None)
            found.append([everything(ours, ours.snapshot(place)) for place in places])
            assert has_kernels or {isinstance(fold, FastRowFold) for fold in ours.reader._folds} <= {False}
    return found[0], found[1]


def test_tables_of_captures_have_the_same_rows(tmp_path, monkeypatch) -> None:
    for number, capture in enumerate(random.sample([one for one in CAPTURES if not one.marks], 7)):
        folder = tmp_path / str(number)
        capture.values[0].unpack(folder)
        ours = OurTables(ibbmaster.open(folder).engine)
        places = places_in(ours)
        fast, plain = both(ours, monkeypatch, [*sorted(random.sample(places, min(2, len(places)))), places[-1]])

        assert fast == plain, capture.id


KEYS = {  # declared columns of a key, and what makes values of it
    "t0": ({"id": "int"}, lambda: [random.randint(-3, 3)]),
    "t1": ({"id": "bigint unsigned"}, lambda: [random.choice([0, 1, 255, 1 << 40, (1 << 64) - 1])]),
    "t2": (
        {"a": "smallint unsigned", "k": "varchar(30)"},
        lambda: [random.randint(0, 2), random.choice(["", "a", "a ", "b", "é"])],
    ),
    "t3": ({"k": "varbinary(9)"}, lambda: [random.choice([b"", b"\0", b"\0\0", b"a", b"a\0", b"\xff" * 9])]),
    "t4": (
        {"f": "double", "d": "date", "t": "time(3)"},
        lambda: [random.choice([0.0, -1.5, 2.5]), random.choice(["2024-01-02", "1999-12-31"]), "-01:02:03.004"],
    ),
    "t5": ({"k": "varchar(90)"}, lambda: [random.choice(["a", "b", "c" * 30, "d" * 90])]),
    "t6": ({}, list),
}


class RandomRows:
    def __init__(self) -> None:
        self.rows: dict[str, list[list[object]]] = {name: [] for name in KEYS}
        self.tables = {
            name: written_table(f"d.{name}", {**key, "x": "int", "y": "varchar(20)"}, table_id=no, primary_key=[*key])
            for no, (name, (key, _)) in enumerate(KEYS.items())
        }

    def creates(self) -> list[str]:
        found = []
        for name, (key, _) in KEYS.items():
            columns = [f"{column} {kind} NOT NULL" for column, kind in key.items()]
            way = random.choice(["", " DESC"])
            keys = [f"PRIMARY KEY ({', '.join(f'{column}{way}' for column in key)})"] if key else []
            found.append(f"CREATE TABLE {name} ({', '.join([*columns, 'x INT', 'y VARCHAR(20)', *keys])})")
        return found

    def group(self, *, is_right: bool) -> list[list[bytes]]:
        return [self._changes(random.choice([*KEYS]), is_right=is_right) for _ in range(random.randint(1, 4))]

    def _changes(self, name: str, *, is_right: bool) -> list[bytes]:
        table, rows = self.tables[name], self.rows[name]
        size = len(KEYS[name][0])
        key = lambda row: [part.rstrip() if isinstance(part, str) else part for part in row[:size]]  # noqa: E731
        there = list(map(key, rows))
        match random.choice(["insert", "insert", "update", "delete", "minimal"]) if rows else "insert":
            case "insert":
                new: list[list[object]] = []
                for _ in range(random.randint(1, 3)):
                    row = self._row(name)
                    if not size or not is_right or key(row) not in [*there, *map(key, new)]:
                        new.append(row)
                rows += new
                return inserted(table, *new)
            case "update":
                row = random.choice(rows)
                other = [*row[:size], *self._row(name)[size:]]
                moved = self._row(name)
                if size and random.random() < 0.3 and (not is_right or key(moved) not in there):
                    other = moved
                rows[rows.index(row)] = other
                return updated(table, (row, other))
            case "delete":
                row = random.choice(rows)
                rows.remove(row)
                return deleted(table, row)
            case _ if size:  # only what has changed is told
                row = random.choice(rows)
                other = [*row[:size], random.randint(0, 9), row[-1]]
                rows[rows.index(row)] = other
                columns = range(size), range(size, size + 1)
                images = [(table.image(row, columns[0]), table.image(other, columns[1]))]
                rows_events = encode_rows(table, ChangeKind.UPDATE, images, server_id=1, columns=columns)
                return [encode_table_map(table, server_id=1), *rows_events]
            case _:
                return inserted(table)

    def _row(self, name: str) -> list[object]:
        return [*KEYS[name][1](), random.choice([None, 1, 2]), random.choice([None, "", "text"])]


@pytest.mark.parametrize("is_right", [True, False])
def test_random_changes_of_rows_have_the_same_effect(is_right, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(fast_folding, "CHANGES_MAX", 8)  # so that much is kept in many steps
    monkeypatch.setattr(fast_folding, "IMAGES_BYTES", 300)
    monkeypatch.setattr(fast_kept_rows, "WAITING_MAX", 20)
    for turn in range(6):
        made = RandomRows()
        groups = [made.group(is_right=is_right or turn % 2 == 0) for _ in range(80)]
        ours = OurTables(ibbmaster.open(write_log(tmp_path / f"log{turn}", *made.creates(), *groups)).engine)
        places = places_in(ours)

        fast, plain = both(ours, monkeypatch, [*sorted(random.sample(places[7:], 3)), places[-1]])

        for one, other in zip(fast, plain, strict=True):
            for name in one:
                assert (name, one[name]) == (name, other[name])
        assert not is_right or all(isinstance(rows, list) for rows in plain[-1].values())


def test_rows_with_many_keys_go_to_a_file_and_stay_the_same(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(fast_kept_rows, "SORTED_BYTES_MAX", 1000)
    monkeypatch.setattr(fast_kept_rows, "WAITING_MAX", 20)
    test_random_changes_of_rows_have_the_same_effect(True, tmp_path, monkeypatch)


def test_a_long_log_of_plain_changes_is_read_by_kernels(tmp_path, monkeypatch) -> None:
    table = written_table("d.t", {"id": "int", "a": "int"}, table_id=1, primary_key=["id"])
    rows = [[number, number] for number in range(500)]
    groups = [[inserted(table, *rows[start : start + 7])] for start in range(0, 500, 7)]
    changes = [[updated(table, *((row, [row[0], -1]) for row in rows[5:9])), deleted(table, rows[20])]]
    log = write_log(tmp_path / "log", "CREATE TABLE t (id INT PRIMARY KEY, a INT)", *groups, *changes)
    ours = OurTables(ibbmaster.open(log).engine)
    monkeypatch.setattr(FastRowFold, "change_at", None)  # the reference is not asked

    assert len(ours.answer("SELECT * FROM d.t").rows) == 499
    assert len(ours.answer("SELECT * FROM d.t WHERE a = -1").rows) == 4
    assert [type(fold) for fold in ours.reader._folds] == [FastRowFold]
