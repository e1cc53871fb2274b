"""`ibbmaster`: finds the command, runs it, and turns our errors into one line and an exit code."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import ibbmaster
from ibbmaster.errors import IbbMasterError
from ibbmaster.extras import needed_for

#: Modules of ibbmaster.cli, in the order of --help.
COMMANDS = (
    *("serve", "replay", "record", "import_", "convert", "info", "inspect", "verify", "seek", "cat", "diff"),
    *("recover", "flush", "purge", "reset", "backup", "lake", "scorecard", "warm_up", "demo"),
)
EXAMPLES = Path(__file__).with_name("examples")
EXIT_FAILURE = 1
EXIT_UNUSABLE = 2  # the command could not do its work; argparse uses the same for wrong options
EXIT_INTERRUPTED = 130  # what shells report for SIGINT

DESCRIPTION = (
    "A MariaDB replication primary without a MariaDB server: serves .ibb binlog files to replicas and CDC clients."
)
EPILOG = "`ibbmaster COMMAND --help` tells more about a command."


class _CommandsFormatter(argparse.HelpFormatter):
    """The column of the help is as wide as the longest command, also before Python 3.13."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        for command in self._iter_indented_subactions(action):
            width = len(self._format_action_invocation(command)) + self._current_indent
            self._action_max_length = max(self._action_max_length, width)


class _Command(argparse.ArgumentParser):
    """A command. What `examples/` has of it stands below its help, where no line is broken."""

    def __init__(self, *, prog: str = "", **settings: Any) -> None:
        examples = EXAMPLES / f"{prog.partition(' ')[2]}.txt"
        if examples.exists():
            settings |= {"epilog": examples.read_text(), "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(prog=prog, **settings)


def build_parser(commands: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser with these commands in it, or with every one."""
    parser = argparse.ArgumentParser(
        prog="ibbmaster", description=DESCRIPTION, epilog=EPILOG, formatter_class=_CommandsFormatter
    )
    parser.add_argument("--version", action="version", version=f"ibbmaster {ibbmaster.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Command)
    for command in commands:
        importlib.import_module(f"ibbmaster.cli.{command}").add_parser(subparsers)
    _know_themselves(parser)
    return parser


def _know_themselves(parser: argparse.ArgumentParser) -> None:
    """Let arguments say which command they were for: the innermost one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                command.set_defaults(command=command)
                _know_themselves(command)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """As `parse_args` of the parser, but who gives a command what it does not know is shown that command's usage."""
    given = sys.argv[1:] if arguments is None else arguments
    first = given[0] if given else ""
    named = [command for command in COMMANDS if first == command.rstrip("_").replace("_", "-")]
    commands = () if first == "--version" else named or COMMANDS  # loading all of them takes 0.1 s
    args, unknown = build_parser(commands).parse_known_args(given)
    if unknown:
        args.command.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; what it returns is the exit code."""
    try:
        with needed_for("this command"):
            args = parse_arguments(arguments)
            code: int = args.run(args)
            sys.stdout.flush()
    except IbbMasterError as error:
        print(f"ibbmaster: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except ModuleNotFoundError as error:
        print(f"ibbmaster: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILURE
    except OSError as error:
        print(f"ibbmaster: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    return code


def program() -> int:
    """All of a process: `main`, and what makes its start and its end quick."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # nothing here is for the threads that NumPy would start
    code = main()
    gc.freeze()  # the process ends: what it leaves need not be searched for cycles
    return code


if __name__ == "__main__":
    sys.exit(program())
