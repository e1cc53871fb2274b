"""Small files that are read together give what each gives by itself, and cost one read each."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

import ibbmaster
from ibbmaster.errors import IbbMasterError, RecordError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.loading import load
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.classic.exporting import export_traditional
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LOG_START
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.chunk import CHUNK_HEADER_SIZE, next_chunk
from ibbmaster.storage.ibb.gtid_state import decode_gtid_state, encode_gtid_state
from ibbmaster.storage.ibb.page import PAGE_SIZE, seal_page
from ibbmaster.tables.arrow import small_files
from ibbmaster.tables.arrow.collecting import ClassicBatches, event_batches
from ibbmaster.tables.arrow.ddl_scan import scan_ddl
from ibbmaster.tables.arrow.small_files import batches_of_ranges
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import make_event
from tests.machinery.importing import import_classic
from tests.written_log import inserted

FILES = 12
CAPTURES = ("10.11/ddl-trx-xa", "11.8/alter-two-phase", "11.8/types-noblob-compressed", "10.11/domains", "11.8/crashed")


@pytest.fixture(scope="module")
def kernels():
    found = load()
    assert found is not None
    return found


def small_log(size: int = 5000) -> MemoryDisk:
    table = written_table("d.t", {"id": "int", "a": "mediumtext"}, table_id=1)
    disk = MemoryDisk()
    with BinlogWriter(disk, max_file_bytes=4 * PAGE_SIZE, state_interval_bytes=PAGE_SIZE) as writer:
        number = 0
        while writer.end.file_no < FILES:
            number += 1
            gtid = Gtid(domain_id=number // 5 % 2, server_id=1, seq_no=number)
            body = [*inserted(table, [number, "x" * (size + number % 7)]), make_event(16, 1, bytes(8))]
            writer.write_group(gtid, encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.TRANSACTIONAL)), body)
    return disk


def found_in(batches) -> Iterator[tuple[object, ...]]:
    for batch in batches:
        for number, (_, _, group, in_group) in enumerate(batch.events.tolist()):
            yield tuple(batch.groups[group, :8].tolist()), in_group, batch.event(number)


def outcome(make) -> object:
    try:
        return list(found_in(make()))
    except IbbMasterError as error:
        return type(error), str(error)


def both(log, kernels) -> tuple[object, object]:
    ranges = log.ranges(LOG_START, log.end(), size=1 << 40)
    alone = outcome(lambda: (batch for one in ranges for batch in event_batches(log, one, kernels)))
    return outcome(lambda: batches_of_ranges(log, ranges, kernels)), alone


@pytest.mark.parametrize("block", [1 << 16, small_files.BLOCK_BYTES])
@pytest.mark.parametrize("capture", CAPTURES)
def test_captures_in_small_files_give_the_same_together(fixtures, kernels, monkeypatch, capture, block):
    monkeypatch.setattr(small_files, "BLOCK_BYTES", block)
    disk = MemoryDisk()
    import_classic([fixtures / "classic" / capture], disk, max_file_bytes=4 * PAGE_SIZE, state_interval_bytes=PAGE_SIZE)
    together, alone = both(BinlogDirectory(disk), kernels)
    assert together == alone
    assert len(alone) > 9
    paths = sorted((fixtures / "classic" / capture).glob("binlog.0*[0-9]"))
    if len(paths) > 1:
        together, alone = both(ClassicBinlog(paths), kernels)
        assert together == alone


@pytest.fixture
def classic(tmp_path):
    with closing(RealDisk(tmp_path)) as disk:
        export_traditional(BinlogDirectory(small_log()), disk, PROFILES["classic-10.11"], max_file_bytes=50_000)
    return tmp_path


def with_reference(paths, kernels) -> tuple[object, object, int]:
    """What traditional files give, what they give if each is read as a large one, and how many were read at once."""
    log = ClassicBinlog(paths)
    ranges = log.ranges(LOG_START, log.end(), size=1 << 40)
    whole = []
    with pytest.MonkeyPatch.context() as patched:
        take = ClassicBatches._take_whole
        patched.setattr(ClassicBatches, "_take_whole", lambda *given: (whole.append(take(*given)), whole[-1])[1])
        at_once = outcome(lambda: batches_of_ranges(log, ranges, kernels))
        patched.setattr(ClassicBatches, "_take_whole", lambda *given: False)
        by_reference = outcome(lambda: batches_of_ranges(log, ranges, kernels))
    return at_once, by_reference, sum(whole)


@pytest.mark.parametrize("capture", CAPTURES)
def test_traditional_files_that_are_read_at_once_give_the_same(fixtures, kernels, capture):
    at_once, by_reference, _ = with_reference([fixtures / "classic" / capture], kernels)
    assert at_once == by_reference
    assert len(at_once) > 9


def test_small_traditional_files_are_read_at_once_and_what_is_damaged_in_one_is_the_error_of_any(classic, kernels):
    paths = sorted(classic.glob("binlog.0*[0-9]"))
    at_once, by_reference, count = with_reference(paths, kernels)
    assert at_once == by_reference
    assert count == len(paths)
    whole = paths[2].read_bytes()
    errors = 0
    for offset in (*range(0, 600, 7), *range(600, len(whole) - 100, 1777), *range(len(whole) - 100, len(whole), 3)):
        for changed in (
            whole[:offset] + bytes([whole[offset] ^ 0x41]) + whole[offset + 1 :],
            whole[:offset],
            whole + whole[-offset:],
        ):
            paths[2].write_bytes(changed)
            at_once, by_reference, _ = with_reference(paths[1:4], kernels)
            assert at_once == by_reference, offset
            errors += isinstance(at_once, tuple)
    assert errors > 100


@pytest.mark.parametrize("block", [1 << 16, 3 << 16, small_files.BLOCK_BYTES])
@pytest.mark.parametrize("size", [200, 5000, 30_000])
def test_records_go_on_from_file_to_file_wherever_a_block_ends(kernels, monkeypatch, size, block):
    monkeypatch.setattr(small_files, "BLOCK_BYTES", block)
    together, alone = both(BinlogDirectory(small_log(size)), kernels)
    assert together == alone
    assert any(where[4] != where[6] for where, _, _ in alone)  # a group ends in the file after its own


def test_damage_anywhere_is_what_each_file_by_itself_says(kernels):
    disk = small_log()
    names = sorted(disk.list())[2:5]
    errors = 0
    for name in names:
        for offset in (*range(0, 60, 7), *range(PAGE_SIZE, PAGE_SIZE + 60, 3), *range(0, 4 * PAGE_SIZE, 1021)):
            disk.files[name][offset] ^= 0x41
            together, alone = both(BinlogDirectory(disk), kernels)
            assert together == alone, (name, offset)
            errors += isinstance(alone, tuple)
            disk.files[name][offset] ^= 0x41
    assert errors > 100


@pytest.mark.parametrize("kept_pages", [1, 2, 3])
@pytest.mark.parametrize("fill", [0, PAGE_SIZE])
def test_a_file_that_was_cut_or_emptied_is_what_it_is_by_itself(kernels, kept_pages, fill):
    disk = small_log()
    name = sorted(disk.list())[4]
    del disk.files[name][kept_pages * PAGE_SIZE :]
    disk.files[name] += bytes((4 - kept_pages) * fill)
    log = BinlogDirectory(disk)
    ranges = log.ranges(LOG_START, log.end(), size=1 << 40) if kept_pages > 1 or fill else []
    for one in ranges[:-1]:
        assert one.end_offset == len(disk.files[log.file_name(one.file_no)])
    if ranges:
        together, alone = both(log, kernels)
        assert isinstance(together, tuple)
        assert isinstance(alone, tuple)


def test_a_file_that_begins_after_other_groups_is_an_error(kernels):
    disk = small_log()
    name = sorted(disk.list())[4]
    page = bytearray(disk.files[name][PAGE_SIZE : 2 * PAGE_SIZE])
    first = next_chunk(memoryview(bytes(page)), 0, file_no=4, page_no=1)
    found = decode_gtid_state(first.data, None).gtids
    other = encode_gtid_state([replace(found[0], seq_no=found[0].seq_no + 1), *found[1:]], None)
    assert 0 < len(found) < len(other) <= len(first.data)
    page[CHUNK_HEADER_SIZE : CHUNK_HEADER_SIZE + len(other)] = other
    seal_page(page)
    disk.files[name][PAGE_SIZE : 2 * PAGE_SIZE] = page
    together, alone = both(BinlogDirectory(disk), kernels)
    assert together == alone
    assert alone[0] is RecordError


@pytest.mark.parametrize("count", [1, 40])
def test_files_that_flush_has_ended_are_read_once(tmp_path, kernels, count):
    with ibbmaster.create(tmp_path, durability="later", max_file_bytes=1 << 20) as log:
        for number in range(1, 12 * count + 1):
            log.append(f"0-1-{number}", f"INSERT INTO t VALUES ('{'x' * 900}')", database="d")
            if number % count == 0:
                log.engine.flush()
    disk = MemoryDisk({path.name: path.read_bytes() for path in tmp_path.glob("*.ibb")})
    log = BinlogDirectory(disk)
    together, alone = both(log, kernels)
    assert together == alone
    assert len(together) == 3 * 12 * count
    ranges = log.ranges(LOG_START, log.end(), size=1 << 40)
    disk.reads = 0
    assert sum(len(batch.groups) for batch in batches_of_ranges(log, ranges[1:11], kernels)) == 10 * count
    assert disk.reads == 10


def test_a_scan_reads_each_small_file_once():
    disk = small_log()
    log = BinlogDirectory(disk)
    log.state()
    disk.reads = 0
    assert scan_ddl(log, lambda *_: None) is not None
    assert disk.reads <= FILES + 20  # the last file, and the end of the log, are read as ever
