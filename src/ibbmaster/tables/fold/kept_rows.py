"""The rows of tables at one position: the place of each in a file of rows, in the order of keys."""

from __future__ import annotations

import itertools
import mmap
import os
import sqlite3
import struct
import tempfile
import threading
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Self

from ibbmaster.storage.codec.buffer import Buffer

HEAD = struct.Struct("<IH")  # of a row: bytes of its image, number of its layout
UNWRITTEN_MAX = 1 << 20
READ_SIZE = 1 << 12  # most rows are not longer


class RowFile:
    """Images with their layouts' numbers, by offset. Thread-safe. Its disk space is free once nobody holds the file or
    a buffer of it."""

    def __init__(self) -> None:
        self._file, path = tempfile.mkstemp(prefix="ibbmaster-rows-")
        os.unlink(path)
        weakref.finalize(self, os.close, self._file)
        self._unwritten = bytearray()
        self._written = 0
        self._lock = threading.Lock()
        self._map: mmap.mmap | None = None

    @property
    def size(self) -> int:
        """In bytes."""
        return self._written + len(self._unwritten)

    def append(self, layout_no: int, images: Iterable[bytes]) -> list[int]:
        places = []
        with self._lock:
            waiting, start = self._unwritten, self._written
            for image in images:
                places.append(start + len(waiting))
                waiting += HEAD.pack(len(image), layout_no)
                waiting += image
            if len(waiting) >= UNWRITTEN_MAX:
                self._write()
        return places

    def append_block(self, rows: Buffer) -> int:
        """Add rows with their heads; returns the place of the first."""
        with self._lock:
            start = self._written + len(self._unwritten)
            self._unwritten += rows
            if len(self._unwritten) >= UNWRITTEN_MAX:
                self._write()
        return start

    def read(self, place: int) -> tuple[int, bytes]:
        with self._lock:
            if place >= self._written:
                start = place - self._written
                size, layout_no = HEAD.unpack_from(self._unwritten, start)
                return layout_no, bytes(self._unwritten[start + HEAD.size : start + HEAD.size + size])
        found = os.pread(self._file, READ_SIZE, place)
        size, layout_no = HEAD.unpack_from(found)
        while len(found) < HEAD.size + size:
            found += os.pread(self._file, HEAD.size + size - len(found), place + len(found))
        return layout_no, found[HEAD.size : HEAD.size + size]

    def data(self) -> Buffer:
        """All rows so far, as one lasting buffer."""
        with self._lock:
            self._write()
            if self._written == 0:
                return b""
            if self._map is None or len(self._map) < self._written:
                self._map = mmap.mmap(self._file, self._written, access=mmap.ACCESS_READ)
            return memoryview(self._map)

    def _write(self) -> None:
        sent = 0
        with memoryview(self._unwritten) as view:
            while sent < len(view):
                sent += os.write(self._file, view[sent:])
        self._written += len(self._unwritten)
        self._unwritten.clear()


CACHE_KIB = 64 << 10  # of keys and places in memory; SQLite keeps the rest in a file
BLOCK_ROWS = 1 << 12

Interval = tuple[bytes, bytes | None]  # keys from the first on, up to the second; None: to the end
EVERYTHING: Interval = (b"", None)


