"""Kernels that came with the package are used where nothing was compiled, as long as they fit."""

import pytest

from ibbmaster.kernel import loading, ready_made
from ibbmaster.kernel.cache import ENVIRONMENT, made_from
from ibbmaster.kernel.cpu import CPU_NAME, FEATURES_OF_LEVELS
from ibbmaster.kernel.parts import KernelPart, KernelSet

LEVEL = "x86-64-v2"


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """What a wheel has for one level, of one part."""
    directory = tmp_path_factory.mktemp("objects")
    ready_made.make(directory, [LEVEL], [KernelPart.CHECK])
    return directory


@pytest.fixture
def packed(made, monkeypatch, tmp_path):
    """As in a process that has just begun, with these in the package and no cache."""
    monkeypatch.setattr(ready_made, "DIRECTORY", made)
    monkeypatch.setattr(loading, "_entries", None)
    monkeypatch.setattr(loading, "_loaded", set())
    monkeypatch.setattr(loading, "_has_failed", False)
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))

    def refuse(*_, **__):
        raise AssertionError("something is compiled")

    monkeypatch.setattr(loading, "compile_elsewhere", refuse)
    ready_made.find_ready_made.cache_clear()
    yield made
    ready_made.find_ready_made.cache_clear()


def test_they_are_loaded_without_a_cache_and_none_is_made(packed, tmp_path):
    assert loading.is_cached(KernelSet.VERIFY)
    assert loading.load(KernelSet.VERIFY) is not None
    assert not (tmp_path / "cache").exists()
    assert not loading.is_cached(KernelSet.SERVE)


def test_a_cpu_that_is_named_gets_none_of_them(packed, monkeypatch):
    monkeypatch.setenv(CPU_NAME, "generic")
    assert ready_made.find_ready_made() is None


def test_those_of_other_sources_are_not_taken(packed, monkeypatch):
    monkeypatch.setattr(ready_made, "made_from", lambda: "0123456789abcdef")
    assert ready_made.find_ready_made() is None


def test_a_cpu_gets_the_best_that_it_can_run(packed, monkeypatch):
    import llvmlite.binding as llvm

    for level in ready_made.CPU_KINDS:
        (packed / f"{made_from()}-{level}").mkdir(exist_ok=True)
    for name, kind in ready_made.CPU_KINDS.items():
        features = dict.fromkeys((*FEATURES_OF_LEVELS.get(kind.cpu, ()), *kind.further), True)
        monkeypatch.setattr(llvm, "get_process_triple", lambda kind=kind: kind.triple)
        monkeypatch.setattr(llvm, "get_host_cpu_features", lambda features=features: features)
        ready_made.find_ready_made.cache_clear()
        assert ready_made.find_ready_made().path.name.endswith(name)
        del features[kind.further[0]]
        ready_made.find_ready_made.cache_clear()
        assert ready_made.find_ready_made() is None


def test_no_system_but_linux_gets_any(packed, monkeypatch):
    import llvmlite.binding as llvm

    monkeypatch.setattr(llvm, "get_process_triple", lambda: "x86_64-apple-darwin23.0.0")
    assert ready_made.find_ready_made() is None


def test_one_that_is_damaged_is_not_taken(packed):
    path = packed / f"{made_from()}-{LEVEL}" / "check.o"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    try:
        assert ready_made.read_ready_made(KernelPart.CHECK) is None
    finally:
        path.write_bytes(whole)
