"""What the directory of a table is called.

delta-rs takes per cent signs of a path for escapes, so letters are replaced by tildes and bytes. Directories of older
exports have per cent signs, and keep them unless they become Delta tables.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, unquote

from ibbmaster.disk.place import ObjectPath
from ibbmaster.errors import StoreError
from ibbmaster.sqltext.table_name import TableName, parse_table_name

_PLAIN = re.compile(r"[\w-]")  # what a name of a directory has as it is
_BYTE = re.compile(rb"~([0-9A-F]{2})")


def directory_name(table: str) -> str:
    """The name for a table: letters that are no letters, digits, `-` or `_` are their bytes, and a dot is between."""
    return ".".join(
        "".join(
            letter if _PLAIN.match(letter) else "".join(f"~{byte:02X}" for byte in letter.encode()) for letter in name
        )
        for name in parse_table_name(table)
    )


def table_name(directory: str) -> str:
    """The table whose directory is called so.

    Raises:
        StoreError: it is that of an older export, and has more than one dot.
    """
    names = directory.split(".")
    if len(names) != 2:
        raise StoreError(
            f"{directory}: an older export wrote this directory, of a table that may be one of several: export anew"
        )
    if "%" in directory:
        return str(TableName(*map(unquote, names)))
    return str(TableName(*(_BYTE.sub(_byte, name.encode()).decode(errors="replace") for name in names)))


def _byte(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 16)])


def directory_of(place: Path, table: str) -> Path:
    """Where a table is, or will be."""
    older = ".".join(quote(name, safe="").replace(".", "%2E") for name in parse_table_name(table))
    return place / (older if "%" in older and (place / older).exists() else directory_name(table))


def rename_older(place: Path) -> None:
    """Let no directory have per cent signs; none of an object store ever had."""
    if isinstance(place, ObjectPath):
        return
    for path in sorted(place.glob("*%*")):
        path.rename(place / directory_name(table_name(path.name)))