def successor(prefix: bytes) -> bytes | None:
    """The first bytes behind all with a prefix; None if nothing is."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes((stripped[-1] + 1,)) if stripped else None


class WrongChangeError(Exception):
    """A change of a row that is not there, or an INSERT of one that is."""


class KeptRows:
    """Tables of rows by number, one row for each key. One thread at a time changes them; others may hold places, which
    stay good. `digest` identifies rows without a key by their values; equal ones keep their order."""

    def __init__(self, rows: RowFile, database: sqlite3.Connection | None = None) -> None:
        self.rows = rows
        self.digest_of: dict[int, Callable[[int], bytes]] = {}
        self._database = temporary_database() if database is None else database
        weakref.finalize(self, self._database.close)
        self._tables = self._names()
        self._all_places: tuple[int, array[int]] | None = None

    def fork(self) -> Self:
        database = temporary_database()
        self._database.backup(database)
        return type(self)(self.rows, database)

    def close(self) -> None:
        self._database.close()

    def conclude(self) -> None:
        """Raises WrongChangeError: changes contradict each other; here each says so at once."""

    # Transactions -----------------------------------------------------------------------------

    def savepoint(self, name: str) -> None:
        """`name` is a word."""
        self._database.execute(f"SAVEPOINT {name}")

    def release(self, name: str) -> None:
        self._database.execute(f"RELEASE {name}")

    def undo(self, name: str) -> None:
        """Undo what was done since a savepoint, which stays."""
        self._database.execute(f"ROLLBACK TO {name}")
        self._tables = self._names()
        self._all_places = None

    def _names(self) -> set[str]:
        return {name for (name,) in self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    # Tables -----------------------------------------------------------------------------------

    def has(self, number: int) -> bool:
        return next(self.places(number, limit=1), None) is not None

    def size(self, number: int) -> int:
        """In bytes."""
        return sum(len(self.rows.read(place)[1]) for place in self.places(number))

    def numbers(self) -> list[int]:
        return [int(name[1:]) for name in self._tables if name[0] == "r"]

    def drop(self, number: int) -> None:
        self._note(number)
        for name in self._tables & {f"r{number}", f"d{number}"}:
            self._database.execute(f"DROP TABLE {name}")
            self._tables.discard(name)

    def _make(self, number: int) -> None:
        self._create(f"r{number}", "(key BLOB PRIMARY KEY, place INTEGER)")

    def _make_digests(self, number: int) -> None:
        self._make(number)
        self._create(f"d{number}", "(digest BLOB, key BLOB, PRIMARY KEY (digest, key))")

    def _create(self, name: str, columns: str) -> None:
        if name not in self._tables:
            self._database.execute(f"CREATE TABLE {name} {columns} WITHOUT ROWID")
            self._tables.add(name)

    # Rows with a key --------------------------------------------------------------------------

    def insert(self, number: int, keys: Sequence[bytes], places: Sequence[int]) -> bool:
        """False if one of the keys was there."""
        self._note(number, keys, places)
        self._make(number)
        try:
            self._database.executemany(f"INSERT INTO r{number} VALUES (?, ?)", zip(keys, places, strict=True))
        except sqlite3.IntegrityError:
            return False
        return True

    def move(self, number: int, keys: Sequence[bytes], places: Sequence[int]) -> bool:
        """Give rows other places; False if one is not there."""
        self._note(number, keys, places)
        self._make(number)
        given = zip(places, keys, strict=True)
        return self._database.executemany(f"UPDATE r{number} SET place = ? WHERE key = ?", given).rowcount == len(keys)

    def delete(self, number: int, keys: Sequence[bytes]) -> bool:
        """False if one is not there."""
        self._note(number, keys)
        self._make(number)
        given = ((key,) for key in keys)
        return self._database.executemany(f"DELETE FROM r{number} WHERE key = ?", given).rowcount == len(keys)

    def place(self, number: int, key: bytes) -> int | None:
        self._make(number)
        found = self._database.execute(f"SELECT place FROM r{number} WHERE key = ?", (key,)).fetchone()
        return None if found is None else int(found[0])

    # Rows without a key -----------------------------------------------------------------------

    def add(self, number: int, digests: Sequence[bytes], places: Sequence[int]) -> None:
        self._make_digests(number)
        (last,) = self._database.execute(f"SELECT max(key) FROM r{number}").fetchone()
        first = 1 + (0 if last is None else int.from_bytes(last, "big"))
        keys = [(first + index).to_bytes(8, "big") for index in range(len(places))]
        self._note(number, keys, places)
        self._database.executemany(f"INSERT INTO r{number} VALUES (?, ?)", zip(keys, places, strict=True))
        self._add_digests(number, digests, keys)

    def _add_digests(self, number: int, digests: Iterable[bytes], keys: Iterable[bytes]) -> None:
        self._database.executemany(f"INSERT INTO d{number} VALUES (?, ?)", zip(digests, keys, strict=True))

    def remove(self, number: int, digest: bytes) -> bool:
        """Remove the first row with a digest; False if none has it."""
        key = self._of_digest(number, digest)
        if key is None:
            return False
        self.delete(number, [key])
        self._database.execute(f"DELETE FROM d{number} WHERE digest = ? AND key = ?", (digest, key))
        return True

    def replace(self, number: int, digest: bytes, new_digest: bytes, place: int) -> bool:
        """Give the first row with a digest another one, and its place; False if none has it."""
        key = self._of_digest(number, digest)
        if key is None:
            return False
        self.move(number, [key], [place])
        given = (new_digest, digest, key)
        self._database.execute(f"UPDATE d{number} SET digest = ? WHERE digest = ? AND key = ?", given)
        return True

    def place_of(self, number: int, digest: bytes) -> int | None:
        key = self._of_digest(number, digest)
        return None if key is None else self.place(number, key)

    def _of_digest(self, number: int, digest: bytes) -> bytes | None:
        self._make_digests(number)
        found = self._database.execute(f"SELECT key FROM d{number} WHERE digest = ? LIMIT 1", (digest,)).fetchone()
        return None if found is None else bytes(found[0])

    # Reading ----------------------------------------------------------------------------------

    def all_places(self, number: int) -> array[int]:
        """In the order of keys; callers must not change the array."""
        if self._all_places is None or self._all_places[0] != number:
            found = self._database.execute(f"SELECT place FROM r{number} ORDER BY key") if self.has(number) else ()
            self._all_places = number, array("q", itertools.chain.from_iterable(found))
        return self._all_places[1]

    def _note(self, number: int, keys: Sequence[bytes] = (), places: Sequence[int] | None = None) -> None:
        """Rows change: those of `keys` get places, or go; without keys all go."""
        if self._all_places is not None and self._all_places[0] == number:
            self._all_places = None

    def places(
        self, number: int, interval: Interval = EVERYTHING, *, is_descending: bool = False, limit: int | None = None
    ) -> Iterator[int]:
        if f"r{number}" not in self._tables:
            return
        order = " DESC" if is_descending else ""
        end = f"ORDER BY key{order} LIMIT {-1 if limit is None else limit}"
        cursor = self._select("place", number, interval, end)
        while found := cursor.fetchmany(BLOCK_ROWS):
            for (place,) in found:
                yield place

    def count_in(self, number: int, interval: Interval = EVERYTHING) -> int:
        if f"r{number}" not in self._tables:
            return 0
        return int(self._select("count(*)", number, interval).fetchone()[0])

    def _select(self, what: str, number: int, interval: Interval, rest: str = "") -> sqlite3.Cursor:
        first, end = interval
        upper = "" if end is None else "AND key < :end"
        sql = f"SELECT {what} FROM r{number} WHERE key >= :first {upper} {rest}"
        return self._database.execute(sql, {"first": first, "end": end})

    def compact(self) -> None:
        """Keep only present rows, in a new file, in the order of keys."""
        rows = RowFile()
        for number in self.numbers():
            self._copy(number, rows)
        self.rows = rows
        self._all_places = None

    def _copy(self, number: int, rows: RowFile) -> None:
        for key, place in self._database.execute(f"SELECT key, place FROM r{number} ORDER BY key").fetchall():
            new = self._copied(place, rows)
            self._database.execute(f"UPDATE r{number} SET place = ? WHERE key = ?", (new, key))

    def _copied(self, place: int, rows: RowFile) -> int:
        layout_no, image = self.rows.read(place)
        (new,) = rows.append(layout_no, [image])
        return new

    def all_rows(self, number: int) -> Iterable[tuple[bytes, int]]:
        if f"r{number}" not in self._tables:
            return ()
        return self._database.execute(f"SELECT key, place FROM r{number} ORDER BY key")


def temporary_database() -> sqlite3.Connection:
    """A database in memory that moves to a file what does not fit, and removes it at its end."""
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    database.execute("PRAGMA synchronous = OFF")
    return database
