import random
import struct
import tracemalloc

import pytest

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.group_writer import GroupWriter
from ibbmaster.logs.store.writer import BATCH_PAGES, ROOM_PAGES, BinlogWriter, PageWriter
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.appender import PageChange
from ibbmaster.storage.ibb.file_header import decode_file_header
from tests.built_logs import sealed_page
from tests.machinery.events import groups_behind, gtid_of, make_gtid_event, new_group
from tests.machinery.log_checker import check_log
from tests.machinery.stores import bytes_at, faults_at, open_files

PAGE_SIZE = 16384
DATA_SIZE = 16380
FILE_BYTES_MIN = 4 * PAGE_SIZE

# Vector A of the format description: page 1, used part. A full state, and GTID 0-1-1 with a CREATE TABLE.
VECTOR_A = bytes.fromhex(
    """
    42 02 00 00 00 41 63 00 00 00 f1 53 65 a2 01 00 00 00 26 00 00 00 00 00 00 00 08 00 01 00 00 00
    00 00 00 00 00 00 00 00 21 00 00 00 00 00 00 00 f1 53 65 02 01 00 00 00 3c 00 00 00 00 00 00 00
    00 00 07 00 00 00 00 00 00 00 04 00 00 00 00 74 65 73 74 00 43 52 45 41 54 45 20 54 41 42 4c 45
    20 74 31 20 28 61 20 49 4e 54 29
    """
)
VECTOR_A_GTID_EVENT, VECTOR_A_QUERY = VECTOR_A[9:47], VECTOR_A[47:]
NAME = "binlog-000007.ibb"


def page(directory, file_no, page_no):
    return (directory / f"binlog-{file_no:06d}.ibb").read_bytes()[page_no * PAGE_SIZE :][:PAGE_SIZE]


def checksum(directory, file_no, page_no):
    value: int = struct.unpack("<I", page(directory, file_no, page_no)[DATA_SIZE:])[0]
    return value


def read_groups(directory, state=GtidState()):  # noqa: B008
    return groups_behind(open_files(directory), str(state.position()))


def check(directory, logged):
    found = check_log(bytes_at(directory))
    assert [Gtid(domain_id=d, server_id=s, seq_no=n) for d, s, n in (group.gtid for group in found.groups)] == logged
    return found


def test_a_fresh_log_has_a_header_an_empty_state_and_the_next_file_ready(tmp_path):
    with BinlogWriter(RealDisk(tmp_path), max_file_bytes=FILE_BYTES_MIN, state_interval_bytes=8 * PAGE_SIZE) as writer:
        assert writer.end == (0, PAGE_SIZE + 5)
        assert writer.state == GtidState()
    first, second = (tmp_path / "binlog-000000.ibb").read_bytes(), (tmp_path / "binlog-000001.ibb").read_bytes()
    assert first[:16] == bytes.fromhex("fe fe 0d 01 0e 00 00 00 01 00 00 00 00 00 00 00")
    assert first[40:48] == bytes.fromhex("08 00 00 00 00 00 00 00"), "the interval is in pages"
    assert first[56:64] == bytes.fromhex("ff ff ff ff ff ff ff ff")
    assert first[DATA_SIZE:PAGE_SIZE] == bytes.fromhex("dd 35 53 6a")
    assert first[PAGE_SIZE : PAGE_SIZE + 6] == bytes.fromhex("42 02 00 00 00 00")
    assert len(first) == len(second) == FILE_BYTES_MIN
    assert not any(second)


def test_a_small_group_is_one_record_as_in_vector_a(tmp_path):
    with BinlogWriter(RealDisk(tmp_path), max_file_bytes=FILE_BYTES_MIN) as writer:
        ref = writer.write_group(gtid_of(1), VECTOR_A_GTID_EVENT, [VECTOR_A_QUERY[:7], VECTOR_A_QUERY[7:]])
        assert ref == LogPosition(0, 16389)
        assert writer.end == (0, PAGE_SIZE + 107)
    assert page(tmp_path, 0, 1)[:107] == VECTOR_A
    assert checksum(tmp_path, 0, 1) == 0xD5E9CE16


