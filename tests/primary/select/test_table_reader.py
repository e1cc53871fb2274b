import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lanes.answers import OurTables

import ibbmaster
from ibbmaster.logs.log.log_range import WHOLE_FILE
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.position import LOG_START
from ibbmaster.primary.select.table_reader import ALONE_MAX, TableReader
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.storage.disk.local import RealDisk
from tests.written_log import deleted, inserted, write_log

FIXTURES = Path(__file__).parents[3] / "fixtures/classic/11.8"


def groups_of(ours: OurTables) -> Iterator[Any]:
    for log_range in ours.engine.ranges(LOG_START, ours.engine.end(), size=WHOLE_FILE):
        for group in ours.engine.groups_in(log_range):
            list(group.body)
            yield group


def places_in(ours: OurTables) -> list:
    return [group.end for group in groups_of(ours)]


def everything(ours: OurTables, snapshot, *, is_each_alone: bool = False) -> dict[str, object]:
    """The rows of every table; with `is_each_alone` by a new reader for each."""
    found: dict[str, object] = {}
    for table in ours.base_tables(snapshot):
        if is_each_alone:
            ours.reader = TableReader(ours.engine, ours)
        try:
            sql = f"SELECT * FROM `{table.database}`.`{table.name}`"
            found[table.full_name] = ours.answer(sql, snapshot=snapshot).rows
        except RefusedError as refused:
            found[table.full_name] = refused.err.text
    return found


@pytest.mark.parametrize("name", ["ddl-trx-xa", "types-minimal-none"])
def test_a_position_has_the_same_rows_whichever_way_it_is_reached(name: str) -> None:
    ours = OurTables(ibbmaster.open(FIXTURES / name).engine)
    places = places_in(ours)
    frozen = [ours.snapshot(place) for place in sorted(random.sample(places, 4))]  # are kept, and forked from
    at_first = [everything(ours, snapshot) for snapshot in frozen]
    for place in random.sample(places, 4):  # forward and back
        everything(ours, ours.snapshot(place))

    assert [everything(ours, snapshot) for snapshot in frozen] == at_first
    for snapshot, expected in zip(frozen, at_first, strict=True):
        ours.reader = TableReader(ours.engine, ours)  # which reads from the start
        assert everything(ours, snapshot) == expected


def test_a_frozen_position_keeps_what_was_known_of_columns_that_change_later(tmp_path: Path) -> None:
    table = written_table("d.t", {"id": "int", "a": "int"}, table_id=1, primary_key=["id"])
    create = "CREATE TABLE t (id INT PRIMARY KEY, a INT)"
    log = write_log(tmp_path / "log", create, [inserted(table, [1, 300])], "ALTER TABLE t MODIFY a TINYINT")
    ours = OurTables(ibbmaster.open(log).engine)
    frozen = ours.snapshot(places_in(ours)[1])
    before = ours.answer("SELECT a FROM d.t", snapshot=frozen).rows

    with pytest.raises(RefusedError, match="MODIFY or CHANGE of column a may change its values"):
        ours.answer("SELECT a FROM d.t")
    assert ours.answer("SELECT a FROM d.t", snapshot=frozen).rows == before == [b"\x03300"]


def test_keys_are_made_anew_where_spaces_at_the_end_of_a_text_begin_to_count(tmp_path: Path) -> None:
    table = written_table("d.t", {"k": "varchar(5)"}, table_id=1, primary_key=["k"])
    create = "CREATE TABLE t (k VARCHAR(5) COLLATE utf8mb4_bin PRIMARY KEY)"
    alter = "ALTER TABLE t MODIFY k VARCHAR(5) COLLATE utf8mb4_nopad_bin"
    log = write_log(tmp_path / "log", create, [inserted(table, ["a "])], alter, [inserted(table, ["a"])])

    assert OurTables(ibbmaster.open(log).engine).answer("SELECT k FROM d.t").rows == [b"\x01a", b"\x02a "]


def test_a_position_between_the_halves_of_an_xa_transaction_is_read_on_from() -> None:
    directory = FIXTURES / "ddl-trx-xa"
    ours = OurTables(ibbmaster.open(directory).engine)
    prepared = [group.end for group in groups_of(ours) if group.gtid_event[GTID_FLAGS_OFFSET] & GtidFlag.PREPARED_XA]
    frozen = [ours.snapshot(place) for place in prepared]
    for snapshot in frozen:
        everything(ours, snapshot)
    found = everything(ours, ours.snapshot())

    assert len(frozen) > 1
    ours.reader = TableReader(ours.engine, ours)
    assert found == everything(ours, ours.snapshot())


