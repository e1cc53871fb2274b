"""The checksums of pages and events, whatever the CPU can do."""

import random
import zlib
from ctypes import c_int64

import crcmod.predefined
import pytest

from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE, seal_page

crc32c = crcmod.predefined.mkCrcFun("crc-32c")


def random_page(seed):
    return bytearray(random.Random(seed).randbytes(PAGE_SIZE))


def test_the_checksum_of_any_page_is_that_of_crcmod(pieces):
    for seed in range(20):
        page = bytes(random_page(seed))
        assert pieces.crc32c_of(page) == crc32c(page[:DATA_SIZE])


def test_a_page_is_good_if_its_checksum_is_right_or_it_is_blank(pieces):
    page = random_page(2)
    assert not pieces.is_good(bytes(page))
    seal_page(page)
    assert pieces.is_good(bytes(page))
    assert pieces.is_good(bytes(PAGE_SIZE))


def test_every_flipped_bit_of_a_page_is_seen(pieces):
    page = random_page(3)
    seal_page(page)
    for place in range(PAGE_SIZE):
        for bit in range(8):
            page[place] ^= 1 << bit
            assert not pieces.is_good(bytes(page)), (place, bit)
            page[place] ^= 1 << bit


@pytest.mark.parametrize("lanes", [4, 1, 0], ids=["multiplying four lanes", "multiplying one", "by tables"])
def test_the_checksum_of_any_bytes_is_that_of_zlib(pieces, lanes):
    def crc32(data, before=0):
        return pieces.crc32_of(data, c_int64(len(data)), c_int64(before), lanes)

    rng = random.Random(1)
    for size in [*range(600), 1000, 65_537]:
        data = rng.randbytes(size)
        middle = rng.randrange(size + 1)
        assert crc32(data) == zlib.crc32(data)
        assert crc32(data[middle:], crc32(data[:middle])) == zlib.crc32(data)
