"""What reads a log leaves its directory as it was: it may be that of a running server, or a read-only file system."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ibbmaster
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.importing import import_classic

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "fixtures"
sys.path.insert(0, str(HERE))
from readers import DONE  # noqa: E402

MOUNTED = """
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && ! touch "$1/x" 2>/dev/null && exec "$2" "$3" "$1" "$4"
"""
WAYS = ["commands", "library", "clients"]
KINDS = ["ibb files", "of a killed writer", "traditional files"]


@pytest.fixture(params=KINDS)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "log"
    capture = FIXTURES / "classic" / "11.8" / "domains"
    if request.param == "traditional files":
        return Path(shutil.copytree(capture, path))
    path.mkdir()
    disk = RealDisk(path)
    small = {"max_file_bytes": 64 << 10, "state_interval_bytes": 16 << 10}
    import_classic([capture], disk, **small)
    disk.close()
    if request.param == "ibb files":
        return path
    with ibbmaster.open(path, writable=True, has_background=False, redo_bytes=256 << 10, **small) as writer:
        writer.append("0-1-4000000", "CREATE TABLE d.left_behind (a INT)")
        killed = tmp_path / "killed"
        shutil.copytree(path, killed)
    assert [one.name for one in killed.iterdir() if one.suffix != ".ibb"]
    return killed


def look(path: Path) -> dict[str, tuple[int, ...]]:
    """All that a change of a directory or of a file in it would change, also one that was taken back."""
    found = {}
    for one in [path, *sorted(path.rglob("*"))]:
        seen = one.lstat()
        found[str(one)] = (seen.st_ino, seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    return found


def test_who_reads_leaves_no_trace(log: Path, tmp_path: Path) -> None:
    """In a process of its own, as users read: pytest parses each module anew, and Python 3.11 not in two threads."""
    before = look(log)
    run = [sys.executable, str(HERE / "readers.py"), str(log), str(tmp_path)]
    done = []
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as readers:
        assert readers.stdin is not None
        assert readers.stdout is not None
        for line in readers.stdout:
            if line.startswith(DONE):
                done.append(line.removeprefix(DONE).strip())
                assert look(log) == before, done
                readers.stdin.write("\n")
                readers.stdin.flush()
    assert (readers.returncode, done) == (0, WAYS)


@pytest.mark.parametrize("log", KINDS[1:], indirect=True)
def test_a_file_system_may_be_read_only(log: Path, tmp_path: Path) -> None:
    run = [sys.executable, str(HERE / "readers.py")]
    if os.geteuid() != 0:
        log.chmod(0o555)
        command = [*run, str(log), str(tmp_path)]
    else:
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
            pytest.skip("root writes to any directory, and cannot mount one read-only here")
        command = ["unshare", "-m", "sh", "-c", MOUNTED, "sh", str(log), *run, str(tmp_path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
    ways = [line.removeprefix(DONE).strip() for line in done.stdout.splitlines() if line.startswith(DONE)]
    assert (done.returncode, ways) == (0, WAYS), done.stderr


def test_spark_leaves_no_trace(log: Path, spark: Any) -> None:
    name = "ibb" if any(log.glob("*.ibb")) else "mariadb_binlog"
    before = look(log)
    assert spark.read.format(name).load(str(log)).count() > 0
    assert look(log) == before
