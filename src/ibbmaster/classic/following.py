"""The files of a traditional binlog, which a server or a copier may add to, and purge or reset, while they are read."""

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ibbmaster.classic.head import FileHead, begun_head, head_of
from ibbmaster.classic.series import (
    FIRST_EVENT_OFFSET,
    INDEX_SUFFIX,
    ClassicFile,
    classic_file,
    find_series,
    packed_or_not,
    starts_like_a_binlog,
)
from ibbmaster.disk.held_file import HeldFile
from ibbmaster.disk.place import open_file, stamp_of
from ibbmaster.errors import ClassicFormatError, LogResetError, MissingFileError, PositionPurgedError, StoreError
from ibbmaster.event.header import FLAGS_OFFSET
from ibbmaster.log.interface import LogFile
from ibbmaster.log.observer import LogObserver, Picture

NAMES_MAX = 1 << 16  # of dropped files
FLAGS_AT = FIRST_EVENT_OFFSET + FLAGS_OFFSET  # in a file: there its server notes whether it is in use


class FollowedFiles(LogObserver[ClassicFile]):
    """The files there are, and their heads. Thread-safe.

    A file that follows the last one is taken once its head is whole.

    Attributes:
        takes_more: whether a directory or an index is asked what is there; files that were named are all.

    Raises ClassicFormatError: when heads are needed: a file does not begin as a traditional binlog, or is encrypted;
    StoreError: the files do not belong together, or one is missing.
    """

    def __init__(self, paths: Iterable[Path], *, reads_heads_at_once: bool = True) -> None:
        """Unless it `reads_heads_at_once`, each head is read when it is asked for: what is no binlog is found later."""
        self._paths = tuple(paths)
        self._reads_heads_at_once = reads_heads_at_once
        self._heads: dict[tuple[int, int], FileHead] = {}  # by number and life
        self._names: dict[int, str] = {}  # of files that were dropped: some dump may be in one
        self._growing: tuple[int, int, int] | None = None  # see `growing`: resets, and numbers of the first and last
        self._listed: tuple[Picture[ClassicFile], list[LogFile]] | None = None  # last, and of which files
        self._unfinished: tuple[Picture[ClassicFile], str] | None = None
        self._lives = itertools.count(1)
        self.takes_more = any(path.is_dir() or path.name.endswith(INDEX_SUFFIX) for path in self._paths)
        super().__init__(self._find())

    @property
    def first(self) -> ClassicFile:
        return self.picture.first

    @property
    def last(self) -> ClassicFile:
        """The last file there was at the last look."""
        return self.picture.last

    @property
    def unfinished(self) -> str | None:
        """What is to be said of what is not whole at the end, while it is as it was."""
        found = self._unfinished
        return self.awaited or (found[1] if found is not None and found[0] is self.picture else None)

    def note_unfinished(self, text: str | None) -> None:
        """Keep what a reader says at the end of what is there."""
        self._unfinished = None if text is None else (self.picture, text)

    def file(self, file_no: int) -> ClassicFile:
        """A file by its number. Raises KeyError: there is none; PositionPurgedError: there is none any more."""
        found = self.picture.file(file_no)
        if found is None:
            name = self._names.get(file_no)
            raise KeyError(file_no) if name is None else PositionPurgedError(f"{name} was purged")
        return found

    def name(self, file_no: int) -> str:
        """The name of a file by its number, also of one that is there no longer. Raises KeyError: there was none."""
        found = self.picture.file(file_no)
        return self._names[file_no] if found is None else found.name

    def number_as(self, name: str, file_no: int) -> None:
        """Number the files so that the one of this name has that number, as it has for another process.
        Raises PositionPurgedError: there is none of that name."""
        at = self.picture.file(file_no)
        if at is not None and at.name == name:
            return
        with self._lock:
            picture = self.picture
            found = next((file for file in picture.files if file.name == name), None)
            if found is None:
                raise PositionPurgedError(f"{name} was purged")
            self._growing = None
            moved = file_no - found.index
            *before, last = (replace(file, index=file.index + moved) for file in picture.files)
            self._heads = {(number + moved, life): head for (number, life), head in self._heads.items()}
            self._show(before, last)

    def from_file(self, file_no: int) -> tuple[ClassicFile, ...]:
        """That file and all after it."""
        return self.picture.from_file(file_no)

    def growing(self) -> tuple[ClassicFile, ...]:
        """The newest files, as many as have states each of which grows to the next: see `GtidState.grows_to`.
        Where not all heads were read at once, this holds for those that were read, and is assumed of the others: who
        reads more of them asks again."""
        with self._lock:
            picture = self.picture
            self.head(picture.last)  # then there are those of all files, unless each is read when it is asked for
            oldest, last = picture.first.index, picture.last.index
            if not self._reads_heads_at_once:
                known = sorted(number for number, _ in list(self._heads) if oldest <= number <= last)
                steps = (later for number, later in itertools.pairwise(known) if not self._grows(number, later))
                return picture.from_file(max(steps, default=oldest))
            found, checked = self._growing, last
            first = last
            if found is not None and found[0] == picture.resets:
                _, first, checked = found
            for file_no in range(checked, last):
                if not self._grows(file_no, file_no + 1):
                    first = file_no + 1
            if found is None or found[0] != picture.resets:
                while first > oldest and self._grows(first - 1, first):
                    first -= 1
            self._growing = picture.resets, first, last
            return picture.from_file(max(first, oldest))

    def _grows(self, file_no: int, later_no: int) -> bool:
        """Whether the state of a file grows to that of a later one."""
        head, later = self._known_head(file_no), self._known_head(later_no)
        if head is None or later is None:  # it was purged before it was looked at
            return False
        return head.state is not None and later.state is not None and head.state.grows_to(later.state)

    def _known_head(self, file_no: int) -> FileHead | None:
        file = self.picture.file(file_no)
        return None if file is None else self._heads.get((file.index, file.life))

    def head(self, file: ClassicFile) -> FileHead:
        """What the head of a file says, read once."""
        key = file.index, file.life
        try:
            if key not in self._heads and self._reads_heads_at_once:  # what is no binlog shall be found at once
                for each in self.picture.files:
                    if (each.index, each.life) not in self._heads and (head := _head_of(each, is_asked=each is file)):
                        self._heads[each.index, each.life] = head
            if key not in self._heads:
                with told_if_purged(file):
                    self._heads[key] = head_of(file)
        except PositionPurgedError as error:
            if file.index == self.picture.last.index:  # the last file is never purged: it is about to come again
                raise LogResetError(str(error)) from None
            raise
        return self._heads[key]

    def listed(self) -> list[LogFile]:
        """The files that are there now, without those that were purged."""
        picture = self.look()
        known = self._listed
        if known is None or known[0] is not picture:
            files = [
                LogFile(file_no=file.index, name=file.name, size=file.size_bytes, is_packed=file.packing is not None)
                for file in picture.files
            ]
            known = self._listed = picture, files
        return list(known[1])

    # As `LogObserver` has it ----------------------------------------------------------------

    def _find(self) -> Sequence[ClassicFile]:
        files = find_series(self._paths)
        while self.takes_more and len(files) > 1 and not self._is_begun(files[-1]):
            files = files[:-1]
        return files

    def _after(self, last: ClassicFile) -> ClassicFile | None:
        return self._beside(last, 1)

    def _before(self, first: ClassicFile) -> ClassicFile | None:
        found = self._beside(first, -1)
        if found is None or found.index >= 0:
            return found
        self._begin_anew()  # there are no numbers before that of the first file
        return None

    def _is_begun(self, file: ClassicFile) -> bool:
        try:
            return begun_head(file) is not None
        except ClassicFormatError:
            return True  # reading it shows what is wrong with it

    def _beside(self, known: ClassicFile, step: int) -> ClassicFile | None:
        """The file whose number is that of another one plus `step`, once it is begun."""
        if known.number is None or not self.takes_more:
            return None
        for path in _paths_of(known.path, known.name, known.number + step):
            try:
                if not path.is_file() or not starts_like_a_binlog(path):
                    continue
                file = classic_file(path)
                head = begun_head(file)
            except (ClassicFormatError, StoreError, OSError):
                continue  # it has just been made; who gets there, and finds it so still, says so
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
        with contextlib.suppress(OSError, StoreError):
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
    """What the file of a number may be called, beside one of that name; each look asks."""
    digits = name.rpartition(".")[2]
    return packed_or_not(path.with_name(f"{name.removesuffix(digits)}{number:0{len(digits)}d}"))


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
    Raises PositionPurgedError: it is; StoreError: it cannot be opened, or its directory is gone."""
    try:
        yield
    except MissingFileError:
        if not file.path.parent.is_dir():
            raise
        raise PositionPurgedError(f"{file.name} was purged") from None