def test_an_out_of_band_group_is_that_of_the_worked_example(tmp_path):
    event = VECTOR_A_GTID_EVENT[:31] + b"\x0c" + VECTOR_A_GTID_EVENT[32:]
    sizes = {"max_file_bytes": FILE_BYTES_MIN, "oob_piece_bytes": 45 + 4, "spill_bytes": 0}
    with BinlogWriter(RealDisk(tmp_path), **sizes) as writer:
        group = GroupWriter(writer)
        for letter in b"ABCDEFG":
            group.write(bytes([letter]) * 4)
        assert group.commit(gtid_of(1), event) == LogPosition(0, 16491)
    assert page(tmp_path, 0, 1)[91:107] == bytes.fromhex("43 0d 00 30 00 fa 00 02 00 5a 02 02 47 47 47 47")
    assert checksum(tmp_path, 0, 1) == 0xA0D9042E


@pytest.mark.parametrize("left", range(8))
def test_a_writer_may_go_on_at_any_distance_from_the_page_end(tmp_path, left):
    first = [bytes([1]) * (DATA_SIZE - 5 - 3 - 1 - 38 - left)]
    for name, is_reopened in (("one", False), ("two", True)):
        (tmp_path / name).mkdir()
        writer = BinlogWriter(RealDisk(tmp_path / name), max_file_bytes=FILE_BYTES_MIN)
        writer.write_group(gtid_of(1), make_gtid_event(gtid_of(1)), first)
        if is_reopened:
            writer.close()
            if 0 < left < 4:
                assert page(tmp_path / name, 0, 1)[DATA_SIZE - left : DATA_SIZE] == bytes(left), "padding comes late"
            writer = BinlogWriter(RealDisk(tmp_path / name), max_file_bytes=FILE_BYTES_MIN)
        writer.write_group(*new_group(2))
        writer.close()
        check(tmp_path / name, [gtid_of(1), gtid_of(2)])
    assert bytes_at(tmp_path / "one") == bytes_at(tmp_path / "two")


class Feeder:
    def __init__(self, seed, *, domain_count=3):
        self.rng = random.Random(seed)
        self._domain_count = domain_count
        self.written: list[tuple[Gtid | None, bytes]] = []
        self._seq_no = 0

    def body(self):
        size = self.rng.choice([0, 10, 200, 900, 5000, 16000, 33000, 70000]) + self.rng.randrange(100)
        cuts = sorted(self.rng.randrange(size + 1) for _ in range(self.rng.randrange(4)))
        data = struct.pack("<IBIIIH", 1, 16, 1, 19 + size, 0, 0) + self.rng.randbytes(size)
        return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    def next_gtid(self):
        self._seq_no += 1
        return gtid_of(self._seq_no, self.rng.randrange(self._domain_count), self.rng.randrange(1, 4))

    def feed(self, writer, count):
        for _ in range(count):
            value, body = self.next_gtid(), self.body()
            writer.write_group(value, make_gtid_event(value), body)
            self.written.append((value, make_gtid_event(value) + b"".join(body)))

    @property
    def gtids(self):
        return [value for value, _ in self.written if value is not None]


@pytest.mark.parametrize(("pages", "interval_pages"), [(4, 1), (4, 4), (5, 2), (7, 4), (64, 8)])
@pytest.mark.parametrize("spill_bytes", [0, 3000, 1 << 20])
def test_what_was_written_is_read_over_pages_files_and_reopening(tmp_path, pages, interval_pages, spill_bytes):
    feeder = Feeder(random.randrange(1 << 32))
    sizes = {"max_file_bytes": pages * PAGE_SIZE, "state_interval_bytes": interval_pages * PAGE_SIZE}
    for _ in range(3):
        with BinlogWriter(RealDisk(tmp_path), **sizes, spill_bytes=spill_bytes) as writer:
            assert writer.state == GtidState(feeder.gtids)
            feeder.feed(writer, 25)
            assert writer.state == GtidState(feeder.gtids)
    assert read_groups(tmp_path) == feeder.written
    check(tmp_path, feeder.gtids)
    assert faults_at(tmp_path) == []
    assert open_files(tmp_path).state() == GtidState(feeder.gtids)


