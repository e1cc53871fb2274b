"""The kind of a log at a path: traditional files, or those of the engine."""

import re
from collections.abc import Sequence
from pathlib import Path

from ibbmaster.classic.packing import unpacked_name
from ibbmaster.ibb.file_name import parse_file_name

_CLASSIC_NAME = re.compile(r".+\.[0-9]{6,}", re.DOTALL)


def holds_classic_files(names: Sequence[str]) -> bool:
    """Whether these are files of a traditional binlog, and none of them the engine's."""
    has_classic = any(_CLASSIC_NAME.fullmatch(unpacked_name(name)) for name in names)
    return has_classic and not any(parse_file_name(name) is not None for name in names)


def holds_traditional(path: Path) -> bool:
    """Whether a path is a traditional file, an index of them, or their directory."""
    try:
        if path.is_dir():
            return holds_classic_files([one.name for one in path.iterdir()])
        return path.is_file() and parse_file_name(path.name) is None
    except OSError:
        return False  # its reader says why
