"""A directory has one owner; one that could not begin gives it back."""

import pytest

from ibbmaster.disk.interface import owning
from ibbmaster.disk.local import RealDisk
from ibbmaster.errors import BusyError


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
