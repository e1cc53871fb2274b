"""Another process compiles: once, whoever asks at the same time, and again if it was killed."""

import fcntl
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ibbmaster.kernel import compiling
from ibbmaster.kernel.cache import LOCK_FILE, KernelCache, cache_key
from ibbmaster.kernel.compiling import TOOK, CompilationError, compile_elsewhere
from ibbmaster.kernel.parts import KERNELS, KernelPart, KernelSet


@pytest.fixture
def empty(tmp_path):
    cache = KernelCache(tmp_path / cache_key())
    assert cache.make()
    return cache


def test_what_is_there_is_not_compiled_again(filled):
    heard = []
    compile_elsewhere(filled, [KernelSet.VERIFY], progress=lambda done, total: heard.append(done))
    assert heard == []


def test_two_at_once_compile_once(empty):
    command = [sys.executable, "-m", compiling.__name__, str(empty.path), KernelSet.IMPORT]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=600)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(text.count(TOOK) for text in said) == [0, len(KERNELS[KernelPart.CONVERT]) + 1]
    assert empty.has([KernelSet.IMPORT])


def test_a_compiler_that_is_killed_leaves_nothing_that_counts(empty):
    def kill(done, total):
        for process in compiling._running:
            process.kill()

    with pytest.raises(CompilationError, match="ended with -9"):
        compile_elsewhere(empty, [KernelSet.VERIFY], progress=kill)
    assert not empty.has([KernelSet.VERIFY])
    (empty.path / "check.o.new").write_bytes(b"half")
    compile_elsewhere(empty, [KernelSet.VERIFY])
    assert empty.has([KernelSet.VERIFY])
    assert not list(empty.path.glob("*.new"))


TWO_PARTS = [KernelPart.PLACE, KernelPart.CONVERT]  # that take a second each
STEPS = sum(len(KERNELS[part]) + 1 for part in TWO_PARTS)  # each kernel, and the code of all


needs_two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="no core idles: there is no helper")


def helpers_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@needs_two_cores
def test_a_helper_takes_the_last_part(empty):
    helpers, heard = set(), []

    def hear(done, total):
        helpers.update(*(helpers_of(process.pid) for process in compiling._running))
        heard.append((done, total))

    compile_elsewhere(empty, TWO_PARTS, progress=hear)
    assert len(helpers) == 1
    assert heard == [(done, STEPS) for done in range(STEPS + 1)]
    assert empty.parts() == set(TWO_PARTS)


@needs_two_cores
def test_what_a_helper_had_begun_that_was_killed_is_compiled(empty):
    killed, heard = [], []

    def kill(name, seconds):
        """Once the helper has taken the first step of its part, which is taken again then."""
        if name.startswith(KernelPart.CONVERT) and not killed:
            killed.extend(pid for process in compiling._running for pid in helpers_of(process.pid))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    compile_elsewhere(empty, TWO_PARTS, on_cost=kill, progress=lambda *steps: heard.append(steps))
    assert len(killed) == 1
    assert heard == [*((done, STEPS) for done in range(STEPS + 1)), (STEPS, STEPS)]
    assert empty.parts() == set(TWO_PARTS)
    assert not list(empty.path.glob("*.new"))


@needs_two_cores
def test_a_helper_ends_with_the_process_that_it_helps(empty):
    def kill(done, total):
        """Once both are at work, the helper with the last part."""
        for process in compiling._running if done else ():
            process.kill()

    with pytest.raises(CompilationError, match="ended with -9"):
        compile_elsewhere(empty, [*TWO_PARTS, KernelPart.CHECK], progress=kill)
    with empty.locked():  # which the helper has, too
        assert empty.parts() == {KernelPart.CHECK}
    compile_elsewhere(empty, TWO_PARTS)
    assert empty.parts() >= set(TWO_PARTS)


def test_a_directory_that_goes_away_under_the_process_is_no_matter(empty, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    compile_elsewhere(empty, [KernelSet.VERIFY])
    assert empty.has([KernelSet.VERIFY])


def test_it_does_not_compile_for_another_version_of_the_sources(tmp_path):
    cache = KernelCache(tmp_path / "0123456789abcdef")
    cache.make()
    with pytest.raises(CompilationError, match="has changed since the process began that asks: restart it"):
        compile_elsewhere(cache, [KernelSet.VERIFY])
    assert [path.name for path in cache.path.iterdir()] == []


def test_an_interpreter_that_cannot_be_run_is_named(empty, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(CompilationError, match="cannot run /nowhere/python"):
        compile_elsewhere(empty, [KernelSet.VERIFY])


class WriteCount(io.RawIOBase):
    """Keeps what each call writes."""

    def __init__(self):
        super().__init__()
        self.writes = []

    def writable(self):
        return True

    def write(self, data):
        self.writes.append(bytes(data))
        return len(data)


def test_a_line_is_written_at_once_also_where_nothing_is_buffered(empty, monkeypatch):
    """Two processes write to one pipe: what comes between a line and its end spoils both."""
    raw = WriteCount()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, write_through=True))  # as with PYTHONUNBUFFERED
    monkeypatch.setattr(compiling, "compile_here", lambda cache, wanted, say, wait_s: say("one line"))
    before = os.umask(0o077)
    try:
        assert compiling.main([str(empty.path), KernelSet.VERIFY]) == 0
    finally:
        os.umask(before)
    assert raw.writes == [b"one line\n"]


EXIT = """
import sys, threading, time
from ibbmaster.kernel import loading
from ibbmaster.kernel.parts import KernelSet
loading.load_in_background(KernelSet.SERVE)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("seconds", [0, 0.2, 1, 2])
def test_a_process_may_end_at_any_moment_of_the_first_start(tmp_path, monkeypatch, seconds):
    monkeypatch.setenv("IBBMASTER_KERNEL_CACHE", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", EXIT, str(seconds)], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for lock in tmp_path.glob(f"*/{LOCK_FILE}"):
        with lock.open() as file:  # the compiling process has ended, too
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
