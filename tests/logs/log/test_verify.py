import random
import re
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ibbmaster.gtid import Gtid
from ibbmaster.kernel import loading
from ibbmaster.logs.log import verify as verifying
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.record_checks import NAMED_MAX
from ibbmaster.logs.log.verify import AHEAD_BYTES, BlockReader, verify
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.rows.partial import encode_fragments
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.chunk import RecordType, encode_chunk
from ibbmaster.storage.ibb.commit import CommitHeader, OobStream, encode_commit_header
from ibbmaster.storage.ibb.file_header import decode_file_header, encode_file_header
from ibbmaster.storage.ibb.gtid_state import encode_gtid_state
from ibbmaster.storage.ibb.oob import OobForest
from ibbmaster.storage.ibb.page import PAGE_SIZE, seal_page
from tests.built_logs import sealed_page
from tests.case_table import rows_of
from tests.machinery.disk import MemoryDisk
from tests.machinery.random_log import random_log
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.stores import bytes_at


@pytest.fixture(params=["with kernels", "without"], autouse=True)
def kernels_or_not(request, monkeypatch):
    monkeypatch.setattr(verifying, "kernels", loading.load if request.param == "with kernels" else lambda: None)


def faults(disk):
    return [str(fault) for fault in verify(disk, Totals())]


def change(disk, file_no, page_no, page_offset, data, *, sealed=True):
    file, start = disk.files[f"binlog-{file_no:06d}.ibb"], page_no * PAGE_SIZE
    file[start + page_offset : start + page_offset + len(data)] = data
    if sealed:
        file[start : start + PAGE_SIZE] = sealed_page(file[start : start + PAGE_SIZE])


def test_a_sound_directory_is_counted_and_a_reference_to_something_else_is_named(long_log):
    totals = Totals()
    assert list(verify(long_log.disk, totals)) == []
    assert (totals.files, totals.groups, totals.oob_records) == (3, 5, 3)
    wrong = LogPosition(0, PAGE_SIZE + 5)
    header = encode_commit_header(CommitHeader(streams=(OobStream(node_count=1, first=wrong, last=wrong),)))
    long_log.append(RecordType.COMMIT, header + long_log.groups[0][1][:38], Gtid.parse("0-1-5"))
    assert any("an out-of-band reference to something else" in fault for fault in faults(long_log.disk))


def test_a_flipped_bit_is_found_and_the_pages_behind_it_are_still_read(long_log):
    change(long_log.disk, 0, 2, 5000, b"\xff", sealed=False)
    change(long_log.disk, 2, 1, 5000, b"\xff", sealed=False)
    found = [fault.split(": ")[:2] for fault in faults(long_log.disk) if "checksum" in fault]
    assert [place for place, problem in found if problem.startswith("page checksum")] == [
        "binlog-000000.ibb page 2 offset 0",
        "binlog-000002.ibb page 1 offset 0",
    ]
    assert [problem for _, problem in found if "group" in problem] == ["the out-of-band data of group 0-1-3"]


CHANGES = rows_of(__file__, "changed")


# As mysql-test/suite/binlog_in_engine/binlog_restart.test
@pytest.mark.parametrize("row", CHANGES, ids=[row[0] for row in CHANGES])
def test_a_changed_byte_under_a_right_checksum_is_named(long_log, row):
    file_no, page_no, offset = map(int, row[1:4])
    change(long_log.disk, file_no, page_no, offset, bytes.fromhex(row[4]))
    found = faults(long_log.disk)
    assert any(row[5] in fault and f"binlog-{file_no:06d}.ibb" in fault for fault in found), found


@pytest.mark.parametrize(
    ("file_no", "page_no", "gtids", "problem"),
    [
        (2, 1, ["0-1-3", "1-2-2"], "GTID state is [0-1-3,1-2-2], the groups come to [0-1-3,1-2-1]"),
        (0, 2, ["0-1-7"], "differential GTID state is [0-1-7], the groups of this file come to [0-1-1]"),
    ],
    ids=["full", "differential"],
)
def test_a_state_that_contradicts_the_groups_is_named(long_log, file_no, page_no, gtids, problem):
    state = encode_gtid_state(map(Gtid.parse, gtids), None)
    change(long_log.disk, file_no, page_no, 0, encode_chunk(RecordType.GTID_STATE, state, is_first=True, is_last=True))
    assert faults(long_log.disk) == [f"binlog-00000{file_no}.ibb page {page_no} offset 0: {problem}"]


