"""Salvage of damaged logs: no traceback, everything that can be read is saved, and what was saved is a sound log.

`pytest tests/simulation/test_last_resort.py --salvages 0` changes every byte of the first pages; a failure prints what
it changed.

A group that one changed byte has cost is always in the report: its record cannot be read, or what is passed over holds
a commit record. What cannot be known is a byte inside an event under a right checksum (the events of these tests have
none of their own), a GTID that became another, pages that are gone at the very end of a log without its redo log, and
in random damage a page that is there twice in place of another before a file's end: then `duplicates` counts.
"""

import random
from dataclasses import replace

import pytest

from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.verify import verify
from ibbmaster.logs.store import salvage as salvaging
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.logs.store.salvage import salvage
from ibbmaster.storage.codec.crc32c import crc32c
from ibbmaster.storage.ibb.chunk import CONT, FILLER, LAST, NO_DATA_BYTE, TYPE_MASK, RecordType
from ibbmaster.storage.ibb.page import CHECKSUM, DATA_SIZE, PAGE_SIZE
from ibbmaster.storage.ibb.scan import page_chunks
from tests.built_logs import sealed_page
from tests.logs.store.conftest import flipped
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import groups_of, make_event, new_group
from tests.machinery.stores import SMALL_FILES, new_store, open_files

FIRST, PAGES = "binlog-000000.ibb", 3
SHORT_CHECKSUM = 508  # of a header page, over what is before it
OPTIONS = replace(SMALL_FILES, max_file_bytes=6 * PAGE_SIZE, spill_bytes=9000, oob_piece_bytes=9000)


def group(seq_no):
    size = 20_000 if seq_no % 7 == 4 else 1700 + 7 * seq_no
    return new_group(seq_no, make_event(160, 1, bytes([seq_no % 251]) * size))


@pytest.fixture(scope="module")
def sound():
    disk = MemoryDisk()
    with new_store(disk, OPTIONS) as store:
        for seq_no in range(1, 71):
            store.write_direct(*group(seq_no))
    return {name: bytes(data) for name, data in disk.files.items()}


def without_redo(files):
    return {name: data for name, data in files.items() if name not in SEGMENT_NAMES}


def with_byte(files, page_no, offset, value):
    data, start = bytearray(files[FIRST]), page_no * PAGE_SIZE
    data[start + offset] = value
    if page_no == 0 and offset < SHORT_CHECKSUM:
        CHECKSUM.pack_into(data, SHORT_CHECKSUM, crc32c(bytes(data[:SHORT_CHECKSUM])))
    data[start : start + PAGE_SIZE] = sealed_page(data[start : start + PAGE_SIZE])
    return {**files, FIRST: bytes(data)}


def saved(files):
    target, conflicts = MemoryDisk(), MemoryDisk()
    report = salvage(MemoryDisk(files), target, lambda: conflicts)
    assert [str(fault) for fault in verify(target, Totals()) if fault.is_damage] == []
    log = open_files(target)
    return [found for found in groups_of(log.groups(log.start_of_file())) if found[0] is not None], report


def expect_saved(files, *, lost_pages, what, may_repeat=False):
    """Groups that were not touched are there byte for byte; whatever is missing is listed, or pages repeat others."""
    found, report = saved(files)
    wanted = {value: gtid_event + body for value, gtid_event, [body] in map(group, range(1, 71))}
    sound = [gtid for gtid, data in found if wanted.get(gtid) == data]
    assert len(found) == 70 or report.losses or (may_repeat and report.duplicates), what
    if may_repeat:  # no checksum was made right
        assert all(wanted.get(gtid) == data for gtid, data in found if len(data) < OPTIONS.spill_bytes), what
    # a page holds eight groups, and part of a large one; a state that is damaged costs none
    assert len(sound) >= 70 - 12 * lost_pages, (what, len(sound), [str(loss) for loss in report.losses])


def changed_bytes(count, rng):
    if not count:
        for page_no in range(PAGES):
            for offset in range(DATA_SIZE):
                yield page_no, offset, rng.randrange(256)
        return
    for _ in range(count):
        page_no = rng.choice((0, 1, 1, 2, 2))
        yield page_no, rng.choice((rng.randrange(64), rng.randrange(DATA_SIZE))), rng.randrange(256)


