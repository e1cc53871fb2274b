"""The pieces of the import kernel, each beside what it stands for."""

import ctypes
import random

from ibbmaster.kernel import loading
from ibbmaster.logs.store.writer import seal_pages
from ibbmaster.storage.ibb.chunk import CHUNK_SIZE_MIN
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE


def test_a_record_ends_where_it_was_said_to_end(pieces):
    rng = random.Random(2)
    record, pages = rng.randbytes(60_000), ctypes.create_string_buffer(8 * PAGE_SIZE)
    for _ in range(3000):
        position = rng.choice([rng.randrange(DATA_SIZE), DATA_SIZE - rng.randrange(1, 12)])
        size = rng.choice([rng.randrange(1, 60_000), DATA_SIZE - position - 3 - rng.randrange(-6, 6), CHUNK_SIZE_MIN])
        size = max(1, size)
        end = pieces.place(record, ctypes.c_int64(size), pages, ctypes.c_int64(position))
        assert end == pieces.end_of(ctypes.c_int64(position), ctypes.c_int64(size)), (position, size)
        assert end % PAGE_SIZE < DATA_SIZE


def test_pages_are_sealed_as_the_reference_seals_them():
    data = bytearray(random.Random(3).randbytes(3 * PAGE_SIZE))
    data[PAGE_SIZE : 2 * PAGE_SIZE] = bytes(PAGE_SIZE)
    by_kernel = bytearray(data)
    for count in (0, 2, 3):
        seal_pages(memoryview(data), count)
        loading.load().seal_pages(memoryview(by_kernel), count)
        assert by_kernel == data
    assert any(data[PAGE_SIZE + DATA_SIZE : 2 * PAGE_SIZE])