def test_a_reopened_writer_goes_on_where_the_log_ends(tmp_path):
    seed = random.randrange(1 << 32)
    options = {"max_file_bytes": 5 * PAGE_SIZE, "state_interval_bytes": 2 * PAGE_SIZE}
    for name, is_reopened in (("one", False), ("many", True)):
        directory = tmp_path / name
        directory.mkdir()
        feeder = Feeder(seed, domain_count=1)  # the order of domains in a state record is open
        writer = BinlogWriter(RealDisk(directory), **options)
        for _ in range(40):
            feeder.feed(writer, 1)
            if is_reopened:
                writer.close()
                writer = BinlogWriter(RealDisk(directory), **options)
        writer.close()
    assert bytes_at(tmp_path / "one") == bytes_at(tmp_path / "many")
    assert len(bytes_at(tmp_path / "one")) > 4


def test_groups_of_several_sessions_may_be_open_at_once(tmp_path):
    rng = random.Random(random.randrange(2**32))
    feeder = Feeder(random.randrange(2**32))
    sizes = {"max_file_bytes": FILE_BYTES_MIN, "state_interval_bytes": PAGE_SIZE, "spill_bytes": 500}
    with BinlogWriter(RealDisk(tmp_path), **sizes) as writer:
        open_groups = [(GroupWriter(writer), bytearray()) for _ in range(5)]
        for _ in range(300):
            index = rng.randrange(5)
            group, data = open_groups[index]
            action = rng.random()
            if action < 0.8:
                piece = rng.randbytes(rng.choice([1, 100, 4000]))
                group.write(piece)
                data += piece
                continue
            if action < 0.9:
                group.abandon()
            else:
                value = feeder.next_gtid()
                group.commit(value, make_gtid_event(value))
                feeder.written.append((value, make_gtid_event(value) + data))
            open_groups[index] = GroupWriter(writer), bytearray()
    assert read_groups(tmp_path) == feeder.written
    assert check(tmp_path, feeder.gtids).piece_sizes


# As mysql-test/suite/binlog_in_engine/purge_restart.test
@pytest.mark.parametrize("left", [0, 3, 4, 100])
def test_a_header_written_inside_the_first_piece_of_a_group_names_the_file_before(tmp_path, left):
    """As the piece begins in file 0; with less than 4 bytes left it begins in file 1."""
    with BinlogWriter(RealDisk(tmp_path), max_file_bytes=FILE_BYTES_MIN, state_interval_bytes=FILE_BYTES_MIN) as writer:
        writer.write_group(*new_group(1, bytes(3 * DATA_SIZE - 5 - 3 * 3 - 1 - 38 - 20_000)))
        writer.write_group(*new_group(2, bytes(20_000 - 2 * 3 + 3 - 1 - 38 - left)))
        assert writer.end == ((0, 4 * PAGE_SIZE - 4 - left) if left else (0, 4 * PAGE_SIZE))
        group = GroupWriter(writer)
        group.write(bytes(40_000))
        header = decode_file_header(page(tmp_path, 1, 0), file_no=1)
        assert header is None or header.oob_file_no == 0
        group.commit(gtid_of(3), make_gtid_event(gtid_of(3)))
    header = decode_file_header(page(tmp_path, 1, 0), file_no=1)
    assert header.oob_file_no == (0 if left >= 4 else 1)
    check(tmp_path, [gtid_of(1), gtid_of(2), gtid_of(3)])


