from collections.abc import Iterator
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.api.writing import WritableLog
from ibbmaster.errors import DuplicateGtidError, EventError, GtidError, GtidOrderError
from ibbmaster.replication.event.group import GroupBoundary
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag, decode_gtid_event
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.query import decode_query
from ibbmaster.storage.disk.local import RealDisk
from tests.written_log import append_all

IBB = Path(__file__).parents[2] / "fixtures" / "ibb"
CREATE = "CREATE TABLE shop.orders (id INT PRIMARY KEY)"
INSERT = "INSERT INTO shop.orders VALUES (1)"


@pytest.fixture
def log(tmp_path) -> Iterator[WritableLog]:
    with ibbmaster.create(tmp_path / "log") as made:
        yield made


def types(group):
    return [event.type for event in group.events()]


def data_of(group):
    return [event.data for event in group.events()]


def flags(group):
    return decode_gtid_event(next(group.events()).data).flags


def only(log):
    (group,) = log.groups()
    return group


# SQL texts -----------------------------------------------------------------------------------


def test_texts_that_change_rows_are_one_transaction(log):
    texts = [INSERT, "-- note\n update shop.orders SET id = 2"]
    position = log.append("0-7-1", texts, database="shop", timestamp=1_000)
    group = only(log)
    assert group.start == position
    assert types(group) == ["GTID", "QUERY", "QUERY", "XID"]
    assert flags(group) == GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL
    assert {(event.header.server_id, event.header.timestamp) for event in group.events()} == {(7, 1_000)}
    assert [decode_query(event.data).database for event in group.events() if event.type == "QUERY"] == [b"shop"] * 2


def test_what_is_logged_has_the_time_of_the_clock_unless_told(log):
    import time

    before = int(time.time())
    log.append("0-1-1", INSERT)
    assert before <= only(log).timestamp <= time.time()


REFUSED = {
    "events without an end": ([bytes.fromhex("00000000a00100000015000000000000000000") + b"hi"], "no end"),
    "bytes that are no event": ([b"nonsense"], "event header of 8 bytes"),
    "an event with another size": ([bytes(9) + b"\x13" + bytes(12)], "event 0 .* 22 bytes and says it has 19"),
}


