"""Code is made for the CPU that is here, or for one that is named, and for no more than that."""

import pytest

from ibbmaster.kernel import cpu


@pytest.fixture
def named(monkeypatch):
    """A CPU, as the environment names it."""

    def name(cpu_name, features=None):
        for variable, value in ((cpu.CPU_NAME, cpu_name), (cpu.CPU_FEATURES, features)):
            if value is None:
                monkeypatch.delenv(variable, raising=False)
            else:
                monkeypatch.setenv(variable, value)
        cpu.target.cache_clear()

    yield name
    monkeypatch.undo()
    cpu.target.cache_clear()


def test_it_is_the_one_here_unless_another_is_named(named):
    named(None)
    triple, name, features = cpu.target()
    assert triple
    assert name
    assert all(cpu.has(feature[1:]) for feature in features.split(",") if feature.startswith("+"))
    named(None, "+sse4.2")
    assert cpu.target() == (triple, name, "+sse4.2")


def test_one_that_is_named_has_nothing_of_the_one_here(named):
    named("generic")
    assert cpu.target()[1:] == ("generic", "")
    assert not cpu.has("sse4.2")
    named("generic", "+pclmul,-avx2")
    assert cpu.has("pclmul")
    assert not cpu.has("avx2")


def test_a_level_has_what_each_of_its_cpus_has(named):
    named("x86-64-v2")
    assert cpu.has("sse4.2")
    assert not cpu.has("sse4.2", "pclmul")
    named("x86-64-v4", "+pclmul")
    assert cpu.has("sse4.2", "avx2", "avx512f", "pclmul")


def test_what_is_chosen_comes_before_a_cpu_that_is_named(named, monkeypatch):
    named("x86-64-v2")
    monkeypatch.setattr(cpu, "_chosen", None)
    arm = cpu.Target("aarch64-unknown-linux-gnu", "generic", "+crc")
    cpu.choose(arm)
    assert cpu.target() == arm
    assert cpu.has("crc")
    assert not cpu.has("sse4.2")
