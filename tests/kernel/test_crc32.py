"""The checksum of events is zlib's, whatever the CPU can do."""

import random
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


@pytest.mark.parametrize(("features", "expected"), [("", "False False"), ("+pclmul", "True False")])
def test_a_cpu_with_fewer_instructions_gets_the_same(said_by, features, expected):
    program = (
        "import random, zlib, numpy as np\n"
        "from ibbmaster.kernel.crc32 import HAS_INSTRUCTION, HAS_WIDE_INSTRUCTION, crc32\n"
        "print(HAS_INSTRUCTION, HAS_WIDE_INSTRUCTION)\n"
        "data = random.Random(1).randbytes(1000)\n"
        "array = np.frombuffer(data, dtype=np.uint8)\n"
        "for size in (*range(100), 500, 999):\n"
        "    assert crc32(array, 1, 1 + size, 0) == zlib.crc32(data[1 : 1 + size]), size\n"
    )
    assert said_by(program, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=features) == expected