@pytest.mark.parametrize(("parts", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_group_or_is_no_gtid_is_refused_and_nothing_is_logged(log, parts, message):
    with pytest.raises(EventError, match=message):
        log.append("0-1-1", parts)
    with pytest.raises(GtidError, match="'one' is not a valid GTID"):
        log.append("one", INSERT)
    assert list(log) == []


# Events --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["domains", "large-groups", "xa-and-ddl"])
def test_a_log_copied_event_by_event_is_the_same_log(tmp_path, name):
    with ibbmaster.open(IBB / name) as source, ibbmaster.create(tmp_path / "copy", gtid_strict=False) as copy:
        append_all(copy, source)
        copy.sync()
        assert list(map(data_of, copy)) == list(map(data_of, source))
        assert copy.position == source.position
    assert list(ibbmaster.open(tmp_path / "copy").verify()) == []


def test_events_without_a_gtid_event_get_the_flags_that_their_end_asks_for(log):
    source = list(ibbmaster.open(IBB / "types").groups(until="0-1-60"))
    for number, group in enumerate(source, start=1):
        log.append(f"0-1-{number}", data_of(group)[1:])
    ends = [[flags(group) & GtidFlag.STANDALONE for group in groups] for groups in (log, source)]
    assert ends[0] == ends[1]
    assert len(set(ends[0])) == 2


# Groups in pieces ----------------------------------------------------------------------------


def test_a_group_comes_in_pieces_and_is_seen_when_it_is_committed(log):
    with log.begin(server_id=3) as group:
        group.write(INSERT)
        group.savepoint("before")
        group.write("DELETE FROM shop.orders")
        group.roll_back_to("before")
        group.write("UPDATE shop.orders SET id = 2")
        assert list(log) == []
        position = group.commit("0-3-1")
    found = only(log)
    assert found.start == position
    assert [event.describe() for event in found.events()] == [
        "BEGIN GTID 0-3-1",
        INSERT,
        "UPDATE shop.orders SET id = 2",
        "COMMIT /* xid=1 */",
    ]


def test_an_exception_rolls_a_group_back(log):
    group = log.begin()
    group.write(INSERT)
    with pytest.raises(ZeroDivisionError), group:
        group.write(1 / 0)
    assert list(log) == []
    assert log.status.open_groups == 0
    with pytest.raises(ibbmaster.StoreError, match="committed, prepared or given up before"):
        group.write(INSERT)


def test_a_group_that_is_forgotten_is_rolled_back_and_told(log):
    with pytest.raises(ibbmaster.StoreError, match="neither committed nor rolled back"), log.begin() as group:
        group.write(INSERT)
    with log.begin() as group:
        group.write(INSERT)
        group.roll_back()
    assert list(log) == []


def test_bytes_may_be_cut_anywhere(log):
    source = data_of(next(iter(ibbmaster.open(IBB / "large-groups").groups(after="0-1-20"))))
    body = b"".join(source[1:])
    with log.begin() as group:
        for offset in range(0, len(body), 1_234_567):
            group.write(body[offset : offset + 1_234_567])
        group.commit("0-1-1", source[0])
    assert b"".join(data_of(only(log))[1:]) == body


def test_a_text_that_is_no_transaction_is_refused_inside_one(log):
    with log.begin() as group:
        with pytest.raises(ibbmaster.StoreError, match="is a group by itself"):
            group.write(CREATE)
        group.roll_back()


def test_a_prepared_transaction_waits_for_its_end_also_after_a_restart(tmp_path):
    with ibbmaster.create(tmp_path) as log:
        for name in ("one", "two"):
            with log.begin() as group:
                group.write(INSERT)
                group.prepare(name)
        assert [xid.gtrid for xid in log.prepared] == [b"one", b"two"]
    with ibbmaster.open(tmp_path, writable=True) as log:
        log.xa_rollback("one")
        log.xa_commit("two", "0-1-1")
        assert log.prepared == []
        assert str(log.position) == "0-1-1"
        with pytest.raises(ibbmaster.StoreError):
            log.xa_commit("one", "0-1-2")


TEXTS = {  # name: (what is done to a group, the texts that stay in it)
    "one text": (lambda group: group.write(INSERT), [INSERT]),
    "a text behind a savepoint": (
        lambda group: (group.write(INSERT), group.savepoint("a"), group.write(INSERT)),
        2 * [INSERT],
    ),
    "a text in front of bytes that are taken back": (
        lambda group: (group.write(INSERT), group.savepoint("a"), group.write(b"bytes"), group.roll_back_to("a")),
        [INSERT],
    ),
    "a text behind bytes that are taken back": (
        lambda group: (group.savepoint("a"), group.write(b"bytes"), group.roll_back_to("a"), group.write(INSERT)),
        [INSERT],
    ),
}


@pytest.mark.parametrize("is_xa", [False, True])
@pytest.mark.parametrize(("act", "texts"), TEXTS.values(), ids=TEXTS)
def test_a_transaction_of_texts_has_an_end_however_it_is_committed(log, act, texts, is_xa):
    with log.begin() as group:
        act(group)
        if is_xa:
            group.prepare("one")
            log.xa_commit("one", "0-1-1")
        else:
            group.commit("0-1-1")
    first, *events = only(log).events()
    boundary = GroupBoundary(first.data[GTID_FLAGS_OFFSET])
    ends = [boundary.ends_with(decode_event_header(event.data), event.data) for event in events]
    assert ends == [False] * len(texts) + [True]
    assert [event.describe() for event in events[:-1]] == texts


def test_a_prepared_group_whose_texts_are_all_taken_back_is_empty(log):
    with log.begin() as group:
        group.savepoint("a")
        group.write(INSERT)
        group.roll_back_to("a")
        with pytest.raises(ibbmaster.StoreError, match="has a transaction"):
            group.prepare("one")
        group.roll_back()


# Order and threads ---------------------------------------------------------------------------


# As mysql-test/suite/binlog_in_engine/rpl_out_of_order_gtid.test
def test_a_gtid_that_is_not_newer_is_refused(log):
    log.append("0-1-2", INSERT, timestamp=1)
    with pytest.raises(DuplicateGtidError):
        log.append("0-1-2", INSERT, timestamp=1)
    with pytest.raises(GtidOrderError):
        log.append("0-1-1", INSERT)
    assert str(log.position) == "0-1-2"


# Files ---------------------------------------------------------------------------------------


def test_files_are_ended_purged_and_reset(tmp_path):
    with ibbmaster.create(tmp_path, max_file_bytes="64K", state_interval_bytes="16K", has_background=False) as log:
        for number in range(1, 5):
            log.append(f"0-1-{number}", INSERT)
            log.flush()
        names = [file.name for file in log.files]
        assert names[:4] == [f"binlog-{number:06d}.ibb" for number in range(4)]
        assert log.purge(to=names[1]).names == (names[0],)
        assert log.purge(before=0).names == ()
        assert log.purge(max_total="64K").file_nos == (1, 2, 3)
        with pytest.raises(ibbmaster.ConfigurationError, match="expected the name of a file"):
            log.purge(to="first")
        with pytest.raises(ibbmaster.ConfigurationError, match="is not a size"):
            log.purge(max_total="all")
        log.reset("0-1-100")
        assert (str(log.position), list(log)) == ("0-1-100", [])
        log.append("0-1-101", INSERT)
    assert list(ibbmaster.open(tmp_path).verify()) == []


def test_closing_twice_does_nothing_and_a_closed_log_takes_nothing(tmp_path):
    log = ibbmaster.create(tmp_path)
    for _ in range(2):
        log.close()
    with pytest.raises(ibbmaster.StoreError):
        log.append("0-1-1", INSERT)
    assert not RealDisk(tmp_path).is_locked()
