import pytest

from tests.machinery.simulated_disk import SimulatedDisk


@pytest.fixture
def disk():
    return SimulatedDisk()


def flipped(files, name, offset, bits=0x10):
    data = bytearray(files[name])
    data[offset] ^= bits
    return {**files, name: bytes(data)}


class OvertakenLock:
    """A lock for which others wait: what they do is done once, `before` it is taken, or behind an error in it."""

    def __init__(self, lock, *, before=None, behind_error=None):
        self._lock, self._before, self._behind_error = lock, before, behind_error

    def __enter__(self):
        before, self._before = self._before, None
        if before is not None:
            before()
        return self._lock.__enter__()

    def __exit__(self, *error):
        self._lock.__exit__(*error)
        if any(error) and self._behind_error is not None:
            another, self._behind_error = self._behind_error, None
            another()
