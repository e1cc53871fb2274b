"""Where the kernels cannot be had, everything goes on without them; where they can, no process but one compiles."""

from __future__ import annotations

import logging
import tempfile
import threading

import pytest

from ibbmaster.kernel import loading
from ibbmaster.kernel.cache import ENVIRONMENT, KernelSet

PROGRAM = """
import logging
logging.basicConfig(level=20)
from ibbmaster.kernel import loading
from ibbmaster.kernel.cache import KernelSet
print(loading.load(KernelSet.VERIFY))
"""


def test_they_are_there_once_they_are_loaded():
    assert loading.load() is loading.kernels() is not None


@pytest.mark.parametrize("word", ["off", "0", "NO"])
def test_the_switch_turns_them_off(word, said_by):
    assert said_by(PROGRAM, **{loading.SWITCH: word}) == "None"


def test_without_numba_it_is_said_how_to_get_it(tmp_path, said_by):
    (tmp_path / "numba.py").write_text("raise ImportError('not here')\n")
    said = said_by(PROGRAM, PYTHONPATH=str(tmp_path))
    assert said.startswith("None\n")
    assert "pip install ibbmaster[fast]" in said


def test_a_broken_numba_is_reported_and_survived(tmp_path, said_by):
    (tmp_path / "numba.py").write_text("class config: CACHE_DIR = ''\n")
    said = said_by(PROGRAM, PYTHONPATH=str(tmp_path))
    assert said.startswith("None")
    assert "going on without them" in said


COMPILED_HERE = """
from numba.core import event
with event.install_recorder("numba:run_pass") as recorder:
    exec(PROGRAM)
print(len(recorder.buffer), "passes of the compiler")
"""


def test_they_are_never_compiled_where_they_are_used(tmp_path, said_by):
    program = f"PROGRAM = {PROGRAM!r}\n{COMPILED_HERE}"
    environment = {ENVIRONMENT: str(tmp_path / "cache")}
    assert "\n0 passes of the compiler" in said_by(program, **environment)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert "\n0 passes of the compiler" in said_by(program, **environment)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == files  # it may be read-only


NOWHERE = "/proc/no-such-directory"  # cannot be made, not even by root


def test_where_no_cache_can_be_written_they_are_compiled_for_now_and_that_is_told_once(tmp_path, said_by):
    said = said_by(
        PROGRAM + "print(loading.load(KernelSet.VERIFY))", TMPDIR=str(tmp_path), **{ENVIRONMENT: NOWHERE}
    ).splitlines()
    assert [line for line in said if "WARNING" in line] == [
        f"WARNING:ibbmaster.kernel.loading:{NOWHERE} cannot be written: kernels are compiled at each start; "
        f"let {ENVIRONMENT} name a directory that can be, or one that `ibbmaster warm-up` has filled"
    ]
    assert sum(line.startswith("<module 'ibbmaster.kernel.warm'") for line in said) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def fresh(monkeypatch):
    """As in a process that has just begun."""
    monkeypatch.setattr(loading, "_ready", None)
    monkeypatch.setattr(loading, "_loaded", set())
    monkeypatch.setattr(loading, "_has_failed", False)


def test_where_nothing_can_be_written_at_all_it_goes_on_without_them(fresh, monkeypatch, caplog):
    def refuse(**options):
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setenv(ENVIRONMENT, NOWHERE)
    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    assert loading.load() is None
    assert loading.load() is None
    assert [record.exc_info for record in caplog.records] == [None, None]  # a line each, said once
    assert "going on without them: nor is there a temporary directory" in caplog.text


@pytest.mark.parametrize("size", [0, loading.WORK_TO_LOAD, loading.WORK_TO_COMPILE])
@pytest.mark.parametrize("is_cached", [False, True])
def test_kernels_are_loaded_for_work_that_is_done_sooner_with_them(monkeypatch, size, is_cached):
    monkeypatch.setattr(loading, "is_cached", lambda kernel_set: is_cached)
    loaded = []
    monkeypatch.setattr(loading, "load", lambda kernel_set, progress: loaded.append(kernel_set))
    loading.load_for_work(KernelSet.IMPORT, size)
    loading.load_for_work(KernelSet.IMPORT, size - 1)
    least = loading.WORK_TO_LOAD if is_cached else loading.WORK_TO_COMPILE
    assert loaded == [KernelSet.IMPORT] * sum(work >= least for work in (size, size - 1))


def test_it_is_known_beforehand_whether_they_must_be_compiled(filled, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, str(filled.path.parent))
    assert loading.is_cached(KernelSet.VERIFY)
    assert not loading.is_cached(KernelSet.SERVE)
    monkeypatch.setenv(loading.SWITCH, "off")
    assert not loading.is_cached(KernelSet.VERIFY)


AT_EXIT = """
import atexit, threading
def look():
    print([thread.name for thread in threading.enumerate() if thread.name == "ibbmaster-kernels"])
atexit.register(look)  # what is registered later is called before
from ibbmaster.kernel import loading
from ibbmaster.kernel.cache import KernelSet
loading.load_in_background(KernelSet.VERIFY)
"""


def test_no_thread_loads_kernels_when_the_interpreter_goes(filled, said_by):
    assert said_by(AT_EXIT, **{ENVIRONMENT: str(filled.path.parent)}) == "[]"


OF_LONG_EVENTS_TOO = {"copy_strings", "decode_rows", "header_columns", "index_events"}  # these are in no buffer of ours


def test_each_kernel_is_compiled_for_one_kind_of_arguments():
    kernels = loading.load()
    assert kernels is not None
    for name in kernels.__all__:
        kernel = getattr(kernels, name)
        if hasattr(kernel, "signatures"):
            assert len(kernel.signatures) == 1 + (name in OF_LONG_EVENTS_TOO), name


def test_it_is_logged_when_they_are_ready(fresh, caplog):
    with caplog.at_level(logging.INFO):
        assert loading.load() is not None
    assert any(loading.READY in record.getMessage() for record in caplog.records)


def test_who_asks_again_while_kernels_are_loaded_waits_for_the_same(monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    calls = []

    def load(*sets, is_nice):
        calls.append(set(sets))
        begun.set()
        go_on.wait()

    monkeypatch.setattr(loading, "load", load)
    monkeypatch.setattr(loading, "_loaded", set())
    monkeypatch.setattr(loading, "_has_failed", False)
    loading.load_in_background(KernelSet.SELECT)
    begun.wait()
    threads = [thread for thread in threading.enumerate() if thread.name == "ibbmaster-kernels"]
    for _ in range(20):
        loading.load_in_background(KernelSet.SELECT)
    again = [thread for thread in threading.enumerate() if thread.name == "ibbmaster-kernels"]
    go_on.set()
    for thread in threads:
        thread.join()
    assert again == threads
    assert calls == [{KernelSet.SELECT}]
    loading.load_in_background(KernelSet.SELECT)  # it may have failed for a while
    assert calls == [{KernelSet.SELECT}] * 2
