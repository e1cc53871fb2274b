"""The commands that look at a directory: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ibbmaster.cli.main import main

IBB = Path(__file__).parents[2] / "fixtures" / "ibb"


def run(capsys, *arguments):
    """Exit code, output, errors of one command."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_seek_explains_a_place(capsys):
    code, out, err = run(capsys, "seek", IBB / "types", "0-1-50")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "position [0-1-50]"
    assert "start at binlog-000000.ibb page 8, state [0-1-49]" in out


def test_seek_explains_a_refusal(capsys):
    code, out, _ = run(capsys, "seek", IBB / "types", "0-1-999")
    assert code == 1
    assert "refused: Error: connecting slave requested to start from GTID 0-1-999" in out
    assert "because: domain 0: the log ends at 0-1-151" in out


def test_seek_speaks_json(capsys):
    _, out, _ = run(capsys, "seek", IBB / "types", "0-1-50", "--json")
    answer = json.loads(out)
    assert (answer["file"], answer["page"], answer["state"]) == ("binlog-000000.ibb", 8, "0-1-49")
    _, out, _ = run(capsys, "seek", IBB / "types", "0-1-999", "--json")
    assert "0-1-999" in json.loads(out)["refused"]


def test_verify_finds_no_faults_in_the_samples(capsys):
    for directory in sorted(IBB.iterdir()):
        code, out, err = run(capsys, "verify", directory)
        assert (code, err) == (0, ""), out
        assert out.endswith("no faults\n")


def test_verify_ends_with_1_and_names_each_fault(capsys, tmp_path):
    for path in (IBB / "types").iterdir():
        data = bytearray(path.read_bytes())
        if path.name == "binlog-000001.ibb":
            data[20000] ^= 1
        (tmp_path / path.name).write_bytes(data)
    code, out, _ = run(capsys, "verify", tmp_path)
    assert code == 1
    assert "binlog-000001.ibb page 1 offset 0: page checksum is" in out
    code, out, _ = run(capsys, "verify", tmp_path, "--json")
    assert code == 1
    assert json.loads(out)["faults"]


@pytest.mark.parametrize("command", [["verify"], ["seek", "0-1-1"]], ids=["verify", "seek"])
def test_a_directory_without_binlogs_is_said_to_be_one(capsys, tmp_path, command):
    code, out, err = run(capsys, command[0], tmp_path, *command[1:])
    assert (code, out) == (2, "")
    assert err == f"ibbmaster: {tmp_path}: no binlog files (binlog-000000.ibb and so on)\n"


def test_a_position_that_is_none_is_refused(capsys):
    code, _, err = run(capsys, "seek", IBB / "types", "nonsense")
    assert (code, err) == (
        2,
        "ibbmaster: 'nonsense' is no GTID: expected domain-server-seqno, as in 0-1-100\n",
    )


def test_inspect_shows_header_and_totals(capsys):
    code, out, _ = run(capsys, "inspect", IBB / "xa-and-ddl" / "binlog-000000.ibb")
    assert code == 0
    assert out.splitlines()[0].startswith("page 0  file_no 0  size_pages 4  start_lsn 0")
    assert "COMMIT records 93" in out
    assert "first GTID 0-1-1  last GTID 0-1-93" in out


def test_inspect_shows_the_chunks_of_a_page_as_json(capsys):
    _, out, _ = run(capsys, "inspect", IBB / "large-groups" / "binlog-000002.ibb", "--page", 1, "--json")
    first, second, third = map(json.loads, out.splitlines())
    assert (first["gtid state"], first["state"]) == ("record", "[0-1-27]")
    assert (second["oob data"], third["node"]) == ("record ends", 3)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("other.txt", b"", "other.txt is no name of a binlog file"),
        ("binlog-000000.ibb", b"", "binlog-000000.ibb has no page 0"),
        ("binlog-000000.ibb", b"\xff" * 16384, "page checksum is ffffffff"),
    ],
    ids=["another name", "an empty file", "something else"],
)
def test_inspect_says_what_is_wrong_with_a_file(capsys, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    code, out, err = run(capsys, "inspect", tmp_path / name)
    assert (code, out) == (2, "")
    assert message in err


def test_inspect_does_not_follow_links_or_wait_for_fifos(capsys, tmp_path):
    import os

    os.mkfifo(tmp_path / "binlog-000000.ibb")
    (tmp_path / "binlog-000001.ibb").symlink_to(IBB / "types" / "binlog-000001.ibb")
    for name in ("binlog-000000.ibb", "binlog-000001.ibb"):
        code, _, err = run(capsys, "inspect", tmp_path / name)
        assert code == 2
        assert name in err
