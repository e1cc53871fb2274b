"""`ibbmaster import`: what it prints, what it leaves on disk, how it fails."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from ibbmaster.cli.main import parse_arguments
from ibbmaster.disk.local import RealDisk
from ibbmaster.errors import ClassicFormatError, ConfigurationError, MissingFileError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.log.directory import BinlogDirectory

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic" / "11.8"
SMALL = ["--max-file-size", "64K", "--state-interval", "16K"]


def run(*arguments: str | Path) -> int:
    args = parse_arguments(["import", *map(str, arguments)])
    code: int = args.run(args)
    return code


def test_it_says_what_was_imported(tmp_path, capsys) -> None:
    directory = tmp_path / "new" / "ibb"
    assert run(CLASSIC / "vectors", "--to", directory, *SMALL) == 0
    output, errors = capsys.readouterr()
    assert output.splitlines() == [
        f"37 event groups with 21508 bytes from 1 file -> {directory}/binlog-000000.ibb",
        "GTID position 0-1-37",
    ]
    assert errors == ""
    assert sorted(path.name for path in directory.iterdir()) == ["binlog-000000.ibb", "binlog-000001.ibb"]
    assert BinlogDirectory(RealDisk(directory)).state() == GtidState.parse("0-1-37")


def test_it_names_the_first_and_the_last_of_many_files(tmp_path, capsys) -> None:
    run(CLASSIC / "types-full-crc32", "--to", tmp_path, *SMALL)
    assert f"-> {tmp_path}/binlog-000000.ibb to binlog-0000" in capsys.readouterr().out


def test_the_report_is_one_line_of_json(tmp_path, capsys) -> None:
    files = [CLASSIC / "domains" / f"binlog.{number:06d}" for number in (3, 1, 2)]
    run(*files, "--to", tmp_path, "--json", *SMALL)
    [line] = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    assert report["classic_files"] == ["binlog.000001", "binlog.000002", "binlog.000003"]
    assert report["ibb_files"] == ["binlog-000000.ibb"]
    assert report["event_groups"] == 85
    assert report["skipped_event_groups"] == 0
    assert report["server_restarts"] == 0
    assert report["notices"] == []
    assert report["read_bytes"] == sum(path.stat().st_size for path in files)
    assert GtidState.parse(report["gtid_state"]).position() == GtidState.parse(report["gtid_position"]).position()


def test_append_goes_on_and_says_what_was_there(tmp_path, capsys) -> None:
    run(CLASSIC / "checksum-switch" / "binlog.000001", "--to", tmp_path, *SMALL)
    run(CLASSIC / "checksum-switch", "--to", tmp_path, "--append", *SMALL)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("6 event groups")
    assert lines[2].startswith("13 event groups")
    assert lines[3:] == ["6 groups were in the log already", "GTID position 0-1-19"]


def test_append_may_also_begin_a_log(tmp_path) -> None:
    assert run(CLASSIC / "vectors", "--to", tmp_path / "new", "--append", *SMALL) == 0


def test_a_dropped_tail_is_noted(tmp_path, capsys) -> None:
    cut = tmp_path / "binlog.000002"
    cut.write_bytes((CLASSIC / "crashed" / "binlog.000002").read_bytes()[:-1])
    assert run(cut, "--to", tmp_path / "ibb", *SMALL) == 0
    assert "\nnote: binlog.000002 offset " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ([CLASSIC / "encrypted"], ClassicFormatError, "encrypted"),
        ([CLASSIC / "none"], MissingFileError, "is not a file"),
        ([CLASSIC / "vectors", "--max-file-size", "63K"], ConfigurationError, "at least"),
        ([CLASSIC / "vectors", "--state-interval", "17K"], ConfigurationError, "power of two"),
        ([CLASSIC / "vectors", "--state-interval", "0"], ConfigurationError, "a GTID state every 0 bytes"),
        ([CLASSIC / "vectors", CLASSIC / "domains"], StoreError, "same number"),
    ],
)
def test_what_cannot_be_imported_leaves_no_directory(tmp_path, arguments, error, problem) -> None:
    with pytest.raises(error, match=problem):
        run(*arguments, "--to", tmp_path / "ibb")
    assert not (tmp_path / "ibb").exists()


def test_a_directory_that_is_not_empty_is_not_touched(tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="is not empty; --append goes on with the log in it"):
        run(CLASSIC / "vectors", "--to", tmp_path)
    with pytest.raises(StoreError, match="is not a directory"):
        run(CLASSIC / "vectors", "--to", tmp_path / "file", "--append")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_wrong_options_end_with_code_2(tmp_path, capsys) -> None:
    for arguments in ([], [CLASSIC / "vectors"], [CLASSIC / "vectors", "--to", tmp_path, "--max-file-size", "x"]):
        with pytest.raises(SystemExit, match="2"):
            run(*arguments)
    assert "'x' is not a size" in capsys.readouterr().err


def test_there_is_a_progress_bar_on_a_terminal(tmp_path) -> None:
    command = [sys.executable, "-m", "ibbmaster", "import", CLASSIC / "vectors", "--to", tmp_path / "ibb", *SMALL]
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


def test_nothing_heavy_is_loaded_for_its_options() -> None:
    program = (
        "import sys; from ibbmaster.cli.main import parse_arguments; parse_arguments(['import', 'x', '--to', 'y']); "
        "print({'tqdm', 'ibbmaster.classic', 'ibbmaster.store', 'ibbmaster.cli.import_'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=600)
    assert done.stdout == b"set()\n"
