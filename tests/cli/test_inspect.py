"""`ibbmaster inspect`: what is in a file, or what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

IBB = Path(__file__).parents[2] / "fixtures" / "ibb"


def test_inspect_shows_header_and_totals(run):
    code, out, _ = run("inspect", IBB / "xa-and-ddl" / "binlog-000000.ibb")
    assert code == 0
    assert out.splitlines()[0].startswith("page 0  file_no 0  size_pages 4  start_lsn 0")
    assert "COMMIT records 93" in out
    assert "first GTID 0-1-1  last GTID 0-1-93" in out


def test_inspect_shows_the_chunks_of_a_page_as_json(run):
    _, out, _ = run("inspect", IBB / "large-groups" / "binlog-000002.ibb", "--page", 1, "--json")
    first, second, third = map(json.loads, out.splitlines())
    assert (first["gtid state"], first["state"]) == ("record", "[0-1-27]")
    assert (second["oob data"], third["node"]) == ("record ends", 3)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("other.txt", b"", "other.txt is not the name of a binlog file"),
        ("binlog-000000.ibb", b"", "binlog-000000.ibb has no page 0"),
        ("binlog-000000.ibb", b"\xff" * 16384, "page checksum is ffffffff"),
    ],
    ids=["another name", "an empty file", "something else"],
)
def test_inspect_says_what_is_wrong_with_a_file(run, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    code, out, err = run("inspect", tmp_path / name)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("page", ["-1", "16", "99999999999999999999"])
def test_inspect_says_which_pages_there_are(run, page):
    answer = run("inspect", IBB / "types" / "binlog-000000.ibb", "--page", page)
    assert answer == (2, "", f"ibbmaster: binlog-000000.ibb has no page {page}: expected one from 0 to 15\n")


def test_inspect_does_not_follow_links_or_wait_for_fifos(run, tmp_path):
    import os

    os.mkfifo(tmp_path / "binlog-000000.ibb")
    (tmp_path / "binlog-000001.ibb").symlink_to(IBB / "types" / "binlog-000001.ibb")
    for name in ("binlog-000000.ibb", "binlog-000001.ibb"):
        code, _, err = run("inspect", tmp_path / name)
        assert code == 2
        assert name in err
