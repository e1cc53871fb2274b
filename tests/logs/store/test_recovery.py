import random

import pytest

from ibbmaster.errors import DamageError, FormatError, IbbMasterError, MissingFileError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.store.redo_log import scan_redo
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.storage.ibb.page import PAGE_SIZE, seal_page
from tests.logs.store.conftest import flipped
from tests.machinery.events import numbers_in, numbers_of
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.stores import SMALL_FILES, feed, new_store, open_files

FIRST = "binlog-000000.ibb"


def log_of(count, *, size=9000, closed):
    """The files of a log with so many groups; closed, so that the redo log is not needed, or as a crash leaves it."""
    disk = SimulatedDisk()
    store = new_store(disk, SMALL_FILES)
    feed(store, range(1, count + 1), size)
    if closed:
        store.close()
    return disk.files()


@pytest.fixture(scope="module")
def closed():
    return log_of(30, closed=True)


@pytest.fixture(scope="module")
def crashed():
    return log_of(30, closed=False)


def last_page_no(data):
    return len(data.rstrip(b"\0")) // PAGE_SIZE - 1


def start(files):
    disk = SimulatedDisk(files)
    return new_store(disk, SMALL_FILES), disk


# As mysql-test/suite/binlog_in_engine/recovery_large.test
def test_whatever_state_the_files_are_in_that_the_redo_log_covers_the_log_is_whole(crashed):
    rng = random.Random(random.randrange(2**32))
    checkpoint = scan_redo(SimulatedDisk(crashed)).checkpoint.end
    covered = [
        (file_no, page_no)
        for file_no in range(3)
        for page_no in range(8)
        if (file_no, page_no) >= (checkpoint.file_no, checkpoint.page_no) and page_no > 0
    ]
    assert len(covered) > 5
    for _ in range(100):
        file_no, page_no = rng.choice(covered)
        name = f"binlog-{file_no:06d}.ibb"
        data = bytearray(crashed[name])
        sector = page_no * PAGE_SIZE + 512 * rng.randrange(32)
        data[sector : sector + 512] = bytes(512)  # as if it had never been written
        store, _ = start({**crashed, name: bytes(data)})
        assert numbers_in(store) == list(range(1, 31)), (name, sector)


def test_a_damaged_last_page_is_refused_nothing_is_cut_and_what_is_before_it_can_be_read(closed):
    name = "binlog-000002.ibb"
    last = last_page_no(closed[name])
    disk = SimulatedDisk(flipped(closed, name, last * PAGE_SIZE + 20))
    with pytest.raises((FormatError, DamageError), match=rf"binlog-000002\.ibb page {last}"):
        new_store(disk, SMALL_FILES)
    assert disk.writes == 0
    log, found = open_files(disk), []
    with pytest.raises(FormatError, match=rf"binlog-000002\.ibb page {last}"):
        found += (group.gtid.seq_no for group in iter(log.groups(log.start_of_file()).next_group, None))
    assert found == list(range(1, len(found) + 1))
    assert len(found) > 20


def test_every_bit_of_a_header_that_a_start_reads_is_guarded(closed):
    for byte in [*range(64), *range(508, 512), *range(PAGE_SIZE - 4, PAGE_SIZE)]:
        for bit in range(8):
            with pytest.raises((FormatError, DamageError), match=r"binlog-000002\.ibb"):
                start(flipped(closed, "binlog-000002.ibb", byte, 1 << bit))


def test_files_that_are_swapped_or_missing_are_refused_by_name(closed, crashed):
    one, two = "binlog-000001.ibb", "binlog-000002.ibb"
    with pytest.raises(FormatError, match="file number"):
        start({**closed, one: closed[two], two: closed[one]})
    with pytest.raises(MissingFileError, match=r"binlog-000001\.ibb is missing"):
        start(without(closed, one))
    with pytest.raises(IbbMasterError, match=r"binlog-00000"):
        start(without(crashed, two, "binlog-000003.ibb"))  # the redo log has changes for them


def without(files, *names):
    return {name: data for name, data in files.items() if name not in names}


