"""Where the kernels cannot be had, everything goes on without them; where they can, no process but one compiles."""

import logging
import shutil
import subprocess
import tempfile
import threading

import pytest

from ibbmaster.kernel import loading
from ibbmaster.kernel.cache import ENVIRONMENT, KernelCache, cache_key
from ibbmaster.kernel.compiling import CompilationError, EndingError
from ibbmaster.kernel.parts import PARTS, KernelPart, KernelSet

PROGRAM = """
import logging
logging.basicConfig(level=20)
from ibbmaster.kernel import loading
from ibbmaster.kernel.parts import KernelSet
print(loading.load(KernelSet.VERIFY))
"""


@pytest.fixture
def fresh(monkeypatch):
    """As in a process that has just begun."""
    monkeypatch.setattr(loading, "_entries", None)
    monkeypatch.setattr(loading, "_loaded", set())
    monkeypatch.setattr(loading, "_has_failed", False)


def test_they_are_there_once_they_are_loaded():
    assert loading.load() is loading.kernels() is not None


@pytest.mark.parametrize("word", ["off", "0", "NO"])
def test_the_switch_turns_them_off(word, said_by):
    assert said_by(PROGRAM, **{loading.SWITCH: word}) == "None"


@pytest.mark.parametrize("module", ["numba", "llvmlite"])
def test_without_numba_it_is_said_how_to_get_it(tmp_path, said_by, module):
    (tmp_path / f"{module}.py").write_text("raise ImportError('not here')\n")
    said = said_by(PROGRAM, PYTHONPATH=str(tmp_path), **{ENVIRONMENT: str(tmp_path / "cache")})
    assert said.startswith("None\n")
    assert "pip install 'ibbmaster[fast]'" in said
    assert "WARNING" not in said


def test_a_broken_numba_is_reported_and_survived(tmp_path, said_by):
    (tmp_path / "numba.py").write_text("class config: CACHE_DIR = ''\n")
    said = said_by(PROGRAM, PYTHONPATH=str(tmp_path), **{ENVIRONMENT: str(tmp_path / "cache")})
    assert said.startswith("None")
    assert "going on without them" in said


def test_they_are_never_compiled_where_they_are_used_and_need_no_numba_there(tmp_path, said_by):
    program = PROGRAM + "import sys\nprint('numba' in sys.modules)\n"
    environment = {ENVIRONMENT: str(tmp_path / "cache")}
    said = said_by(program, **environment).splitlines()
    assert said[0].startswith("<ibbmaster.kernel.entries.Entries")
    assert said[1] == "False"
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert said_by(program, **environment).splitlines()[1] == "False"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == files  # it may be read-only


def test_neither_numba_nor_llvm_is_loaded_before_kernels_are_wanted(said_by):
    program = "import sys, ibbmaster.kernel.loading\nprint({'numba', 'llvmlite', 'numpy'} & set(sys.modules))\n"
    assert said_by(program) == "set()"


def test_each_part_is_ready_as_soon_as_it_is_compiled(fresh, tmp_path, filled, monkeypatch):
    """Others of the same set may take long."""
    cache = KernelCache(tmp_path / "cache" / filled.path.name)
    monkeypatch.setenv(ENVIRONMENT, str(cache.path.parent))
    monkeypatch.setitem(PARTS, KernelSet.SERVE, (KernelPart.CHECK, KernelPart.CONVERT))
    seen = []

    def compile_elsewhere(cache, parts, *, on_part, **options):
        assert list(parts) == [KernelPart.CHECK, KernelPart.CONVERT]
        cache.keep(KernelPart.CHECK, filled.read(KernelPart.CHECK))
        on_part(KernelPart.CHECK)
        seen.append((loading.kernels(KernelPart.CHECK) is not None, loading.kernels(KernelSet.SERVE)))
        raise EndingError("over")

    monkeypatch.setattr(loading, "compile_elsewhere", compile_elsewhere)
    assert loading.load(KernelSet.SERVE, is_nice=True) is None
    assert seen == [(True, None)]


NOWHERE = "/proc/no-such-directory"  # cannot be made, not even by root


def test_where_no_cache_can_be_written_they_are_compiled_for_now_and_that_is_told_once(tmp_path, said_by):
    said = said_by(
        PROGRAM + "print(loading.load(KernelSet.VERIFY))", TMPDIR=str(tmp_path), **{ENVIRONMENT: NOWHERE}
    ).splitlines()
    assert [line for line in said if "WARNING" in line] == [
        f"WARNING:ibbmaster.kernel.loading:{NOWHERE} cannot be written: kernels are compiled at each start; "
        f"let {ENVIRONMENT} name a directory that can be, or one that `ibbmaster warm-up` has filled"
    ]
    assert sum(line.startswith("<ibbmaster.kernel.entries.Entries") for line in said) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def planted(filled, tmp_path):
    """A cache in which somebody has put code, listed as it must be, that ends the process when it is loaded."""
    spoiled = KernelCache(tmp_path / "cache" / filled.path.name)
    shutil.copytree(filled.path, spoiled.path)
    spoiled.keep(KernelPart.CHECK, b"no object file")
    return spoiled


