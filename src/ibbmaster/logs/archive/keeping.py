"""The manifest where it is kept: read, and changed by one writer at a time.

Invariants:
- The manifest names an object only after that was put, and no longer before it is removed
  (test_each_request_fails_once_and_nothing_is_lost_or_named_that_is_not_there).
- A writer changes only the head that it knows (test_a_second_writer_is_refused)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from ibbmaster.errors import BusyError, ConfigurationError, MissingFileError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.object_store import BusyNameError, ChangedError, RefusalError, Version
from ibbmaster.storage.disk.whole_objects import WholeObjects
from .manifest import HEAD_NAME, Head, SealedPage, Segment, chained, decode_head, decode_page, encode_head
from .packed import PackedSegment, unpack

TRIES = 5  # while a prune changes the head, too


def read_head(objects: WholeObjects) -> tuple[Head, Version] | None:
    """None: there is no archive. Raises StoreError: it cannot be read."""
    try:
        data, version = objects.get(HEAD_NAME)
    except MissingFileError:
        return None
    return decode_head(data, f"{objects.url}/{HEAD_NAME}"), version


def expect_head(objects: WholeObjects) -> tuple[Head, Version]:
    """Raises StoreError: there is no archive, or it cannot be read."""
    found = read_head(objects)
    if found is None:
        raise StoreError(f"{objects.url}: there is no archive here ({HEAD_NAME} is missing)")
    return found


def read_page(objects: WholeObjects, page: SealedPage) -> tuple[Segment, ...]:
    where = f"{objects.url}/{page.name}"
    try:
        data, _ = objects.get(page.name)
    except MissingFileError:
        raise StoreError(f"{where}: the head of the archive names it, and it is not there") from None
    return decode_page(data, page, where)


def all_segments(objects: WholeObjects, head: Head) -> Iterator[Segment]:
    """The kept ones, in order."""
    for page in head.pages:
        yield from (one for one in read_page(objects, page) if one.number >= head.first)
    yield from (one for one in head.entries if one.number >= head.first)


class ArchiveKeeper:
    """Adds segments; for one thread. Raises BusyError: another process writes this archive, or has; ConfigurationError:
    something else is there; StoreError: the store cannot be reached, or refuses."""

    def __init__(self, objects: WholeObjects) -> None:
        self.objects = objects
        self._known: tuple[Head, Version] | None = None
        self._sealed: set[str] = set()

    @property
    def known(self) -> Head | None:
        """None before it is opened."""
        return None if self._known is None else self._known[0]

    @property
    def head(self) -> Head:
        assert self._known is not None
        return self._known[0]

    def open(self, begin: GtidState, server_version: str) -> None:
        """Take the archive that is there, or begin one after a GTID state."""
        found = read_head(self.objects)
        if found is None:
            objects, below = self.objects.list()
            if names := sorted([one.name for one in objects] + below):
                raise ConfigurationError(
                    f"{self.objects.url} has no {HEAD_NAME}, and is not empty: it holds {names[0]}: give another place"
                )
            head = Head(server_version=server_version, begin=str(begin))
            try:
                found = head, self.objects.exchange(HEAD_NAME, encode_head(head), None)
            except BusyNameError:
                found = expect_head(self.objects)
            except MissingFileError as error:
                raise RefusalError(str(error)) from None
        self.take(*found)

    def take(self, head: Head, version: Version) -> None:
        self._known = head, version

    def add(self, packed: PackedSegment, *, server_version: str) -> None:
        """Put a segment that continues the archive, then the manifest with it. May be called again after an error."""
        entry = packed.entry
        try:
            self.objects.upload(entry.name, packed.path, entry.bytes)
        except BusyNameError as error:  # from before a crash, or from another writer
            there, _ = self.objects.get(entry.name)
            if _content(there, entry) != packed.content:
                raise BusyError(f"{error}: its content is not that of this log: another writer has put it") from None
            entry = replace(entry, sha256=hashlib.sha256(there).hexdigest(), bytes=len(there))
        entry = replace(entry, chain=chained(self.head.end_chain, entry.sha256))
        self._change(lambda head: replace(head, server_version=server_version).with_segment(entry))

    def note_checked(self, now: float) -> None:
        """All that is durable is archived."""
        self._change(lambda head: replace(head, checked_at=int(now)))

    def prune(self, first: int) -> None:
        self._change(lambda head: head.pruned(first))

    def _change(self, change: Callable[[Head], Head]) -> None:
        assert self._known is not None
        for _ in range(TRIES):
            known, version = self._known
            head = change(known)
            if (found := head.sealed()) is not None:
                head, page, data = found
                self._create_page(page, data)
            encoded = encode_head(head)
            try:
                self._known = head, self.objects.exchange(HEAD_NAME, encoded, version)
                return
            except (ChangedError, BusyNameError):
                there, version = expect_head(self.objects)
            self._known = there, version
            if there.last == known.last:
                continue  # it was pruned, or checked
            if there.last != head.last:  # else the answer to an earlier attempt was lost
                raise BusyError(
                    f"{self.objects.url}: another process writes this archive: it is at '{there.end}', and this one "
                    f"left it at '{known.end}'"
                )
            return
        raise BusyError(f"{self.objects.url}: another process changes this archive all the time")

    def _create_page(self, page: SealedPage, data: bytes) -> None:
        if page.name in self._sealed:
            return
        try:
            self.objects.create(page.name, data)
        except BusyNameError:
            read_page(self.objects, page)  # from before a crash
        self._sealed.add(page.name)


def _content(data: Buffer, entry: Segment) -> str | None:
    """The SHA-256 of what is in an object; None: nothing that has the size of a segment."""
    try:
        return unpack(data, entry.size, entry.name)[1]
    except StoreError:
        return None
