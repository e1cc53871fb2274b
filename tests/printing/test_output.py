"""A group is written whole or not at all, and a file has its name once it is whole."""

from __future__ import annotations

import io
import os
import threading

import pytest

from ibbmaster.errors import StoreError
from ibbmaster.printing import output
from ibbmaster.printing.output import GroupOutput, opened_output


def broken(*pieces):
    yield from pieces
    raise ValueError("damaged")


@pytest.mark.parametrize("held_max", [1 << 20, 4], ids=["in memory", "in a file"])
def test_nothing_of_a_group_is_written_whose_text_fails(held_max, monkeypatch):
    monkeypatch.setattr(output, "HELD_MAX", held_max)
    target = io.BytesIO()
    taking = GroupOutput(target)
    taking.write(["one\n", "two\n"])
    with pytest.raises(ValueError, match="damaged"):
        taking.write(broken("three\n", "four\n"))
    taking.write(["five\n"])
    assert target.getvalue() == b"one\ntwo\nfive\n"


def test_a_file_is_replaced_once_the_new_one_is_whole(tmp_path):
    path = tmp_path / "out"
    path.write_text("before")
    with pytest.raises(ValueError, match="damaged"), opened_output(path) as target:
        target.writelines(piece.encode() for piece in broken("half"))
    assert (path.read_text(), os.listdir(tmp_path)) == ("before", ["out"])
    with opened_output(path) as target:
        target.write(b"whole")
        assert path.read_text() == "before"
    assert (path.read_text(), os.listdir(tmp_path)) == ("whole", ["out"])


def test_a_file_that_grows_is_seen_while_it_does(tmp_path):
    with opened_output(tmp_path / "out", grows=True) as target:
        target.write(b"one")
        target.flush()
        assert (tmp_path / "out").read_bytes() == b"one"


def test_a_pipe_is_written_as_it_is(tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    with opened_output(pipe) as target:
        target.write(b"one")
    reader.join(60)
    assert (found, os.listdir(tmp_path)) == ([b"one"], ["pipe"])


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with (
        pytest.raises(StoreError, match="nowhere/out: cannot be written: No such file"),
        opened_output(tmp_path / "nowhere" / "out"),
    ):
        pass
