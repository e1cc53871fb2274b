"""The rows of tables at one position of a log: where each of them is in a file of rows, by key, in its order."""

from __future__ import annotations

import itertools
import sqlite3
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from ibbmaster.fold.row_file import RowFile

CACHE_KIB = 64 << 10  # of keys and places that stay in memory; SQLite keeps the rest in a file
BLOCK_ROWS = 1 << 12

Interval = tuple[bytes, bytes | None]  # keys from the first on, up to the second; None: to the end
EVERYTHING: Interval = (b"", None)


def successor(prefix: bytes) -> bytes | None:
    """The first bytes behind all that begin with a prefix; None if nothing is."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes((stripped[-1] + 1,)) if stripped else None


class WrongChangeError(Exception):
    """A change of a row that is not there, or an INSERT of one that is."""


class KeptRows:
    """Tables of rows by number. One thread at a time changes them; others may hold places, which stay good.

    A table has a row once for each key. Rows without a key are told apart by what they
    hold: `digest`; as often as they are there, in the order in which they came.
    """

    def __init__(self, rows: RowFile, database: sqlite3.Connection | None = None) -> None:
        self.rows = rows
        self.digest_of: dict[int, Callable[[int], bytes]] = {}  # by table: of the row at a place
        self._database = temporary_database() if database is None else database
        weakref.finalize(self, self._database.close)  # its file goes where nobody asks for the rows any more
        self._tables = self._names()
        self._all_places: tuple[int, array[int]] | None = None  # of the table that was read as a whole last

    def fork(self) -> KeptRows:
        """The same rows, to go on from by themselves."""
        return KeptRows(self.rows, self._copied_database())

    def _copied_database(self) -> sqlite3.Connection:
        database = temporary_database()
        self._database.backup(database)
        return database

    def close(self) -> None:
        """Forget all of it."""
        self._database.close()

    def conclude(self) -> None:
        """See that changes do not contradict each other; here that is seen at once."""

    # Transactions -----------------------------------------------------------------------------

    def savepoint(self, name: str) -> None:
        """Begin what can be undone by this name, a word."""
        self._database.execute(f"SAVEPOINT {name}")

    def release(self, name: str) -> None:
        """Keep what was done since a savepoint."""
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
        """Whether there is, or may be, a row in a table."""
        return f"r{number}" in self._tables and (
            self._database.execute(f"SELECT 1 FROM r{number} LIMIT 1").fetchone() is not None
        )

    def count(self, number: int) -> int:
        """How many rows a table has."""
        if f"r{number}" not in self._tables:
            return 0
        (found,) = self._database.execute(f"SELECT count(*) FROM r{number}").fetchone()
        return int(found)

    def size(self, number: int) -> int:
        """Bytes of the rows of a table."""
        return sum(len(self.rows.read(place)[1]) for place in self.places(number))

    def numbers(self) -> list[int]:
        """The tables that may have rows."""
        return [int(name[1:]) for name in self._tables if name[0] == "r"]

    def drop(self, number: int) -> None:
        """A table has no rows any more."""
        self._note(number)
        for name in (f"r{number}", f"d{number}"):
            if name in self._tables:
                self._database.execute(f"DROP TABLE {name}")
                self._tables.discard(name)

    def _make(self, number: int) -> None:
        if f"r{number}" not in self._tables:
            self._database.execute(f"CREATE TABLE r{number} (key BLOB PRIMARY KEY, place INTEGER) WITHOUT ROWID")
            self._tables.add(f"r{number}")

    def _make_digests(self, number: int) -> None:
        self._make(number)
        if f"d{number}" not in self._tables:
            columns = "(digest BLOB, key BLOB, PRIMARY KEY (digest, key))"
            self._database.execute(f"CREATE TABLE d{number} {columns} WITHOUT ROWID")
            self._tables.add(f"d{number}")

    # Rows with a key --------------------------------------------------------------------------

    def insert(self, number: int, keys: Sequence[bytes], places: Sequence[int]) -> bool:
        """Add rows; False if there was a row of one of the keys."""
        self._note(number, keys, places)
        self._make(number)
        try:
            self._database.executemany(f"INSERT INTO r{number} VALUES (?, ?)", zip(keys, places, strict=True))
        except sqlite3.IntegrityError:
            return False
        return True

    def move(self, number: int, keys: Sequence[bytes], places: Sequence[int]) -> bool:
        """Rows are somewhere else now; False if one of them is not there."""
        self._note(number, keys, places)
        self._make(number)
        given = zip(places, keys, strict=True)
        return self._database.executemany(f"UPDATE r{number} SET place = ? WHERE key = ?", given).rowcount == len(keys)

    def delete(self, number: int, keys: Sequence[bytes]) -> bool:
        """Remove rows; False if one of them is not there."""
        self._note(number, keys)
        self._make(number)
        given = ((key,) for key in keys)
        return self._database.executemany(f"DELETE FROM r{number} WHERE key = ?", given).rowcount == len(keys)

    def place(self, number: int, key: bytes) -> int | None:
        """Where the row of a key is."""
        self._make(number)
        found = self._database.execute(f"SELECT place FROM r{number} WHERE key = ?", (key,)).fetchone()
        return None if found is None else int(found[0])

    # Rows without a key -----------------------------------------------------------------------

    def add(self, number: int, digests: Sequence[bytes], places: Sequence[int]) -> None:
        """Add rows after all others."""
        self._make_digests(number)
        (last,) = self._database.execute(f"SELECT max(key) FROM r{number}").fetchone()
        first = 1 + (0 if last is None else int.from_bytes(last, "big"))
        keys = [(first + index).to_bytes(8, "big") for index in range(len(places))]
        self._note(number, keys, places)
        self._database.executemany(f"INSERT INTO r{number} VALUES (?, ?)", zip(keys, places, strict=True))
        self._database.executemany(f"INSERT INTO d{number} VALUES (?, ?)", zip(digests, keys, strict=True))

    def remove(self, number: int, digest: bytes) -> bool:
        """Remove the first row that holds what a digest says; False if none does."""
        key = self._of_digest(number, digest)
        if key is None:
            return False
        self._note(number, [key])
        self._database.execute(f"DELETE FROM r{number} WHERE key = ?", (key,))
        self._database.execute(f"DELETE FROM d{number} WHERE digest = ? AND key = ?", (digest, key))
        return True

    def replace(self, number: int, digest: bytes, new_digest: bytes, place: int) -> bool:
        """The first row that holds what a digest says holds something else now; False if none does."""
        key = self._of_digest(number, digest)
        if key is None:
            return False
        self._note(number, [key], [place])
        self._database.execute(f"UPDATE r{number} SET place = ? WHERE key = ?", (place, key))
        given = (new_digest, digest, key)
        self._database.execute(f"UPDATE d{number} SET digest = ? WHERE digest = ? AND key = ?", given)
        return True

    def place_of(self, number: int, digest: bytes) -> int | None:
        """Where the first row is that holds what a digest says."""
        key = self._of_digest(number, digest)
        return None if key is None else self.place(number, key)

    def _of_digest(self, number: int, digest: bytes) -> bytes | None:
        self._make_digests(number)
        found = self._database.execute(f"SELECT key FROM d{number} WHERE digest = ? LIMIT 1", (digest,)).fetchone()
        return None if found is None else bytes(found[0])

    # Reading ----------------------------------------------------------------------------------

    def all_places(self, number: int) -> array[int]:
        """Where all rows of a table are, in the order of their keys; callers must not change it."""
        if self._all_places is None or self._all_places[0] != number:
            found = self._database.execute(f"SELECT place FROM r{number} ORDER BY key") if self.has(number) else ()
            self._all_places = number, array("q", itertools.chain.from_iterable(found))
        return self._all_places[1]

    def _note(self, number: int, keys: Sequence[bytes] = (), places: Sequence[int] | None = None) -> None:
        """A table is not what it was: the rows of keys are at these places now, or nowhere; without keys none is."""
        if self._all_places is not None and self._all_places[0] == number:
            self._all_places = None

    def places(
        self, number: int, interval: Interval = EVERYTHING, *, is_descending: bool = False, limit: int | None = None
    ) -> Iterator[int]:
        """Where the rows of an interval of keys are, in the order of their keys."""
        if f"r{number}" not in self._tables:
            return
        first, end = interval
        upper = "" if end is None else " AND key < :end"
        order = " DESC" if is_descending else ""
        sql = f"SELECT place FROM r{number} WHERE key >= :first{upper} ORDER BY key{order} LIMIT :limit"
        given = {"first": first, "end": end, "limit": -1 if limit is None else limit}
        cursor = self._database.execute(sql, given)
        while found := cursor.fetchmany(BLOCK_ROWS):
            for (place,) in found:
                yield place

    def count_in(self, number: int, interval: Interval) -> int:
        """How many rows are in an interval of keys."""
        if f"r{number}" not in self._tables:
            return 0
        first, end = interval
        upper = "" if end is None else " AND key < :end"
        sql = f"SELECT count(*) FROM r{number} WHERE key >= :first{upper}"
        (found,) = self._database.execute(sql, {"first": first, "end": end}).fetchone()
        return int(found)

    def compact(self) -> None:
        """Keep only rows that are there, in a new file, in the order of their keys."""
        rows = RowFile()
        for number in self.numbers():
            self._copy(number, rows)
        self.rows = rows
        self._all_places = None

    def _copy(self, number: int, rows: RowFile) -> None:
        """Keep the rows of a table in another file."""
        for key, place in self._database.execute(f"SELECT key, place FROM r{number} ORDER BY key").fetchall():
            new = self._copied(place, rows)
            self._database.execute(f"UPDATE r{number} SET place = ? WHERE key = ?", (new, key))

    def _copied(self, place: int, rows: RowFile) -> int:
        layout_no, image = self.rows.read(place)
        (new,) = rows.append(layout_no, [image])
        return new

    def all_rows(self, number: int) -> Iterable[tuple[bytes, int]]:
        """Key and place of every row, in the order of their keys."""
        if f"r{number}" not in self._tables:
            return ()
        return self._database.execute(f"SELECT key, place FROM r{number} ORDER BY key")


def temporary_database() -> sqlite3.Connection:
    """A database in memory as far as that goes, and in a file that goes with it."""
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    database.execute("PRAGMA synchronous = OFF")
    return database
