import pytest

from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.followed import FollowedDirectory
from ibbmaster.primary.server.dump_opening import DumpOpening
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.events import XID_EVENT, make_gtid_event
from tests.machinery.served_log import ServedLog
from tests.replication.dump.conftest import make_request


def write(store: BinlogStore, *gtids: str) -> None:
    for text in gtids:
        gtid = Gtid.parse(text)
        store.write_direct(gtid, make_gtid_event(gtid), [XID_EVENT])
    store.checkpoint()


@pytest.fixture
def store(tmp_path) -> BinlogStore:
    with BinlogStore(RealDisk(tmp_path)) as store:
        write(store, "0-1-1", "0-1-2")
        yield store


@pytest.fixture
def log(store, tmp_path) -> FollowedDirectory:
    """As another process sees it, which has looked at its end once."""
    log = FollowedDirectory(RealDisk(tmp_path))
    log.state()
    return log


@pytest.fixture
def opening(log) -> DumpOpening:
    return ServedLog(log, "engine").opening


def test_what_the_log_had_when_its_end_was_seen_is_enough_to_begin(opening, store):
    write(store, "0-1-3", "5-1-1")
    for position in ("", "0-1-1", "0-1-2", "5-1-1", "7-1-1"):
        at_once, careful = (
            opening.open(make_request(position), only_cached=only_cached) for only_cached in (True, False)
        )
        assert at_once.groups.position == careful.groups.position
        assert at_once.position == careful.position == GtidPosition.parse(position)


@pytest.mark.parametrize("position", ["0-1-3", "0-1-4", "0-2-1"])
def test_nothing_is_refused_without_a_look_at_the_end(opening, store, position):
    write(store, "0-1-3")
    with pytest.raises(BlockingIOError):
        opening.open(make_request(position), only_cached=True)
    if position == "0-1-3":
        assert opening.open(make_request(position)).position == GtidPosition.parse(position)
        assert opening.open(make_request(position), only_cached=True).position == GtidPosition.parse(position)
    else:
        with pytest.raises(DumpError):
            opening.open(make_request(position))


def test_an_end_before_the_begin_is_taken_for_one_after_a_look(opening, store):
    write(store, "0-1-3")
    request = make_request("0-1-3", until="0-1-1")
    with pytest.raises(BlockingIOError):
        opening.open(request, only_cached=True)
    assert opening.open(request).position == GtidPosition.parse("0-1-3")
