import io
import os
import threading

import pytest

from ibbmaster.commands.printing import output
from ibbmaster.commands.printing.output import GroupOutput, opened_output
from ibbmaster.errors import StoreError


def broken(*pieces):
    yield from pieces
    raise ValueError("damaged")


@pytest.mark.parametrize("held_max", [1 << 20, 4], ids=["in memory", "in a file"])
def test_nothing_of_a_group_is_written_whose_text_fails(held_max, monkeypatch):
    monkeypatch.setattr(output, "HELD_MAX", held_max)
    target = io.BytesIO()
    taking = GroupOutput(target)
    taking.write([b"one\n", b"two\n"])
    with pytest.raises(ValueError, match="damaged"):
        taking.write(broken(b"three\n", b"four\n"))
    taking.write([b"five\n"])
    assert target.getvalue() == b"one\ntwo\nfive\n"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_obeys_nothing_that_is_printed(is_terminal):
    target = io.BytesIO()
    target.isatty = lambda: is_terminal
    GroupOutput(target).write([b"a\tb \xff\n\x1b]0;x\x07 \xc2\x9b2J \xe2\x80\xae\n"])
    plain = b"a\tb \xff\n\x1b]0;x\x07 \xc2\x9b2J \xe2\x80\xae\n"
    assert target.getvalue() == (
        rb"a	b \xff" + b"\n" + rb"\x1b]0;x\x07 \x9b2J \u202e" + b"\n" if is_terminal else plain
    )


def test_a_file_is_replaced_once_the_new_one_is_whole(tmp_path):
    path = tmp_path / "out"
    path.write_text("before")
    with pytest.raises(ValueError, match="damaged"), opened_output(path) as target:
        target.writelines(broken(b"half"))
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
