import os
from pathlib import Path

import pytest

from ibbmaster.commands.cli import arguments
from ibbmaster.commands.cli.arguments import open_to_change
from ibbmaster.errors import IbbMasterError, StoreError
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.damage import flip


def test_a_log_that_is_changed_is_opened_and_left_and_none_is_begun(tmp_path, feed):
    with pytest.raises(IbbMasterError, match="no binlog files"):
        open_to_change(tmp_path)
    feed(tmp_path, range(1, 3))
    with open_to_change(tmp_path) as store:
        assert str(store.state().position()) == "0-1-2"


def test_what_cannot_be_written_is_said_before_long_work(tmp_path, monkeypatch):
    arguments.expect_writable(tmp_path)
    arguments.expect_writable(tmp_path / "to" / "be" / "made")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"below: .*/file is not a directory$"):
        arguments.expect_writable(tmp_path / "file" / "below")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(StoreError, match=r"link: this is not a directory$"):
        arguments.expect_writable(tmp_path / "link")
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # as of a read-only file system
    with pytest.raises(StoreError, match=rf"^{tmp_path}/new: cannot be written: Permission denied$"):
        arguments.expect_writable(tmp_path / "new")


def test_what_cannot_be_read_is_said_before_long_work(tmp_path):
    arguments.expect_readable([Path(__file__)])
    with pytest.raises(StoreError, match="no such file or directory"):
        arguments.expect_log(tmp_path / "missing")
    with pytest.raises(StoreError, match="no binlog files"):
        arguments.expect_log(tmp_path)
    missing = tmp_path / "binlog.000002"
    with pytest.raises(StoreError, match=f"^{missing} cannot be read$"):
        arguments.expect_readable([Path(__file__), missing])


def test_a_log_that_is_damaged_is_one_that_there_is(tmp_path, feed):
    feed(tmp_path, range(1, 40))
    arguments.expect_log(tmp_path)
    flip(tmp_path / "binlog-000000.ibb", PAGE_SIZE + 100)
    arguments.expect_log(tmp_path)
