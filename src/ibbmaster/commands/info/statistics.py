"""Sums over the groups of a log by domain, table and time, in bounded memory, as they are read in order."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.types import EventType, type_name

LARGEST = 10  # groups that are listed
GAPS_MAX = 100  # of a domain that are listed; all are counted
TABLES_MAX = 100_000
GROUP_TABLES_MAX = 20  # named of a large group
SPANS_MAX = 512
COMPRESSED = frozenset(one for one in EventType if "COMPRESSED" in one.name)
OTHER_TABLES = "(other tables)"


class ChangeSum(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    DDL = "ddl"


@dataclass(slots=True)
class TableSum:
    """`counts` are rows, of DDL statements; `sizes` bytes of uncompressed row events, of DDL those of statements.
    Unless it `is_counted`, a column's values have unknown length."""

    counts: Counter[ChangeSum] = field(default_factory=Counter)
    sizes: Counter[ChangeSum] = field(default_factory=Counter)
    is_counted: bool = True
    has_names: bool = True  # of its columns, in each of its TABLE_MAP events


class SequenceGap(NamedTuple):
    after: Gtid
    before: Gtid

    @property
    def missing(self) -> int:
        return self.before.seq_no - self.after.seq_no - 1


@dataclass(slots=True)
class PairSum:
    """One server's share of a domain."""

    groups: int
    size: int
    first: int  # sequence numbers
    last: int


@dataclass(slots=True)
class DomainSum:
    """`steps_back` counts groups whose number is not above the one before."""

    first: Gtid
    last: Gtid
    groups: int = 0
    size: int = 0
    pairs: dict[int, PairSum] = field(default_factory=dict)  # by server
    gaps: list[SequenceGap] = field(default_factory=list)  # the first ones
    gap_count: int = 0
    missing: int = 0  # sequence numbers in all gaps
    steps_back: int = 0

    def take_gap(self, gap: SequenceGap) -> None:
        self.gap_count += 1
        self.missing += gap.missing
        if len(self.gaps) < GAPS_MAX:
            self.gaps.append(gap)

    def take_pair(self, server_id: int, more: PairSum) -> None:
        self.groups += more.groups
        self.size += more.size
        known = self.pairs.setdefault(server_id, more)
        if known is not more:
            known.groups += more.groups
            known.size += more.size
            known.last = more.last


class GroupSum(NamedTuple):
    size: int  # bytes of its events
    turn: int  # minus its number in the log
    gtid: Gtid
    timestamp: int
    start: LogPosition
    events: int
    tables: tuple[str, ...]


class TimeGap(NamedTuple):
    seconds: int
    after: Gtid
    before: Gtid
    timestamp: int  # of the group it begins with


class Timeline:
    """Groups and bytes, in spans that get longer as the log does."""

    def __init__(self) -> None:
        self.span_s = 1
        self.spans: dict[int, tuple[int, int]] = {}  # by number: groups, and their bytes

    def add(self, timestamp: int, groups: int, size: int) -> None:
        number = timestamp // self.span_s
        known = self.spans.get(number, (0, 0))
        self.spans[number] = known[0] + groups, known[1] + size
        while len(self.spans) > SPANS_MAX or max(self.spans) - min(self.spans) >= SPANS_MAX:
            self._double()

    def _double(self) -> None:
        spans, self.spans = self.spans, {}
        self.span_s *= 2
        for number, (groups, size) in spans.items():
            known = self.spans.get(number // 2, (0, 0))
            self.spans[number // 2] = known[0] + groups, known[1] + size

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """The beginning of each span with groups, in seconds since 1970, its groups and bytes."""
        for number in sorted(self.spans):
            yield number * self.span_s, *self.spans[number]


class LogStatistics:
    """Sums over a log's groups.

    `groups`, `events` and `size` (bytes of events without checksums) are of all; `types` and `type_sizes` by event
    type; `first` and `last` GTID and time in the log's order; `earliest` and `latest` seconds since 1970;
    `clock_steps_back` counts groups older than the one before; `servers` starts by version.
    """

    def __init__(self) -> None:
        self.groups = self.events = self.size = 0
        self.types: Counter[int] = Counter()
        self.type_sizes: Counter[int] = Counter()
        self.domains: dict[int, DomainSum] = {}
        self.tables: dict[str, TableSum] = {}
        self.time_line = Timeline()
        self.first: tuple[Gtid, int] | None = None
        self.last: tuple[Gtid, int] | None = None
        self.earliest = self.latest = 0
        self.clock_steps_back = 0
        self.longest_pause: TimeGap | None = None
        self.servers: Counter[str] = Counter()
        self._largest: list[GroupSum] = []

    def take_group(self, group: GroupSum) -> None:
        self.groups += 1
        self.events += group.events
        self.size += group.size
        self.take_time(group.gtid, group.timestamp)
        self.take_gtid(group.gtid, group.size)
        self.time_line.add(group.timestamp, 1, group.size)
        self.take_large(group)

    def take_time(self, gtid: Gtid, timestamp: int) -> None:
        if self.last is None:
            self.first = gtid, timestamp
            self.earliest = self.latest = timestamp
        else:
            before, since = self.last
            self.clock_steps_back += timestamp < since
            self.take_pause(TimeGap(timestamp - since, before, gtid, since))
        self.earliest, self.latest = min(self.earliest, timestamp), max(self.latest, timestamp)
        self.last = gtid, timestamp

    def take_pause(self, pause: TimeGap) -> None:
        if self.longest_pause is None or pause.seconds > self.longest_pause.seconds:
            self.longest_pause = pause

    def take_gtid(self, gtid: Gtid, size: int) -> None:
        """Of the next group of its domain, whose events have `size` bytes."""
        domain = self.domains.get(gtid.domain_id)
        if domain is None:
            domain = self.domains[gtid.domain_id] = DomainSum(first=gtid, last=gtid)
        elif gtid.seq_no <= domain.last.seq_no:
            domain.steps_back += 1
        elif gtid.seq_no > domain.last.seq_no + 1:
            domain.take_gap(SequenceGap(domain.last, gtid))
        domain.last = gtid
        domain.take_pair(gtid.server_id, PairSum(groups=1, size=size, first=gtid.seq_no, last=gtid.seq_no))

    def large_size(self) -> int:
        return self._largest[0].size if len(self._largest) == LARGEST else -1

    def take_large(self, group: GroupSum) -> None:
        if len(self._largest) < LARGEST:
            heapq.heappush(self._largest, group)
        else:
            heapq.heappushpop(self._largest, group)

    def take_type(self, event_type: int, count: int, size: int) -> None:
        self.types[event_type] += count
        self.type_sizes[event_type] += size

    def take_changes(self, table: str, kind: ChangeSum, count: int, size: int) -> None:
        found = self.table(table)
        found.counts[kind] += count
        found.sizes[kind] += size

    def table(self, name: str) -> TableSum:
        found = self.tables.get(name)
        if found is None:
            if len(self.tables) >= TABLES_MAX:
                name = OTHER_TABLES
            found = self.tables.setdefault(name, TableSum())
        return found

    def largest(self) -> list[GroupSum]:
        return sorted(self._largest, reverse=True)

    @property
    def compressed_events(self) -> int:
        return sum(self.types[one] for one in COMPRESSED)

    @property
    def annotations(self) -> int:
        return self.types[EventType.ANNOTATE_ROWS]

    def types_by_name(self) -> dict[str, tuple[int, int]]:
        """The most bytes first."""
        order = sorted(self.types, key=lambda one: (-self.type_sizes[one], one))
        return {type_name(one): (self.types[one], self.type_sizes[one]) for one in order}
