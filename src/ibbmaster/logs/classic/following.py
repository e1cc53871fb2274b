"""The files of a traditional binlog, which others may extend, purge or reset while they are read."""

import contextlib
import functools
import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ibbmaster import errors
from ibbmaster.logs.log.interface import LogFile
from ibbmaster.logs.log.observer import LogObserver, Picture
from ibbmaster.replication.event.header import FLAGS_OFFSET
from ibbmaster.storage.disk.held_file import HeldFile, Stamp
from ibbmaster.storage.disk.place import open_file, stamp_of
from .archives import archived_paths, find_files
from .head import FileHead, begun_head, head_of, is_begun, without_unbegun
from .series import (
    FIRST_EVENT_OFFSET,
    INDEX_SUFFIX,
    ClassicFile,
    classic_file,
    packed_or_not,
    starts_like_a_binlog,
)

log = logging.getLogger(__name__)

NAMES_MAX = 1 << 16  # of dropped files
FLAGS_AT = FIRST_EVENT_OFFSET + FLAGS_OFFSET  # where its server notes whether it is in use


class FollowedFiles(LogObserver[ClassicFile]):
    """The present files, and their heads. Thread-safe. A new last file counts once its head is whole. With `takes_more`
    a directory or an index says which files there are; files that were named are all. Raises, when heads are needed, as
    `read_head`; StoreError: the files do not belong together, or one is missing."""

    def __init__(self, paths: Iterable[Path], *, reads_heads_at_once: bool = True) -> None:
        """Unless it `reads_heads_at_once`, it reads each head on demand, and finds out later what is no binlog."""
        self._paths = tuple(paths)
        self._reads_heads_at_once = reads_heads_at_once
        self._heads: dict[tuple[int, int], FileHead] = {}  # by number and life
        self._names: dict[int, str] = {}  # of dropped files: a dump may be in one
        self._growing: tuple[tuple[int, ...], int] | None = None  # of which files, and the first
        self._listed: tuple[Picture[ClassicFile], list[LogFile]] | None = None
        self._unfinished: tuple[Picture[ClassicFile], str] | None = None
        self._lives = itertools.count(1)
        self.takes_more = any(path.is_dir() or path.name.endswith(INDEX_SUFFIX) for path in self._paths)
        super().__init__(self._find())
        self._others: dict[Path, Stamp] = {}  # in an archive, and not in the log
        self._later: list[ClassicFile] = []  # of these, what comes next

    @property
    def first(self) -> ClassicFile:
        return self.picture.first

    @property
    def last(self) -> ClassicFile:
        return self.picture.last

    @property
    def unfinished(self) -> str | None:
        found = self._unfinished
        return self.awaited or (found[1] if found is not None and found[0] is self.picture else None)

    def note_unfinished(self, text: str | None) -> None:
        self._unfinished = None if text is None else (self.picture, text)

    def file(self, file_no: int) -> ClassicFile:
        """Raises KeyError: there was none of that number; PositionPurgedError: it was purged."""
        found = self.picture.file(file_no)
        if found is None:
            name = self._names.get(file_no)
            raise KeyError(file_no) if name is None else errors.PositionPurgedError(f"{name} was purged")
        return found

    def name(self, file_no: int) -> str:
        found = self.picture.file(file_no)
        return self._names[file_no] if found is None else found.name

    def number_as(self, name: str, path: str, file_no: int) -> None:
        """Number the files so that this one gets `file_no`, and name it. Raises PositionPurgedError: it is gone."""
        at = self.picture.file(file_no)
        if at is not None and at.name == name:
            return
        with self._lock:
            picture = self.picture
            found = next((file for file in picture.files if file.name == name or str(file.path) == path), None)
            if found is None:
                raise errors.PositionPurgedError(f"{name} was purged")
            self._growing = None
            moved = file_no - found.index
            *before, last = (
                replace(file, index=file.index + moved, name=name if file is found else file.name)
                for file in picture.files
            )
            self._heads = {(number + moved, life): head for (number, life), head in self._heads.items()}
            self._show(before, last)

    def from_file(self, file_no: int) -> Sequence[ClassicFile]:
        return self.picture.from_file(file_no)

    def growing(self) -> Sequence[ClassicFile]:
        """The longest run of newest files whose states grow from each to the next: see `GtidState.grows_to`. Of heads
        that are read on demand this is assumed until they were read: then ask again."""
        with self._lock:
            picture = self.picture
            self.head(picture.last)  # reads all, unless on demand
            oldest, last = picture.first.index, picture.last.index
            key = picture.life, oldest, last, len(self._heads)
            if self._growing is None or self._growing[0] != key:
                known = sorted(number for number, _ in list(self._heads) if oldest <= number <= last)
                steps = (later for number, later in itertools.pairwise(known) if not self._grows(number, later))
                self._growing = key, max(steps, default=known[0] if self._reads_heads_at_once else oldest)
            return picture.from_file(self._growing[1])

    def _grows(self, file_no: int, later_no: int) -> bool:
        head, later = self._known_head(file_no), self._known_head(later_no)
        if head is None or later is None:  # purged before its head was read
            return False
        return head.state is not None and later.state is not None and head.state.grows_to(later.state)

    def _known_head(self, file_no: int) -> FileHead | None:
        file = self.picture.file(file_no)
        return None if file is None else self._heads.get((file.index, file.life))

    def head(self, file: ClassicFile) -> FileHead:
        key = file.index, file.life
        try:
            if key not in self._heads:
                for each in self.picture.files if self._reads_heads_at_once else ():  # finds at once what is no binlog
                    with contextlib.suppress(errors.PositionPurgedError):
                        self._read_head(each)
                self._read_head(file)
        except errors.PositionPurgedError as error:
            if file.index == self.picture.last.index:  # it is never purged, and will come again
                raise errors.LogResetError(str(error)) from None
            raise
        return self._heads[key]

    def _read_head(self, file: ClassicFile) -> None:
        if (file.index, file.life) not in self._heads:
            with told_if_purged(file):
                self._heads[file.index, file.life] = head_of(file)

    def listed(self) -> list[LogFile]:
        picture = self.look()
        known = self._listed
        if known is None or known[0] is not picture:
            files = [
                LogFile(file_no=file.index, name=file.name, size=file.size_bytes, is_packed=file.packing is not None)
                for file in picture.files
            ]
            known = self._listed = picture, files
        return list(known[1])

    def _find(self) -> Sequence[ClassicFile]:
        files = without_unbegun(find_files(self._paths))
        while self.takes_more and (fewer := without_unbegun(files)) is not files:
            files = fewer
        return files

    def _after(self, last: ClassicFile) -> ClassicFile | None:
        return self._beside(last, 1) if last.earlier is None else self._archived_after(last)

    def _archived_after(self, last: ClassicFile) -> ClassicFile | None:
        """The next file of an archive; none while the order of its new ones is unclear."""
        if not self._later:
            known = {file.path for file in self.picture.files}
            others = {path: stamp_of(path) for path in archived_paths(self._paths[0]) if path not in known}
            if others == self._others:
                return None
            self._others = others
            try:
                found = self._find()
            except errors.IbbMasterError as error:
                log.warning("what comes after %s is not read: %s", last.name, error)
                return None
            self._later = list(itertools.dropwhile(lambda file: file.path != last.path, found))[1:]
        return self._placed([self._later.pop(0)], last.index + 1)[0] if self._later else None

    def _before(self, first: ClassicFile) -> ClassicFile | None:
        found = self._beside(first, -1) if first.earlier is None else None
        if found is None or found.index >= 0:
            return found
        self._begin_anew()
        return None

    def _is_begun(self, file: ClassicFile) -> bool:
        return is_begun(file)

    def _beside(self, known: ClassicFile, step: int) -> ClassicFile | None:
        if known.number is None or not self.takes_more:
            return None
        for path in _paths_of(known.path, known.own_name, known.number + step):
            try:
                if not path.is_file() or not starts_like_a_binlog(path):
                    continue
                file = classic_file(path)
                head = begun_head(file)
            except (errors.ClassicFormatError, errors.StoreError, OSError):
                continue  # just made; if it stays so, its reader says so
            if head is not None and head.state is not None:
                (placed,) = self._placed([file], known.index + step)
                self._heads[placed.index, placed.life] = head
                return placed
        return None

    def _hold(self, file: ClassicFile) -> HeldFile:
        return HeldFile(lambda: stamp_of(file.path), lambda: open_file(file.path), flags_at=FLAGS_AT)

    def _is_there(self, file: ClassicFile) -> bool:
        return file.path.exists()

    def _is_replaced(self, file: ClassicFile) -> bool:
        with contextlib.suppress(OSError, errors.StoreError):
            return stamp_of(file.path)[:2] != file.stamp[:2]
        return False

    def _is_same(self, known: ClassicFile, found: ClassicFile) -> bool:
        return known.stamp == found.stamp

    def _seen(self, file: ClassicFile, held: HeldFile) -> ClassicFile:
        return file if file.stamp == held.stamp else replace(file, stamp=held.stamp)

    def _placed(self, files: Sequence[ClassicFile], index: int) -> Sequence[ClassicFile]:
        life = next(self._lives)
        return [replace(file, index=number, life=life) for number, file in enumerate(files, index)]

    def _dropped(self, files: Sequence[ClassicFile]) -> None:
        for file in files:
            self._heads.pop((file.index, file.life), None)
            self._names[file.index] = file.name
        for index in itertools.islice(list(self._names), max(len(self._names) - NAMES_MAX, 0)):
            del self._names[index]


@functools.lru_cache(16)
def _paths_of(path: Path, name: str, number: int) -> list[Path]:
    digits = name.rpartition(".")[2]
    return packed_or_not(path.with_name(f"{name.removesuffix(digits)}{number:0{len(digits)}d}"))


@contextlib.contextmanager
def told_if_purged(file: ClassicFile) -> Iterator[None]:
    """A missing file whose directory is there was purged. Raises PositionPurgedError, StoreError."""
    try:
        yield
    except errors.MissingFileError:
        if not file.path.parent.is_dir():
            raise
        raise errors.PositionPurgedError(f"{file.name} was purged") from None
