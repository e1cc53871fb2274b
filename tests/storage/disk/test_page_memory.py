import ctypes
import mmap

import pytest

from ibbmaster.storage.disk.page_memory import is_free, page_map, page_memory


@pytest.mark.parametrize("size", [1, 4096, 100_000, 4 << 20])
def test_it_begins_with_a_page_of_memory(size):
    assert ctypes.addressof(ctypes.c_char.from_buffer(page_memory(size))) % mmap.PAGESIZE == 0


def test_it_is_as_large_as_was_asked_zero_and_may_be_written():
    memory = page_memory(1000)
    assert bytes(memory) == bytes(1000)
    memory[999] = 7
    assert memory[999] == 7


def test_a_part_of_it_stays_good_alone():
    part = page_memory(1 << 20)[4096:8192]
    part[:] = bytes([1]) * 4096
    assert bytes(part) == bytes([1]) * 4096


def test_it_is_free_while_there_is_no_view_of_it():
    memory = page_map(8192)
    assert is_free(memory)
    part = memoryview(memory)[4096:]
    assert not is_free(memory)
    memory[4096] = 7
    assert part[0] == 7
    del part
    assert is_free(memory)
    assert memory[4096] == 7
