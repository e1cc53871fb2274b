import random

import pytest

from ibbmaster.errors import ChecksumError
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.page import BLANK, DATA_SIZE, PAGE_SIZE, is_blank, seal_page, verify_page

HERE = LogPosition.on_page(3, 17)


def test_each_page_that_mariadb_wrote_is_sound_and_sealed_again_the_same(mariadb_files):
    for data in mariadb_files.values():
        for start in range(0, len(data), PAGE_SIZE):
            verify_page(data[start : start + PAGE_SIZE], HERE)
        page = bytearray(data[PAGE_SIZE : 2 * PAGE_SIZE])
        page[DATA_SIZE:] = bytes(4)
        seal_page(page)
        assert page == data[PAGE_SIZE : 2 * PAGE_SIZE]


def test_a_flipped_bit_is_seen_wherever_it_is_and_a_page_that_was_never_written_is_sound(mariadb_files):
    page = next(iter(mariadb_files.values()))[PAGE_SIZE : 2 * PAGE_SIZE]
    for bit in (0, PAGE_SIZE * 8 - 1, *random.sample(range(PAGE_SIZE * 8), 60)):
        damaged = bytearray(page)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ChecksumError, match=r"page 17.*page checksum is [0-9a-f]{8}, its bytes give [0-9a-f]{8}"):
            verify_page(bytes(damaged), HERE)
    verify_page(bytes(PAGE_SIZE), HERE)

    assert is_blank(bytearray(PAGE_SIZE))
    assert not is_blank(BLANK[:-1] + b"\1")
    with pytest.raises(ChecksumError):
        verify_page(BLANK[:-1] + b"\1", HERE)
