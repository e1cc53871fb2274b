"""What is acknowledged lies on the real disk: the calls of a real process are traced, and their order is looked at."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from ibbmaster.logs.store.redo_log import DURABLE_END_NAME
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.storage.disk import local as disk_module
from tests.built_logs import CLASSIC
from tests.machinery.events import make_event, new_group
from tests.machinery.stores import new_store

DOMAINS = CLASSIC / "11.8/domains"
SIZES = (40, 3000, 20_000, 90_000)
GROUPS = 12
CALLS = "openat,pwrite64,pwritev,pwritev2,write,fdatasync,fsync,ftruncate,truncate,fallocate,unlink,unlinkat,rename"
LINE = re.compile(r"(?P<pid>\d+) +(?:<\.\.\. (?P<resumed>\w+) resumed>|(?P<call>\w+)\()(?P<rest>.*)")
PATH = re.compile(r"<([^<>]*)>|\"([^\"]*)\"")
WRITER = """
import os, sys
from pathlib import Path
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.logs.store.store_options import Durability
from tests.simulation.test_syncs import feed
feed(Path(sys.argv[1]), Durability[sys.argv[2]], lambda number: os.write(1, b"ack %d\\n" % number))
"""


@dataclass
class Writes:
    """The changes of one file, or of the names in a directory, that no sync has covered yet."""

    under_way: int = 0
    pending: int = 0


@dataclass
class Trace:
    directory: str
    files: dict[str, Writes] = field(default_factory=dict)
    sync_count: int = 0

    def begin_change(self, path):
        self.of(path).under_way += 1

    def end_change(self, path):
        writes = self.of(path)
        writes.under_way -= 1
        writes.pending += 1

    def begin_sync(self, path):
        return self.of(path).pending

    def end_sync(self, path, covered):
        self.of(path).pending -= covered
        self.sync_count += 1

    def needs_size(self, path):
        """Whether the size of a file matters: whoever begins one, or a segment of the redo log, sees to it then."""
        return path in self.files and "ibbmaster-redo" not in path

    def of(self, path):
        return self.files.setdefault(path, Writes())

    def unsynced(self, prefix=""):
        return [
            name
            for path, writes in self.files.items()
            if (name := os.path.relpath(path, self.directory)).startswith(prefix) or name == "."
            if (writes.under_way or writes.pending) and name != DURABLE_END_NAME  # no crash needs that
        ]


def feed(directory, durability, acknowledged):
    with new_store(directory, StoreOptions(durability=durability, max_file_bytes=1 << 18, redo_bytes=1 << 20)) as store:
        for number in range(1, GROUPS + 1):
            store.write_direct(*new_group(number, make_event(160, 1, bytes([number]) * SIZES[number % len(SIZES)])))
            acknowledged(number)


def strace(directory, *command):
    program = shutil.which("strace")
    if program is None:
        pytest.skip("no strace, which shows the calls of a process")
    probe = subprocess.run([program, "-o", os.devnull, sys.executable, "-c", ""], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip(f"strace is not allowed here: {probe.stderr.decode(errors='replace').strip()[-100:]}")
    output = directory / "strace"
    places = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), os.getcwd()]))
    traced = [program, "-f", "-y", "-s", "64", "-e", f"trace={CALLS}", "-o", str(output), *command]
    environment = {**os.environ, "PYTHONPATH": places, "IBBMASTER_KERNELS": "off"}
    subprocess.run(traced, check=True, capture_output=True, env=environment)
    return output.read_text(errors="replace").splitlines()


def replay(lines, directory, said):
    trace = Trace(str(directory.resolve()))
    running: dict[str, tuple[str, str, int]] = {}  # by thread
    for line in lines:
        match = LINE.match(line)
        if match is None:
            continue
        pid, rest = match["pid"], match["rest"]
        if match["call"]:
            call = match["call"]
            is_creation = call == "openat" and "O_CREAT" in rest
            path = _path_of(call, rest)
            if call == "write" and rest.startswith("1<"):
                said(trace, rest)
            if not path.startswith(trace.directory) or (call == "openat" and not is_creation):
                continue
            if call in ("ftruncate", "truncate", "fallocate") and not trace.needs_size(path):
                continue
            if call in ("openat", "unlink", "unlinkat", "rename"):
                path = os.path.dirname(path)
            covered = trace.begin_sync(path) if call in ("fdatasync", "fsync") else trace.begin_change(path) or 0
            running[pid] = call, path, covered
            if rest.endswith("<unfinished ...>"):
                continue
        if pid in running and (match["call"] or match["resumed"] == running[pid][0]):
            call, path, covered = running.pop(pid)
            assert " = -1 " not in rest, line
            if call in ("fdatasync", "fsync"):
                trace.end_sync(path, covered)
            else:
                trace.end_change(path)
    return trace


def _path_of(call, rest):
    found = [descriptor or name for descriptor, name in PATH.findall(rest)]
    if call == "rename":  # of a file, or of the directory that a backup was made in
        return found[0]
    if call in ("openat", "unlink", "unlinkat", "rename", "truncate"):
        return next((path for path in found if path.rpartition("/")[2].startswith(("binlog-", "ibbmaster-"))), "")
    return found[0] if found else ""


@pytest.mark.parametrize("durability", [Durability.SYNC, Durability.WRITE], ids=lambda value: value.name)
def test_a_real_process_acknowledges_what_it_has_written_or_synced(tmp_path, durability):
    directory = tmp_path / "log"
    directory.mkdir()
    acknowledged = []

    def said(trace, text):
        if "ack " in text:
            redo = next(path for path in trace.files if "ibbmaster-redo" in path)
            acknowledged.append((trace.unsynced("ibbmaster-redo"), trace.of(redo).under_way, trace.sync_count))

    trace = replay(strace(tmp_path, sys.executable, "-c", WRITER, str(directory), durability.name), directory, said)

    assert len(acknowledged) == GROUPS
    assert trace.unsynced() == []  # the store was closed
    if durability is Durability.SYNC:
        assert [unsynced for unsynced, _, _ in acknowledged] == [[]] * GROUPS
        assert len({sync_count for _, _, sync_count in acknowledged}) == GROUPS
    else:
        assert {under_way for _, under_way, _ in acknowledged} == {0}
        assert any(unsynced for unsynced, _, _ in acknowledged)  # else this would show nothing


def test_an_import_and_a_backup_are_on_the_disk_when_they_are_reported(tmp_path):
    log, copy = tmp_path / "log", tmp_path / "copy"
    log.mkdir()
    for command, target in (
        (["convert", str(DOMAINS), str(log)], log),
        (["backup", str(log), "--to", str(copy)], copy),
    ):
        reported: list[list[str]] = []
        lines = strace(tmp_path, sys.executable, "-m", "ibbmaster", *command)
        trace = replay(lines, tmp_path, lambda trace, text, reported=reported: reported.append(trace.unsynced()))
        assert reported, command
        assert all(unsynced == [] for unsynced in reported), (command, reported)
        assert trace.sync_count >= len(list(target.glob("binlog-*.ibb")))


@pytest.mark.parametrize("durability", [Durability.SYNC, Durability.WRITE], ids=lambda value: value.name)
def test_the_real_disk_calls_what_it_promises(tmp_path, monkeypatch, durability):
    trace, acknowledged = Trace(str(tmp_path.resolve())), []

    def path_of(descriptor):
        return os.readlink(f"/proc/self/fd/{descriptor}")

    def changing(name):
        real = getattr(os, name)

        def call(target, *arguments):
            path = path_of(target) if isinstance(target, int) else str(target)
            if name != "pwrite" and not trace.needs_size(path):
                return real(target, *arguments)
            trace.begin_change(path)
            try:
                return real(target, *arguments)
            finally:
                trace.end_change(path)

        monkeypatch.setattr(disk_module.os, name, call)

    def syncing(name):
        real = getattr(os, name)

        def call(descriptor):
            path = path_of(descriptor)
            covered = trace.begin_sync(path)
            real(descriptor)
            trace.end_sync(path, covered)

        monkeypatch.setattr(disk_module.os, name, call)

    for name in ("pwrite", "truncate", "posix_fallocate"):
        changing(name)
    for name in ("fdatasync", "fsync"):
        syncing(name)
    feed(tmp_path, durability, lambda number: acknowledged.append((trace.unsynced("ibbmaster-redo"), trace.sync_count)))

    assert trace.unsynced() == []
    if durability is Durability.SYNC:
        assert [unsynced for unsynced, _ in acknowledged] == [[]] * GROUPS
        assert len({count for _, count in acknowledged}) == GROUPS
    else:
        assert any(unsynced for unsynced, _ in acknowledged)
    assert "." in [os.path.relpath(path, tmp_path) for path in trace.files]  # the directory, for the names of new files
