import itertools
import shutil
import struct
import zlib
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from ibbmaster.errors import DuplicateGtidError, EventError, GtidOrderError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.classic.convert import import_groups
from ibbmaster.logs.classic.exporting import LogRead
from ibbmaster.logs.log.gtid_order import KEPT_BYTES_MAX, Content
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.replication.event.control import encode_xid
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.xa import Xid
from tests.built_logs import CLASSIC
from tests.case_table import rows_of
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import event_offsets, groups_behind, make_event, make_gtid_event, split_events
from tests.machinery.importing import import_classic
from tests.machinery.stores import bytes_at, faults_at, open_files
from tests.written_log import inserted

SIZES = {"small": 40, "large": 90_000}  # in the commit record; out of band
OPTIONS = StoreOptions(max_file_bytes=1 << 18, state_interval_bytes=1 << 15, spill_bytes=20_000, oob_piece_bytes=30_000)

XIDS = itertools.count(1)


gtid = Gtid.parse


def body_of(size, fill=1):
    return [make_event(EventType.USER_VAR, 1, bytes([fill]) * size)]


def write(store, text, size=40, fill=1):
    store.write_direct(gtid(text), make_gtid_event(gtid(text)), body_of(size, fill))


@contextmanager
def open_group(store, size, fill):
    group = store.open_group()
    try:
        for piece in body_of(size, fill):
            group.write(piece)
        yield group
    finally:
        group.abandon()


def in_pieces(store, text, size=40, fill=1):
    with open_group(store, size, fill) as group:
        group.commit(gtid(text), make_gtid_event(gtid(text)))


def in_two_phases(store, text, size=40, fill=1):
    xid = Xid(format_id=1, gtrid=str(next(XIDS)).encode(), bqual=b"")
    with open_group(store, size, fill) as group:
        group.prepare(xid)
    try:
        store.xa_commit(xid, gtid(text), make_gtid_event(gtid(text)))
    except GtidOrderError:
        assert xid in store.xa_recover()  # it may be committed with another GTID
        store.xa_rollback(xid)
        raise


WAYS = [write, in_pieces, in_two_phases]


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


def test_a_group_that_is_not_durable_yet_and_equal_bytes_are_known_again():
    with BinlogStore(MemoryDisk(), StoreOptions(max_file_bytes=1 << 20, durability=Durability.LATER)) as store:
        write(store, "0-1-1")
        with pytest.raises(DuplicateGtidError):
            write(store, "0-1-1")
    broken = [HEAD, make_event(EventType.QUERY, 1, b"")]
    assert Content(broken).is_same(Content(broken))
    with pytest.raises(EventError, match="QUERY of 19 bytes"):
        Content(broken).is_same(Content(group(3)))


# As mysql-test/suite/binlog_in_engine/binlog_in_engine_restart.test
@pytest.mark.parametrize("is_crash", [False, True])
def test_after_a_restart_the_log_still_knows_what_it_has(is_crash):
    disk = MemoryDisk()
    store = BinlogStore(disk, OPTIONS)
    for number in range(1, 30):
        write(store, f"0-1-{number}", 9000)
    if not is_crash:
        store.close()
    with BinlogStore(MemoryDisk(disk.files), OPTIONS) as store:
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


def test_a_large_group_that_is_refused_holds_no_file(store):
    write(store, "0-1-5")
    with pytest.raises(GtidOrderError):
        write(store, "0-1-4", 90_000)
    assert store.status().open_groups == 0


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


END = Query(thread_id=3, seconds=1, error_code=0, status=b"", database=b"", text=b"COMMIT")
FILE_BYTES = 1 << 20
SMALL_PIECES = {"max_file_bytes": FILE_BYTES, "oob_piece_bytes": 1 << 16}


def log_of(files, directory):
    directory.mkdir(exist_ok=True)
    with closing(RealDisk(directory)) as disk:
        import_classic(files, disk, max_file_bytes=64 << 10, state_interval_bytes=16 << 10, append=True)
    return bytes_at(directory)


def with_other_contents(path, wanted, other):
    data = bytearray(path.read_bytes())
    found = data.index(wanted)
    start, end = next(place for place in pairwise([*event_offsets(data), len(data)]) if found < place[1])
    data[found : found + len(wanted)] = other
    struct.pack_into("<I", data, end - 4, zlib.crc32(data[start : end - 4]))
    path.write_bytes(data)


@pytest.fixture
def captured(tmp_path):
    names = [f"binlog.{number:06d}" for number in (1, 2, 3)]
    return [Path(shutil.copy(CLASSIC / "11.8" / "domains" / name, tmp_path / name)) for name in names]


