"""Every document is run: `console` blocks and `>>>` examples show what really comes out.

A console block holds commands, each behind `$ ` (a `\\` at its end continues it), and what
each prints. A line `...` stands for any lines, `...` inside a line for anything in it. All
commands of a document run in one scratch directory in which the files of the checkout can
be seen. A `python` block that begins with a comment with a file's name is that file for the
commands after it, and port 3307 stands for one that is free. What a command leaves running
ends with its document. A command that fails is wrong, whatever it prints, unless the page shows it: by what it prints,
or by `$?`. `pytest tests/docs --rewrite` pastes in what came out, wherever it differs.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sysconfig
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("protocol/**/*.md")),
    *sorted(ROOT.glob("fixtures/*.md")),
]
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
PART = re.compile(r"^```(console|python)\n(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w-]+\.py)\n")
PORT = "3307"  # in documents
PROGRAMS = {
    r"\bibbmaster lake\b|\bspark\w*\.py\b": "java",
    r"(?<![\w/-])(?<!--format )mariadb": "mariadbd",
    r"\bwith_duckdb\.py\b": "duckdb",
    r"\bwith_polars\.py\b": "polars",
    r"\biceberg://|\bread_iceberg\.py\b": "pyiceberg",
}  # what some commands need
MODULES = ("duckdb", "polars", "pyiceberg")  # of Python
WITHOUT_JAVA = re.compile(r"\blake maintain\b|--engine arrow\b|\blake count\b")
COMMAND_TIMEOUT_S = 900  # on a busy machine, with nothing in any cache: it only ends what hangs
COLUMNS = "100"  # how wide --help is
FAILURE = re.compile(r"\b(?:error|Error|failed|refused|are not)\b")  # said in what a page shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A command of a document and what the document says it prints."""

    command: str
    output: list[str]


def parse_block(block: str) -> list[Example]:
    """The examples of one console block."""
    examples: list[Example] = []
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command += "\n" + next(lines)
            examples.append(Example(command=command, output=[]))
        else:
            assert examples, f"a console block begins with a command, not with {line!r}"
            examples[-1].output.append(line)
    return examples


def shows_failure(example: Example, following: Example | None) -> bool:
    """Whether a reader sees that a command fails."""
    commands = example.command + (following.command if following is not None else "")
    return "$?" in commands or FAILURE.search("\n".join(example.output)) is not None


def marked(path: Path) -> Any:
    """A document as a parameter; those that start Java are in the slow lane."""
    examples = [example for block in BLOCK.findall(path.read_text()) for example in parse_block(block)]
    programs = {program for example in examples for program in needed(example.command)}
    marks = [pytest.mark.slow, pytest.mark.xdist_group("java")] if "java" in programs else []
    return pytest.param(path, marks=[*marks, *([pytest.mark.interop] if "mariadbd" in programs else [])])


def needed(command: str) -> set[str]:
    """Programs beside Python that a command starts."""
    found = {
        program for pattern, program in PROGRAMS.items() if "--help" not in command and re.search(pattern, command)
    }
    return found - {"java"} if WITHOUT_JAVA.search(command) else found


