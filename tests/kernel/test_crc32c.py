"""The checksum kernel agrees with crcmod on any page."""

import random

import crcmod.predefined

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
