"""`ibbmaster convert`: both ways, parts, and what is left where it fails."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.disk.local import left_unfinished

FIXTURES = Path(__file__).parents[2] / "fixtures"
DOMAINS = FIXTURES / "ibb/domains"


def gtids_in(path):
    with ibbmaster.open(path) as log:
        return [str(group.gtid) for group in log.groups()]


def test_there_and_back(run, tmp_path):
    code, out, err = run("convert", DOMAINS, tmp_path / "files", "--max-file-size", "10K")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == (
        f"155 event groups with 38912 bytes -> {tmp_path / 'files/binlog.000001'} to binlog.000005"
    )
    code, out, _ = run("convert", tmp_path / "files/binlog.index", tmp_path / "pages", "--max-file-size", "64K")
    assert code == 0
    assert out.startswith("155 event groups with 38912 bytes from 5 files")
    assert gtids_in(tmp_path / "pages") == gtids_in(DOMAINS)
    assert run("verify", tmp_path / "files")[1].endswith("no faults\n")


def test_a_part_under_another_name_and_version(run, tmp_path):
    code, out, _ = run(
        *("convert", DOMAINS, tmp_path / "out", "--profile", "classic-10.11", "--server-version", "10.11.7-MariaDB-x"),
        *("--checksum", "none", "--name", "mysql-bin", "--until", "1-1-1,2-2-8", "--json"),
    )
    report = json.loads(out)
    assert (code, report["files"], report["server_version"]) == (0, ["mysql-bin.000001"], "10.11.7-MariaDB-x")
    assert report["gtid_position"] == "1-1-1,2-2-8"
    facts = json.loads(run("info", tmp_path / "out", "--json")[1])
    assert (facts["checksums"], facts["position"]) == ("none", "1-1-1,2-2-8")
    expected = ["mysql-bin.000001", "mysql-bin.index", "mysql-bin.state"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == expected


def test_a_part_of_files_of_the_same_kind(run, tmp_path):
    code, _, _ = run(
        *("convert", FIXTURES / "classic/10.11/domains", tmp_path / "out", "--to", "traditional"),
        *("--domain", "7", "--drop-empty"),
    )
    assert code == 0
    assert {gtid.partition("-")[0] for gtid in gtids_in(tmp_path / "out")} == {"7"}
    code, _, _ = run("convert", DOMAINS, tmp_path / "pages", "--to", "ibb", "--domain", "7", "--drop-empty")
    assert code == 0
    assert gtids_in(tmp_path / "pages") == gtids_in(tmp_path / "out")


REFUSED = json.loads(Path(__file__).with_suffix(".json").read_text())


# As mysql-test/suite/binlog_in_engine/mysqlbinlog_convert_engine_binlog_unsupported_options.test
@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_converted_is_one_line_and_leaves_nothing(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("mine")
    code, out, err = run("convert", *(one.replace("FIXTURES", str(FIXTURES)) for one in arguments))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["full", "full/file"]


def test_a_full_disk_is_one_line_and_leaves_nothing(run, tmp_path, monkeypatch):
    real = os.pwrite

    def pwrite(descriptor, data, offset):
        if offset > 20_000:
            raise OSError(28, "No space left on device")
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr("ibbmaster.classic.series_writer.HELD_BYTES", 1000)
    code, out, err = run("convert", DOMAINS, tmp_path / "out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "binlog.000001: No space left on device" in err
    assert list(tmp_path.iterdir()) == []


def test_who_is_killed_leaves_nothing_that_looks_whole_and_the_next_run_names_it(run, tmp_path):
    target = tmp_path / "out"
    slow = (
        "import os, sys, time\n"
        "real = os.fdatasync\n"
        "os.fdatasync = lambda descriptor: time.sleep(600)\n"
        "from ibbmaster.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    killed = subprocess.Popen([sys.executable, "-c", slow, "convert", DOMAINS, target])
    try:
        while not (left := left_unfinished(target)) or not any(left[0].glob("binlog.state")):
            assert killed.poll() is None
            time.sleep(0.01)
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    assert not target.exists()
    code, _, err = run("convert", DOMAINS, target)
    assert code == 0
    assert err == f"note: {left[0]} is what a run left that was killed, unless it is under way: remove it\n"
    assert gtids_in(target) == gtids_in(DOMAINS)
    shutil.rmtree(left[0])


@pytest.mark.parametrize("name", ["ibb/domains/binlog-000000.ibb", "classic/10.11/checksum-switch/binlog.000003"])
def test_damage_is_converted_up_to_nothing(run, tmp_path, damaged, name):
    """Truncated and flipped files: converted whole, or one line and no target."""
    for number, _ in enumerate(damaged(FIXTURES / name, f"log/{Path(name).name}", copies=12, seed=11)):
        target = tmp_path / f"out{number}"
        code, _, err = run("convert", tmp_path / "log", target, "--to", "traditional")
        assert (code, target.exists()) in ((0, True), (2, False)), err
        assert err.count("\n") == (code != 0)
