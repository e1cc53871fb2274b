"""Observes the files of a log that another process writes.

Writers append, begin the next file, and remove the oldest ones: the log continues. They begin the last file again, or
remove it: readers wait until it is as long as it was. Anything else is another log: a reset. A file keeps its number
while it exists, and no other file ever gets that of a traditional one."""

import contextlib
import logging
import threading
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ibbmaster.errors import LogResetError, StoreError
from ibbmaster.storage.disk.held_file import FileChange, HeldFile

log = logging.getLogger(__name__)


class LogPart(Protocol):
    """One file of a log, with its number there and that in its name. A replacement may have another `life`."""

    @property
    def name(self) -> str: ...

    @property
    def number(self) -> int | None: ...

    @property
    def index(self) -> int: ...

    @property
    def life(self) -> int: ...


F = TypeVar("F", bound=LogPart)


@dataclass(frozen=True, slots=True)
class Picture(Generic[F]):
    """The files at one look, in order: those before the last one, and that, in which the log ends."""

    before: tuple[F, ...]
    last: F
    resets: int  # how often other files replaced the former ones
    life: int  # also changes when something was taken away that may come again

    @property
    def first(self) -> F:
        return self.before[0] if self.before else self.last

    @property
    def files(self) -> Sequence[F]:
        return *self.before, self.last

    def from_file(self, index: int) -> Sequence[F]:
        return (*self.before[max(index - self.first.index, 0) :], self.last) if index <= self.last.index else ()

    def file(self, index: int) -> F | None:
        if index == self.last.index:
            return self.last
        return self.before[index - self.first.index] if self.first.index <= index < self.last.index else None


