"""An archive as a log to read: the series of its files comes from the manifest.

A segment is fetched whole, and read only if it is the object that the manifest names, from a temporary file: what comes
after another one is never read (test_a_changed_or_missing_segment_is_refused_by_name)."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from copy import copy
from dataclasses import dataclass, replace
from typing import cast, overload

from ibbmaster.errors import IbbMasterError, MissingFileError, PositionPurgedError, StoreError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.classic.binlog import ClassicGroups, ClassicReader
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.classic.following import FollowedFiles
from ibbmaster.logs.classic.head import FileHead, head_of
from ibbmaster.logs.classic.packing import Packing
from ibbmaster.logs.classic.series import FIRST_EVENT_OFFSET, ClassicFile
from ibbmaster.logs.classic.stored_groups import StoredGroups
from ibbmaster.logs.log.interface import LogEngine, ReadPlan
from ibbmaster.logs.log.observer import Picture
from ibbmaster.logs.log.seek import explain_purged
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.held_file import HeldFile, Stamp
from ibbmaster.storage.disk.place import SegmentFile, place
from ibbmaster.storage.disk.spool import Spool
from ibbmaster.storage.disk.whole_objects import WholeObjects
from .keeping import expect_head, read_page
from .manifest import STEM, Head, SealedPage, Segment
from .packed import unpack

LOOK_S = 2.0  # between looks at the manifest
SPOOLS_MAX = 4  # segments that stay unpacked; readers keep theirs
AHEAD_BYTES = 1 << 19  # more than a block of a dump reads
PAGES_MAX = 64  # that stay in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedFile(ClassicFile):
    """A segment, by its number."""

    entry: Segment
    store: SegmentStore

    @property
    def packing(self) -> Packing | None:
        return None  # it is unpacked as it is fetched

    def open(self, *, only_cached: bool = False) -> SegmentFile:
        return self.store.opened(self, only_cached=only_cached)


class SegmentStore:
    """The manifest and the segments of an archive, as far as they were asked for. Thread-safe. Raises StoreError: an
    object is missing, or is not what the manifest says of it."""

    def __init__(self, objects: WholeObjects, head: Head) -> None:
        self.objects = objects
        self.head = head
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, tuple[Segment, ...]] = OrderedDict()  # by SHA-256
        self._spools: OrderedDict[str, Spool] = OrderedDict()

    def look(self) -> None:
        self.head, _ = expect_head(self.objects)

    def file(self, number: int) -> ArchivedFile:
        entry = self.entry(number)
        path = place(self.objects.url) / entry.name
        stamp = Stamp(entry.sha256, entry.size, ())
        name = f"{STEM}.{number:06}"
        return ArchivedFile(path=path, name=name, number=number, stamp=stamp, index=number, entry=entry, store=self)

    def entry(self, number: int) -> Segment:
        if number < self.head.first:
            raise PositionPurgedError(f"{self.objects.url}: segment {number} was pruned from the archive")
        page = self.head.page_of(number)
        entries = self.head.entries if page is None else self._page(page)
        at = number - entries[0].number
        if not 0 <= at < len(entries) or entries[at].number != number:
            raise StoreError(f"{self.objects.url}: the manifest lacks segment {number}")
        return entries[at]

    def number_before(self, position: GtidPosition) -> int | None:
        """Of the newest segment before all that a replica at a position lacks; None: the oldest begins later."""

        def passes(one: SealedPage | Segment) -> bool:
            return not GtidState.parse(one.before).is_before(position)

        entries: Sequence[Segment] = self.head.entries
        if passes(entries[0]) and (count := bisect_left(self.head.pages, True, key=passes)):
            entries = self._page(self.head.pages[count - 1])
        at = bisect_left(entries, True, key=passes) - 1
        return entries[at].number if at >= 0 and entries[at].number >= self.head.first else None

    def number_at(self, time: int) -> int:
        """Of the first segment that ends then or later; the newest one if none does."""
        sets: list[Sequence[SealedPage | Segment]] = [self.head.pages, self.head.entries]
        for parts in sets:
            if parts and parts[-1].last_time >= time:
                found = parts[bisect_left(parts, time, key=lambda one: one.last_time)]
                entries = self._page(found) if isinstance(found, SealedPage) else self.head.entries
                at = bisect_left(entries, time, key=lambda one: one.last_time)
                return max(entries[at].number, self.head.first)
        return self.head.next_number - 1

    def only(self, number: int) -> SegmentStore:
        """As if the archive had this segment alone."""
        part = copy(self)
        part.head = replace(self.head, first=number, pages=(), entries=(self.entry(number),))
        return part

    def _is_known(self, number: int) -> bool:
        """Whether the entry of a segment is in memory."""
        if not self.head.first <= number < self.head.next_number:
            return False
        page = self.head.page_of(number)
        return page is None or page.sha256 in self._pages

    def opened(self, file: ArchivedFile, *, only_cached: bool) -> SegmentFile:
        entry = file.entry
        with self._lock:
            spool = self._spools.get(entry.sha256)
        if spool is None:
            if only_cached:
                raise BlockingIOError(f"{entry.name} has to be fetched")
            spool = self._fetched(entry)
            with self._lock:
                self._spools[entry.sha256] = spool
                if len(self._spools) > SPOOLS_MAX:
                    self._spools.popitem(last=False)
            if head_of(file).state != GtidState.parse(entry.before):
                raise StoreError(f"{file.path}: it does not begin at '{entry.before}', as the manifest says")
        return SegmentFile(spool.descriptor, file.stamp)

    def fetch_ahead(self, position: LogPosition) -> Future[None] | None:
        """Fetch the segment of a place and the next one, in a thread; None: the next block needs only what is here."""
        here = position.file_no
        numbers = [one for one in (here, here + 1) if self._is_known(one)]
        if here not in numbers:
            return None
        wanted = [file for file in map(self.file, numbers) if file.entry.sha256 not in self._spools]
        if not wanted or (wanted[0].number != here and self.entry(here).size - position.offset >= AHEAD_BYTES):
            return None
        fetched: Future[None] = Future()

        def fetch() -> None:
            with contextlib.suppress(IbbMasterError):  # the reader hears of it
                for file in wanted:
                    file.open().close()
            fetched.set_result(None)

        threading.Thread(target=fetch, name="ibbmaster-fetch", daemon=True).start()
        return fetched

    def _fetched(self, entry: Segment) -> Spool:
        where = f"{self.objects.url}/{entry.name}"
        try:
            data, _ = self.objects.get(entry.name)
        except MissingFileError:
            self.look()
            self.entry(entry.number)  # perhaps it was pruned
            raise StoreError(f"{where}: the manifest of the archive names it, and it is not there") from None
        if (found := hashlib.sha256(data).hexdigest()) != entry.sha256:
            raise StoreError(
                f"{where}: it is not the object that was archived: its SHA-256 is {found}, and the manifest says "
                f"{entry.sha256}"
            )
        return unpack(data, entry.size, where)[0]

    def _page(self, page: SealedPage) -> tuple[Segment, ...]:
        with self._lock:
            known = self._pages.get(page.sha256)
        if known is None:
            known = read_page(self.objects, page)
            with self._lock:
                self._pages[page.sha256] = known
                if len(self._pages) > PAGES_MAX:
                    self._pages.popitem(last=False)
        return known


class _Files(Sequence[ArchivedFile]):
    """The files of some segments in a row, each made when it is asked for."""

    def __init__(self, store: SegmentStore, numbers: range) -> None:
        self._store = store
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> ArchivedFile: ...
    @overload
    def __getitem__(self, at: slice) -> _Files: ...
    def __getitem__(self, at: int | slice) -> ArchivedFile | _Files:
        found = self._numbers[at]
        return self._store.file(found) if isinstance(found, int) else _Files(self._store, found)


@dataclass(frozen=True, slots=True)
class _ArchivePicture(Picture[ClassicFile]):
    store: SegmentStore
    numbers: range

    @property
    def first(self) -> ClassicFile:
        return self.files[0]

    @property
    def files(self) -> Sequence[ClassicFile]:
        return _Files(self.store, self.numbers)

    def from_file(self, index: int) -> Sequence[ClassicFile]:
        return self.files[max(index - self.numbers.start, 0) :]

    def file(self, index: int) -> ClassicFile | None:
        return self.store.file(index) if index in self.numbers else None


class ArchivedFiles(FollowedFiles):
    """The segments that are kept, as the manifest says at the last look."""

    def __init__(self, store: SegmentStore, *, grows: bool = True) -> None:
        self.store = store
        super().__init__(())
        self._looked_at = time.monotonic() if grows else float("inf")
        self.picture = self._picture(0)

    def close(self) -> None: ...

    def _find(self) -> Sequence[ClassicFile]:
        if self.store.head.last is None:
            raise StoreError(f"{self.store.objects.url}: nothing is archived yet")
        return [self.store.file(self.store.head.last.number)]

    def _hold(self, file: ClassicFile) -> HeldFile:
        return cast(HeldFile, None)  # a segment never changes, and the manifest says what follows it

    @property
    def first(self) -> ClassicFile:
        return self.look().first

    def look(self, *, only_cached: bool = False) -> Picture[ClassicFile]:
        if only_cached:
            return self.picture
        with self._lock:
            if time.monotonic() - self._looked_at >= LOOK_S:
                self.store.look()
                self._looked_at = time.monotonic()
                if self._seen_head != self.store.head:
                    self.picture = self._picture(self.picture.resets + self._is_other(self._seen_head))
            return self.picture

    def _picture(self, resets: int) -> _ArchivePicture:
        head = self._seen_head = self.store.head
        [last] = self._find()
        return _ArchivePicture((), last, resets, resets, self.store, range(head.first, head.next_number))

    def _is_other(self, before: Head) -> bool:
        """Whether another archive has taken the place of the one there was."""
        assert before.last is not None
        number = before.last.number
        return number >= self.store.head.next_number or self.store.entry(number).chain != before.last.chain

    def is_untouched(self) -> bool:
        return True

    def waits(self, index: int, life: int) -> bool:
        return False

    def file(self, file_no: int) -> ClassicFile:
        found = self.picture.file(file_no)
        if found is None:
            raise PositionPurgedError(f"{self.name(file_no)} was pruned") if file_no > 0 else KeyError(file_no)
        return found

    def name(self, file_no: int) -> str:
        return f"{STEM}.{file_no:06}"

    def number_as(self, name: str, path: str, file_no: int) -> None:
        self.file(file_no)

    def head(self, file: ClassicFile) -> FileHead:
        assert isinstance(file, ArchivedFile)
        return FileHead(
            server_version=self.store.head.server_version,
            is_restart=file.entry.is_restart,
            has_checksums=True,
            format_description=b"",
            state=GtidState.parse(file.entry.before),
        )


class ArchivedGroups(ClassicGroups):
    """Groups of segments."""

    def __init__(self, store: SegmentStore, reader: ClassicReader, position: LogPosition) -> None:
        super().__init__(reader, position)
        self._store = store

    def fetch_ahead(self) -> Future[None] | None:
        return self._store.fetch_ahead(self.position)


class StoredSegments(StoredGroups):
    """Segments as they are stored."""

    def fetch_ahead(self) -> Future[None] | None:
        assert isinstance(self._series, ArchivedFiles)
        return self._series.store.fetch_ahead(self.position)


class ArchivedBinlog(ClassicBinlog):
    """An archive, read."""

    def __init__(self, store: SegmentStore, *, grows: bool = True) -> None:
        super().__init__((), series=ArchivedFiles(store, grows=grows))
        self._end_seen: LogPosition | None = None

    @property
    def store(self) -> SegmentStore:
        assert isinstance(self._series, ArchivedFiles)
        return self._series.store

    def end(self, *, only_cached: bool = False) -> LogPosition:
        last = self._series.look(only_cached=only_cached).last
        return LogPosition(last.index, last.size_bytes)

    def state(self, *, only_cached: bool = False) -> GtidState:
        self._series.look(only_cached=only_cached)
        return GtidState.parse(self.store.head.end)

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> ReadPlan:
        if only_cached:
            raise BlockingIOError("a page of the manifest may have to be fetched")
        self._series.look()
        number = self.store.number_before(position)
        if number is None:
            first = self._series.first
            raise PositionPurgedError(explain_purged(position, first.name, self._head(first).state))
        return self._head(self._series.file(number))

    def groups(self, plan: ReadPlan) -> ArchivedGroups:
        self._series.check(plan.resets)
        reader = ClassicReader(self._series.from_file(plan.position.file_no), plan.state)
        return ArchivedGroups(self.store, reader, plan.position)

    def stored_groups(self, plan: ReadPlan, offset: int = FIRST_EVENT_OFFSET) -> StoredSegments:
        self._series.check(plan.resets)
        return StoredSegments(self._series, plan.position, plan.state, offset)

    def around(self, time: int) -> tuple[LogEngine, int | None]:
        self._series.look()
        store = self.store
        number = store.number_at(time)
        pages, entries = store.head.pages, store.head.entries
        oldest = pages[0].first_time if pages else entries[0].first_time
        return ArchivedBinlog(store.only(number), grows=False), oldest if number > store.head.first else None

    def wait_for_growth(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while True:
            end, seen = self.end(), self._end_seen
            if end != seen:
                self._end_seen = end
                return seen is not None
            if (left := deadline - time.monotonic()) <= 0:
                return False
            time.sleep(min(left, LOOK_S))
