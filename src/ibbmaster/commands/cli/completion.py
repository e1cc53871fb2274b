"""`ibbmaster completion`: what a shell needs to complete commands, options, their choices, and names of files."""

import argparse
from pathlib import Path

import shtab

from ibbmaster.storage.disk.place import place
from .main import build_parser
from .options import written_directory


def run(args: argparse.Namespace) -> int:
    parser = build_parser("", is_whole=True)
    _complete_files(parser)
    print(shtab.complete(parser, shell=args.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command)
        elif action.type in (Path, place, written_directory):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