# As mysql-test/suite/binlog_in_engine/recovery_no_prealloc.test
def test_a_missing_newest_file_is_refused_as_the_state_would_go_back(closed):
    active = sorted(name for name in closed if name.startswith("binlog-"))[-2:]
    with pytest.raises(IbbMasterError, match="the log ends inside a record"):
        start(without(closed, *active))
    of_whole_records = log_of(29, size=2 * PAGE_SIZE - 200, closed=True)
    newest = sorted(name for name in of_whole_records if name.startswith("binlog-"))[-2:]
    with pytest.raises(IbbMasterError, match=r"redo log|inside a record"):
        start(without(of_whole_records, *newest))


def test_a_start_takes_purged_files_stray_names_and_damage_that_only_a_reader_reaches(closed):
    store, _ = start(without(closed, "binlog-000000.ibb"))
    assert numbers_in(store)[-1] == 30
    store, _ = start(flipped(closed, "binlog-000000.ibb", 3 * PAGE_SIZE + 100))
    reader = store.groups(store.seek(GtidPosition()))
    with pytest.raises(FormatError, match=r"binlog-000000\.ibb page 3"):
        numbers_of(reader)
    assert store.groups(store.seek(GtidPosition.parse("0-1-20"))).next_group() is not None
    stray = {"binlog-1.ibb": b"x", "binlog-000001.ibb.bak": b"y", "binlog-99999999999999999999.ibb": b"z", "notes": b""}
    store, disk = start({**closed, **stray})
    assert numbers_in(store) == list(range(1, 31))
    store.close()
    assert {name: disk.files()[name] for name in stray} == stray


# As mysql-test/suite/binlog_in_engine/recovery_no_prealloc.test
def test_only_empty_files_are_refused(closed):
    empty = {f"binlog-{number:06d}.ibb": bytes(8 * PAGE_SIZE) for number in (4, 5)}
    with pytest.raises(IbbMasterError, match="only empty files are left, so the GTID state is unknown"):
        start(empty)


def test_a_page_with_a_right_checksum_and_other_content_is_not_what_the_redo_log_ends_at(closed):
    name = "binlog-000002.ibb"
    last = last_page_no(closed[name])
    data = bytearray(closed[name])
    page = bytearray(PAGE_SIZE)
    seal_page(page)
    data[last * PAGE_SIZE : (last + 1) * PAGE_SIZE] = page  # an acknowledged tail, gone without a trace
    with pytest.raises(IbbMasterError, match="binlog-000002"):
        start({**closed, name: bytes(data)})


def test_groups_behind_a_flush_are_recovered_before_any_checkpoint(monkeypatch):
    disk = SimulatedDisk()
    store = new_store(disk, SMALL_FILES)
    feed(store, 1, 100)
    monkeypatch.setattr(store._writer, "checkpoint", lambda: None)  # the power fails before it
    store.flush()
    feed(store, (2, 3), 100)
    again, _ = start(disk.files())
    assert numbers_in(again) == [1, 2, 3]


def test_a_redo_log_is_not_applied_to_the_files_of_another_log(crashed):
    files = log_of(1999, size=100, closed=True)  # small ones: more of the redo log for the same files
    with pytest.raises(DamageError, match="it belongs to other files"):
        start({**files, **{name: crashed[name] for name in SEGMENT_NAMES}})


@pytest.mark.parametrize("found", ["nothing", "zeros", "a log", "no header"])
def test_a_redo_log_of_a_log_that_was_never_begun_goes_with_no_file_that_has_data(found):
    disk, begun = SimulatedDisk(), []
    disk.fail = lambda verb, name: (verb, name) == ("create", FIRST) and begun.append(disk.files())
    with new_store(disk, SMALL_FILES) as store:
        store.sync()
    whole = disk.files()[FIRST]
    data = {"nothing": None, "zeros": bytes(len(whole)), "a log": whole, "no header": b"U" * len(whole)}[found]
    left = SimulatedDisk({**begun[0], **({} if data is None else {FIRST: data})})
    if found in ("nothing", "zeros"):
        with new_store(left, SMALL_FILES) as store:
            assert not len(store.state())
        return
    with pytest.raises(DamageError, match=r"binlog-000000\.ibb has data, but the redo log is that of a log"):
        new_store(left, SMALL_FILES)
    assert left.files()[FIRST] == data
