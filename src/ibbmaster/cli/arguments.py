"""Kinds of arguments that several commands have."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibbmaster.disk.place import ObjectPath, local_place, place
from ibbmaster.errors import ConfigurationError, FormatError, StoreError
from ibbmaster.option import NamedOption, flag_of

if TYPE_CHECKING:
    import ibbmaster
    from ibbmaster.stages.options import StageOptions


def add_directory(parser: argparse.ArgumentParser) -> None:
    """Add the directory of a log that a command changes."""
    parser.add_argument("directory", type=place, metavar="DIR", help="directory with binlog-NNNNNN.ibb files")


def add_log(parser: argparse.ArgumentParser, *, is_needed: bool = True) -> None:
    """Add the log a command reads."""
    what = "directory with binlog-NNNNNN.ibb files; or traditional files: their directory, index, or one of them"
    parser.add_argument("directory", type=place, metavar="DIR", nargs=None if is_needed else "?", help=what)


def written_directory(text: str) -> Path:
    """The directory that a command writes files to.

    Raises:
        ConfigurationError: it is in an object store.
    """
    return local_place(text, "this command")


def add_name_case(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add how the server of a log compares names of tables."""
    from ibbmaster.api.serving_options import serving_option

    add_option(parser, serving_option("lower_case_table_names"))


def add_state_interval(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add how far apart `.ibb` files have GTID states."""
    parser.add_argument(
        "--state-interval",
        type=size,
        default="2M",
        metavar="SIZE",
        help="distance of GTID states inside a file: 16K times a power of two (default: %(default)s)",
    )


def add_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup, named: NamedOption) -> None:
    """Add a flag for an option of serving, with its type, default and help."""
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


def add_stages(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose a part of a log, and what its transactions go through."""
    from ibbmaster.stages.options import stage_options

    groups: dict[str | None, argparse._ArgumentGroup] = {}
    for named in stage_options():
        heading = named.option.group
        if heading not in groups:
            groups[heading] = parser.add_argument_group(heading)
        add_option(groups[heading], named)


def chosen_stages(args: argparse.Namespace) -> StageOptions:
    """What the flags of `add_stages` say, as `Log.through` takes it."""
    from ibbmaster.stages.options import stage_options

    said: Any = {name: getattr(args, name) for name, *_ in stage_options()}
    return said  # type: ignore[no-any-return]


def chosen_part(log: ibbmaster.Log, args: argparse.Namespace) -> ibbmaster.Log:
    """What the flags of `add_stages` choose of a log; what is worth knowing of it goes to standard error.

    Raises:
        ConfigurationError: an option cannot be used with this log, or a pattern is about no table.
        PositionError, FormatError, ClassicFormatError, StoreError: as `Log.groups`.
    """
    from ibbmaster.stages.options import expect_tables, given_stages

    given = given_stages(chosen_stages(args))
    if not given:
        return log
    part = log.through(**given)
    for note in part.staged.notes:
        print(f"ibbmaster: {note}", file=sys.stderr)
    expect_tables(part.staged)
    return part


def size(text: str) -> int:
    """A number of bytes, with K, M, G or T after it or not."""
    from ibbmaster.sizes import parse_size

    try:
        return parse_size(text)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def expect_log(directory: Path | str) -> None:
    """See before long work begins that there is a log that can be read.

    Raises:
        IbbMasterError: there is none.
    """
    import ibbmaster

    with ibbmaster.open(directory) as log, contextlib.suppress(FormatError):  # damage is for the job to name, or skip
        if not log.files:
            raise StoreError(f"{directory}: no binlog files (binlog-000000.ibb and so on)")


def expect_readable(files: Iterable[Path]) -> None:
    """See before long work begins that each file can be read.

    Raises:
        StoreError: one cannot.
    """
    for path in files:
        if not isinstance(path, ObjectPath) and not os.access(path, os.R_OK):
            raise StoreError(f"{path} cannot be read")


def expect_writable(directory: Path) -> None:
    """See before long work begins that a directory, or one above it where it can be made, can be written.

    Raises:
        StoreError: it cannot, or there is something else.
    """
    if isinstance(directory, ObjectPath):
        from ibbmaster.disk.uploading import expect_nothing_at

        expect_nothing_at(directory)
        return
    above = next(path for path in (directory.absolute(), *directory.absolute().parents) if os.path.lexists(path))
    if not above.is_dir():
        is_itself = above == directory.absolute()
        problem = "this is not a directory" if is_itself else f"cannot be made: {above} is not a directory"
        raise StoreError(f"{directory}: {problem}")
    if not os.access(above, os.W_OK | os.X_OK):
        is_read_only = os.statvfs(above).f_flag & os.ST_RDONLY
        raise StoreError(
            f"{directory}: cannot be written: {os.strerror(errno.EROFS if is_read_only else errno.EACCES)}"
        )


def open_to_change(directory: Path) -> ibbmaster.WritableLog:
    """The log that a command changes and leaves; a full disk is reported, not waited for."""
    import ibbmaster

    return ibbmaster.open(directory, writable=True, has_background=False, full_disk_retry_s=0)
