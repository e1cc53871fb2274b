"""What the directory of a table is called.

delta-rs takes per cent signs of a path for escapes, so letters are replaced by tildes and bytes. Directories of older
exports have per cent signs, and keep them unless they become Delta tables.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, unquote

from ibbmaster.disk.place import ObjectPath

_PLAIN = re.compile(r"[\w.-]")  # what a name of a directory has as it is
_BYTE = re.compile(rb"~([0-9A-F]{2})")


def directory_name(table: str) -> str:
    """The name for a table: letters that are no letters, digits, `.`, `-` or `_` are their bytes."""
    return "".join(
        letter if _PLAIN.match(letter) else "".join(f"~{byte:02X}" for byte in letter.encode()) for letter in table
    )


def table_name(directory: str) -> str:
    """The table whose directory is called so."""
    if "%" in directory:
        return unquote(directory)
    return _BYTE.sub(lambda found: bytes([int(found[1], 16)]), directory.encode()).decode(errors="replace")


def directory_of(place: Path, table: str) -> Path:
    """Where a table is, or will be."""
    older = quote(table, safe="")
    return place / (older if "%" in older and (place / older).exists() else directory_name(table))


def rename_older(place: Path) -> None:
    """Let no directory have per cent signs; none of an object store ever had."""
    if isinstance(place, ObjectPath):
        return
    for path in sorted(place.glob("*%*")):
        path.rename(place / directory_name(table_name(path.name)))
