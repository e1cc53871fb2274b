import pytest

from tests.machinery.simulated_disk import SimulatedDisk


@pytest.fixture
def disk():
    return SimulatedDisk()
