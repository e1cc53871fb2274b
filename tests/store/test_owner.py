"""A directory has one owner; one that could not begin gives it back."""

from __future__ import annotations

import pytest

from ibbmaster.disk.local import RealDisk
from ibbmaster.errors import BusyError
from ibbmaster.store.owner import holds_log, owning


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


@pytest.mark.parametrize(
    ("name", "expected"),
    [("binlog-000000.ibb", True), ("ibbmaster-redo-1", True), ("ibbmaster-durable-end", False), ("notes.txt", False)],
)
def test_a_log_is_there_if_a_file_or_a_redo_log_is(tmp_path, name, expected):
    assert not holds_log(RealDisk(tmp_path))
    (tmp_path / name).touch()
    assert holds_log(RealDisk(tmp_path)) == expected
