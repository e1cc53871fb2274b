"""Commands and options for the parser, from the tables `commands` and `options` beside this."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ibbmaster.errors import ConfigurationError
from ibbmaster.facts import NULL, rows_of
from ibbmaster.option import NamedOption, flag_of
from ibbmaster.storage.disk.place import local_place, place

if TYPE_CHECKING:
    Subparsers: TypeAlias = argparse._SubParsersAction[Any]
    Taker: TypeAlias = argparse._ActionsContainer

ALIASES = {"replay": "serve"}
JOBS_MAX = 1024
ONE_OF = "one of"  # as a heading: exactly one of these options has to be given
_KIND = re.compile(r"(?P<type>[^ ?*+!]+)(?P<again> again)?(?P<nargs>[?*+]?)(?P<is_needed>!?)")


def configured_commands() -> list[str]:
    """Those that have a section in a configuration file."""
    return [name for name, _, words, *_ in rows_of(__package__, "options") if words == "@run"]


def add_command(subparsers: Subparsers, name: str, package: str = __package__) -> argparse.ArgumentParser:
    [(_, text, description)] = [row for row in rows_of(package, "commands") if row[0] == name]
    aliases = [alias for alias, command in ALIASES.items() if command == name]
    added: argparse.ArgumentParser = subparsers.add_parser(name.split()[-1], aliases=aliases, help=text)
    added.description = description.replace("\\n", "\n")
    return added


def add_options(parser: Taker, command: str, package: str = __package__) -> None:
    takers: dict[str, Taker] = {NULL: parser}
    for name, heading, words, kind, *cells in rows_of(package, "options"):
        if name != command:
            continue
        if heading not in takers and heading == ONE_OF:
            takers[heading] = parser.add_mutually_exclusive_group(required=True)
        elif heading not in takers:
            takers[heading] = parser.add_argument_group(heading)
        if words.startswith("@"):
            _add_of_others(takers[heading], words)
        else:
            flags = [word for word in words.split() if word.startswith("-")]
            name_of_value: dict[str, Any] = {} if flags == words.split() or not flags else {"dest": words.split()[-1]}
            takers[heading].add_argument(*(flags or [words]), **name_of_value, **_settings(kind, *cells))


def _settings(kind: str, *cells: str) -> dict[str, Any]:
    default, metavar, text = (None if cell == NULL else cell for cell in cells)
    if kind == "flag":
        return {"action": "store_true", "help": text}
    found = _KIND.fullmatch(kind)
    assert found is not None, kind
    settings = {"default": default, "metavar": metavar, "help": text, "nargs": found["nargs"] or None}
    settings |= {"choices": found["type"].split("|")} if "|" in kind else {"type": _TYPES[found["type"]]}
    settings |= {"action": "append", "default": []} if found["again"] else {}
    return settings | ({"required": True} if found["is_needed"] else {})


def add_named(parser: Taker, options: Iterable[NamedOption]) -> None:
    """Flags, below their headings, of options that are not added otherwise."""
    takers: dict[str | None, Taker] = {None: parser}
    for named in options:
        heading = named.option.group
        if not named.option.help:
            continue
        if heading not in takers:
            takers[heading] = parser.add_argument_group(heading)
        _add_named(takers[heading], named)


def _add_named(parser: Taker, named: NamedOption) -> None:
    name, option, kind, choices = named
    if kind is bool:
        parser.add_argument(flag_of(name), dest=name, action="store_true", help=option.help)
        return
    parser.add_argument(
        flag_of(name),
        dest=name,
        action="append" if kind is list else "store",
        type=Path if kind is PathLike else str if kind is list else kind,
        choices=choices or None,
        default=option.default,
        help=option.help,
        metavar=option.metavar,
    )


def _add_of_others(taker: Any, words: str) -> None:
    match words:
        case "@account":
            from .credentials import add_arguments

            add_arguments(taker)
        case "@jobs":
            what = "threads, each with files of its own (default: one for each core, %(default)s here)"
            taker.add_argument("--jobs", type=job_count, default=os.cpu_count() or 1, metavar="N", help=what)
        case "@lake-jobs":
            _add_lake_jobs(taker)
        case "@name-case":
            from ibbmaster.api.serving_options import serving_option

            _add_named(taker, serving_option("lower_case_table_names"))
        case "@serving":
            from ibbmaster.api.serving_options import serving_options

            add_named(taker, serving_options())
        case "@stages":
            from ibbmaster.logs.stages.options import stage_options

            add_named(taker, stage_options())
        case _:
            add_options(taker, words)


def _add_lake_jobs(parser: argparse.ArgumentParser) -> None:
    from .lake import JOBS

    jobs = parser.add_subparsers(title="jobs", metavar="JOB", required=True)
    for name, run_job in JOBS.items():
        one = add_command(jobs, f"lake {name}")
        one.set_defaults(run=run_job)
        add_options(one, f"lake {name}")


def written_directory(text: str) -> Path:
    """Raises ConfigurationError: the directory is in an object store."""
    return local_place(text, "this command")


def size(text: str) -> int:
    """Perhaps with K, M, G or T."""
    from ibbmaster.sizes import parse_size

    try:
        return parse_size(text)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def job_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= JOBS_MAX:
        raise argparse.ArgumentTypeError(f"{text[:20]!r}: expected a number from 1 to {JOBS_MAX}")
    return int(text)


_TYPES: dict[str, Callable[[str], object]] = {
    "text": str,
    "number": int,
    "seconds": float,
    "path": Path,
    "size": size,
    "place": place,
    "written": written_directory,
}