ONE, TWO = "binlog-000001.ibb", "binlog-000002.ibb"
WRONG_FILES = {
    "missing in the middle": (lambda files: files.pop(ONE), f"{ONE} is missing before {TWO}"),
    "swapped": (
        lambda files: files.update({ONE: files[TWO], TWO: files[ONE]}),
        "file number is 2, but the name says 1",
    ),
    "no whole number of pages": (lambda files: files[TWO].extend(b"x"), "no whole number of pages"),
    "longer than their header says": (
        lambda files: files[TWO].extend(bytes(PAGE_SIZE)),
        "5 pages, but its header",
    ),
}


@pytest.mark.parametrize(("damage", "said"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_files_are_named_that_are(long_log, damage, said):
    damage(long_log.disk.files)
    assert said in faults(long_log.disk)[0]


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_file_of_another_server_with_the_same_groups_is_named_by_its_lsn(long_log, jobs):
    """Servers of one chain may log the same groups in files of the same sizes: nothing else in a file differs."""
    name = "binlog-000001.ibb"
    header = decode_file_header(long_log.disk.files[name][:PAGE_SIZE], file_no=1)
    long_log.disk.files[name][:PAGE_SIZE] = encode_file_header(replace(header, start_lsn=77))
    found = [str(fault) for fault in verify(long_log.disk, Totals(), others=[long_log.disk] * (jobs - 1))]
    assert found == [
        "binlog-000002.ibb page 0 offset 0: the file was begun at LSN 1, and the one before it at LSN 77: "
        "one of the two is of another server, or of an earlier log"
    ]


def test_a_log_that_ends_inside_a_record_is_named_and_long_state_records_are_no_fault(new_log, event):
    log = new_log()
    log.commit("0-1-1", event(40_000))
    log.disk.truncate("binlog-000000.ibb", 3 * PAGE_SIZE)
    assert any("the log ends inside this record" in fault for fault in faults(log.disk))
    log = new_log(size_pages=8, interval_pages=1)
    for domain_id in range(3000):  # the state needs several chunks
        log.commit(f"{domain_id}-4294967295-18446744073709551615", event(20))
    log.commit_all(range(1, 30), event(7000))
    assert faults(log.disk) == []


FRAGMENTS = list(encode_fragments(encode_event(event_type=EventType.WRITE_ROWS_V1, body=bytes(200), server_id=1), 60))
WRONG_FRAGMENTS = {  # what stands in the log, and what is said of it
    "as they were written": (FRAGMENTS, ""),
    "one is lost": ([FRAGMENTS[0], *FRAGMENTS[2:]], "row event fragment 3 of 4, expected 2"),
    "the last is lost": (FRAGMENTS[:-1], "ends inside the fragments of a row event: fragment 4 of 4 is missing"),
}


@pytest.mark.parametrize("is_out_of_band", [False, True])
@pytest.mark.parametrize(("events", "problem"), WRONG_FRAGMENTS.values(), ids=WRONG_FRAGMENTS)
def test_fragments_that_are_no_row_event_are_named_with_their_group(new_log, event, events, problem, is_out_of_band):
    log = new_log()
    log.commit("0-1-1", event(100))
    if is_out_of_band:
        forest = OobForest()
        log.out_of_band(forest, [b"".join(events)[:150], b"".join(events)[150:]])
        log.commit("0-1-2", forest=forest, oob=b"".join(events))
    else:
        log.commit("0-1-2", b"".join(events))
    log.commit("0-1-3", event(100))
    found = faults(log.disk)
    assert len(found) == bool(problem)
    if problem:
        assert re.match(r"binlog-000000.ibb page \d+ offset \d+: commit record of group 0-1-2: ", found[0])
        assert problem in found[0]


def test_all_ways_to_check_find_the_same(monkeypatch, tmp_path):
    rng = random.Random(random.randrange(2**32))
    block_pages = rng.choice([2, 3, 7, 128])
    monkeypatch.setattr(verifying, "BLOCK_PAGES", block_pages)
    monkeypatch.setattr(verifying, "BLANK_BLOCK", bytes(block_pages * PAGE_SIZE))
    disk = SimulatedDisk()
    random_log(rng.randrange(1000), disk).close()
    files = {name: data for name, data in disk.files().items() if name.endswith(".ibb")}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for _ in range(10):
        name = rng.choice([name for name in files if any(files[name][PAGE_SIZE:])])
        start = rng.randrange(1, len(files[name]) // PAGE_SIZE) * PAGE_SIZE
        page = bytearray(files[name][start : start + PAGE_SIZE])
        for _ in range(rng.randrange(1, 3)):
            page[rng.randrange(PAGE_SIZE - 4)] ^= 1 << rng.randrange(8)
        if rng.random() < 0.8:
            seal_page(page)
        changed = {**files, name: files[name][:start] + bytes(page) + files[name][start + PAGE_SIZE :]}
        (tmp_path / name).write_bytes(changed[name])
        found = []
        for ready, others in ((loading.load, 0), (lambda: None, 0), (loading.load, 1), (loading.load, 50)):
            monkeypatch.setattr(verifying, "kernels", ready)
            for disk in (MemoryDisk(changed), RealDisk(tmp_path)):
                totals = Totals()
                disks = [disk] * others  # all only read it
                found.append(([str(fault) for fault in verify(disk, totals, others=disks)], totals))
        assert all(one == found[0] for one in found)
        (tmp_path / name).write_bytes(files[name])


def test_the_holes_of_a_sparse_file_are_blank_pages_and_what_lies_behind_them_is_found(tmp_path, long_log):
    for name, data in long_log.disk.files.items():
        (tmp_path / name).write_bytes(data)
    last = max(tmp_path.iterdir())
    larger = 400 * PAGE_SIZE
    assert last.stat().st_size < larger
    page = b"\1" + sealed_page(b"")[1:]
    for has_data in (False, True):
        with last.open("r+b") as file:
            file.truncate(larger)
            if has_data:
                file.seek(300 * PAGE_SIZE)
                file.write(page)
        totals = Totals()
        found = [str(fault) for fault in verify(RealDisk(tmp_path), totals)]
        dense = MemoryDisk(bytes_at(tmp_path))
        assert found == faults(dense)
        assert any("page 300" in fault for fault in found) == has_data
        assert totals.pages == sum(len(data) // PAGE_SIZE for data in dense.files.values())


@pytest.fixture
def paged_log(new_paged_log):
    return new_paged_log(size_pages=20, interval_pages=8)


def faults_of(disk):
    found = list(verify(disk, Totals()))
    assert list(verify(disk, Totals(), others=[MemoryDisk(disk.files) for _ in range(2)])) == found
    return found


def test_groups_that_end_at_page_borders_are_sound_and_an_older_image_of_a_page_is_damage(paged_log):
    assert faults_of(paged_log.disk) == []
    assert all(paged_log.page(page_no)[0] in (0x41, 0x42) for page_no in range(1, 20))
    page = paged_log.page(5)
    paged_log.put(5, sealed_page(page[: page.index(b"\x41", 9000)]))
    assert any("data behind its end" in str(fault) and fault.is_damage for fault in faults_of(paged_log.disk))


@pytest.mark.parametrize(("wrong", "place"), [(3, 5), (5, 3), (4, 6), (12, 10)], ids=lambda page_no: f"page {page_no}")
def test_a_page_that_was_written_to_the_wrong_place_is_damage(paged_log, wrong, place):
    """Four groups come twice, four never; the next state is that of the groups in front of it."""
    paged_log.put(place, paged_log.page(wrong))
    found = faults_of(paged_log.disk)
    assert found
    assert all(fault.is_damage for fault in found)
    lines = [str(fault) for fault in found if "once more" in str(fault)]
    assert lines
    assert any(f"page {wrong}" in line and f"page {place}" in line for line in lines), lines


def test_two_pages_that_changed_places_are_named_with_both_places_and_are_a_note_as_nothing_proves_it(paged_log):
    four, five = paged_log.page(4), paged_log.page(5)
    paged_log.put(4, five)
    paged_log.put(5, four)
    (fault,) = faults_of(paged_log.disk)
    assert not fault.is_damage
    assert "comes behind number" in str(fault)
    assert "page 5 offset 0" in str(fault)
    assert "at binlog-000000.ibb page 4 offset" in str(fault)


OTHER_PAGES = {  # number and file of the page that is in the place of another, and what tells of it
    "before a state record": ((6, 0), 7, "page 7 offset 0: group .* comes behind number"),
    "before one, by the state": ((6, 0), 7, "page 8 offset 0: differential GTID state is"),
    "with a state where none is due": ((8, 0), 5, "page 5 offset 0: .*where none is due"),
    "without one where it is due": ((5, 0), 8, "page 8 offset 0: .*that is due on this page"),
    "of another file": ((7, 1), 7, ""),
}


@pytest.mark.parametrize(("wrong", "place", "said"), OTHER_PAGES.values(), ids=OTHER_PAGES)
def test_another_page_is_damage(paged_log, wrong, place, said):
    paged_log.put(place, paged_log.page(*wrong))
    found = [str(fault) for fault in faults_of(paged_log.disk) if fault.is_damage]
    assert any(re.search(said, line) for line in found), found


def test_a_log_of_a_primary_that_lets_numbers_go_back_is_sound(new_log, event):
    log = new_log(size_pages=8, interval_pages=2)
    for seq_no in (1, 2, 2, 1, 5, 3, 4, 5, 5, 6):
        log.commit(f"0-1-{seq_no}", event(5000))
        log.commit(f"3-{seq_no % 2 + 1}-{seq_no}", event(50))
    found = faults_of(log.disk)
    assert found
    assert not any(fault.is_damage for fault in found)
    assert all("a primary without gtid_strict_mode logs so, too" in str(fault) for fault in found)
    named = [str(fault).split()[7] for fault in found if "group 0-1-" in str(fault)]
    assert named == ["0-1-2", "0-1-1", "0-1-3", "0-1-5"]


def test_numbers_that_go_back_are_named_or_counted_and_those_of_others_are_no_neighbours(new_log, event):
    log = new_log(size_pages=100, interval_pages=0)
    for _ in range(30):
        log.commit_all((3, 2, 1), event(30))
    found = [str(fault) for fault in faults_of(log.disk)]
    assert len(found) == NAMED_MAX + 1
    assert found[-1] == "note: binlog-000000.ibb: 40 more groups come behind higher numbers"
    log = new_log()
    for gtid in ("0-1-5", "0-2-3", "1-1-1", "0-2-4", "0-1-6", "1-2-1"):
        log.commit(gtid, event(50))
    assert faults_of(log.disk) == []


def test_each_part_of_a_file_is_expected_once_and_well_before_it_is_read(tmp_path, monkeypatch):
    asked, read = [], []
    monkeypatch.setattr(verifying, "expect", lambda descriptor, offset, size: asked.append((offset, offset + size)))

    def read_pages(file, offset, pages):
        read.append((offset, len(pages), asked[-1][1]))
        return len(pages) // PAGE_SIZE, len(pages) // PAGE_SIZE

    (tmp_path / "a").write_bytes(b"")
    reader = BlockReader(RealDisk(tmp_path), "a", SimpleNamespace(read_pages=read_pages), block_pages=4)
    with closing(reader):
        for page_no in (1, 5, 8, 12):
            found = reader.read(page_no)
            assert found.page_count == found.verified
    assert [offset // PAGE_SIZE for offset, _, _ in read] == [1, 5, 9, 13]
    assert all(expected == offset + size + AHEAD_BYTES for offset, size, expected in read)
    assert [begin for begin, _ in asked] == [PAGE_SIZE, *(end for _, end in asked[:-1])]
