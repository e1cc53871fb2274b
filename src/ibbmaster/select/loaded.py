"""Databases of SQLite that queries load tables into, and the last one that was loaded."""

from __future__ import annotations

import functools
import math
import os
import sqlite3
import threading

from ibbmaster.wire.refusal import out_of_memory

CACHE_KIB = 8 << 10
VALUE_MAX = 64 << 20  # bytes of one value
KEPT_BYTES_MAX = 64 << 20
FREE_SHARE = 0.1  # of the file system of temporary files, which no query may take: SQLite sorts there without a limit
FREE_BYTES = 1 << 30  # of a large one
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: VALUE_MAX,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 << 20,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_COLUMN: 2000,
}


def new_database(pages_max: int) -> sqlite3.Connection:
    """An empty database, for one query."""
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA journal_mode = OFF")
    database.execute(f"PRAGMA max_page_count = {pages_max}")
    for category, most in _LIMITS.items():
        database.setlimit(category, most)
    return database


class KeptDatabase:
    """The table that was loaded last, for the next query that needs the same of it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[object, sqlite3.Connection] | None = None

    def __del__(self) -> None:
        if self._kept is not None:
            self._kept[1].close()  # who forgets a primary does not keep its table

    def take(self, key: object) -> sqlite3.Connection | None:
        """The database of that key, for its taker alone."""
        with self._lock:
            if self._kept is None or self._kept[0] != key:
                return None
            (_, database), self._kept = self._kept, None
            return database

    def give(self, key: object, database: sqlite3.Connection) -> None:
        """Keep a database in which no query runs, unless it is large."""
        unwanted: sqlite3.Connection | None = database
        sizes = [database.execute(f"PRAGMA {part}").fetchone()[0] for part in ("page_count", "page_size")]
        if math.prod(sizes) <= KEPT_BYTES_MAX:
            with self._lock:
                unwanted = None if self._kept is None else self._kept[1]
                self._kept = key, database
        if unwanted is not None:
            unwanted.close()


def expect_free_space() -> None:
    """See that the file system in which SQLite sorts is not about to be full. Raises RefusedError: there is too little
    left."""
    directory = _temporary_directory()
    system = os.statvfs(directory)
    free, all_bytes = system.f_bavail * system.f_frsize, system.f_blocks * system.f_frsize
    if free < min(FREE_SHARE * all_bytes, FREE_BYTES):
        raise out_of_memory(f"{free >> 20} MiB are left in {directory} for what queries sort")


@functools.cache
def _temporary_directory() -> str:
    """Where SQLite puts its temporary files. Source: its documentation, "Temporary Files Used By SQLite"."""
    named = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp")
    return next((name for name in named if name and os.path.isdir(name) and os.access(name, os.W_OK | os.X_OK)), ".")
