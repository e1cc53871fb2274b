"""`ibbmaster`: finds and runs the command, and turns our errors into one line and an exit code."""

import argparse
import contextlib
import functools
import gc
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence

import ibbmaster
from ibbmaster.errors import ConfigurationError, IbbMasterError
from ibbmaster.extras import needed_for
from ibbmaster.facts import rows_of
from .options import ALIASES, add_command, add_options, configured_commands

PLUGINS = "ibbmaster.commands"
GC_THRESHOLDS = (50_000, 20, 50)  # modules and a thousand waiting replicas are no garbage
EXIT_FAILURE = 1
EXIT_UNUSABLE = 2  # argparse uses the same for wrong options
EXIT_INTERRUPTED = 130

DESCRIPTION = (
    "A MariaDB replication primary without a MariaDB server: serves .ibb binlog files to replicas and CDC clients."
)
EPILOG = "`ibbmaster COMMAND --help` tells more about a command."


class _CommandsFormatter(argparse.HelpFormatter):
    """Makes the help's column as wide as the longest command, also before Python 3.13."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        for command in self._iter_indented_subactions(action):
            width = len(self._format_action_invocation(command)) + self._current_indent
            self._action_max_length = max(self._action_max_length, width)


def build_parser(command: str, given: Sequence[str] = (), *, is_whole: bool = False) -> argparse.ArgumentParser:
    """The parser of a command, with the defaults that a configuration named in `given` has; without a command of that
    name, the parser of all commands' names, or the whole one. Raises ConfigurationError: the configuration has a
    mistake."""
    parser = argparse.ArgumentParser(
        prog="ibbmaster", description=DESCRIPTION, epilog=EPILOG, formatter_class=_CommandsFormatter
    )
    parser.add_argument("--version", action="version", version=f"ibbmaster {ibbmaster.__version__}")
    subparsers = parser.add_subparsers(title="commands", dest="word", metavar="COMMAND", required=True)
    own = [name for name, *_ in rows_of(__package__, "commands") if " " not in name]
    modules = {name: f"{__package__}.{name}" for name in own}
    command = ALIASES.get(command, command)
    if command not in modules:
        from importlib import metadata

        modules |= {plugin.name: plugin.value for plugin in metadata.entry_points(group=PLUGINS)}
    packages = {name: module.rpartition(".")[0] for name, module in modules.items()}
    for name, package in packages.items():
        if command not in modules or name == command:
            added = add_command(subparsers, name, package)
            if is_whole or name == command:
                added.set_defaults(run=functools.partial(_run, modules[name]))
                _fill(added, name, package)
        if name == command and name in configured_commands():
            from .configuration import configure

            configure(added, name, given)
    _know_themselves(parser)
    return parser


def _fill(parser: argparse.ArgumentParser, command: str, package: str) -> None:
    add_options(parser, command, package)
    with contextlib.suppress(FileNotFoundError):
        examples = pkgutil.get_data(package, f"examples/{command}.txt") or b""
        parser.epilog, parser.formatter_class = examples.decode(), argparse.RawDescriptionHelpFormatter


def _run(module: str, args: argparse.Namespace) -> int:
    code: int = importlib.import_module(module).run(args)
    return code


def _know_themselves(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                command.set_defaults(command=command)
                _know_themselves(command)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """As `parse_args`, but unknown arguments show the usage of their command."""
    given = sys.argv[1:] if arguments is None else arguments
    words = [word for word in given if not word.startswith("-")]
    for command, instead in rows_of(__package__, "gone"):
        if words[: command.count(" ") + 1] == command.split():
            raise ConfigurationError(f"`ibbmaster {command}` was removed: {instead}")
    args, unknown = build_parser("".join(words[:1]), given).parse_known_args(given)
    if unknown:
        args.command.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    try:
        with needed_for("this command"):
            args = parse_arguments(arguments)
            code: int = args.run(args)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILURE
    except (IbbMasterError, ModuleNotFoundError, OSError) as error:
        print(f"ibbmaster: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    return code


def program() -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy would start threads for nothing
    gc.set_threshold(*GC_THRESHOLDS)
    code = main()
    gc.freeze()  # what is left need not be searched for cycles
    return code


if __name__ == "__main__":
    sys.exit(program())
