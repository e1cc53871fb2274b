"""Whether there is a redo log is asked by its names alone."""

from __future__ import annotations

import pytest

from ibbmaster.disk.local import RealDisk
from ibbmaster.store.redo_names import SEGMENT_NAMES, may_lack_groups


@pytest.mark.parametrize("name", SEGMENT_NAMES)
def test_one_file_of_a_redo_log_is_one(tmp_path, name):
    (tmp_path / "binlog-000000.ibb").touch()
    assert not may_lack_groups(RealDisk(tmp_path))
    (tmp_path / name).touch()
    assert may_lack_groups(RealDisk(tmp_path))
