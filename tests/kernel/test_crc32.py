"""The checksum of events is zlib's, whatever the CPU can do."""

from __future__ import annotations

import random
import struct
import zlib

import numpy as np
import pytest

from ibbmaster.kernel import loading


def test_the_checksum_of_any_bytes_is_that_of_zlib():
    loading.load()
    from ibbmaster.kernel.crc32 import crc32

    rng = random.Random(1)
    for size in [*range(600), 1000, 65_537]:
        data = rng.randbytes(size + 3)
        array = np.frombuffer(data, dtype=np.uint8)
        assert crc32(array, 3, size + 3, 0) == zlib.crc32(data[3:])
        middle = 3 + rng.randrange(size + 1)
        assert crc32(array, middle, size + 3, crc32(array, 3, middle, 0)) == zlib.crc32(data[3:])


def test_the_checksum_of_an_event_with_another_size_and_end_position():
    loading.load()
    from ibbmaster.kernel.crc32 import crc32_of_event

    rng = random.Random(1)
    for size in [*range(19, 300), 1000, 65_537]:
        data = bytearray(rng.randbytes(size + 3))
        array = np.frombuffer(bytes(data), dtype=np.uint8)
        other_size, log_pos = rng.randrange(2**32), rng.randrange(2**32)
        struct.pack_into("<II", data, 3 + 9, other_size, log_pos)
        assert crc32_of_event(array, 3, size + 3, other_size, log_pos) == zlib.crc32(data[3:])


@pytest.mark.parametrize(("features", "expected"), [("", "False False"), ("+pclmul", "True False")])
def test_a_cpu_with_fewer_instructions_gets_the_same(said_by, features, expected):
    program = (
        "import random, zlib, numpy as np\n"
        "from ibbmaster.kernel.crc32 import HAS_INSTRUCTION, HAS_WIDE_INSTRUCTION, crc32, crc32_of_event\n"
        "print(HAS_INSTRUCTION, HAS_WIDE_INSTRUCTION)\n"
        "data = random.Random(1).randbytes(1000)\n"
        "array = np.frombuffer(data, dtype=np.uint8)\n"
        "for size in (*range(100), 500, 999):\n"
        "    assert crc32(array, 1, 1 + size, 0) == zlib.crc32(data[1 : 1 + size]), size\n"
        "changed = data[1:10] + bytes([1, 0, 0, 0, 2, 0, 0, 0]) + data[18:40]\n"
        "assert crc32_of_event(array, 1, 40, 1, 2) == zlib.crc32(changed)\n"
    )
    assert said_by(program, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=features) == expected
