import threading
from contextlib import closing

import pytest

import ibbmaster
from ibbmaster.errors import ChecksumError, StoreError
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.page import PAGE_SIZE, verify_page
from ibbmaster.testkit import FixturePrimary, fixture_log
from ibbmaster.testkit.fixture_logs import TORN, expect_sound


@pytest.fixture
def left(monkeypatch):
    found = {}

    def recover(disk, *args, **options):
        found.clear()
        found.update({name: (disk.directory / name).read_bytes() for name in disk.list()})
        return BinlogStore(disk, *args, **options)

    monkeypatch.setattr("ibbmaster.testkit.fixture_logs.BinlogStore", recover)
    return found


def statements(log):
    return [(str(group.gtid), [event.data[-3:] for event in group.events()]) for group in log.groups()]


def begun(path, **options):
    log = fixture_log(path, **options)
    for number in range(1, 40):
        log.append(f"0-1-{number}", f"INSERT INTO shop.t VALUES ({number}, REPEAT('x', 1000)) /* {'x' * 1000} */")
    return log


@pytest.mark.parametrize("torn", TORN)
def test_what_was_durable_is_there_and_nothing_of_what_was_torn(tmp_path, left, torn):
    with begun(tmp_path) as log:
        before, end = statements(log), log.position
        log.crash(torn)
        assert statements(log) == before
        assert log.position == end
        assert log.recovered[0] > 0  # records that were in no file
        expect_sound(log)
        log.append("0-1-40", "INSERT INTO shop.t VALUES (40, '')")  # its number was not used up
        log.crash(torn)
        assert statements(log)[:-1] == before
        assert str(log.position) == "0-1-40"


def test_half_of_a_record_is_in_the_redo_log(tmp_path, left):
    with begun(tmp_path) as log:
        log.crash("redo")
    redo = b"".join(left[name] for name in SEGMENT_NAMES)
    last = redo.rindex(b"INSERT INTO shop.t VALUES (39")
    assert redo[last:].split(b"*/")[1].strip(b"\0"), "something of it"
    assert b"ibbmaster.torn VALUES ('never')" not in redo


def test_half_of_the_pages_are_in_their_file(tmp_path, left):
    with begun(tmp_path) as log:
        log.crash("pages")
    file = left["binlog-000000.ibb"]
    pages = [file[start : start + PAGE_SIZE] for start in range(0, len(file), PAGE_SIZE)]
    torn = []
    for number, page in enumerate(pages):
        try:
            verify_page(page, LogPosition.on_page(0, number))
        except ChecksumError:
            torn.append(number)
    assert torn, "a page whose second half is not there"


def test_pieces_of_a_large_group_are_there_without_its_end(tmp_path, left):
    with begun(tmp_path) as log:
        log.crash("group")
        log.append("0-1-40", "DELETE FROM shop.t")
        assert str(log.position) == "0-1-40"
    redo = b"".join(left[name] for name in SEGMENT_NAMES)
    assert redo.index(bytes(10_000), redo.rindex(b"INSERT INTO shop.t VALUES (39"))


def test_who_writes_meanwhile_waits_until_it_is_there_again():
    with FixturePrimary() as primary:
        table = primary.table("shop.t", id="int primary key")
        errors = []

        def write():
            try:
                for number in range(300):
                    table.insert(id=number)
                    if number % 100 == 50:
                        primary.ddl(f"CREATE DATABASE d{number}")
                        primary.log.flush()
            except Exception as error:
                errors.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        crashes = 0
        while writer.is_alive() or crashes < len(TORN):
            written = len(table)
            primary.log.crash(TORN[crashes % len(TORN)])
            crashes += 1
            while writer.is_alive() and len(table) < written + 10:
                pass
        writer.join()
        assert errors == []
        assert [str(group.gtid) for group in primary.log.groups()] == [f"0-1-{number}" for number in range(1, 306)]
        assert len(table) == 300


@pytest.mark.parametrize("torn", TORN)
def test_a_transaction_that_is_open_ends_with_the_primary(torn, monkeypatch):
    monkeypatch.setattr("ibbmaster.testkit.fixture_logs.OPEN_S", 0.01)
    with FixturePrimary() as primary:
        table = primary.table("shop.t", id="int primary key")

        def use():
            with primary.transaction():
                table.insert(id=1)
                primary.log.crash(torn)

        with pytest.raises(StoreError):
            use()
        assert table.rows == []
        table.insert(id=2)
        assert table.rows == [{"id": 2}]


def test_a_prepared_transaction_outlives_it():
    with FixturePrimary() as primary:
        table = primary.table("shop.t", id="int primary key")
        with primary.transaction() as transaction:
            table.insert(id=1)
            transaction.prepare("x")
        primary.log.crash("redo")
        primary.xa_commit("x")
        assert table.rows == [{"id": 1}]
        assert len(list(primary.log.groups())) == 3


def test_a_log_is_locked_while_it_is_there_and_free_when_it_is_closed(tmp_path):
    with fixture_log(tmp_path) as log:
        log.crash("pages")
        with pytest.raises(ibbmaster.BusyError):
            fixture_log(tmp_path)
    with closing(fixture_log(tmp_path)):
        pass
