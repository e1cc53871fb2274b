"""Every document is run: its commands and its `>>>` examples show what really comes out."""

import doctest
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.docs.running import (
    ALONE,
    BLOCK,
    DOCUMENTS,
    ROOT,
    Runner,
    matches,
    needed,
    parse_block,
    run_document,
    show_checkout,
)


def programs_of(path: Path) -> set[str]:
    examples = [example for block in BLOCK.findall(path.read_text()) for example in parse_block(block)]
    return {program for example in examples for program in needed(example.command)}


def marked(path: Path) -> Any:
    """A document as a parameter; those that start Java are in the slow lane."""
    programs = programs_of(path)
    marks = [pytest.mark.slow, pytest.mark.xdist_group("java")] if "java" in programs else []
    return pytest.param(path, marks=[*marks, *([pytest.mark.interop] if "mariadbd" in programs else [])])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pages that test_extras_alone.py runs as a whole, with no more than they say they need, are left to it."""
    if metafunc.function is test_the_commands_of_a_document_print_what_it_says:
        left = {path for path in DOCUMENTS if path.stem in ALONE and "java" not in programs_of(path)}
        shown = [path for path in DOCUMENTS if path not in left or metafunc.config.getoption("--rewrite")]
        metafunc.parametrize("document", [*map(marked, shown)], ids=lambda path: str(path.relative_to(ROOT)))


def test_the_commands_of_a_document_print_what_it_says(document, tmp_path, request, monkeypatch):
    text = document.read_text()
    monkeypatch.chdir(tmp_path)
    runner = Runner(tmp_path)
    request.addfinalizer(runner.close)
    doctest.testfile(
        str(document), module_relative=False, encoding="utf-8", report=False
    )  # commands may use what it made
    rewritten, wrong = run_document(text, runner)

    if request.config.getoption("--rewrite") and rewritten != text:
        document.write_text(rewritten)
    else:
        assert not wrong, "printed instead (--rewrite pastes it in):\n" + "\n".join(wrong)
    if runner.left_out:
        missing = " and ".join(sorted(set().union(*map(needed, runner.left_out))))
        pytest.skip(f"no {missing} for {'; '.join(runner.left_out)}; all the others are right")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_of_a_document_give_what_it_says(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    show_checkout(tmp_path)
    result = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8")

    assert result.failed == 0


def test_the_readme_names_fixtures_that_are_there_and_the_line_that_checks_this_project():
    readme = (ROOT / "README.md").read_text()
    last_line = (ROOT / ".ci" / "run").read_text().splitlines()[-1]

    assert f"\n{last_line}\n" in readme
    assert [name for name in re.findall(r"\bfixtures/[\w./-]*\w", readme) if not (ROOT / name).exists()] == []


DOCUMENT = """
```console
$ echo one; echo two
one
two
$ false
$ echo $?
1
$ printf 'a\\nb\\nc\\n' | \\
    sort -r
c
...
```
"""


def test_a_right_document_is_left_alone(tmp_path):
    assert run_document(DOCUMENT, Runner(tmp_path)) == (DOCUMENT, [])


def test_a_wrong_document_is_found_and_mended(tmp_path):
    wrong = DOCUMENT.replace("\none\n", "\nun\n").replace("\nc\n", "\nd\n")

    mended, complaints = run_document(wrong, Runner(tmp_path))

    assert mended == DOCUMENT.replace("\n...\n", "\nb\na\n")
    assert len(complaints) == 2
    assert complaints[0] == "$ echo one; echo two\none\ntwo"


@pytest.mark.parametrize(
    ("document", "is_right"),
    [
        *(("$ false\n", False), ("$ python program.py 2>/dev/null\n", False), ("$ echo one | false | cat\n", False)),
        *(("$ yes | head -1\ny\n", True), ("$ false\n$ echo $?\n1\n", True), ("$ false; echo $?\n1\n", True)),
        ("$ echo Error: full; false\nError: full\n", True),
    ],
)
def test_a_command_that_fails_is_wrong_unless_the_page_shows_it(document, is_right, tmp_path):
    program = "```python\n# program.py\nraise ValueError\n```\n"
    text = f"{program}\n```console\n{document}```\n"
    rewritten, wrong = run_document(text, Runner(tmp_path))

    assert rewritten == text
    assert bool(wrong) != is_right


@pytest.mark.parametrize(
    ("expected", "printed", "is_right"),
    [
        *((["a ... c"], ["a b c"], True), (["a ... c"], ["a b d"], False), (["..."], [], True)),
        *((["a", "...", "z"], ["a", "b", "c", "z"], True), (["a", "...", "z"], ["a", "b", "c"], False)),
        *((["a.c"], ["abc"], False), ([], ["unexpected"], False)),
    ],
)
def test_dots_stand_for_anything(expected, printed, is_right):
    assert matches(expected, printed) == is_right


def test_commands_that_need_java_are_left_out_where_there_is_none(tmp_path, monkeypatch):
    document = "\n```console\n$ python spark_rows.py\nsome rows\n$ echo one\none\n```\n"
    monkeypatch.setattr(shutil, "which", lambda program: None)
    runner = Runner(tmp_path)

    assert run_document(document, runner) == (document, [])
    assert runner.left_out == ["python spark_rows.py"]
    assert run_document(document.replace("\none", "\ntwo"), runner)[1] == ["$ echo one\none"]


def test_the_files_that_documents_link_to_and_the_documents_that_the_code_names_are_there():
    linked = {path.parent / link for path in DOCUMENTS for link in re.findall(r"\]\(([^)#\s]+)", path.read_text())}
    code = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    named = {
        ROOT / name for path in code for name in re.findall(r"\b(?:docs|protocol)/[\w/-]+\.md\b", path.read_text())
    }

    assert [str(path) for path in linked | named if ":/" not in str(path) and not path.exists()] == []
