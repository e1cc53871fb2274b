import random

import numpy as np
import pytest

from ibbmaster.errors import ChecksumError, ChunkError
from ibbmaster.kernel import loading
from ibbmaster.kernel.fields import ChunkColumn, Field, Status
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.chunk import FILLER, Chunk, ChunkEnd, RecordType, encode_chunk, next_chunk
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE, seal_page, verify_page
from ibbmaster.storage.ibb.scan import Misplaced, Nesting, last_chunk, page_chunks
from tests.case_table import rows_of
from tests.machinery.random_log import random_log
from tests.machinery.simulated_disk import SimulatedDisk

COMMIT, STATE, OOB, DUMMY = RecordType.COMMIT, RecordType.GTID_STATE, RecordType.OOB_DATA, RecordType.DUMMY
CHUNKS_MAX = 1 << 15


FOLLOWING = rows_of(__file__, "following")


def under_way(said):
    outer, nested = [-1 if one == "-" else RecordType[one] for one in (*said.split(), "-")][:2]
    return outer, nested


@pytest.mark.parametrize(("name", "before", "comes", "then"), FOLLOWING, ids=[row[0] for row in FOLLOWING])
def test_what_may_follow_what(name, before, comes, then):
    nesting, (record_type, *flags) = Nesting(*under_way(before)), comes.split()
    problem = nesting.take(Chunk(RecordType[record_type], "first" in flags, "last" in flags, memoryview(b"x"), 0, 4))
    assert problem == getattr(Misplaced, then, None)
    assert (nesting.record_type, nesting.nested_type) == under_way(before if problem else then)


def test_the_chunks_of_a_page_are_listed_wherever_they_belong():
    page = bytearray(PAGE_SIZE)
    data = encode_chunk(OOB, b"end", is_first=False, is_last=True) + encode_chunk(
        COMMIT, b"x", is_first=True, is_last=True
    )
    page[: len(data)] = data
    found = list(page_chunks(memoryview(page), file_no=0, page_no=1))
    assert [(one.record_type, one.is_first, bytes(one.data)) for one in found] == [
        (OOB, False, b"end"),
        (COMMIT, True, b"x"),
    ]
    assert list(page_chunks(memoryview(page), found[0].end_offset, file_no=0, page_no=1)) == found[1:]
    last, end = last_chunk(memoryview(page), file_no=0, page_no=1)
    assert (last, end) == (found[-1], ChunkEnd.NO_DATA if not page[found[-1].end_offset] else ChunkEnd.PAGE_FULL)
    assert last_chunk(memoryview(bytes(PAGE_SIZE)), file_no=0, page_no=1) == (None, ChunkEnd.NO_DATA)