def test_rows_above_what_they_may_take_are_refused_with_the_number() -> None:
    ours = OurTables(ibbmaster.open(FIXTURES / "types-full-crc32").engine)
    ours.reader = TableReader(ours.engine, ours, bytes_max=30_000)

    with pytest.raises(
        RefusedError, match=r"types.lobs: .* its rows take \d+ bytes, which is too much: .* may take 30000"
    ):
        ours.answer("SELECT * FROM types.lobs")
    assert len(ours.answer("SELECT * FROM types.ints").rows) == 17


def test_rows_follow_a_log_that_grows(tmp_path: Path) -> None:
    classic = OurTables(ibbmaster.open(FIXTURES / "types-full-crc32").engine)
    with contextlib.closing(BinlogStore(RealDisk(tmp_path), StoreOptions(is_sparse=True))) as store:
        grown = OurTables(store)
        compared = 0
        for log_range in classic.engine.ranges(LOG_START, classic.engine.end(), size=WHOLE_FILE):
            for number, group in enumerate(classic.engine.groups_in(log_range)):
                if group.gtid is None:
                    continue
                store.write_direct(group.gtid, group.gtid_event, [b"".join(map(bytes, group.body))])
                if number % 25 == 7:
                    assert everything(grown, grown.snapshot()) == everything(classic, classic.snapshot(group.end))
                    compared += 1
        assert compared > 4


def test_frozen_positions_stay_and_others_go() -> None:
    ours = OurTables(ibbmaster.open(FIXTURES / "types-full-crc32").engine)
    places = sorted(random.sample(places_in(ours)[10:], 12))
    frozen = [ours.snapshot(place) for place in places[:6]]
    for snapshot in frozen:
        everything(ours, snapshot)
    for place in places[6:]:
        everything(ours, ours.snapshot(place))

    kept = {fold.position for fold in ours.reader._folds}
    assert {snapshot.end for snapshot in frozen} <= kept
    assert len(kept) <= 7  # the last position, too


def all_at_once(ours: OurTables, snapshot) -> dict[str, object]:
    """As `everything`, with a reader that is asked for many tables."""
    ours.reader = TableReader(ours.engine, ours)
    ours.reader._asked.update((str(number), "") for number in range(ALONE_MAX))
    return everything(ours, snapshot)


@pytest.mark.parametrize("name", ["ddl-trx-xa", "types-minimal-none", "ddl-trx-xa-none-compressed"])
def test_a_table_that_is_read_alone_has_the_rows_that_it_has_beside_all_others(name: str) -> None:
    ours = OurTables(ibbmaster.open(FIXTURES / name).engine)
    for place in [places_in(ours)[-1], *random.sample(places_in(ours), 2)]:
        assert everything(ours, ours.snapshot(place), is_each_alone=True) == all_at_once(ours, ours.snapshot(place))


def test_foreign_keys_of_other_tables_change_the_rows_of_one_that_is_read_alone(tmp_path: Path) -> None:
    columns = {"id": "int", "p": "int"}
    tables = [written_table(f"d.t{no}", columns, table_id=no, primary_key=["id"]) for no in range(4)]
    creates = [
        f"CREATE TABLE t{no} (id INT PRIMARY KEY, p INT{key})"
        for no, key in enumerate(
            ["", *(f", FOREIGN KEY (p) REFERENCES t{no} (id) ON DELETE CASCADE" for no in (0, 1)), ""]
        )
    ]
    rows = [[inserted(table, [1, 1])] for table in tables]
    for changes in ([], [[deleted(tables[0], [1, 1])]]):
        log = write_log(tmp_path / f"log{len(changes)}", *creates, *rows, *changes)
        ours = OurTables(ibbmaster.open(log).engine)
        found = everything(ours, ours.snapshot(), is_each_alone=True)
        assert found == all_at_once(ours, ours.snapshot())
        assert {name for name, rows in found.items() if not rows} == ({"d.t0", "d.t1", "d.t2"} if changes else set())


def test_other_tables_than_that_of_a_query_are_not_read(tmp_path: Path) -> None:
    tables = [written_table(f"d.t{no}", {"id": "int"}, table_id=no, primary_key=["id"]) for no in range(6)]
    creates = [f"CREATE TABLE t{no} (id INT PRIMARY KEY)" for no in range(6)]
    log = write_log(tmp_path / "log", *creates, *([inserted(table, [no])] for no, table in enumerate(tables)))
    ours = OurTables(ibbmaster.open(log).engine)
    snapshot = ours.snapshot()

    for no in range(6):
        assert len(ours.answer(f"SELECT id FROM d.t{no}", snapshot=snapshot).rows) == 1
        kept = [len(fold.kept.numbers()) for fold in ours.reader._folds]
        assert kept == ([1] * (no + 1) if no < ALONE_MAX else [6])
