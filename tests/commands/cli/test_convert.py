import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.cli.main import main, parse_arguments
from ibbmaster.errors import StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.storage.disk.local import RealDisk, left_unfinished

FIXTURES = Path(__file__).parents[3] / "fixtures"
DOMAINS = FIXTURES / "ibb/domains"
CLASSIC = FIXTURES / "classic/11.8"
SMALL = ["--max-file-size", "64K", "--state-interval", "16K"]


def import_to(directory: Path, *arguments: str | Path) -> int:
    sources = [str(one) for one in arguments if isinstance(one, Path)]
    options = [one for one in arguments if isinstance(one, str)]
    args = parse_arguments(["convert", "--to", "ibb", *SMALL, *sources, str(directory), *options])
    code: int = args.run(args)
    return code


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
    assert (facts["checksums"], facts["gtid_position"]) == ("none", "1-1-1,2-2-8")
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


def test_a_full_disk_is_one_line_and_leaves_nothing(run, tmp_path, monkeypatch):
    real = os.pwrite

    def pwrite(descriptor, data, offset):
        if offset > 20_000:
            raise OSError(28, "No space left on device")
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr("ibbmaster.logs.classic.series_writer.HELD_BYTES", 1000)
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
        "from ibbmaster.commands.cli.main import main\n"
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
    for number, _ in enumerate(damaged(FIXTURES / name, f"log/{Path(name).name}", copies=12, seed=11)):
        target = tmp_path / f"out{number}"
        code, _, err = run("convert", tmp_path / "log", target, "--to", "traditional")
        assert (code, target.exists()) in ((0, True), (2, False)), err
        assert err.count("\n") == (code != 0)


def test_it_says_what_was_imported(tmp_path, capsys):
    directory = tmp_path / "new" / "ibb"
    assert import_to(directory, CLASSIC / "vectors") == 0
    output, errors = capsys.readouterr()
    assert output.splitlines() == [
        f"37 event groups with 21508 bytes from 1 file -> {directory}/binlog-000000.ibb",
        "GTID position 0-1-37",
    ]
    assert errors == ""
    assert sorted(path.name for path in directory.iterdir()) == ["binlog-000000.ibb", "binlog-000001.ibb"]
    assert BinlogDirectory(RealDisk(directory)).state() == GtidState.parse("0-1-37")


def test_a_report_names_the_first_and_the_last_of_many_files(tmp_path, capsys):
    import_to(tmp_path, CLASSIC / "types-full-crc32")
    assert f"-> {tmp_path}/binlog-000000.ibb to binlog-0000" in capsys.readouterr().out


def test_the_report_of_an_import_is_one_line_of_json(tmp_path, capsys):
    files = [CLASSIC / "domains" / f"binlog.{number:06d}" for number in (3, 1, 2)]
    import_to(tmp_path, *files, "--json")
    [line] = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    assert report["source_files"] == ["binlog.000001", "binlog.000002", "binlog.000003"]
    assert report["files"] == ["binlog-000000.ibb"]
    assert report["groups"] == 85
    assert report["skipped_groups"] == 0
    assert report["server_restarts"] == 0
    assert report["notes"] == []
    assert report["read_bytes"] == sum(path.stat().st_size for path in files)
    assert GtidState.parse(report["gtid_state"]).position() == GtidState.parse(report["gtid_position"]).position()


def test_append_goes_on_and_says_what_was_there(tmp_path, capsys):
    import_to(tmp_path, CLASSIC / "checksum-switch" / "binlog.000001", "--append")  # it may also begin a log
    import_to(tmp_path, CLASSIC / "checksum-switch", "--append")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("6 event groups")
    assert lines[2].startswith("13 event groups")
    assert lines[3:] == ["6 groups were in the log already", "GTID position 0-1-19"]


def test_a_dropped_tail_is_noted(tmp_path, capsys):
    cut = tmp_path / "binlog.000002"
    cut.write_bytes((CLASSIC / "crashed" / "binlog.000002").read_bytes()[:-1])
    assert import_to(tmp_path / "ibb", cut) == 0
    assert "\nnote: binlog.000002 offset " in capsys.readouterr().out


def test_a_directory_that_is_not_empty_is_not_touched(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="is not empty; --append goes on with the log in it"):
        import_to(tmp_path, CLASSIC / "vectors")
    with pytest.raises(StoreError, match="is not a directory"):
        import_to(tmp_path / "file", CLASSIC / "vectors", "--append")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_wrong_options_end_with_code_2(tmp_path, capsys):
    for arguments in ([], [CLASSIC / "vectors"], [CLASSIC / "vectors", tmp_path, "--max-file-size", "x"]):
        with pytest.raises(SystemExit, match="2"):
            main(["convert", *map(str, arguments)])
    assert "'x' is not a size" in capsys.readouterr().err


def test_there_is_a_progress_bar_on_a_terminal(tmp_path):
    command = [sys.executable, "-m", "ibbmaster", "convert", CLASSIC / "vectors", tmp_path / "ibb", *SMALL]
    terminal, its_end = pty.openpty()
    os.set_blocking(terminal, False)
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))  # a new one has no columns
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=its_end, check=True, timeout=600)
        drawn = os.read(terminal, 65536).decode()
    finally:
        os.close(its_end)
        os.close(terminal)
    assert "B/s" in drawn
    assert done.stdout.decode().startswith("37 event groups")


def test_nothing_heavy_is_loaded_for_its_options():
    heavy = {"tqdm", "ibbmaster.logs.classic", "ibbmaster.logs.store", "ibbmaster.commands.cli.convert"}
    program = (
        "import sys; from ibbmaster.commands.cli.main import parse_arguments; parse_arguments(['convert', 'x', 'y']); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    assert not heavy & set(done.stdout.split())