# As mysql-test/suite/binlog_in_engine/binlog_in_engine2.test
def test_pieces_are_at_most_half_a_file_and_as_large_as_was_asked(tmp_path):
    for pages, piece_bytes in ((4, 1 << 20), (64, 100_000)):
        directory = tmp_path / str(pages)
        directory.mkdir()
        sizes = {"max_file_bytes": pages * PAGE_SIZE, "oob_piece_bytes": piece_bytes, "spill_bytes": 1 << 20}
        with BinlogWriter(RealDisk(directory), **sizes) as writer:
            writer.write_group(*new_group(1, bytes(999_999)))
        sizes = check(directory, [gtid_of(1)]).piece_sizes
        assert max(sizes) <= min(pages * PAGE_SIZE // 2, piece_bytes)
        assert max(sizes) > min(pages * PAGE_SIZE // 2, piece_bytes) // 2
        assert sum(sizes) > 999_999


@pytest.mark.usefixtures("alone")
def test_memory_does_not_grow_with_a_group(tmp_path):
    def body():
        for _ in range(40):
            yield bytes(1 << 20)

    with BinlogWriter(RealDisk(tmp_path), is_sparse=True) as writer:
        tracemalloc.start()
        writer.write_group(gtid_of(1), make_gtid_event(gtid_of(1)), body())
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 6 << 20


def test_a_body_that_fails_leaves_the_log_without_its_group(tmp_path):
    def body():
        yield bytes(100_000)
        raise ZeroDivisionError

    with BinlogWriter(RealDisk(tmp_path), max_file_bytes=FILE_BYTES_MIN) as writer:
        writer.write_group(*new_group(1))
        with pytest.raises(ZeroDivisionError):
            writer.write_group(gtid_of(2), make_gtid_event(gtid_of(2)), body())
        writer.write_group(*new_group(3))
        assert str(writer.state) == "0-1-3"
    assert [value for value, _ in read_groups(tmp_path)] == [gtid_of(1), gtid_of(3)]


def test_a_group_is_committed_or_given_up_once(tmp_path):
    with BinlogWriter(RealDisk(tmp_path), max_file_bytes=FILE_BYTES_MIN) as writer:
        group = GroupWriter(writer)
        group.commit(gtid_of(1), make_gtid_event(gtid_of(1)))
        group.abandon()
        for action in (lambda: group.write(b"x"), lambda: group.commit(gtid_of(2), make_gtid_event(gtid_of(2)))):
            with pytest.raises(StoreError, match="committed, prepared or given up"):
                action()


def test_a_gtid_event_that_no_record_can_hold_is_refused_and_the_log_goes_on(tmp_path):
    with BinlogWriter(RealDisk(tmp_path), max_file_bytes=FILE_BYTES_MIN) as writer:
        with pytest.raises(StoreError, match=r"a record of .* bytes"):
            writer.write_group(gtid_of(1), bytes(40_000), ())
        writer.write_group(*new_group(2))
    assert [value for value, _ in read_groups(tmp_path)] == [gtid_of(2)]


# As mysql-test/suite/binlog_in_engine/mariabackup_slave_provision_no_binlog.test
def test_a_new_log_begins_with_the_state_it_is_given(tmp_path):
    before = GtidState.parse("0-2-7,0-1-9,3-3-3")
    with BinlogWriter(RealDisk(tmp_path), initial_state=before, max_file_bytes=FILE_BYTES_MIN) as writer:
        writer.write_group(*new_group(10))
        assert str(writer.state) == "0-2-7,0-1-10,3-3-3"
    with BinlogWriter(RealDisk(tmp_path), initial_state=GtidState.parse("6-6-6")) as writer:
        assert str(writer.state) == "0-2-7,0-1-10,3-3-3", "the state on disk counts more"
    assert check(tmp_path, [gtid_of(10)]).state == {(0, 2): 7, (0, 1): 10, (3, 3): 3}


# As mysql-test/suite/binlog_in_engine/gtid_state.test
@pytest.mark.parametrize("pair_count", [900, 3000, 20_000])
def test_a_state_too_large_for_the_file_size_gets_larger_files(tmp_path, pair_count):
    before = GtidState(gtid_of(2**62, domain_id=2**31 + index) for index in range(pair_count))
    feeder = Feeder(random.randrange(1 << 32))
    options = {"max_file_bytes": FILE_BYTES_MIN, "state_interval_bytes": PAGE_SIZE}
    for _ in range(2):
        with BinlogWriter(RealDisk(tmp_path), initial_state=before, **options) as writer:
            feeder.feed(writer, 60)
    assert read_groups(tmp_path, before) == feeder.written
    assert faults_at(tmp_path) == []
    state = before.copy()
    for value in feeder.gtids:
        state.log(value)
    assert open_files(tmp_path).state() == state
    for count in (1, 60, 119):  # a position in the middle is found, too
        for value in feeder.gtids[:count]:
            before.log(value)
        assert read_groups(tmp_path, before)[-len(feeder.written[count:]) :] == feeder.written[count:]


# As mysql-test/suite/binlog_in_engine/gtid_state2.test
@pytest.mark.parametrize("left", [0, 5, -5], ids=["ends with its page", "ends before", "ends behind"])
def test_a_state_that_ends_about_where_its_page_does_is_one_to_begin_behind(tmp_path, left):
    pair_count = 4094 if left < 0 else 4093  # of 4 bytes each, but for the first one
    before = GtidState(
        gtid_of(1 if index else {0: 20_000, 5: 100, -5: 1}[left], domain_id=100 + index) for index in range(pair_count)
    )
    feeder = Feeder(1)
    with BinlogWriter(RealDisk(tmp_path), initial_state=before, max_file_bytes=64 * PAGE_SIZE) as writer:
        assert writer.end == (0, 2 * PAGE_SIZE - left)  # page 1 begins with the state
        feeder.feed(writer, 10)
    assert read_groups(tmp_path, before) == feeder.written
    assert faults_at(tmp_path) == []


def noted(verb):
    def call(self, name="", *given):
        self.trace.append((verb, name, *(len(one) if isinstance(one, memoryview) else one for one in given)))
        if self.fail_at is not None and len(self.trace) >= self.fail_at:
            raise StoreError(f"{name}: Input/output error")
        getattr(RealDisk, verb)(self, *filter(None, (name,)), *given)

    return call


class TracedDisk(RealDisk):
    """Notes every change; fails from the `fail_at`-th on."""

    def __init__(self, directory, fail_at=None):
        super().__init__(directory)
        self.trace: list[tuple] = []
        self.fail_at = fail_at

    @property
    def writes(self):
        changes = ((given[0] // PAGE_SIZE, given[1] // PAGE_SIZE) for verb, _, *given in self.trace if verb == "write")
        return list(changes)

    create, write, allocate, truncate = map(noted, ("create", "write", "allocate", "truncate"))
    sync, sync_dir = map(noted, ("sync", "sync_dir"))


def test_a_file_is_made_only_when_the_one_before_the_active_is_complete_and_synced(tmp_path):
    disk = TracedDisk(tmp_path)
    with BinlogWriter(disk, max_file_bytes=FILE_BYTES_MIN) as writer:
        Feeder(3).feed(writer, 40)
    last_file_no = writer.end.file_no
    assert last_file_no > 4
    names = [f"binlog-{file_no:06d}.ibb" for file_no in range(last_file_no + 2)]
    assert sorted(disk.list()) == names, "one file is ready ahead"
    for before, after in zip(names, names[2:], strict=False):
        made = disk.trace.index(("create", after))
        last_write = max(index for index, entry in enumerate(disk.trace) if entry[:2] == ("write", before))
        last_sync = max(index for index, entry in enumerate(disk.trace) if entry[:2] == ("sync", before))
        assert last_write < last_sync < made
        assert disk.trace[made + 1 : made + 3] == [("allocate", after, FILE_BYTES_MIN), ("sync_dir", "")]


def test_each_page_is_written_once_but_for_the_last_of_a_flush(tmp_path):
    disk, flushes = TracedDisk(tmp_path), 0
    with BinlogWriter(disk, max_file_bytes=64 * PAGE_SIZE) as writer:
        feeder = Feeder(4)
        for _ in range(12):
            feeder.feed(writer, 20)
            writer.flush()
            flushes += 1
    writes: dict[tuple[str, int], int] = {}
    for verb, name, *given in disk.trace:
        if verb == "write":
            offset, size = given
            assert offset % PAGE_SIZE == size % PAGE_SIZE == 0
            for page_no in range(offset // PAGE_SIZE, (offset + size) // PAGE_SIZE):
                writes[name, page_no] = writes.get((name, page_no), 0) + 1
    assert sum(count - 1 for count in writes.values()) <= flushes + 1


def test_a_second_flush_and_an_idle_writer_write_nothing(tmp_path):
    disk = TracedDisk(tmp_path)
    with BinlogWriter(disk, max_file_bytes=FILE_BYTES_MIN) as writer:
        Feeder(5).feed(writer, 3)
        writer.flush()
        disk.trace.clear()
        writer.flush()
        assert not disk.trace
    with BinlogWriter(disk, max_file_bytes=FILE_BYTES_MIN):
        pass
    assert not disk.trace


def test_after_an_error_of_the_disk_nothing_is_written_any_more(tmp_path):
    disk = TracedDisk(tmp_path / "count")
    disk.directory.mkdir()

    def work(disk):
        with BinlogWriter(disk, max_file_bytes=FILE_BYTES_MIN) as writer:
            feeder = Feeder(6)
            for _ in range(6):
                feeder.feed(writer, 2)
                writer.flush()
        return writer

    work(disk)
    for fail_at in range(1, len(disk.trace) + 1):
        broken = TracedDisk(tmp_path / str(fail_at), fail_at)
        broken.directory.mkdir()
        with pytest.raises(StoreError, match="Input/output error"):
            work(broken)
        assert len(broken.trace) == fail_at


def test_a_writer_that_failed_says_so(tmp_path):
    disk = TracedDisk(tmp_path)
    writer = BinlogWriter(disk, max_file_bytes=FILE_BYTES_MIN)
    Feeder(7).feed(writer, 1)
    disk.fail_at = 0
    with pytest.raises(StoreError, match=r"^binlog-000000.ibb: Input/output error"):
        writer.flush()
    disk.fail_at = None
    for action in (writer.flush, lambda: writer.write_group(*new_group(2))):
        with pytest.raises(StoreError, match=r"not written any further after an error: .*Input/output error"):
            action()
    writer.close()


def test_a_sparse_file_takes_no_room_before_it_is_filled(tmp_path):
    with BinlogWriter(RealDisk(tmp_path), max_file_bytes=1 << 28, is_sparse=True):
        pass
    for path in tmp_path.iterdir():
        assert path.stat().st_size == 1 << 28
        assert path.stat().st_blocks * 512 < 1 << 20


def test_a_size_the_format_does_not_allow_makes_no_file_and_a_closed_writer_takes_nothing(tmp_path):
    with pytest.raises(ConfigurationError):
        BinlogWriter(RealDisk(tmp_path), state_interval_bytes=3 * PAGE_SIZE)
    assert not list(tmp_path.iterdir())
    writer = BinlogWriter(RealDisk(tmp_path), max_file_bytes=FILE_BYTES_MIN)
    writer.close()
    writer.close()
    with pytest.raises(StoreError, match="closed"):
        writer.write_group(*new_group(1))


@pytest.fixture
def disk(tmp_path):
    disk = TracedDisk(tmp_path)
    disk.create(NAME)
    return disk


@pytest.fixture
def pages(disk):
    return PageWriter(disk, 7)


def change(page_no, page_offset, data):
    return PageChange(7, page_no, page_offset, data)


def test_a_batch_is_written_when_a_page_does_not_fit_any_more(tmp_path, disk, pages):
    for page_no in range(2 * BATCH_PAGES + 1):
        pages.place(change(page_no, 0, bytes([page_no]) * DATA_SIZE))
    assert disk.writes == [(0, BATCH_PAGES), (BATCH_PAGES, BATCH_PAGES)]
    pages.write_out()
    expected = b"".join(sealed_page(bytes([page_no]) * DATA_SIZE) for page_no in range(2 * BATCH_PAGES + 1))
    assert (tmp_path / NAME).read_bytes() == expected


def test_a_file_with_data_is_continued(tmp_path, disk):
    (tmp_path / NAME).write_bytes(sealed_page(b"0") + sealed_page(b"begun") + bytes(PAGE_SIZE))
    pages = PageWriter(disk, 7, page_no=1, page_offset=5)
    pages.write_out()
    assert disk.writes == []
    pages.place(change(1, 5, b" before"))
    pages.write_out()
    assert (tmp_path / NAME).read_bytes() == sealed_page(b"0") + sealed_page(b"begun before") + bytes(PAGE_SIZE)


@pytest.mark.parametrize("share", [0, 0.1, 1])
def test_it_makes_no_difference_when_the_pages_are_written(tmp_path, share, pages):
    rng = random.Random(random.randrange(2**32))
    contents = [b""]
    while len(contents) <= 3 * BATCH_PAGES:
        data = rng.randbytes(min(rng.choice([3, 500, 9000, DATA_SIZE]), DATA_SIZE - len(contents[-1])))
        pages.place(change(len(contents) - 1, len(contents[-1]), data))
        contents[-1] += data
        if len(contents[-1]) == DATA_SIZE:
            contents.append(b"")
        if rng.random() < share:
            pages.write_out()
            assert (tmp_path / NAME).read_bytes() == b"".join(sealed_page(page) for page in contents if page)
    pages.place(change(len(contents) - 1, 0, b"short"))
    pages.write_out()
    assert (tmp_path / NAME).read_bytes() == b"".join(map(sealed_page, [*contents[:-1], b"short"]))


def test_room_for_a_kernel_is_made_by_writing_full_pages_alone(tmp_path, disk, pages):
    data = bytes(range(1, 251)) * 70
    place = 0, 0
    for page_no in range(BATCH_PAGES + ROOM_PAGES):
        for offset, size in ((0, 100), (100, DATA_SIZE - 100)):
            memory, start = pages.room(page_no, offset)
            assert len(memory) - start >= (ROOM_PAGES - 1) * PAGE_SIZE
            memory[start : start + size] = data[offset : offset + size]
            place = pages.placed(start + size if offset == 0 else start - offset + PAGE_SIZE)
    assert place == (BATCH_PAGES + ROOM_PAGES, 0)
    pages.place(change(BATCH_PAGES + ROOM_PAGES, 0, b"last"))
    pages.write_out()
    pages.write_out()
    assert (tmp_path / NAME).read_bytes() == sealed_page(data[:DATA_SIZE]) * (BATCH_PAGES + ROOM_PAGES) + sealed_page(
        b"last"
    )
    written = [page for first, count in disk.writes for page in range(first, first + count)]
    assert written == list(range(BATCH_PAGES + ROOM_PAGES + 1))
    assert len(disk.writes) < 5


def test_a_page_that_stays_as_full_pages_are_written_is_written_as_it_has_grown(tmp_path, disk, pages):
    full = BATCH_PAGES - ROOM_PAGES + 1
    for page_no in range(full):
        pages.place(change(page_no, 0, bytes([1]) * DATA_SIZE))
    pages.place(change(full, 0, b"begins"))
    memory, start = pages.room(full, 6)
    assert (start, bytes(memory[:6])) == (6, b"begins")
    assert disk.writes == [(0, full)]
    pages.write_out()
    assert (tmp_path / NAME).read_bytes()[full * PAGE_SIZE :] == sealed_page(b"begins")