class LogObserver(Generic[F]):
    """Thread-safe. `picture` is that of the last look; holds its last file open. Raises OSError, StoreError: it has
    gone."""

    def __init__(self, files: Sequence[F]) -> None:
        self._lock = threading.RLock()
        self._held = self._hold(files[-1])
        self._awaited: tuple[F, HeldFile] | None = None
        self._awaited_since = 0  # the life in which something was taken away last
        self._is_sure = True  # the last file was as in the picture
        self.picture = Picture(tuple(files[:-1]), files[-1], 0, 0)

    def close(self) -> None:
        self._held.close()
        if self._awaited is not None:
            self._awaited[1].close()

    @abstractmethod
    def _find(self) -> Sequence[F]:
        """The begun files, in order. Raises OSError, StoreError: there is none, or they form no log."""

    @abstractmethod
    def _after(self, last: F) -> F | None: ...

    @abstractmethod
    def _before(self, first: F) -> F | None: ...

    @abstractmethod
    def _is_begun(self, file: F) -> bool: ...

    @abstractmethod
    def _hold(self, file: F) -> HeldFile: ...

    @abstractmethod
    def _is_there(self, file: F) -> bool: ...

    @abstractmethod
    def _seen(self, file: F, held: HeldFile) -> F: ...

    @abstractmethod
    def _is_same(self, known: F, found: F) -> bool: ...

    @abstractmethod
    def _placed(self, files: Sequence[F], index: int) -> Sequence[F]: ...

    def _is_replaced(self, file: F) -> bool:  # some readers find that out themselves
        return False

    def _dropped(self, files: Sequence[F]) -> None: ...  # to let go of what is kept of them

    @property
    def awaited(self) -> str | None:
        awaited = self._awaited
        if awaited is None:
            return None
        file, held = awaited
        return (
            f"{file.name}: {held.stamp.size} bytes of it were there, and it is gone, or begun again: dumps wait until "
            "they are there again"
        )

    def is_untouched(self) -> bool:
        """Whether the picture is current, as far as the last file shows; costs one stat."""
        return self._awaited is None and self._held.is_untouched()

    def look(self, *, only_cached: bool = False) -> Picture[F]:
        if not self._lock.acquire(blocking=not only_cached):
            raise BlockingIOError("another thread is looking which files there are")
        try:
            self._look_at_last()
            self._look_behind()
            self._look_at_first()
            return self.picture
        finally:
            self._lock.release()

    def check(self, resets: int) -> None:
        """Raises LogResetError: a reader began before the last reset."""
        if self.picture.resets != resets:
            raise LogResetError("the files there were have been replaced by others: the log was reset")

    def stands(self, index: int, life: int, resets: int, only_cached: bool) -> bool:
        """Whether data just read from a file belongs to the log; False while that is awaited. Raises LogResetError: it
        does not; BlockingIOError: with `only_cached`, another thread is looking."""
        if not self.is_untouched():
            self.look(only_cached=only_cached)
        self.check(resets)
        return not self.waits(index, life)

    def waits(self, index: int, life: int) -> bool:
        """Whether a reader in a file, which began in a life of the log, has to wait until that exists again."""
        awaited = self._awaited
        is_there = awaited is None or index < awaited[0].index or life >= self._awaited_since
        return not (self._is_sure and is_there)

    def doubt(self) -> None:
        """A file before the last one proved to be another one: what exists now is another log."""
        with self._lock:
            self._begin_anew()

    def _look_at_last(self) -> None:
        if self._awaited is not None:
            file, held = self._awaited
            match held.look():
                case FileChange.OTHER:
                    self._begin_anew()
                    return
                case FileChange.NONE:  # all is there again
                    if self.picture.last.index < file.index and self._held.look() is FileChange.NONE:
                        self._show(self.picture.before, self._seen(self.picture.last, self._held))
                    self._held.close()
                    self._held, self._awaited = held, None
                    before = [one for one in self.picture.files if one.index < file.index]
                    self._show(before, file, life=self.picture.life + 1)
        change = self._held.look()
        self._is_sure = change is FileChange.NONE
        match change:
            case FileChange.NONE:
                seen = self._seen(self.picture.last, self._held)
                if seen is not self.picture.last:
                    self._show(self.picture.before, seen)
            case FileChange.OTHER:
                self._begin_anew()
            case FileChange.CUT:
                with contextlib.suppress(StoreError, OSError):
                    self._take_what_is_left(self._find())

    def _look_behind(self) -> None:
        """Take the files that follow; the one before each is complete."""
        while (file := self._after(self.picture.last)) is not None:
            try:
                held = self._hold(file)
            except (OSError, StoreError):
                return
            if self._awaited is not None and file.index > self._awaited[0].index:
                held.close()
                self._begin_anew()  # the log continues behind an awaited file
                return
            if self._held.look() is not FileChange.NONE:
                held.close()
                return  # the next look finds out
            complete = self._seen(self.picture.last, self._held)
            self._held.close()
            self._held = held
            self._show((*self.picture.before, complete), file)

    def _look_at_first(self) -> None:
        before = self.picture.before
        gone = 0
        while gone < len(before) and not self._is_there(before[gone]):
            gone += 1
        if gone < len(before) and self._is_replaced(before[gone]):
            self._begin_anew()
            return
        if gone and self._is_there(self.picture.last):  # else all is gone, perhaps for a while
            self._dropped(before[:gone])
            self._show(before[gone:], self.picture.last)
        while (file := self._before(self.picture.first)) is not None:
            if not self._is_begun(self.picture.last):  # it counts only where it is alone
                self._begin_anew()
                return
            self._show((file, *self.picture.before), self.picture.last, life=self.picture.life + 1)

    def _take_what_is_left(self, found: Sequence[F]) -> None:
        picture, last = self.picture, self.picture.last
        if self._awaited is None and last.number is not None and found[0].number == last.number + 1:
            if self._is_begun(found[-1]):
                self._take(self._placed(found, last.index + 1), picture.resets)
            return
        known = {one.name: one for one in picture.before}
        left = found[:-1] if found[-1].name == last.name else found
        if not all(one.name in known and self._is_same(known[one.name], one) for one in left):
            self._begin_anew()
            return
        kept = [known[one.name] for one in left]
        held = self._hold(found[-1])
        self._dropped([one for one in picture.files if one not in kept])
        if self._awaited is None:
            self._awaited = last, self._held
        else:  # what took its place is gone, too
            self._held.close()
        self._awaited_since = picture.life + 1
        self._held, self._is_sure = held, True
        if found is not left:
            kept += self._placed(found[-1:], last.index)
        self._show(kept[:-1], kept[-1], life=picture.life + 1)

    def _begin_anew(self) -> None:
        with contextlib.suppress(StoreError, OSError):  # nothing is there; perhaps it will be
            found = self._find()
            index = self.picture.last.index + 1 if self._awaited is None else self._awaited[0].index + 1
            self._take(self._placed(found, index), self.picture.resets + 1)

    def _take(self, files: Sequence[F], resets: int) -> None:
        held = self._hold(files[-1])
        self.close()
        self._dropped(self.picture.files)
        self._held, self._awaited, self._is_sure = held, None, True
        if resets != self.picture.resets:
            log.info("%s: other files have taken the place of those there were: the log was reset", files[-1].name)
        self.picture = Picture(tuple(files[:-1]), files[-1], resets, self.picture.life + 1)

    def _show(self, before: Sequence[F], last: F, *, life: int | None = None) -> None:
        self.picture = Picture(tuple(before), last, self.picture.resets, self.picture.life if life is None else life)
