import json
from pathlib import Path

import pytest

IBB = Path(__file__).parents[3] / "fixtures" / "ibb"
CLASSIC = IBB.parent / "classic"


def test_inspect_shows_header_and_totals(run):
    code, out, _ = run("inspect", IBB / "xa-and-ddl" / "binlog-000000.ibb")
    assert code == 0
    assert out.splitlines()[0].startswith("page 0  file no 0  size pages 4  start lsn 0")
    assert "commit records 93" in out
    assert "first gtid 0-1-1  last gtid 0-1-93" in out


def test_inspect_shows_the_chunks_of_a_page_as_json(run):
    _, out, _ = run("inspect", IBB / "large-groups" / "binlog-000002.ibb", "--page", 1, "--json")
    first, second, third = map(json.loads, out.splitlines())
    assert (first["record"], first["gtid_state"]) == ("gtid state", "0-1-27")
    assert (second["record"], second["part"], third["node"]) == ("oob data", "ends", 3)


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


def test_inspect_does_not_follow_links_or_wait_for_fifos(run, tmp_path):
    import os

    os.mkfifo(tmp_path / "binlog-000000.ibb")
    (tmp_path / "binlog-000001.ibb").symlink_to(IBB / "types" / "binlog-000001.ibb")
    for name in ("binlog-000000.ibb", "binlog-000001.ibb"):
        code, _, err = run("inspect", tmp_path / name)
        assert code == 2
        assert name in err


@pytest.mark.parametrize("name", ["10.11/domains/binlog.000006", "11.8/big/binlog.000001.xz"])
def test_inspect_shows_head_and_totals_of_a_traditional_file(run, name):
    expected = json.loads((CLASSIC / name).with_name("expected.json").read_text())
    file = next(one for one in expected["files"] if one["name"] == Path(name).name.removesuffix(".xz"))
    code, out, _ = run("inspect", CLASSIC / name, "--json")
    head, totals, gtids = map(json.loads, out.splitlines())
    assert (code, head["name"], head["server_version"]) == (0, file["name"], expected["server"])
    assert sum(totals.values()) == file["events"]
    assert set(gtids) == {"first_gtid", "last_gtid"}


def test_inspect_lists_events_of_a_traditional_file_from_an_offset_on(run):
    path = CLASSIC / "10.11/domains/binlog.000006"
    code, out, _ = run("inspect", path, "--offset", 643)
    assert code == 0
    assert out.splitlines()[0] == "offset 643  type Gtid  server id 2  end 685  info BEGIN GTID 2-2-25"
    whole = [json.loads(line) for line in run("inspect", path, "--offset", 4, "--json")[1].splitlines()]
    assert [line["offset"] for line in whole] == [4, *(line["end"] for line in whole[:-1])]


@pytest.mark.parametrize("options", [(), ("--offset", 4)], ids=["totals", "events"])
def test_inspect_reads_damaged_traditional_files_up_to_the_damage(run, damaged, options):
    for path in damaged(CLASSIC / "10.11/checksum-switch/binlog.000003", "binlog.000001", copies=40, seed=5, begin=4):
        code, out, err = run("inspect", path, *options)
        assert (code, err.count("\n")) in ((0, 0), (2, 1)), (out, err)
        assert (out.replace("\n", "") + err.strip()).isprintable()
