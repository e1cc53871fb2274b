"""The checksum kernel agrees with crcmod on any page, whatever the CPU can do."""

import random

import crcmod.predefined
import numpy as np
import pytest

from ibbmaster.ibb.page import DATA_SIZE, PAGE_SIZE, seal_page
from ibbmaster.kernel import loading

crc32c = crcmod.predefined.mkCrcFun("crc-32c")


@pytest.fixture
def kernels():
    return loading.load()


def random_pages(count, seed):
    rng = random.Random(seed)
    return bytearray(rng.randbytes(count * PAGE_SIZE))


def test_the_checksum_of_any_page_is_that_of_crcmod(kernels):
    from ibbmaster.kernel.crc32c import page_crc

    data = random_pages(20, 1)
    array = np.frombuffer(data, dtype=np.uint8)
    for number in range(20):
        start = number * PAGE_SIZE
        assert int(page_crc(array, start)) == crc32c(bytes(data[start : start + DATA_SIZE]))


def test_a_page_is_good_if_its_checksum_is_right_or_it_is_blank(kernels):
    from ibbmaster.kernel.crc32c import is_page_good

    data = random_pages(8, 2)
    for number in range(8):
        page = data[number * PAGE_SIZE : (number + 1) * PAGE_SIZE]
        seal_page(page)
        data[number * PAGE_SIZE : (number + 1) * PAGE_SIZE] = page if number != 3 else bytes(PAGE_SIZE)
    array = np.frombuffer(data, dtype=np.uint8)
    data[5 * PAGE_SIZE + 100] ^= 1
    assert [number for number in range(8) if not is_page_good(array, number * PAGE_SIZE)] == [5]


def test_every_flipped_bit_of_a_page_is_seen(kernels):
    from ibbmaster.kernel.crc32c import is_page_good

    page = random_pages(1, 3)
    seal_page(page)
    array = np.frombuffer(page, dtype=np.uint8)
    for place in range(PAGE_SIZE):
        for bit in range(8):
            page[place] ^= 1 << bit
            assert not is_page_good(array, 0), (place, bit)
            page[place] ^= 1 << bit
    assert is_page_good(array, 0)


def test_a_cpu_without_the_instruction_gets_the_same(tmp_path, said_by):
    program = (
        "import random, numpy as np\n"
        "from ibbmaster.kernel import loading\n"
        "from ibbmaster.kernel.parts import KernelSet\n"
        "assert loading.load(KernelSet.VERIFY) is not None\n"
        "from ibbmaster.kernel.crc32c import HAS_INSTRUCTION, page_crc\n"
        "data = np.frombuffer(bytearray(random.Random(1).randbytes(16384)), dtype=np.uint8)\n"
        "print(HAS_INSTRUCTION, int(page_crc(data, 0)))\n"
    )
    said = said_by(program, NUMBA_CPU_NAME="generic", XDG_CACHE_HOME=str(tmp_path))
    assert said.split() == ["False", str(crc32c(random.Random(1).randbytes(16384)[:DATA_SIZE]))]
