"""A store takes a group only if it is newer than what its domain has, and says what it is if not."""

import itertools

import pytest

from ibbmaster.errors import DuplicateGtidError, EventError, GtidOrderError
from ibbmaster.event.control import encode_xid
from ibbmaster.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.xa import Xid
from ibbmaster.log.gtid_order import KEPT_BYTES_MAX, Content
from ibbmaster.log.purge import PurgeRequest
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import Durability, StoreOptions
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import groups_behind, make_event, make_gtid_event

SIZES = {"small": 40, "large": 90_000}  # in the commit record; out of band
OPTIONS = StoreOptions(max_file_bytes=1 << 18, state_interval_bytes=1 << 15, spill_bytes=20_000, oob_piece_bytes=30_000)

XIDS = itertools.count(1)


gtid = Gtid.parse


def body_of(size, fill=1):
    return [make_event(EventType.USER_VAR, 1, bytes([fill]) * size)]


def write(store, text, size=40, fill=1):
    store.write_direct(gtid(text), make_gtid_event(gtid(text)), body_of(size, fill))


def in_pieces(store, text, size=40, fill=1):
    group = store.open_group()
    try:
        for piece in body_of(size, fill):
            group.write(piece)
        group.commit(gtid(text), make_gtid_event(gtid(text)))
    finally:
        group.abandon()


def in_two_phases(store, text, size=40, fill=1):
    xid = Xid(format_id=1, gtrid=str(next(XIDS)).encode(), bqual=b"")
    group = store.open_group()
    for piece in body_of(size, fill):
        group.write(piece)
    group.prepare(xid)
    try:
        store.xa_commit(xid, gtid(text), make_gtid_event(gtid(text)))
    except GtidOrderError:
        assert xid in store.xa_recover()  # it may be committed with another GTID
        store.xa_rollback(xid)
        raise


def decided_by_the_log(store, text, size=40, fill=1):
    group = store.open_group()
    try:
        for piece in body_of(size, fill):
            group.write(piece)
        group.prepare_internally(Xid(format_id=1, gtrid=str(next(XIDS)).encode(), bqual=b""))
        group.commit(gtid(text), make_gtid_event(gtid(text)))
    finally:
        group.abandon()


WAYS = [write, in_pieces, in_two_phases, decided_by_the_log]


def logged(store):
    store.sync()
    return [str(value) for value, _ in groups_behind(store)]


@pytest.fixture
def store():
    with BinlogStore(MemoryDisk(), OPTIONS) as opened:
        yield opened


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_numbers_only_rise_within_a_domain_and_gaps_are_allowed(store, way, size):
    taken = []
    for text in ("0-1-1", "0-1-2", "0-1-2", "0-1-1", "0-1-5", "0-2-5", "0-2-4", "1-1-1", "0-2-6", "1-2-1", "0-1-6"):
        try:
            way(store, text, size, fill=len(taken))
        except GtidOrderError:
            continue
        taken.append(text)
    assert taken == ["0-1-1", "0-1-2", "0-1-5", "1-1-1", "0-2-6"]
    assert logged(store) == taken
    assert str(store.state()) == "0-1-5,0-2-6,1-1-1"


@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_group_fed_twice_is_told_apart_from_another_one_of_its_gtid(store, first, second, size):
    write(store, "7-1-3")
    first(store, "0-1-1", size)
    write(store, "0-1-9", 5000)
    with pytest.raises(DuplicateGtidError, match=r"0-1-1 is in the log already, with the same events, at binlog-0"):
        second(store, "0-1-1", size)
    with pytest.raises(GtidOrderError, match="with other events") as caught:
        second(store, "0-1-1", size, fill=2)
    assert not isinstance(caught.value, DuplicateGtidError)
    with pytest.raises(GtidOrderError, match="0-1-4 is out of order: domain 0 has sequence numbers up to 9, so the"):
        second(store, "0-1-4", size)
    second(store, "0-1-10", size)
    assert logged(store) == ["7-1-3", "0-1-1", "0-1-9", "0-1-10"]


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_group_with_the_same_body_and_another_gtid_event_was_not_fed_twice(store, size):
    """Whether it was a DDL is no matter of who logs it."""
    write(store, "0-1-1", size)
    event = encode_gtid_event(GtidEvent(gtid=gtid("0-1-1"), flags=GtidFlag.DDL))
    assert len(event) == len(make_gtid_event(gtid("0-1-1")))
    with pytest.raises(GtidOrderError, match="0-1-1 is in the log already, with other events") as caught:
        store.write_direct(gtid("0-1-1"), event, body_of(size))
    assert not isinstance(caught.value, DuplicateGtidError)