def is_there(program: str) -> bool:
    """Whether a command finds what it needs."""
    return importlib.util.find_spec(program) is not None if program in MODULES else shutil.which(program) is not None


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether what was printed is what the document says, as far as its dots allow."""
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(re.escape("..."), ".*?") + r"\n" for line in expected
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def show_checkout(directory: Path) -> None:
    """Let the files of the checkout be seen in a scratch directory."""
    for path in ROOT.iterdir():
        if path.name != ".git":
            (directory / path.name).symlink_to(path)


class Runner:
    """Runs the commands of one document, each in a shell of its own; `$?` is the exit code of the one before."""

    def __init__(self, directory: Path) -> None:
        show_checkout(directory)
        programs = sysconfig.get_path("scripts")
        self._directory = directory
        self.last_exit_code = 0
        self._port = str(free_port())
        self._sessions: list[int] = []
        self.left_out: list[str] = []
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "COLUMNS": COLUMNS,
            "NO_COLOR": "1",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "PYTHONUNBUFFERED": "",  # as for most people: what is printed last comes last only if it is made so
        }

    def run_if_possible(self, command: str) -> list[str] | None:
        """As `run`; None for what needs a program that is not there."""
        if not all(map(is_there, needed(command))):
            self.left_out.append(command)
            return None
        return self.run(command)

    def write(self, name: str, text: str) -> None:
        """A file for the commands that follow."""
        (self._directory / name).write_text(text)

    def run(self, command: str) -> list[str]:
        """The lines a command prints, errors among them."""
        shell = subprocess.Popen(
            [
                "bash",
                *pipe_options(command),
                "-c",
                f"(exit {self.last_exit_code})\n{command.replace(PORT, self._port)}",
            ],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._sessions.append(shell.pid)
        printed, _ = shell.communicate(timeout=COMMAND_TIMEOUT_S)
        self.last_exit_code = shell.returncode
        return [line.rstrip().replace(self._port, PORT) for line in printed.splitlines()]

    def close(self) -> None:
        """End what the commands have left running."""
        for session in self._sessions:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)


def pipe_options(command: str) -> list[str]:
    """Options with which each program of a pipe counts, but what writes into `head`: it ends when that has enough."""
    return [] if re.search(r"\|\s*head\b", command) else ["-o", "pipefail"]


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert isinstance(port, int)
    return port


def run_document(text: str, runner: Runner) -> tuple[str, list[str]]:
    """A document with real output in place of what does not match, and the commands that are wrong.

    A command whose programs are not there keeps what the document says.
    """
    wrong: list[str] = []

    def run_part(match: re.Match[str]) -> str:
        kind, block = match.groups()
        if kind == "python":
            named = FILE.match(block)
            if named is not None:
                runner.write(named[1], block)
            return match[0]
        lines: list[str] = []
        examples = parse_block(block)
        for example, following in zip_longest(examples, examples[1:]):
            printed = runner.run_if_possible(example.command)
            if printed is not None and runner.last_exit_code and not shows_failure(example, following):
                failed = (
                    f"$ {example.command}\nfails with exit code {runner.last_exit_code}, which the page does not show"
                )
                wrong.append("\n".join([failed, *printed]))
            if printed is None or matches(example.output, printed):
                printed = example.output
            else:
                wrong.append(f"$ {example.command}\n" + "\n".join(printed))
            lines += [f"$ {example.command}", *printed]
        return f"```{kind}\n" + "".join(line + "\n" for line in lines)

    return PART.sub(run_part, text), wrong


@pytest.mark.parametrize("path", [marked(path) for path in DOCUMENTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_of_a_document_print_what_it_says(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = path.read_text()
    monkeypatch.chdir(tmp_path)
    runner = Runner(tmp_path)
    request.addfinalizer(runner.close)
    doctest.testfile(str(path), module_relative=False, encoding="utf-8", report=False)  # commands may use what it made
    rewritten, wrong = run_document(text, runner)

    if request.config.getoption("--rewrite") and rewritten != text:
        path.write_text(rewritten)
    else:
        assert not wrong, "printed instead (--rewrite pastes it in):\n" + "\n".join(wrong)
    if runner.left_out:
        missing = " and ".join(sorted(set().union(*map(needed, runner.left_out))))
        pytest.skip(f"no {missing} for {'; '.join(runner.left_out)}; all the others are right")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_of_a_document_give_what_it_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    show_checkout(tmp_path)
    result = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8")

    assert result.failed == 0


def test_the_readme_s_test_line_is_what_the_check_of_this_project_runs() -> None:
    last_line = (ROOT / ".ci" / "run").read_text().splitlines()[-1]

    assert f"\n{last_line}\n" in (ROOT / "README.md").read_text()


def test_the_fixtures_that_the_readme_names_are_there() -> None:
    named = re.findall(r"\bfixtures/[\w./-]*\w", (ROOT / "README.md").read_text())

    assert [name for name in named if not (ROOT / name).exists()] == []


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


def test_a_right_document_is_left_alone(tmp_path: Path) -> None:
    assert run_document(DOCUMENT, Runner(tmp_path)) == (DOCUMENT, [])


def test_a_wrong_document_is_found_and_mended(tmp_path: Path) -> None:
    wrong = DOCUMENT.replace("\none\n", "\nun\n").replace("\nc\n", "\nd\n")

    mended, complaints = run_document(wrong, Runner(tmp_path))

    assert mended == DOCUMENT.replace("\n...\n", "\nb\na\n")
    assert len(complaints) == 2
    assert complaints[0] == "$ echo one; echo two\none\ntwo"


@pytest.mark.parametrize(
    ("document", "is_right"),
    [
        ("$ false\n", False),
        ("$ python program.py 2>/dev/null\n", False),
        ("$ echo one | false | cat\n", False),
        ("$ yes | head -1\ny\n", True),
        ("$ false\n$ echo $?\n1\n", True),
        ("$ false; echo $?\n1\n", True),
        ("$ echo Error: full; false\nError: full\n", True),
    ],
)
def test_a_command_that_fails_is_wrong_unless_the_page_shows_it(document: str, is_right: bool, tmp_path: Path) -> None:
    program = "```python\n# program.py\nraise ValueError\n```\n"
    text = f"{program}\n```console\n{document}```\n"
    rewritten, wrong = run_document(text, Runner(tmp_path))

    assert rewritten == text
    assert bool(wrong) != is_right


@pytest.mark.parametrize(
    ("expected", "printed", "is_right"),
    [
        (["a ... c"], ["a b c"], True),
        (["a ... c"], ["a b d"], False),
        (["..."], [], True),
        (["a", "...", "z"], ["a", "b", "c", "z"], True),
        (["a", "...", "z"], ["a", "b", "c"], False),
        (["a.c"], ["abc"], False),
        ([], ["unexpected"], False),
    ],
)
def test_dots_stand_for_anything(expected: list[str], printed: list[str], is_right: bool) -> None:
    assert matches(expected, printed) == is_right


def test_commands_that_need_java_are_left_out_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = "\n```console\n$ ibbmaster lake find a b.c d=1\nsome rows\n$ echo one\none\n```\n"
    monkeypatch.setattr(shutil, "which", lambda program: None)
    runner = Runner(tmp_path)

    assert run_document(document, runner) == (document, [])
    assert runner.left_out == ["ibbmaster lake find a b.c d=1"]
    assert run_document(document.replace("\none", "\ntwo"), runner)[1] == ["$ echo one\none"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_files_that_a_document_links_to_are_there(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", path.read_text())

    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


def test_the_documents_that_the_code_names_are_there() -> None:
    named = re.compile(r"\b(?:docs|protocol)/[\w/-]+\.md\b")
    missing = {
        name
        for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
        for name in named.findall(path.read_text())
        if not (ROOT / name).exists()
    }

    assert missing == set()
