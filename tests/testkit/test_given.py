"""Files are read as a whole, up to a size."""

import os
import threading
from pathlib import Path

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.given import read_small_file


def test_a_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "a"
    path.write_text("Zoë")
    assert read_small_file(path, 4) == "Zoë"
    with pytest.raises(ConfigurationError, match="a: expected a file of at most 3 bytes"):
        read_small_file(path, 3)


def test_what_has_no_end_is_read_no_further():
    with pytest.raises(ConfigurationError, match="/dev/zero: expected a file of at most 100 bytes"):
        read_small_file(Path("/dev/zero"), 100)


def test_a_pipe_is_read_to_its_end(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("through a pipe",))
    writer.start()
    assert read_small_file(path, 100) == "through a pipe"
    writer.join()


@pytest.mark.parametrize(("name", "text"), [("gone", "No such file"), ("", "Is a directory")])
def test_what_cannot_be_read_is_said(tmp_path, name, text):
    with pytest.raises(ConfigurationError, match=text):
        read_small_file(tmp_path / name, 100)


def test_what_is_no_text_is_said_with_its_place(tmp_path):
    (tmp_path / "a").write_bytes(b"ab\xff")
    with pytest.raises(ConfigurationError, match="a: no UTF-8 at byte 2"):
        read_small_file(tmp_path / "a", 100)
