"""Pages that were lost, or are not those that were written: each reader gives everything right, or an error.

`pytest tests/simulation/test_holes.py --holes 5000` for a long run; a failure prints its seed.
"""

import random
from contextlib import closing
from dataclasses import replace

import pytest

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import GtidPosition
from ibbmaster.kernel import loading
from ibbmaster.logs.log import verify as verifying
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.verify import verify
from ibbmaster.logs.store.backup import back_up
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LOG_START
from ibbmaster.primary.streaming import shared
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.ibb.page import PAGE_SIZE
from ibbmaster.tables.arrow.collecting import event_batches
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import groups_of, make_event, new_group
from tests.machinery.stores import SMALL_FILES, new_store

GROUPS, BEHIND = 150, 110  # of the log; those that a consumer has that begins behind most of it
SIZES = {"max_file_bytes": 24 * PAGE_SIZE, "state_interval_bytes": 4 * PAGE_SIZE}
OPTIONS = replace(SMALL_FILES, **SIZES, spill_bytes=9000, oob_piece_bytes=9000)
STATE = f"0-1-{GROUPS}"


@pytest.fixture(scope="module")
def written():
    disk, images = MemoryDisk(), {}
    with BinlogStore(disk, OPTIONS) as store:
        for seq_no in range(1, GROUPS + 1):
            size = 20_000 if seq_no % 16 == 9 else 1500 + 11 * seq_no
            store.write_direct(*new_group(seq_no, make_event(160, 1, bytes([seq_no % 251]) * size)))
            if seq_no % 3 == 0:
                store.checkpoint()
                for key, page in pages_of(disk.files):
                    images.setdefault(key, {})[page] = None
    assert sorted(disk.files)[1] == "binlog-000001.ibb"
    return {name: bytes(data) for name, data in disk.files.items()}, images


def pages_of(files):
    for name, data in sorted(files.items()):
        for page_no in range(len(data) // PAGE_SIZE if name.endswith(".ibb") else 0):
            page = bytes(data[page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE])
            if any(page):
                yield (name, page_no), page


def damaged(files, images, rng):
    pages = dict(pages_of(files))
    name, page_no = rng.choice(list(pages))
    data = bytearray(files[name])
    here = slice(page_no * PAGE_SIZE, (page_no + 1) * PAGE_SIZE)
    kind = rng.choice(("zeroed", "stale", "swapped", "cut"))
    if kind == "zeroed":
        data[here] = bytes(PAGE_SIZE)
    elif kind == "stale":
        older = [image for image in images.get((name, page_no), {}) if image != pages[name, page_no]]
        data[here] = rng.choice(older or [bytes(PAGE_SIZE)])
    elif kind == "swapped":
        other = rng.choice([number for found, number in pages if found == name])
        data[here], data[other * PAGE_SIZE : (other + 1) * PAGE_SIZE] = (pages[name, other], pages[name, page_no])
    else:
        del data[page_no * PAGE_SIZE :]
    return {**files, name: bytes(data)}, f"{name} page {page_no} {kind}", (name, page_no) == list(pages)[-1]


def read(log, plan):
    with closing(log.groups(plan)) as reader:
        return [data for gtid, data in groups_of(reader) if gtid]


def read_ranges(log, kernels):
    found = []
    log.check_end()
    for log_range in log.ranges(LOG_START, log.end(), size=8 * PAGE_SIZE):
        if kernels is None:
            found += [b"".join((one.gtid_event, *one.body)) for one in log.groups_in(log_range) if one.gtid]
        else:
            for batch in event_batches(log, log_range, kernels):
                found += batch.groups[:, 2].tolist()  # sequence numbers
    return found


def judged(call):
    try:
        return call()
    except IbbMasterError as error:
        return error


def expect_right(call, wanted, what):
    found = judged(call)
    if "swapped" in what and isinstance(found, list):
        found, wanted = len(found), len(wanted)  # of pages inside the data of large groups only `verify` tells
    is_right = isinstance(found, IbbMasterError) or found == wanted
    assert is_right, f"{what}: {found if isinstance(found, int) else len(found)}"


def continued(make, files, **sizes):
    with make(MemoryDisk(files), **sizes) as writer:
        if isinstance(writer, BinlogWriter):
            return str(writer.state)
        writer.check_unbroken()
        return str(writer.state())


@pytest.mark.parametrize("has_redo", [True, False], ids=["with a redo log", "without a redo log"])
def test_every_reader_of_a_damaged_log_gives_all_or_an_error(written, dumped, monkeypatch, request, has_redo):
    files, images = written
    if not has_redo:
        files = {name: data for name, data in files.items() if name not in SEGMENT_NAMES}
    ready = loading.load()
    sound = BinlogDirectory(MemoryDisk(files))
    whole, behind = read(sound, sound.start_of_file()), GtidPosition.parse(f"0-1-{BEHIND}")
    numbers = list(range(1, GROUPS + 1))
    assert len(whole) == GROUPS
    make, sizes = (new_store, {"options": OPTIONS}) if has_redo else (BinlogWriter, SIZES)
    seed = random.randrange(2**32)
    for number in range(request.config.getoption("--holes")):
        broken, what, is_last = damaged(files, images, random.Random(seed + number))
        what = f"seed {seed + number}: {what}"
        faults = [fault for fault in verify(MemoryDisk(broken), Totals()) if fault.is_damage]
        is_sound = broken == files
        assert not (faults and is_sound), what
        if not has_redo and is_last:
            continue  # nothing tells that there was more
        if not is_sound:
            assert faults, what
        for kernels in (ready, None):
            monkeypatch.setattr(verifying, "kernels", lambda *_, kernels=kernels: kernels)
            monkeypatch.setattr(shared, "kernels", lambda *_, kernels=kernels: kernels)

            def opened(broken=broken):
                return BinlogDirectory(MemoryDisk(broken))

            expect_right(lambda: read(log := opened(), log.start_of_file()), whole, what)
            expect_right(lambda: read(log := opened(), log.seek(behind))[-(GROUPS - BEHIND) :], whole[BEHIND:], what)
            expect_right(lambda: read_ranges(opened(), None), whole, what)
            if kernels is not None:
                expect_right(lambda kernels=kernels: read_ranges(opened(), kernels), numbers, what)
            for position, wanted in ((GtidPosition(), numbers), (behind, numbers[BEHIND:])):
                served = judged(lambda position=position: dumped(opened(), position))
                if not isinstance(served, IbbMasterError) and served[1] is None:
                    found = [int.from_bytes(one[19:27], "little") for one in served[0] if one[4] == EventType.GTID]
                    assert found == wanted, what
        expect_right(lambda broken=broken: str(back_up(MemoryDisk(broken), MemoryDisk()).gtid_state), STATE, what)
        expect_right(lambda broken=broken: continued(make, broken, **sizes), STATE, what)
