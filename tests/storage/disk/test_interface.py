import pytest

from ibbmaster.errors import BusyError
from ibbmaster.storage.disk.interface import owning
from ibbmaster.storage.disk.local import RealDisk


def test_a_directory_is_owned_once_and_given_back_where_opening_fails(tmp_path):
    first, second = RealDisk(tmp_path), RealDisk(tmp_path)
    with pytest.raises(ValueError, match="no"), owning(first):
        raise ValueError("no")
    with owning(second):
        pass
    assert first.is_locked(), "whoever opened the log keeps it"
    with pytest.raises(BusyError), owning(first):
        pass
    second.close()
