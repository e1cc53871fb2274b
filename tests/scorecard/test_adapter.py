import sys
from pathlib import Path

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.user_cache import program_directory
from ibbmaster_scorecard.adapter import OURS, build, read_adapter, read_adapters

MANIFEST = """
title = "A library"
package = "library 1.0"
registry = "PyPI"
run = ["python3", "adapter.py", "{here}/classes"]
"""
REFUSED = {
    "": "'title' is missing",
    MANIFEST.replace('"A library"', "7"): "title 7: expected a text",
    "title = ": "Invalid value",
    MANIFEST + 'runs = ["x"]': "'runs' means nothing here; expected title, package",
    MANIFEST + 'start = "later"': "start 'later': expected one of gtid, now, file",
    MANIFEST + "start_s = -1": "start_s -1.0: expected seconds from 0 to 600",
    MANIFEST + "start_s = true": "start_s True: expected a number",
    MANIFEST + "start_s = nan": "start_s nan: expected seconds from 0 to 600",
    MANIFEST + "needs = [1]": "needs[0] 1: expected a text",
    MANIFEST + 'build = ["make"]': "build[0] 'make': expected a list",
    MANIFEST + "build = [[]]": "build: expected a command of at least one word",
    MANIFEST + f"x = {'[' * 5000}": "nested too deeply",
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make(directory: Path, manifest: str = MANIFEST, **files: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "adapter.toml").write_text(manifest)
    (directory / "adapter.py").write_text("print()")
    for name, text in files.items():
        (directory / name).write_text(text)
    return directory


def test_an_adapter_is_what_its_file_says(tmp_path):
    adapter = read_adapter(make(tmp_path / "mine", MANIFEST + 'needs = ["sh"]\nstart = "now"\nstart_s = 3'))
    assert (adapter.name, adapter.title, adapter.package, adapter.registry) == (
        *("mine", "A library", "library 1.0"),
        "PyPI",
    )
    assert (adapter.needs, adapter.start, adapter.start_s, adapter.build) == (("sh",), "now", 3.0, ())


@pytest.mark.parametrize(("text", "problem"), REFUSED.items(), ids=range(len(REFUSED)))
def test_what_means_nothing_is_refused_with_its_place(tmp_path, text, problem):
    directory = make(tmp_path / "mine", text)
    with pytest.raises(ConfigurationError) as caught:
        read_adapter(directory)
    assert str(caught.value).startswith(f"{directory}/adapter.toml: ")
    assert problem in str(caught.value)


def test_ours_are_read_and_others_may_take_their_places(tmp_path):
    assert read_adapters()["python-mysql-replication"].directory.parent == OURS.resolve()
    make(tmp_path / "more" / "python-mysql-replication")
    make(tmp_path / "more" / "a-new-one")
    found = read_adapters(tmp_path / "more")
    assert found["python-mysql-replication"].title == found["a-new-one"].title == "A library"
    assert list(read_adapters(make(tmp_path / "alone"))) == sorted([*read_adapters(), "alone"])


def test_what_is_no_adapter_or_no_directory_of_adapters_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="has no adapter: expected NAME"):
        read_adapters(tmp_path)
    with pytest.raises(ConfigurationError, match="nowhere is not a directory of adapters"):
        read_adapters(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="expected a file of at most 65536 bytes"):
        read_adapter(make(tmp_path / "mine", "#" * 100_000))
    with pytest.raises(ConfigurationError, match="the directory's name 'Mine_1'"):
        read_adapter(make(tmp_path / "Mine_1"))
    with pytest.raises(ConfigurationError, match="No such file"):
        read_adapter(tmp_path / "nowhere")


def test_what_needs_no_build_runs_where_it_is(tmp_path, own_cache):
    directory = make(tmp_path / "mine")
    assert build(read_adapter(directory)) == ("python3", str(directory / "adapter.py"), f"{directory}/classes")
    assert not own_cache.exists()


def test_a_build_is_done_once_in_a_copy(tmp_path):
    script = 'build = [["sh", "-c", "cat more.txt adapter.py > made; echo x >> {here}/count"]]\n'
    script += 'sources = ["../more.txt"]'
    (tmp_path / "more.txt").write_text("more")
    directory = make(tmp_path / "mine", MANIFEST + script)
    adapter = read_adapter(directory)
    first, second = build(adapter), build(adapter)
    built = Path(first[1]).parent
    assert first == second == ("python3", str(built / "adapter.py"), f"{built}/classes")
    assert built.parent == program_directory()
    assert built.name.startswith("adapter-mine-")
    assert (built / "made").read_text() == "moreprint()"
    assert (built / "count").read_text() == "x\n"
    assert sorted(path.name for path in directory.iterdir()) == ["adapter.py", "adapter.toml"]


def test_a_changed_file_is_built_anew(tmp_path):
    (tmp_path / "more.txt").write_text("more")
    directory = make(tmp_path / "mine", MANIFEST + 'build = [["true"]]\nsources = ["../more.txt"]')
    adapter = read_adapter(directory)
    commands = {build(adapter)}
    (directory / "adapter.py").write_text("print(1)")
    commands.add(build(adapter))
    (tmp_path / "more.txt").write_text("less")
    commands.add(build(adapter))
    assert len(commands) == 3


def test_a_build_that_was_broken_off_begins_again(tmp_path):
    adapter = read_adapter(make(tmp_path / "mine", MANIFEST + 'build = [["mkdir", "made"]]'))
    built = Path(build(adapter)[1]).parent
    (built / ".built").unlink()
    assert Path(build(adapter)[1]).parent == built
    assert (built / ".built").exists()


FAILURES = {
    'needs = ["no-such-program", "sh"]': "needs no-such-program, not found on PATH",
    'build = [["no-such-program"]]': "no-such-program: [Errno 2] No such file or directory: 'no-such-program'",
    'build = [["sh", "-c", "echo first; echo second >&2; exit 3"]]': (
        "sh -c echo first; echo second >&2; exit 3: exit code 3: first second"
    ),
    'build = [["true"]]\nsources = ["../nothing.go"]': "sources: there is no file ",
}


@pytest.mark.parametrize(("text", "problem"), FAILURES.items(), ids=range(len(FAILURES)))
def test_what_cannot_be_built_says_why(tmp_path, text, problem):
    with pytest.raises(ConfigurationError) as caught:
        build(read_adapter(make(tmp_path / "mine", MANIFEST + text)))
    assert str(caught.value).startswith(problem)


def test_an_interpreter_that_has_the_package_runs_it_as_it_is(tmp_path, own_cache):
    pytest_version = pytest.__version__
    text = MANIFEST.replace("library 1.0", f"pytest {pytest_version}") + 'module = "pytest"\nbuild = [["false"]]'
    directory = make(tmp_path / "mine", text)
    assert build(read_adapter(directory))[:2] == (sys.executable, str(directory / "adapter.py"))
    (directory / "adapter.toml").write_text(text.replace(pytest_version, "0.0.1"))
    with pytest.raises(ConfigurationError, match="false: exit code 1"):
        build(read_adapter(directory))
