"""The files of a traditional binlog, which a server or a copier may add to, and purge or reset, while they are read."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ibbmaster.classic.head import FileHead, head_of
from ibbmaster.classic.series import (
    INDEX_SUFFIX,
    ClassicFile,
    classic_file,
    find_series,
    packed_or_not,
    starts_like_a_binlog,
)
from ibbmaster.errors import ClassicFormatError, MissingFileError, PositionPurgedError, StoreError
from ibbmaster.log.interface import LogFile

Stamp = tuple[int, int, int]  # resets, number and size of the last file


class FollowedFiles:
    """The files there are, and their heads. Thread-safe; it keeps no file open.

    A file has the same number as long as it is there: its place in the series when that was first
    looked at. A file that follows the last one is taken once its head is whole.

    Attributes:
        resets: how often other files have taken the place of those there were.
        takes_more: whether a directory or an index is asked what is there; files that were named are all.

    Raises:
        ClassicFormatError: when heads are needed: a file does not begin as a traditional binlog, or is encrypted.
        StoreError: the files do not belong together, or one is missing.
    """

    def __init__(self, paths: Iterable[Path], *, reads_heads_at_once: bool = True) -> None:
        """Unless it `reads_heads_at_once`, each head is read when it is asked for: what is no binlog is found later."""
        self._paths = tuple(paths)
        self._reads_heads_at_once = reads_heads_at_once
        self._lock = threading.RLock()
        self._files = list(find_series(self._paths))
        self._heads: dict[int, FileHead] = {}
        self._growing: tuple[int, int, int] | None = None  # see `growing`: resets, and numbers of the first and last
        self.resets = 0
        self._listed: tuple[tuple[Stamp, int], list[LogFile]] | None = None  # last, and of which files
        self._unfinished: tuple[Stamp, str] | None = None
        self.takes_more = any(path.is_dir() or path.name.endswith(INDEX_SUFFIX) for path in self._paths)

    @property
    def first(self) -> ClassicFile:
        return self._files[0]

    @property
    def last(self) -> ClassicFile:
        """The last file there was at the last look."""
        return self._files[-1]

    @property
    def stamp(self) -> Stamp:
        """Another one after each look that found more, or something else."""
        last = self._files[-1]
        return self.resets, last.index, last.size_bytes

    @property
    def unfinished(self) -> str | None:
        """What a reader said of bytes at the end of the last file that are no whole group, while it is as it was."""
        found = self._unfinished
        return found[1] if found is not None and found[0] == self.stamp else None

    def note_unfinished(self, text: str | None) -> None:
        """Keep what a reader says at the end of what is there."""
        self._unfinished = None if text is None else (self.stamp, text)

    def file(self, file_no: int) -> ClassicFile:
        """A file by its number.

        Raises:
            KeyError: there is none.
        """
        files = self._files
        at = file_no - files[0].index
        if not 0 <= at < len(files):
            raise KeyError(file_no)
        return files[at]

    def number_as(self, name: str, file_no: int) -> None:
        """Number the files so that the one of this name has that number, as it has for another process.

        Raises:
            PositionPurgedError: there is none of that name.
        """
        files = self._files
        at = file_no - files[0].index
        if 0 <= at < len(files) and files[at].name == name:
            return
        with self._lock:
            found = next((file for file in self._files if file.name == name), None)
            if found is None:
                raise PositionPurgedError(f"{name} was purged")
            moved = file_no - found.index
            if moved:
                self._growing = None
                self._files = [replace(file, index=file.index + moved) for file in self._files]
                self._heads = {number + moved: head for number, head in self._heads.items()}

    def from_file(self, file_no: int) -> tuple[ClassicFile, ...]:
        """That file and all after it."""
        files = self._files
        return tuple(files[max(file_no - files[0].index, 0) :])

    def growing(self) -> tuple[ClassicFile, ...]:
        """The newest files, as many as have states each of which grows to the next: see `GtidState.grows_to`.

        Where not all heads were read at once, this holds for those that were read, and is assumed of the others: who
        reads more of them asks again.
        """
        with self._lock:
            self.head(self.last)  # then there are those of all files, unless each is read when it is asked for
            oldest, last = self.first.index, self.last.index
            if not self._reads_heads_at_once:
                known = sorted(number for number in list(self._heads) if oldest <= number <= last)
                steps = (later for number, later in itertools.pairwise(known) if not self._grows(number, later))
                return self.from_file(max(steps, default=oldest))
            found, checked = self._growing, last
            first = last
            if found is not None and found[0] == self.resets:
                _, first, checked = found
            for file_no in range(checked, last):
                if not self._grows(file_no, file_no + 1):
                    first = file_no + 1
            if found is None or found[0] != self.resets:
                while first > oldest and self._grows(first - 1, first):
                    first -= 1
            self._growing = self.resets, first, last
            return self.from_file(max(first, oldest))

    def _grows(self, file_no: int, later_no: int) -> bool:
        """Whether the state of a file grows to that of a later one."""
        head, later = self._heads.get(file_no), self._heads.get(later_no)
        if head is None or later is None:  # it was purged before it was looked at
            return False
        return head.state is not None and later.state is not None and head.state.grows_to(later.state)

    def head(self, file: ClassicFile) -> FileHead:
        """What the head of a file says, read once."""
        if not self._reads_heads_at_once:
            if file.index not in self._heads:
                with told_if_purged(file):
                    self._heads[file.index] = head_of(file)
        elif not self._heads:  # what is no binlog shall be found at once
            self._heads = {
                each.index: head for each in self._files if (head := _head_of(each, is_asked=each.index == file.index))
            }
        return self._heads[file.index]

    def listed(self) -> list[LogFile]:
        """The files that are there now, without those that were purged."""
        self.look()
        with self._lock:
            is_there = self.last.path.exists()  # else all of the directory is gone, perhaps for a while
            while is_there and not self._files[0].path.exists():
                self._heads.pop(self._files.pop(0).index, None)
            which = self.stamp, self.first.index
            if self._listed is None or self._listed[0] != which:
                self._listed = (
                    which,
                    [
                        LogFile(
                            file_no=file.index, name=file.name, size=file.size_bytes, is_packed=file.packing is not None
                        )
                        for file in self._files
                    ],
                )
            return list(self._listed[1])

    def look(self) -> bool:
        """Look whether the last file has grown, or another one follows; whether something has changed."""
        with self._lock:
            before = self.stamp
            try:
                found = self.last.path.stat()
            except OSError:
                found = None
            if found is None or found.st_ino != self.last.inode or found.st_size < self.last.size_bytes:
                return self._begin_anew()
            if found.st_size != self.last.size_bytes:
                self._files[-1] = replace(self.last, size_bytes=found.st_size)
            while self.takes_more and (next_file := self._next_file()) is not None:
                size_bytes = self.last.path.stat().st_size  # it is complete now
                self._files[-1] = replace(self.last, size_bytes=size_bytes)
                self._files.append(next_file)
            return self.stamp != before

    def _next_file(self) -> ClassicFile | None:
        """The file that follows the last one, if it is there and can be begun."""
        last = self.last
        if last.number is None:
            return None
        for path in _paths_after(last.path, last.name, last.number):
            try:
                if not path.is_file() or not starts_like_a_binlog(path):
                    continue
                file = replace(classic_file(path), index=last.index + 1)
                head = head_of(file)
            except (ClassicFormatError, StoreError, OSError):
                continue  # it has just been made; who gets there, and finds it so still, says so
            if head.state is not None:
                self._heads[file.index] = head
                return file
        return None

    def _begin_anew(self) -> bool:
        """The last file is another one now, or gone: whatever is there now is another log."""
        try:
            files = find_series(self._paths)
        except (StoreError, OSError):
            return False  # nothing is there; perhaps it will be
        self._files, self._heads = list(files), {}
        self.resets += 1
        return True


@functools.lru_cache(16)
def _paths_after(path: Path, name: str, number: int) -> list[Path]:
    """What the file after one of a name and number may be called; each look asks."""
    digits = name.rpartition(".")[2]
    return packed_or_not(path.with_name(f"{name.removesuffix(digits)}{number + 1:0{len(digits)}d}"))


def _head_of(file: ClassicFile, *, is_asked: bool) -> FileHead | None:
    """What the head of a file says; None of one that was purged, unless that is asked for."""
    try:
        return head_of(file)
    except MissingFileError:
        if not is_asked and not file.path.exists():
            return None
        with told_if_purged(file):
            raise


@contextlib.contextmanager
def told_if_purged(file: ClassicFile) -> Iterator[None]:
    """A file that is missing where others are was purged.

    Raises:
        PositionPurgedError: it is.
        StoreError: it cannot be opened, or its directory is gone.
    """
    try:
        yield
    except MissingFileError:
        if not file.path.parent.is_dir():
            raise
        raise PositionPurgedError(f"{file.name} was purged") from None
