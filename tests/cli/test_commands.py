"""The commands that look at a directory: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ibbmaster.cli.main import main
from ibbmaster.disk.local import RealDisk
from ibbmaster.gtid import Gtid
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import StoreOptions
from ibbmaster.testing.crash import make_event, make_gtid_event

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


@pytest.mark.parametrize("jobs", ["0", "-1", "x", "1025", "9" * 5000, "²"])
def test_verify_refuses_a_number_of_threads_that_makes_no_sense(capsys, tmp_path, jobs):
    with pytest.raises(SystemExit):
        run(capsys, "verify", tmp_path, "--jobs", jobs)
    assert "expected a number from 1 to 1024" in capsys.readouterr().err


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


@pytest.mark.parametrize("page", ["-1", "16", "99999999999999999999"])
def test_inspect_says_which_pages_there_are(capsys, page):
    answer = run(capsys, "inspect", IBB / "types" / "binlog-000000.ibb", "--page", page)
    assert answer == (2, "", f"ibbmaster: binlog-000000.ibb has no page {page}: expected one from 0 to 15\n")


def test_inspect_does_not_follow_links_or_wait_for_fifos(capsys, tmp_path):
    import os

    os.mkfifo(tmp_path / "binlog-000000.ibb")
    (tmp_path / "binlog-000001.ibb").symlink_to(IBB / "types" / "binlog-000001.ibb")
    for name in ("binlog-000000.ibb", "binlog-000001.ibb"):
        code, _, err = run(capsys, "inspect", tmp_path / name)
        assert code == 2
        assert name in err


# Commands that change a directory


def feed(directory, seq_nos, size=3000, *, crash=False):
    """Groups of domain 0; after a crash they are in the redo log and perhaps not in the files."""
    directory.mkdir(exist_ok=True)
    disk = RealDisk(directory)
    store = BinlogStore(disk, StoreOptions(max_file_bytes=1 << 17, is_sparse=True))
    for seq_no in seq_nos:
        gtid = Gtid(domain_id=0, server_id=1, seq_no=seq_no)
        store.write_direct(gtid, make_gtid_event(gtid), [make_event(160, 1, bytes(size))])
    if crash:
        disk.close()
    else:
        store.close()


def test_recover_applies_the_redo_log_and_a_second_time_nothing(capsys, tmp_path):
    feed(tmp_path, range(1, 20), crash=True)
    code, out, err = run(capsys, "recover", tmp_path, "--json")
    answer = json.loads(out)
    assert (code, err, answer["gtid_state"], answer["prepared"]) == (0, "", "0-1-19", [])
    assert answer["replayed_records"] > 0
    code, out, _ = run(capsys, "recover", tmp_path)
    assert out.startswith("0 redo records applied, 0 transactions rolled back\nthe log ends at binlog-000000.ibb")
    assert run(capsys, "verify", tmp_path)[0] == 0


def test_flush_begins_the_next_file(capsys, tmp_path):
    feed(tmp_path, range(1, 4))
    assert run(capsys, "flush", tmp_path) == (0, "the active file is binlog-000001.ibb, GTID state [0-1-3]\n", "")
    code, _, err = run(capsys, "flush", tmp_path, "--delete-domain", "0")
    assert (code, "domain 0 cannot be deleted: binlog files still hold groups of it" in err) == (2, True)


def test_a_domain_is_forgotten_once_its_files_are_purged(capsys, tmp_path):
    feed(tmp_path, range(1, 4))
    run(capsys, "flush", tmp_path)
    run(capsys, "purge", tmp_path, "--to", "binlog-000001.ibb")
    code, out, _ = run(capsys, "flush", tmp_path, "--delete-domain", "0", "--delete-domain", "9")
    assert (code, out) == (
        0,
        "domain 9 is not in the GTID state\nthe active file is binlog-000002.ibb, GTID state []\n",
    )


def test_purge_says_what_went_and_what_could_not(capsys, tmp_path):
    feed(tmp_path, range(1, 150))
    code, out, _ = run(capsys, "purge", tmp_path, "--to", "binlog-000002.ibb", "--json")
    assert (code, json.loads(out)["removed"]) == (0, ["binlog-000000.ibb", "binlog-000001.ibb"])
    code, out, _ = run(capsys, "purge", tmp_path, "--max-total", "0")
    assert code == 1
    assert "is in use" in out
    assert run(capsys, "purge", tmp_path, "--before", "2001-01-01")[1].startswith("0 files removed")


def test_traditional_files_are_verified_and_sought_in_too(capsys, tmp_path):
    classic = IBB.parent / "classic" / "10.11" / "domains"
    code, out, _ = run(capsys, "verify", classic)
    assert (code, out) == (0, "9 files, 155 event groups: no faults\n")
    assert json.loads(run(capsys, "verify", classic, "--json")[1])["groups"] == 155
    code, out, _ = run(capsys, "seek", classic, "")
    assert (code, out) == (0, "position []\nstart at binlog.000001 offset 4, state []\n")
    answer = json.loads(run(capsys, "seek", classic, "", "--json")[1])
    assert answer == {"position": "", "file": "binlog.000001", "state": "", "offset": 4}
    for path in classic.iterdir():
        data = bytearray(path.read_bytes())
        if path.name == "binlog.000002":
            data[2000] ^= 1
        (tmp_path / path.name).write_bytes(data)
    code, out, _ = run(capsys, "verify", tmp_path)
    assert code == 1
    assert out.startswith("binlog.000002 offset ")


PURGES_REFUSED = {
    "a file name that is none": (["--to", "x"], "expected the name of a file, as binlog-000012.ibb"),
    "a time that is none": (["--before", "noon"], "expected a time, as '2026-01-31 12:00:00'"),
    "a size that is none": (["--max-total", "many"], "'many' is no size: expected a number of bytes, as 64M"),
    "a size that is not ASCII": (["--max-total", "٣M"], "expected a number of bytes"),
}


@pytest.mark.parametrize(("options", "message"), PURGES_REFUSED.values(), ids=PURGES_REFUSED)
def test_a_purge_that_makes_no_sense_is_refused(capsys, tmp_path, options, message):
    feed(tmp_path, range(1, 4))
    code, _, err = run(capsys, "purge", tmp_path, *options)
    assert (code, message in err) == (2, True)


def test_reset_asks_to_be_told_twice(capsys, tmp_path):
    feed(tmp_path, range(1, 4))
    code, _, err = run(capsys, "reset", tmp_path)
    assert (code, "add --yes to do it" in err) == (2, True)
    assert run(capsys, "reset", tmp_path, "--yes", "--state", "0-1-7") == (
        0,
        "the log begins again with binlog-000000.ibb, GTID state [0-1-7]\n",
        "",
    )


def test_backup_makes_a_directory_that_can_be_used(capsys, tmp_path):
    feed(tmp_path / "a", range(1, 20), crash=True)
    code, out, err = run(capsys, "backup", tmp_path / "a", "--to", tmp_path / "b", "--json")
    assert (code, err, json.loads(out)["gtid_state"]) == (0, "", "0-1-19")
    assert run(capsys, "verify", tmp_path / "b")[0] == 0
    code, _, err = run(capsys, "backup", tmp_path / "a", "--to", tmp_path / "b")
    assert (code, "is not empty: give a new directory" in err) == (2, True)


@pytest.mark.parametrize(
    "command",
    [["recover"], ["flush"], ["purge", "--max-total", "1"], ["reset", "--yes"], ["backup", "--to", "elsewhere"]],
    ids=lambda command: command[0],
)
def test_a_log_is_not_begun_where_there_is_none(capsys, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    code, out, err = run(capsys, command[0], "empty", *command[1:])
    assert (code, out, err) == (2, "", "ibbmaster: empty: no binlog files (binlog-000000.ibb and so on)\n")
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_directory_that_is_in_use_is_said_to_be(capsys, tmp_path):
    feed(tmp_path, range(1, 4))
    with BinlogStore(RealDisk(tmp_path)):
        code, _, err = run(capsys, "flush", tmp_path)
    assert (code, "another process is writing here; end it first" in err) == (2, True)