def kernel_scan(kernels, pages, page, page_offset, nesting, chunks_max=CHUNKS_MAX):
    """As the reference, its chunks as (start, size, type byte)."""
    state, table = np.zeros(Field.SIZE, dtype=np.int64), np.empty((chunks_max, ChunkColumn.COLUMNS), dtype=np.int32)
    state[Field.PAGE], state[Field.OFFSET] = page, page_offset
    state[Field.SKIP_TYPE], state[Field.NESTED_TYPE] = nesting.record_type, nesting.nested_type
    array = np.frombuffer(bytearray(pages), dtype=np.uint8)
    rows, status = kernels.index_chunks(array, len(array) // PAGE_SIZE, state, table, 0)
    place = tuple(int(state[field]) for field in (Field.PAGE, Field.OFFSET, Field.SKIP_TYPE, Field.NESTED_TYPE))
    return [tuple(row) for row in table[:rows].tolist()], place, status


def reference_scan(pages, page, page_offset, nesting):
    """The chunks of pages from a place on, as long as each page and chunk is as it should be."""
    rows, view, end = [], memoryview(pages), Status.NEED_MORE
    while end == Status.NEED_MORE and page < len(view) // PAGE_SIZE:
        here = view[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]
        try:
            verify_page(bytes(here), LogPosition.on_page(0, page))
            while isinstance(found := next_chunk(here, page_offset, file_no=0, page_no=page), Chunk):
                if nesting.take(found) is not None:
                    end = Status.FALLBACK
                    break
                type_byte = found.record_type | (0 if found.is_first else 0x80) | (0x40 if found.is_last else 0)
                rows.append((page * PAGE_SIZE + found.page_offset, len(found.data), type_byte))
                page_offset = found.end_offset
            else:
                if found is ChunkEnd.NO_DATA:
                    end = Status.NO_DATA
                else:
                    page, page_offset = page + 1, 0
        except ChecksumError:
            end = Status.BAD_PAGE
        except ChunkError:
            end = Status.FALLBACK
    return rows, (page, page_offset, nesting.record_type, nesting.nested_type), end


def compare(kernels, pages, page=0, page_offset=0, types=(-1, -1), *, seed):
    found = kernel_scan(kernels, pages, page, page_offset, Nesting(*types))
    assert found == reference_scan(pages, page, page_offset, Nesting(*types)), (seed, page, page_offset)
    return found


def random_page(rng, nesting):
    page, offset = bytearray(PAGE_SIZE), 0
    while offset < DATA_SIZE - 3 and rng.random() < 0.98:
        room = DATA_SIZE - offset - 3
        size = min(room, rng.choice((1, 2, 20, 300, 5000, room, max(1, room - rng.randrange(5)))))
        if rng.random() < 0.01:
            size = rng.choice((0, room + 1, 65535))
        record_type = rng.choice((COMMIT, COMMIT, STATE, OOB, DUMMY, 5, 6))
        is_first = True
        if nesting.nested_type >= 0 or (nesting.record_type >= 0 and rng.random() < 0.8):
            record_type = nesting.nested_type if nesting.nested_type >= 0 else nesting.record_type
            is_first = False
        elif nesting.record_type >= 0:
            record_type = rng.choice((STATE, DUMMY))
        if rng.random() < 0.01:
            record_type, is_first = rng.randrange(64), rng.random() < 0.5
        is_last = rng.random() < 0.7
        page[offset] = record_type | (0 if is_first else 0x80) | (0x40 if is_last else 0)
        page[offset + 1 : offset + 3] = size.to_bytes(2, "little")
        nesting.take(Chunk(record_type, is_first, is_last, memoryview(b""), 0, 0))
        offset += 3 + size
    if rng.random() < 0.8:
        page[min(offset, DATA_SIZE) : DATA_SIZE] = bytes((FILLER,)) * max(0, DATA_SIZE - offset)
    del page[PAGE_SIZE:]
    if rng.random() < 0.95:
        seal_page(page)
    return bytes(page)


@pytest.fixture(scope="module")
def kernels():
    found = loading.load()
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(16))
def test_the_kernel_sees_the_chunks_of_random_pages_as_the_reference_does(kernels, seed):
    rng, reasons = random.Random(seed), set()
    for _ in range(30):
        nesting = Nesting()
        pages = b"".join(random_page(rng, nesting) for _ in range(rng.randint(1, 4)))
        rows, _, status = compare(kernels, pages, seed=seed)
        reasons.add(status)
        for start, size, type_byte in rng.sample(rows, min(4, len(rows))):  # from inside
            inside = -1 if type_byte & 0x40 else type_byte & 0x3F
            compare(kernels, pages, start // PAGE_SIZE, start % PAGE_SIZE + 3 + size, (inside, -1), seed=seed)
    assert len(reasons) > 1


@pytest.mark.parametrize("seed", range(4))
def test_the_same_of_logs_with_damage_and_of_every_truncation(kernels, seed):
    rng, disk = random.Random(seed), SimulatedDisk()
    random_log(seed, disk, groups=40).close()
    for data in (bytes(data) for name, data in disk.files().items() if name.endswith(".ibb")):
        pages = data[PAGE_SIZE:]
        compare(kernels, pages, seed=seed)
        for count in range(len(pages) // PAGE_SIZE):
            compare(kernels, pages[: count * PAGE_SIZE], seed=seed)
        for _ in range(40):
            damaged = bytearray(pages)
            page = rng.randrange(len(pages) // PAGE_SIZE) * PAGE_SIZE
            for _ in range(rng.randint(1, 3)):
                damaged[page + rng.choice((rng.randrange(PAGE_SIZE), rng.randrange(64)))] ^= 1 << rng.randrange(8)
            if rng.random() < 0.8:
                sealed = damaged[page : page + PAGE_SIZE]
                seal_page(sealed)
                damaged[page : page + PAGE_SIZE] = sealed
            compare(kernels, damaged, seed=seed)


def test_a_page_that_was_written_up_to_any_byte_is_seen_alike(kernels):
    whole = random_page(random.Random(1), Nesting())
    rows, _, _ = compare(kernels, whole, seed=1)
    for cut in sorted({start + ahead for start, _, _ in rows for ahead in range(5)} | set(range(0, PAGE_SIZE, 97))):
        page = bytearray(whole[:cut] + bytes(PAGE_SIZE - cut))
        compare(kernels, page, seed=1)
        del page[PAGE_SIZE:]
        seal_page(page)
        compare(kernels, page, seed=1)


def test_a_full_table_is_gone_on_with(kernels):
    disk = SimulatedDisk()
    random_log(5, disk, groups=40).close()
    pages = disk.files()["binlog-000000.ibb"][PAGE_SIZE:]
    expected, end, _ = reference_scan(pages, 0, 0, Nesting())
    found, place, status = [], (0, 0, -1, -1), Status.FULL
    while status == Status.FULL:
        rows, place, status = kernel_scan(kernels, pages, *place[:2], Nesting(*place[2:]), chunks_max=3)
        found += rows
    assert (found, place) == (expected, end)