def test_files_that_continue_a_log_in_one_domain_only_are_refused_before_anything_is_written(tmp_path, captured):
    before = log_of(captured[:1], tmp_path / "ibb")
    with pytest.raises(StoreError, match="they do not continue it"):
        log_of(captured[2:], tmp_path / "ibb")
    assert bytes_at(tmp_path / "ibb") == before


@pytest.mark.parametrize("is_of_gtid_event", [False, True], ids=["in a statement", "in the GTID event"])
def test_groups_that_the_log_has_with_other_contents_are_refused_before_anything_is_written(
    tmp_path, captured, is_of_gtid_event
):
    before = log_of(captured[:1], tmp_path / "ibb")
    if is_of_gtid_event:
        data = captured[0].read_bytes()
        start = next(at for at in event_offsets(data) if data[at + 4] == EventType.GTID)
        *told, flags = data[start + 19 : start + 32]  # number, domain and flags of the first group
        with_other_contents(captured[0], bytes((*told, flags)), bytes((*told, flags ^ GtidFlag.DDL)))
    else:
        with_other_contents(captured[0], b"CREATE", b"create")
    with pytest.raises(
        StoreError, match=r"another group \d+-\d+-\d+, at binlog-000000.ibb offset \d+, than .* at binlog"
    ):
        log_of(captured, tmp_path / "ibb")
    assert bytes_at(tmp_path / "ibb") == before


def test_groups_that_the_log_has_in_another_order_of_its_domains_are_passed_over(tmp_path, captured):
    log_of(captured[:2], tmp_path / "ibb")
    with closing(RealDisk(tmp_path / "ibb")) as disk:
        groups = groups_behind(open_files(disk))
    (tmp_path / "sorted").mkdir()
    with closing(RealDisk(tmp_path / "sorted")) as disk, BinlogWriter(disk) as writer:
        for gtid, data in sorted(groups, key=lambda group: group[0].domain_id):
            event, *body = split_events(data)
            writer.write_group(gtid, event, body)
    with closing(RealDisk(tmp_path / "sorted")) as disk:
        report = import_classic(captured, disk, append=True)
    assert report.skipped_count == len(groups)
    assert report.group_count > 0


MEETINGS = rows_of(__file__, "meetings")


def written(directory, before, said):
    """A log of groups as `MEETINGS` has them; each fourth of them is large."""
    directory.mkdir()
    with (
        closing(RealDisk(directory)) as disk,
        BinlogWriter(disk, initial_state=GtidState.parse(before), **SMALL_PIECES, gtid_strict=False) as writer,
    ):
        for name in said.split():
            gtid, how = Gtid.parse(name.rstrip("rxm")), name[-1]
            is_replica = how == "r"
            table = written_table("d.t", {"id": "int", "c": "longtext"}, table_id=9 if is_replica else 4)
            text = "x" * (1_500_000 if gtid.seq_no % 4 == 0 else 20) + how * (how == "x")
            events = inserted(table, [gtid.seq_no, text]) * (2 if how == "m" else 1)
            if is_replica:
                events.append(encode_query(END, server_id=gtid.server_id))
            else:
                events = [
                    make_event(EventType.ANNOTATE_ROWS, gtid.server_id, b"INSERT"),
                    *events,
                    encode_xid(7, server_id=gtid.server_id),
                ]
            flags = GtidFlag.WAITED if is_replica else GtidFlag.TRANSACTIONAL
            writer.write_group(gtid, encode_gtid_event(GtidEvent(gtid=gtid, flags=flags)), events)
    return directory


class CountedRead(LogRead):
    count = 0

    def groups(self, take=None):
        CountedRead.count += 1
        return super().groups(take)

    def from_file(self, file_no):
        return CountedRead(self._log, file_no)


@pytest.mark.parametrize(
    ("logged", "before", "added", "outcome"), [row[1:] for row in MEETINGS], ids=[row[0] for row in MEETINGS]
)
def test_what_is_added_is_passed_over_written_or_refused(tmp_path, monkeypatch, logged, before, added, outcome):
    monkeypatch.setattr(CountedRead, "count", 0)
    archive = written(tmp_path / "archive", "", logged)
    files = bytes_at(archive)
    source = CountedRead(open_files(written(tmp_path / "added", before, added)))
    with closing(RealDisk(archive)) as disk:
        if not outcome[0].isdigit():
            with pytest.raises(StoreError, match=outcome):
                import_groups(source, disk, max_file_bytes=FILE_BYTES, append=True)
            assert bytes_at(archive) == files
            return
        faults = len(faults_at(disk))  # numbers that step back
        report = import_groups(source, disk, max_file_bytes=FILE_BYTES, append=True)
        assert (report.skipped_count, report.group_count, CountedRead.count) == tuple(map(int, outcome.split()))
        assert len(faults_at(disk)) == faults
        assert import_groups(source, disk, max_file_bytes=FILE_BYTES, append=True).group_count == 0
