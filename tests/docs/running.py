"""Runs documents: `console` blocks show what really comes out.

A console block holds commands, each behind `$ ` (a `\\` at its end continues it), and what
each prints. A line `...` stands for any lines, `...` inside a line for anything in it. All
commands of a document run in one scratch directory in which the files of the checkout can
be seen. A `python` block that begins with a comment with a file's name is that file for the
commands after it, and port 3307 stands for one that is free. What a command leaves running
ends with its document. A command that fails is wrong, whatever it prints, unless the page shows it: by what it prints,
or by `$?`. `pytest tests/docs --rewrite` pastes in what came out, wherever it differs.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sysconfig
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from ibbmaster.testkit.mariadb_server import free_port

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("protocol/**/*.md")),
    *sorted(ROOT.glob("fixtures/*.md")),
]
#: Pages that run in an installation of what they say they need, by test_extras_alone.py.
WITHOUT_EXTRAS = (
    "converting",
    "info",
    "installing",
    "maintenance",
    "playing",
    "printing",
    "serving",
    "speed",
    "testkit",
)
WITH_THEIR_LINE = ("archive", "arrow", "consumer", "delta", "iceberg")
ALONE = (*WITHOUT_EXTRAS, *WITH_THEIR_LINE)
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
PART = re.compile(r"^```(console|python)\n(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w-]+\.py)\n")
PORT = "3307"  # in documents
PROGRAMS = {
    r"\b(?:spark\w*|who_changed)\.py\b": "java",
    r"(?<![\w/-])(?<!--format )mariadb": "mariadbd",
    r"\bibbmaster restore (?!.*--dry-run)": "mariadbd",
    r"\bwith_duckdb\.py\b": "duckdb",
    r"\bwith_polars\.py\b": "polars",
    r"\biceberg://|\bread_iceberg\.py\b": "pyiceberg",
}  # what some commands need
MODULES = ("duckdb", "polars", "pyiceberg")  # of Python
COMMAND_TIMEOUT_S = 900  # on a busy machine, with nothing in any cache: it only ends what hangs
COLUMNS = "100"  # how wide --help is
FAILURE = re.compile(r"\b(?:error|Error|failed|refused|are not)\b")  # said in what a page shows


class Example(NamedTuple):
    """A command of a document and what the document says it prints."""

    command: str
    output: list[str]


def parse_block(block: str) -> list[Example]:
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


def needed(command: str) -> set[str]:
    """Programs beside Python that a command starts."""
    return {program for pattern, program in PROGRAMS.items() if "--help" not in command and re.search(pattern, command)}


def is_there(program: str) -> bool:
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

    def __init__(self, directory: Path, programs: Path | str | None = None) -> None:
        show_checkout(directory)
        self._directory = directory
        self.last_exit_code = 0
        self._port = str(free_port())
        self._sessions: list[int] = []
        self.left_out: list[str] = []
        self._unwanted: set[str] = set()
        self._environment = {
            **os.environ,
            "PATH": f"{programs or sysconfig.get_path('scripts')}:{os.environ['PATH']}",
            "COLUMNS": COLUMNS,
            "NO_COLOR": "1",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "PYTHONUNBUFFERED": "",  # as for most people: what is printed last comes last only if it is made so
        }

    def run_if_possible(self, command: str) -> list[str] | None:
        """As `run`; None for what needs a program that is not there."""
        if self._unwanted & needed(command) or not all(map(is_there, needed(command))):
            self.left_out.append(command)
            return None
        return self.run(command)

    def leave_out(self, program: str) -> None:
        self._unwanted.add(program)

    def hide_checkout(self) -> None:
        for path in self._directory.iterdir():
            if path.is_symlink():
                path.unlink()

    def write(self, name: str, text: str) -> None:
        (self._directory / name).write_text(text)

    def log_of(self, command: str) -> str:
        """The end of the file into which a command has printed."""
        found = re.search(r">\s*(\S+\.log)\b", command)
        return (self._directory / found[1]).read_text()[-2000:] if found else ""

    def run(self, command: str) -> list[str]:
        script = f"(exit {self.last_exit_code})\n{command.replace(PORT, self._port)}"
        shell = subprocess.Popen(
            ["bash", *pipe_options(command), "-c", script],
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
        for session in self._sessions:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)


def pipe_options(command: str) -> list[str]:
    """Options with which each program of a pipe counts, but what writes into `head`: it ends when that has enough."""
    return [] if re.search(r"\|\s*head\b", command) else ["-o", "pipefail"]


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
                failed = f"fails with exit code {runner.last_exit_code}, which the page does not show"
                wrong.append("\n".join([f"$ {example.command}", failed, *printed, runner.log_of(example.command)]))
            if printed is None or matches(example.output, printed):
                printed = example.output
            else:
                wrong.append(f"$ {example.command}\n" + "\n".join(printed))
            lines += [f"$ {example.command}", *printed]
        return f"```{kind}\n" + "".join(line + "\n" for line in lines)

    return PART.sub(run_part, text), wrong