def test_code_that_others_may_have_planted_is_never_run(planted, said_by):
    named = {ENVIRONMENT: str(planted.path.parent)}
    with pytest.raises(subprocess.CalledProcessError):
        said_by(PROGRAM, **named)  # it would be
    planted.path.parent.chmod(0o777)
    said = said_by(PROGRAM, **named)
    assert "<ibbmaster.kernel.entries.Entries" in said
    assert [line for line in said.splitlines() if "WARNING" in line] == [
        "WARNING:ibbmaster.kernel.loading:compiled kernels are not taken from where others may have written them: "
        f"other users can write {planted.path.parent}; make it yours alone, or let {ENVIRONMENT} name another "
        "directory; kernels are compiled at each start"
    ]


def test_warm_up_fills_no_cache_that_others_can_write(planted, monkeypatch):
    planted.path.chmod(0o777)
    monkeypatch.setenv(ENVIRONMENT, str(planted.path.parent))
    with pytest.raises(CompilationError, match=f"other users can write {planted.path}"):
        loading.fill_cache([KernelSet.VERIFY])


@pytest.fixture
def occupied(tmp_path):
    """A cache in which another process compiles, at its leisure."""
    cache = KernelCache(tmp_path / "cache" / cache_key())
    assert cache.make()
    with cache.locked():
        yield cache


def test_who_has_work_to_do_does_not_wait_long_for_a_process_that_compiles_at_leisure(occupied, said_by):
    begin = "from ibbmaster.kernel import loading\nloading.WAIT_S = 0.3\n"
    said = said_by(begin + PROGRAM, **{ENVIRONMENT: str(occupied.path.parent)})
    assert "<ibbmaster.kernel.entries.Entries" in said
    assert [line for line in said.splitlines() if "WARNING" in line] == [
        "WARNING:ibbmaster.kernel.loading:another process compiles the fast kernels: waiting for it, 0.3 s at most",
        "WARNING:ibbmaster.kernel.loading:another process compiles the fast kernels still: compiling them here, too, "
        "for this process alone",
    ]


def test_who_has_work_to_do_does_not_wait_for_a_thread_that_compiles_at_leisure(fresh, filled, monkeypatch):
    """As `to_arrow` beside `serve` in one process."""
    monkeypatch.setenv(ENVIRONMENT, str(filled.path.parent))
    begun, go_on = threading.Event(), threading.Event()
    compile_elsewhere = loading.compile_elsewhere

    def wait(cache, sets, **options):
        begun.set()
        go_on.wait()
        raise EndingError("over")

    monkeypatch.setattr(loading, "compile_elsewhere", wait)
    leisurely = threading.Thread(target=lambda: loading.load(KernelSet.SERVE, is_nice=True))
    leisurely.start()
    begun.wait()
    monkeypatch.setattr(loading, "compile_elsewhere", compile_elsewhere)
    assert loading.load(KernelSet.VERIFY) is not None
    go_on.set()
    leisurely.join()


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
from ibbmaster.kernel.parts import KernelSet
loading.load_in_background(KernelSet.VERIFY)
"""


def test_no_thread_loads_kernels_when_the_interpreter_goes(filled, said_by):
    assert said_by(AT_EXIT, **{ENVIRONMENT: str(filled.path.parent)}) == "[]"


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
    assert calls == [set(PARTS[KernelSet.SELECT])]
    loading.load_in_background(KernelSet.SELECT)  # it may have failed for a while
    assert calls == [set(PARTS[KernelSet.SELECT])] * 2


def test_a_cache_that_others_opened_while_it_was_filled_is_not_read(fresh, filled, tmp_path, monkeypatch, caplog):
    """In a shared directory somebody may be faster than the process that compiles."""
    named = KernelCache(tmp_path / "cache" / filled.path.name)
    monkeypatch.setenv(ENVIRONMENT, str(named.path.parent))

    def compile_elsewhere(cache, sets, **options):
        shutil.copytree(filled.path, cache.path, dirs_exist_ok=True)
        cache.path.chmod(0o777)

    monkeypatch.setattr(loading, "compile_elsewhere", compile_elsewhere)
    assert loading.load(KernelSet.VERIFY) is None
    assert f"going on without them: other users can write {named.path}" in caplog.text


def test_who_waits_for_a_thread_that_is_about_to_start_waits_for_it(monkeypatch):
    errors = []

    def wait():
        try:
            loading.wait_for_kernels()
        except RuntimeError as error:
            errors.append(error)

    class LateThread(threading.Thread):
        def start(self):
            waiting.start()
            waiting.join(0.1)  # it has to wait; one that does not is through by then
            super().start()

    waiting = threading.Thread(target=wait)
    monkeypatch.setattr(loading, "_loaded", set())
    monkeypatch.setattr(loading, "_loaders", {})
    monkeypatch.setattr(loading.threading, "Thread", LateThread)
    loading.load_in_background(KernelSet.SELECT)
    waiting.join()

    assert errors == []
