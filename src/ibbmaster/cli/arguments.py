"""Kinds of arguments that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.errors import ConfigurationError

if TYPE_CHECKING:
    import ibbmaster


def add_directory(parser: argparse.ArgumentParser) -> None:
    """Add the directory of a log that a command changes."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory with binlog-NNNNNN.ibb files")


def add_log(parser: argparse.ArgumentParser, *, is_needed: bool = True) -> None:
    """Add the log a command reads."""
    what = "directory with binlog-NNNNNN.ibb files; or traditional files: their directory, index, or one of them"
    parser.add_argument("directory", type=Path, metavar="DIR", nargs=None if is_needed else "?", help=what)


def size(text: str) -> int:
    """A number of bytes, with K, M, G or T behind it or not."""
    from ibbmaster.sizes import parse_size

    try:
        return parse_size(text)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def open_to_change(directory: Path) -> ibbmaster.WritableLog:
    """The log that a command changes and leaves; a full disk is reported, not waited for."""
    import ibbmaster

    return ibbmaster.open(directory, writable=True, has_background=False, full_disk_retry_s=0)