def test_a_group_that_is_not_durable_yet_is_known_again():
    with BinlogStore(MemoryDisk(), StoreOptions(max_file_bytes=1 << 20, durability=Durability.LATER)) as store:
        write(store, "0-1-1")
        with pytest.raises(DuplicateGtidError):
            write(store, "0-1-1")


# As mysql-test/suite/binlog_in_engine/binlog_in_engine_restart.test
@pytest.mark.parametrize("is_crash", [False, True])
def test_after_a_restart_the_log_still_knows_what_it_has(is_crash):
    disk = MemoryDisk()
    store = BinlogStore(disk, OPTIONS)
    for number in range(1, 30):
        write(store, f"0-1-{number}", 9000)
    if not is_crash:
        store.close()
    with BinlogStore(MemoryDisk({name: bytes(data) for name, data in disk.files.items()}), OPTIONS) as store:
        for text in ("0-1-29", "0-1-3"):
            with pytest.raises(DuplicateGtidError):
                write(store, text, 9000)
        with pytest.raises(GtidOrderError):
            write(store, "0-2-29")
        write(store, "0-2-30")


def test_a_group_whose_file_is_gone_is_out_of_order(store):
    for number in range(1, 60):
        write(store, f"0-1-{number}", 9000)
    assert store.purge(PurgeRequest(to_file_no=1)).file_nos
    with pytest.raises(GtidOrderError, match="out of order") as caught:
        write(store, "0-1-1", 9000)
    assert not isinstance(caught.value, DuplicateGtidError)


def test_open_groups_may_be_committed_in_another_order_than_they_were_begun_but_not_behind_a_newer_one(store):
    groups = [store.open_group() for _ in range(3)]
    for group in groups:
        group.write(body_of(90_000)[0])
    for group, text in ((groups[2], "0-1-1"), (groups[0], "0-1-2")):
        group.commit(gtid(text), make_gtid_event(gtid(text)))
    with pytest.raises(GtidOrderError):
        groups[1].commit(gtid("0-1-2"), make_gtid_event(gtid("0-1-2")))
    groups[1].commit(gtid("0-1-3"), make_gtid_event(gtid("0-1-3")))
    assert logged(store) == ["0-1-1", "0-1-2", "0-1-3"]


def test_a_large_group_that_is_refused_holds_no_file(store):
    write(store, "0-1-5")
    with pytest.raises(GtidOrderError):
        write(store, "0-1-4", 90_000)
    assert store.status().open_groups == 0


def test_a_lenient_store_takes_what_comes():
    with BinlogStore(MemoryDisk(), StoreOptions(max_file_bytes=1 << 20, gtid_strict=False)) as store:
        for text in ("0-1-1", "0-1-2", "0-1-2", "0-1-1", "0-1-5"):
            write(store, text)
        assert logged(store) == ["0-1-1", "0-1-2", "0-1-2", "0-1-1", "0-1-5"]


HEAD = make_gtid_event(Gtid.parse("0-1-5"))


def group(size, fill=b"x", xid=1, note=b""):
    note_event = [make_event(EventType.ANNOTATE_ROWS, 1, note)] if note else []
    return [HEAD, *note_event, make_event(EventType.USER_VAR, 1, fill * size), encode_xid(xid, server_id=1)]


@pytest.mark.parametrize("size", [10, KEPT_BYTES_MAX + 1])
def test_what_a_replica_logs_is_the_same_however_it_is_cut_and_other_events_are_not(size):
    whole = b"".join(group(size, xid=7, note=b"INSERT"))
    here, again = Content(group(size)), Content([whole[at : at + 1000] for at in range(0, len(whole), 1000)])
    other = Content(group(size, fill=b"y"))
    assert here.is_same(again)
    assert here.digest == again.digest
    assert not here.is_same(other)
    assert here.digest != other.digest
    assert here.difference(other) == "event 1, USER_VAR, differs"
    assert here.difference(Content(group(size)[:-1])) == "event 2 is not there, XID was expected"


def test_equal_bytes_are_the_same_whatever_they_are_and_damage_is_an_error_where_they_differ():
    broken = [HEAD, make_event(EventType.QUERY, 1, b"")]
    assert Content(broken).is_same(Content(broken))
    with pytest.raises(EventError, match="QUERY of 19 bytes"):
        Content(broken).is_same(Content(group(3)))
