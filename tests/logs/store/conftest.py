import pytest

from tests.machinery.simulated_disk import SimulatedDisk


@pytest.fixture
def disk():
    return SimulatedDisk()


def flipped(files, name, offset, bits=0x10):
    """Files, with some bits of one byte changed."""
    data = bytearray(files[name])
    data[offset] ^= bits
    return {**files, name: bytes(data)}
