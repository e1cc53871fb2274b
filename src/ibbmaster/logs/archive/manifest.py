"""The manifest of an archive: what each segment holds. Layout: protocol/store/archive.md.

A head object has the newest entries, and one line for each sealed page of older ones: so one more segment costs a small
object, and a search reads the head and one page."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from ibbmaster.errors import GtidError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.storage.codec.buffer import Buffer

HEAD_NAME = "archive.json"
STEM = "archive"  # of the names of files that replicas see
FORMAT = "ibbmaster archive 1"
PAGE_ENTRIES = 500
NAME_STATE_MAX = 80  # characters
SEGMENT_SUFFIX = ".zst"

_SEGMENT = re.compile(r"(?P<number>\d{8,19})_[0-9A-Za-z_-]{1,100}\.zst", re.ASCII)
_PAGE = re.compile(r"page-(?P<number>\d{8,19})\.json", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
Part = TypeVar("Part", "Segment", "SealedPage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One entry. Times are those of the first and the last group, in seconds since 1970; sizes are in bytes."""

    number: int
    name: str
    before: str  # GTID states
    after: str
    first_time: int
    last_time: int
    groups: int
    bytes: int  # of the object
    size: int  # of the binlog file in it
    sha256: str  # of the object
    chain: str  # of this and all entries before
    is_restart: bool = False  # a server start began it


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedPage:
    """An object with `PAGE_ENTRIES` entries; the fields are those of its first and last one, sums of the others."""

    number: int
    name: str
    before: str
    first_time: int
    last_time: int
    groups: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """`first` is the number of the oldest segment that is kept; entries of older ones may still be listed. `begin` is
    the GTID state before the first segment that ever was, `checked_at` when all that was durable had been archived."""

    server_version: str
    begin: str
    first: int = 1
    checked_at: int | None = None
    pages: tuple[SealedPage, ...] = ()
    entries: tuple[Segment, ...] = ()

    @property
    def last(self) -> Segment | None:
        return self.entries[-1] if self.entries else None

    @property
    def end(self) -> str:
        """The GTID state at the end."""
        return self.begin if self.last is None else self.last.after

    @property
    def last_recoverable_time(self) -> int | None:
        """Up to when all is in the archive, in seconds since 1970; None: it is empty."""
        times = (self.checked_at, None if self.last is None else self.last.last_time)
        return max((time for time in times if time is not None), default=None)

    @property
    def next_number(self) -> int:
        return 1 if self.last is None else self.last.number + 1

    @property
    def end_chain(self) -> str:
        return _sha256(f"{FORMAT} after {self.begin}") if self.last is None else self.last.chain

    def with_segment(self, entry: Segment) -> Head:
        return replace(self, entries=(*self.entries, entry))

    def sealed(self) -> tuple[Head, SealedPage, bytes] | None:
        """This head without its oldest entries, and the page to create with them first; None while they are few."""
        if len(self.entries) <= PAGE_ENTRIES:
            return None
        old = self.entries[:PAGE_ENTRIES]
        data = _encode({"entries": [asdict(one) for one in old]})
        page = SealedPage(
            number=old[0].number,
            name=f"page-{old[0].number:08}.json",
            before=old[0].before,
            first_time=old[0].first_time,
            last_time=old[-1].last_time,
            groups=sum(one.groups for one in old),
            bytes=sum(one.bytes for one in old),
            sha256=_sha256(data),
        )
        return replace(self, pages=(*self.pages, page), entries=self.entries[PAGE_ENTRIES:]), page, data

    def page_of(self, number: int) -> SealedPage | None:
        """The page with the entry of a segment; None: the head has it."""
        at = bisect_right(self.pages, number, key=lambda page: page.number) - 1
        return None if at < 0 or number >= self.entries[0].number else self.pages[at]

    def pruned(self, first: int) -> Head:
        """Without what is older than a segment."""
        pages = tuple(page for page in self.pages if page.number + PAGE_ENTRIES > first)
        return replace(self, first=first, pages=pages)


def chained(before: str, sha256: str) -> str:
    return _sha256(before + sha256)


def segment_name(number: int, state: GtidState) -> str:
    """By what is archived after it, as far as that is short."""
    said = "_".join(map(str, state.position().values()))
    return f"{number:08}_{said if len(said) <= NAME_STATE_MAX else _sha256(str(state))[:16]}{SEGMENT_SUFFIX}"


def segment_number(name: str) -> int | None:
    found = _SEGMENT.fullmatch(name)
    return None if found is None else int(found["number"])


def page_number(name: str) -> int | None:
    found = _PAGE.fullmatch(name)
    return None if found is None else int(found["number"])


def encode_head(head: Head) -> bytes:
    return _encode({"format": FORMAT, **asdict(head)})


def decode_head(data: Buffer, where: str) -> Head:
    """Raises StoreError: this is not the head of an archive, or of a newer kind."""
    found = _decode(data, where)
    if found.get("format") != FORMAT:
        raise StoreError(f"{where}: expected the head of an archive, {FORMAT!r}")
    with _damage_named(where):
        pages, entries = _parts(SealedPage, found["pages"]), _parts(Segment, found["entries"])
        head = Head(**_checked(Head, found) | {"pages": pages, "entries": entries})
        GtidState.parse(head.begin)
        numbers = [page.number for page in pages] + [entry.number for entry in entries]
        are_whole = [entry.number for entry in entries] == list(
            range(head.next_number - len(entries), head.next_number)
        )
        if numbers != sorted(set(numbers)) or not are_whole or (pages and not entries):
            raise ValueError("its entries are not in order")
        if not 1 <= head.first <= max(head.next_number - 1, 1):
            raise ValueError(f"its first segment is {head.first}")
    return head


def decode_page(data: Buffer, page: SealedPage, where: str) -> tuple[Segment, ...]:
    """Raises StoreError: it is not what the head says of it."""
    if (found := _sha256(data)) != page.sha256:
        raise StoreError(f"{where}: its SHA-256 is {found}, and the head of the archive says {page.sha256}")
    with _damage_named(where):
        entries = _parts(Segment, _decode(data, where)["entries"])
        if [one.number for one in entries] != list(range(page.number, page.number + len(entries))) or not entries:
            raise ValueError("its entries are not in order")
        return entries


@contextmanager
def _damage_named(where: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, GtidError) as error:
        raise StoreError(f"{where}: the manifest of the archive is damaged: {error}") from None


def _parts(kind: type[Part], rows: Any) -> tuple[Part, ...]:
    found = []
    for row in rows:
        part = kind(**_checked(kind, row))
        number = segment_number(part.name) if isinstance(part, Segment) else page_number(part.name)
        if number != part.number or not _HEX.fullmatch(part.sha256):
            raise ValueError(f"the name {part.name!r:.60} or its SHA-256 cannot be right")
        GtidState.parse(part.before)
        found.append(part)
    return tuple(found)


def _checked(kind: type[object], row: dict[str, Any]) -> dict[str, Any]:
    """The values of known fields. Raises ValueError: one has another type."""
    known = {field.name: str(field.type).split(" | ") for field in fields(kind)}  # type: ignore[arg-type]
    for name, value in row.items():
        said = "None" if value is None else type(value).__name__
        if name in known and said not in known[name] and said != "list":
            raise ValueError(f"{name} is {value!r:.60}")
    return {name: value for name, value in row.items() if name in known}


def _encode(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _decode(data: Buffer, where: str) -> dict[str, Any]:
    try:
        found = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{where}: it is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise StoreError(f"{where}: it is not a JSON object")
    return found


def _sha256(data: bytes | str | Buffer) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