def test_a_changed_byte_in_the_first_pages_costs_what_is_there_and_no_more(sound, request):
    rng = random.Random(request.config.getoption("--seed"))
    files = without_redo(sound)
    for page_no, offset, value in changed_bytes(request.config.getoption("--salvages"), rng):
        expect_saved(with_byte(files, page_no, offset, value), lost_pages=2, what=(page_no, offset, value))


def test_a_state_record_that_makes_no_sense_costs_no_group(sound):
    files = without_redo(sound)
    for offset in range(3, 5):
        for value in (1, 3, 9, 0x2A, 0x7F, 0x80, 0xFF):
            found, report = saved(with_byte(files, 1, offset, value))
            assert len(found) == 70, (offset, value, [str(loss) for loss in report.losses])


@pytest.mark.parametrize("with_redo", [False, True])
def test_random_damage_leaves_no_traceback_and_a_sound_log(sound, request, with_redo):
    rng = random.Random(request.config.getoption("--seed"))
    files = sound if with_redo else without_redo(sound)
    for number in range(request.config.getoption("--salvages") // 2 or 5000):
        damaged, lost = dict(files), 0
        for _ in range(rng.randint(1, 4)):
            name = rng.choice([name for name in damaged if damaged[name]])
            data = bytearray(damaged[name])
            place = rng.randrange(len(data))
            page = place // PAGE_SIZE * PAGE_SIZE
            lost += 1
            match rng.randrange(5):
                case 0:
                    data[place] ^= 1 << rng.randrange(8)
                case 1:
                    data[page : page + PAGE_SIZE] = bytes(PAGE_SIZE)
                case 2:
                    data[page : page + PAGE_SIZE] = rng.randbytes(PAGE_SIZE)
                case 3:
                    del data[place:]
                    lost += 6
                case 4:
                    other = rng.randrange(len(data)) // PAGE_SIZE * PAGE_SIZE
                    data[page : page + PAGE_SIZE] = data[other : other + PAGE_SIZE]
            damaged[name] = bytes(data)
        expect_saved(damaged, lost_pages=2 * lost, what=f"number {number}", may_repeat=True)


def test_groups_of_a_damaged_page_in_which_the_redo_log_ends_are_told(sound):
    """The redo log goes as far as into that page; what the files have behind it cannot be read."""
    told = 0
    for offset in range(100_000, 106_000, 200):
        damaged = flipped(flipped(sound, "ibbmaster-redo-0", offset, 1), "binlog-000001.ibb", PAGE_SIZE + 9841, 1)
        found, report = saved(damaged)
        assert len(found) == 70 or report.losses, offset
        told += len(found) < 70
    assert told


def test_a_directory_without_a_readable_page_is_an_error_or_an_empty_log(sound, monkeypatch):
    monkeypatch.setattr(salvaging, "MAX_FILE_BYTES", 1 << 22)  # what no page tells is the default
    assert saved({name: bytes(len(data)) for name, data in without_redo(sound).items()})[0] == []


def chunks_of(files):
    for name, data in files.items():
        for page_no in range(1, len(data) // PAGE_SIZE):
            page = memoryview(data)[page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE]
            for chunk in page_chunks(page, file_no=0, page_no=page_no):
                yield name, page_no, chunk.page_offset


def test_a_changed_type_byte_costs_the_group_that_has_the_chunk_and_is_told(sound, request):
    rng = random.Random(request.config.getoption("--seed"))
    files = without_redo(sound)
    places = list(chunks_of(files))
    count = request.config.getoption("--salvages")
    wanted = [(gtid, event + body) for gtid, event, [body] in map(group, range(1, 71))]
    for name, page_no, offset in places if not count else rng.sample(places, min(count // 3, len(places))):
        start = page_no * PAGE_SIZE
        was = files[name][start + offset]
        values = {was ^ 1 << rng.randrange(8), was ^ LAST, was ^ CONT, NO_DATA_BYTE, FILLER, rng.randrange(256)}
        values |= {was & ~TYPE_MASK | rng.choice(list(RecordType)) for _ in range(2)}
        for value in sorted(values - {was}):
            data = bytearray(files[name])
            data[start + offset] = value
            data[start : start + PAGE_SIZE] = sealed_page(data[start : start + PAGE_SIZE])
            what = name, page_no, offset, was, value
            damaged = {**files, name: bytes(data)}
            found, report = saved(damaged)
            assert len(found) >= 69, what
            assert [one for one in wanted if one in found] == found, what
            assert len(found) == 70 or report.losses, what
            assert len(found) == 70 or any(fault.is_damage for fault in verify(MemoryDisk(damaged), Totals())), what
