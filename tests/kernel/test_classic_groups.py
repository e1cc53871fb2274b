"""The pieces of the kernels that read traditional files."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest

from ibbmaster.kernel import loading


@pytest.fixture(autouse=True)
def _kernels():
    loading.load()


def test_the_checksum_of_events_is_that_of_zlib():
    from ibbmaster.kernel.classic_groups import crc32

    chance = random.Random(1)
    for size in [*range(40), 100, 1000, 65_537]:
        data = chance.randbytes(size + 3)
        assert int(crc32(np.frombuffer(data, dtype=np.uint8), 3, size + 3)) == zlib.crc32(data[3:])
