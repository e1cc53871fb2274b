"""A cache of kernels is trusted only where it is whole, and made from what runs now."""

import os
import shutil
from pathlib import Path

import pytest

from ibbmaster.kernel import cache as caching
from ibbmaster.kernel.cache import ENVIRONMENT, KernelCache, find_directory, source_files
from ibbmaster.kernel.compiling import compile_elsewhere
from ibbmaster.kernel.parts import KernelPart, KernelSet

PACKAGE = Path(caching.__file__).parents[1]
KEY = "from ibbmaster.kernel.cache import cache_key; print(cache_key())"


def test_a_set_is_there_once_it_was_compiled(filled):
    assert filled.has([KernelSet.VERIFY])
    assert filled.parts() == {KernelPart.CHECK}
    assert not filled.has([KernelSet.VERIFY, KernelSet.SERVE])


def damage_code(directory):
    path = directory / "check.o"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES = {
    "a bit of its code": damage_code,
    "a file that is gone": lambda directory: (directory / "check.o").unlink(),
    "a file that a crash left empty": lambda directory: (directory / "check.o").write_bytes(b""),
    "half of a file": lambda directory: (directory / "check.o").write_bytes(
        (directory / "check.o").read_bytes()[:4000]
    ),
    "a file shorter than a hash": lambda directory: (directory / "check.o").write_bytes(b"\x7fELF"),
    "everything": shutil.rmtree,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_cache_counts_as_none(filled, tmp_path, damage):
    damaged = KernelCache(tmp_path / filled.path.name)
    shutil.copytree(filled.path, damaged.path)
    assert damaged.has([KernelSet.VERIFY])
    damage(damaged.path)
    assert not damaged.has([KernelSet.VERIFY])


def test_each_part_is_begun_once_until_it_is_there(tmp_path):
    one, other = KernelCache(tmp_path), KernelCache(tmp_path)
    assert one.begin(KernelPart.CHECK)
    assert not other.begin(KernelPart.CHECK)
    assert other.begin(KernelPart.PAGES)
    one.keep(KernelPart.CHECK, b"code")
    assert not other.begin(KernelPart.CHECK)
    assert one.read(KernelPart.CHECK) == b"code"
    one.clean()  # of a process that was killed
    assert one.begin(KernelPart.PAGES)
    assert not one.begin(KernelPart.CHECK)


def test_every_module_that_kernels_import_is_a_source_of_theirs(said_by):
    program = (
        "import sys, importlib, ibbmaster.kernel.emitting; from ibbmaster.kernel.parts import KERNELS; "
        "modules = {module for part in KERNELS.values() for module in part.values()}; "
        "[importlib.import_module(module) for module in modules]; "
        "print(*(module.__file__ for name, module in sys.modules.items() if name.startswith('ibbmaster')))"
    )
    imported = {Path(name) for name in said_by(program).split()}
    assert {path for path in imported if path.name != "__init__.py"} <= set(source_files())


@pytest.mark.parametrize("changed", ["kernel/scan.py", "event/rows/number.py", "ibb/chunk.py"])
def test_a_change_of_any_source_makes_another_key(tmp_path, changed, said_by):
    copy = tmp_path / "ibbmaster"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "server", "spark", "lake"))
    before = said_by(KEY, PYTHONPATH=str(tmp_path))
    with (copy / changed).open("a") as file:
        file.write("# another\n")
    assert said_by(KEY, PYTHONPATH=str(tmp_path)) != before


def test_code_for_another_cpu_has_another_key(said_by):
    assert said_by(KEY) != said_by(KEY, NUMBA_CPU_NAME="generic")


DIRECTORIES = {
    "the one that is named": ({ENVIRONMENT: "/opt/k", "XDG_CACHE_HOME": "/x", "HOME": "/home/u"}, "/opt/k"),
    "else that of the user's caches": ({"XDG_CACHE_HOME": "/x", "HOME": "/home/u"}, "/x/ibbmaster/kernels"),
    "else one in the user's home": ({"HOME": "/home/u"}, "/home/u/.cache/ibbmaster/kernels"),
}


@pytest.mark.parametrize(("environment", "directory"), DIRECTORIES.values(), ids=DIRECTORIES)
def test_the_directory_is(monkeypatch, environment, directory):
    for name in (ENVIRONMENT, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert find_directory() == Path(directory)


def test_a_user_without_a_home_has_none(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert find_directory() is None


def test_a_directory_that_cannot_be_made_is_said_to_be_none(tmp_path):
    (tmp_path / "file").touch()
    assert not KernelCache(tmp_path / "file" / "key").make()
    made = KernelCache(tmp_path / "a" / "key")
    assert made.make()
    assert made.distrust() is None


def share(path):
    path.chmod(path.stat().st_mode | 0o020)


OTHERS = {
    "the directory": lambda cache: share(cache.path),
    "a directory above it": lambda cache: share(cache.path.parent),
    "a file": lambda cache: share(cache.path / "check.o"),
}


@pytest.mark.parametrize("open_to_others", OTHERS.values(), ids=OTHERS)
def test_what_others_can_write_counts_as_none(filled, tmp_path, open_to_others):
    copied = KernelCache(tmp_path / "cache" / filled.path.name)
    shutil.copytree(filled.path, copied.path)
    assert copied.has([KernelSet.VERIFY])
    open_to_others(copied)
    assert not copied.has([KernelSet.VERIFY])
    assert "other users can write" in copied.distrust()


def test_what_is_compiled_under_any_umask_is_for_its_user_alone_to_write(tmp_path):
    before = os.umask(0)
    try:
        cache = KernelCache(tmp_path / "a" / "b" / caching.cache_key())
        assert cache.make()
        compile_elsewhere(cache, [KernelSet.IMPORT])
    finally:
        os.umask(before)
    assert cache.has([KernelSet.IMPORT])
