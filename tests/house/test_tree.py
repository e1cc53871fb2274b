"""Where things are: tests mirror the source, and a path says what is in it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PACKAGE = ROOT / "src" / "ibbmaster"
OF_THE_WHOLE = {"docs", "typing", "house", "interop", "protocol", "simulation"}  # tests of no single module
OF_SEVERAL = {"cli/test_commands.py", "event/test_captures.py", "store/test_damage.py"}  # modules of a folder, together
NO_NAMES = {"utils", "common", "helpers", "constants", "models", "base"}  # they say nothing about their content


def test_each_test_file_mirrors_a_module() -> None:
    found = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    files = [path for path in found if path.parts[0] not in OF_THE_WHOLE and str(path) not in OF_SEVERAL]
    modules = {path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")}
    modules |= {module.with_name(module.name.rstrip("_")) for module in modules}  # cli/import_.py

    mirrored = {path: path.with_name(path.stem.removeprefix("test_")) for path in files}

    assert sorted(str(path) for path in files if mirrored[path] not in modules) == []


def test_the_name_of_each_module_says_what_is_in_it() -> None:
    modules = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]

    assert [str(path) for path in modules if NO_NAMES & set(path.with_suffix("").parts)] == []


def test_each_module_begins_by_saying_what_it_is() -> None:
    assert [str(path) for path in PACKAGE.rglob("*.py") if not path.read_text().startswith('"""')] == []


def test_folders_of_tests_are_no_packages() -> None:
    assert [str(path) for path in TESTS.rglob("__init__.py") if path.parent.name != "lanes"] == []
