import ctypes
import mmap

import pytest

from ibbmaster.storage.disk.page_memory import is_free, page_map, page_memory


@pytest.mark.parametrize("size", [1, 4096, 100_000, 4 << 20])
def test_it_begins_with_a_page_of_memory_is_zero_and_may_be_written_also_a_part_of_it_alone(size):
    memory = page_memory(size)
    assert ctypes.addressof(ctypes.c_char.from_buffer(memory)) % mmap.PAGESIZE == 0
    assert bytes(memory) == bytes(size)
    memory = memory[size // 2 :]
    memory[:] = bytes([7]) * len(memory)
    assert bytes(memory) == bytes([7]) * (size - size // 2)


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
