"""The checksum of events is zlib's, whatever the CPU can do."""

import random
import zlib
from ctypes import c_int64

import pytest


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
