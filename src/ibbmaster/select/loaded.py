"""Databases of SQLite with tables that queries have loaded, kept for the next statements of their sessions."""

from __future__ import annotations

import functools
import os
import sqlite3
import threading
import weakref
from dataclasses import dataclass

from ibbmaster.position import LogPosition
from ibbmaster.schema.model import TableVersion
from ibbmaster.wire.refusal import out_of_memory

CACHE_KIB = 8 << 10
VALUE_MAX = 64 << 20  # bytes of one value
KEPT_BYTES_MAX = 64 << 20  # of the tables of one session
KEPT_SESSIONS_MAX = 8  # whose tables are kept: each has a cache in memory, too
FREE_SHARE = 0.1  # of the file system of temporary files, which no query may take: SQLite sorts there without a limit
FREE_BYTES = 1 << 30  # of a large one
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: VALUE_MAX,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 << 20,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_COLUMN: 2000,
}


@dataclass(frozen=True, slots=True)
class TableKey:
    """What the values of a loaded table follow from: where in the log it is read, and how TIMESTAMP is shown."""

    table: TableVersion
    end: LogPosition
    time_zone_s: int


@dataclass(frozen=True, slots=True)
class LoadedColumns:
    """What of a table is there: places of columns, and by which collation those of texts have keys beside them."""

    places: frozenset[int] = frozenset()
    keys: frozenset[tuple[int, str]] = frozenset()

    def has(self, other: LoadedColumns) -> bool:
        return self.places >= other.places and self.keys >= other.keys

    def __or__(self, other: LoadedColumns) -> LoadedColumns:
        return LoadedColumns(self.places | other.places, self.keys | other.keys)


class QueryDatabase:
    """One database, for one query at a time."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._names: list[tuple[TableKey, str]] = []  # the one that was asked for last at the end
        self._count = 0
        self._loaded: dict[str, LoadedColumns] = {}

    @property
    def connection(self) -> sqlite3.Connection:
        """The database, which is opened when it is first asked for."""
        if self._connection is None:
            database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            database.execute("PRAGMA synchronous = OFF")
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            for category, most in _LIMITS.items():
                database.setlimit(category, most)
            self._connection = database
        return self._connection

    @property
    def page_count(self) -> int:
        """Pages of the tables that are there."""
        return int(self.connection.execute("PRAGMA page_count").fetchone()[0])

    def name(self, key: TableKey) -> str:
        """What a table is called, whether it is loaded or not."""
        found = next((one for one in self._names if one[0] == key), None)
        if found is None:
            found = key, f"t{self._count}"
            self._count += 1
        else:
            self._names.remove(found)
        self._names.append(found)
        return found[1]

    def loaded(self, name: str) -> LoadedColumns | None:
        """What is there of a table."""
        return self._loaded.get(name)

    def note(self, name: str, columns: LoadedColumns) -> None:
        """A table has been loaded."""
        self._loaded[name] = columns

    def drop(self, name: str) -> None:
        """A table is of no use any more."""
        self._loaded.pop(name, None)
        self.connection.executescript(f"DROP TABLE {name}; PRAGMA incremental_vacuum")  # which has a step for each page

    def shrink(self, bytes_max: int) -> None:
        """Keep what was asked for last, up to a number of bytes."""
        size = int(self.connection.execute("PRAGMA page_size").fetchone()[0])
        while self.has_tables() and self.page_count * size > bytes_max:
            self.drop(self._names[0][1])

    def has_tables(self) -> bool:
        """Whether any is loaded; the names of others are forgotten."""
        self._names = [one for one in self._names if one[1] in self._loaded]
        return bool(self._names)

    def close(self) -> None:
        """Forget everything."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._loaded.clear()


class KeptDatabases:
    """The databases of sessions that run no query. Thread-safe; a session is any object that can be held weakly."""

    def __init__(self, sessions_max: int = KEPT_SESSIONS_MAX) -> None:
        self._sessions_max = sessions_max
        self._kept: dict[object, QueryDatabase] = {}  # the one that was used last at the end
        self._ended: weakref.WeakSet[object] = weakref.WeakSet()
        self._lock = threading.Lock()

    def take(self, session: object) -> QueryDatabase:
        """The database of a session, for its taker alone; an empty one if there is none, or a query has it."""
        with self._lock:
            return self._kept.pop(session, None) or QueryDatabase()

    def give(self, session: object, database: QueryDatabase) -> None:
        """Keep a database for the next query of a session, unless that has ended."""
        with self._lock:
            if session in self._ended or not database.has_tables():
                unwanted = [database]
            else:
                unwanted = [self._kept.pop(session)] if session in self._kept else []
                self._kept[session] = database
            while len(self._kept) > self._sessions_max:
                unwanted.append(self._kept.pop(next(iter(self._kept))))
        for one in unwanted:
            one.close()

    def forget(self, session: object) -> None:
        """A session has ended."""
        with self._lock:
            self._ended.add(session)
            database = self._kept.pop(session, None)
        if database is not None:
            database.close()


def expect_free_space() -> None:
    """See that the file system in which SQLite sorts is not about to be full.

    Raises:
        RefusedError: there is too little left.
    """
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
