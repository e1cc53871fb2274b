"""What an archive holds, whether all of it is right, and what may go."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import NamedTuple

from ibbmaster.errors import IbbMasterError, StoreError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.fault import Fault, Totals
from ibbmaster.logs.log.locating import expect_logged
from ibbmaster.logs.log.purge import PurgeRequest, choose_files
from ibbmaster.storage.disk.whole_objects import WholeObjects
from .archived import ArchivedBinlog, SegmentStore
from .keeping import ArchiveKeeper, all_segments, expect_head, read_page
from .manifest import Head, Segment, chained, page_number, segment_number


class ArchiveSummary(NamedTuple):
    """Times are in seconds since 1970, sizes in bytes."""

    segments: int
    groups: int
    bytes: int
    before: str  # the GTID states at both ends
    after: str
    first_time: int | None
    last_time: int | None
    last_recoverable_time: int | None


def summary(objects: WholeObjects) -> ArchiveSummary:
    """Raises StoreError: there is no archive, or its manifest cannot be read."""
    head, _ = expect_head(objects)
    kept = list(all_segments(objects, head))
    return ArchiveSummary(
        segments=len(kept),
        groups=sum(one.groups for one in kept),
        bytes=sum(one.bytes for one in kept),
        before=kept[0].before if kept else head.begin,
        after=head.end,
        first_time=kept[0].first_time if kept else None,
        last_time=kept[-1].last_time if kept else None,
        last_recoverable_time=head.last_recoverable_time,
    )


def faults(objects: WholeObjects, totals: Totals) -> Iterator[Fault]:
    """Fetches and reads every object. Raises StoreError: there is no archive, or its store cannot be reached."""
    head, _ = expect_head(objects)
    listed = {one.name: one.size for one in objects.list()[0]}
    found = yield from _manifest_faults(objects, head)
    for entry in found:
        if (size := listed.get(entry.name)) is not None and size != entry.bytes:
            yield Fault(problem=f"{entry.name}: {size} bytes, and the manifest says {entry.bytes}")
    named = {entry.name for entry in found}
    strays = [name for name in listed if segment_number(name) is not None and name not in named]
    if strays and head.last is not None:
        text = f"{len(strays)} objects, as {min(strays)}, are not in the manifest: a killed run left them, or a prune"
        yield Fault(problem=f"{text}; `ibbmaster archive prune` removes them", is_damage=False)
    if found:
        try:
            log, are_sound = ArchivedBinlog(SegmentStore(objects, head)), True
            for fault in log.verify(totals, lambda _: None):
                are_sound &= not fault.is_damage
                yield fault
            if are_sound and (state := ClassicBinlog.state(log)) != GtidState.parse(head.end):
                yield Fault(problem=f"the newest segment ends at '{state}', and the manifest says '{head.end}'")
        except IbbMasterError as error:
            yield Fault(problem=str(error))


def _manifest_faults(objects: WholeObjects, head: Head) -> Generator[Fault, None, list[Segment]]:
    """Returns the entries that can be read."""
    found: list[Segment] = []
    for page in head.pages:
        try:
            found += read_page(objects, page)
        except StoreError as error:
            yield Fault(problem=str(error))
    before: Segment | None = None
    for entry in (*found, *head.entries):
        if before is not None and entry.number != before.number + 1:
            yield Fault(problem=f"{entry.name}: the segment before it is {before.name}: the manifest has a gap")
        elif before is not None:
            if chained(before.chain, entry.sha256) != entry.chain:
                yield Fault(problem=f"{entry.name}: its chain is not that of the segments before it")
            joins = GtidState.parse(before.after)
            for domain_id in set(joins.domain_ids) - set(GtidState.parse(entry.before).domain_ids):
                joins.drop_domain(domain_id)  # its server forgot it
            if joins != GtidState.parse(entry.before):
                yield Fault(problem=f"{entry.name} begins at '{entry.before}', the one before ends at '{before.after}'")
        before = entry
    return [entry for entry in (*found, *head.entries) if entry.number >= head.first]


class PruneResult(NamedTuple):
    """What was removed, or would be; `kept_for` names the consumer that needs more than was to be kept."""

    segments: int
    bytes: int
    strays: int
    first: str  # of the segments that are left
    kept_for: str | None


def prune(
    objects: WholeObjects, request: PurgeRequest, consumers: Mapping[str, GtidPosition], *, is_dry: bool = False
) -> PruneResult:
    """Remove the oldest segments, as a request wants it: never what a consumer lacks, nor the newest. The manifest
    forgets them first; what a killed prune left goes, too. Raises PositionError: the archive lacks the position of a
    consumer; StoreError: the store refuses, or there is no archive."""
    keeper = ArchiveKeeper(objects)
    keeper.take(*expect_head(objects))
    head = keeper.head
    kept = list(all_segments(objects, head))
    if not kept:
        return PruneResult(0, 0, 0, "", None)
    needed, needs = kept[-1].number, {}
    for name, position in consumers.items():
        for gtid in position.values():
            expect_logged(gtid, GtidState.parse(head.end))
        needs[name] = SegmentStore(objects, head).number_before(position) or head.first
    sizes = [(one.number, one.bytes, float(one.last_time)) for one in kept]
    wanted = choose_files(sizes, request, needed=needed, oob_file_no=lambda number: number).file_nos
    needed = min(needed, *needs.values()) if needs else needed
    chosen = [number for number in wanted if number < needed]
    first = chosen[-1] + 1 if chosen else head.first
    left = head.pruned(first)
    if not is_dry and first != head.first:
        keeper.prune(first)
    named = {one.name for one in kept if one.number >= first} | {page.name for page in left.pages}
    removed = [one.name for one in objects.list()[0] if one.name not in named and _is_over(one.name, left)]
    for name in removed if not is_dry else ():
        objects.remove(name)
    return PruneResult(
        segments=len(chosen),
        bytes=sum(one.bytes for one in kept if one.number < first),
        strays=sum(segment_number(name) is not None for name in removed) - len(chosen),
        first=next(one.name for one in kept if one.number >= first),
        kept_for=min(needs, key=needs.__getitem__) if len(chosen) < len(wanted) else None,
    )


def _is_over(name: str, head: Head) -> bool:
    """Whether no writer can name an object any more, if the manifest does not."""
    number, page = segment_number(name), page_number(name)
    return number < head.next_number if number is not None else page is not None and page < head.first
