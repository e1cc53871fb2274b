"""Groups under other server ids and domains: in the GTID, and in the header of each event."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ibbmaster.gtid import Gtid
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import GtidEvent, decode_gtid_event
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, HEADER, EventHeader, decode_event_header
from ibbmaster.storage.codec.buffer import Buffer
from .event_stream import EventStream
from .stage import GtidTransform, replace_head


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginMap(GtidTransform):
    """Other numbers for servers and domains; no two may become one."""

    server_ids: Mapping[int, int] = field(default_factory=dict)
    domain_ids: Mapping[int, int] = field(default_factory=dict)

    def renamed(self, gtid: Gtid) -> Gtid:
        return _renumbered(gtid, self.server_ids, self.domain_ids)

    def original(self, gtid: Gtid) -> Gtid:
        return _renumbered(gtid, _turned(self.server_ids), _turned(self.domain_ids))

    def pass_on(self, group: EventGroup) -> EventGroup | None:
        header, value = decode_event_header(group.gtid_event), decode_gtid_event(group.gtid_event)
        renamed = replace_head(group, replace(value, gtid=self.renamed(value.gtid)), header)
        return replace_body(renamed, self._header) if self.server_ids else renamed

    def _header(self, header: EventHeader) -> EventHeader:
        return header._replace(server_id=self.server_ids.get(header.server_id, header.server_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition(GtidTransform):
    """The groups of a recording once more: `steps` adds to the numbers of each domain, `seconds` to times."""

    number: int
    steps: Mapping[int, int]
    seconds: int

    @property
    def commit_bits(self) -> int:
        """The change of the highest two bytes of commit ids."""
        return self.number & 0xFFFF

    def renamed(self, gtid: Gtid) -> Gtid:
        return replace(gtid, seq_no=gtid.seq_no + self.steps.get(gtid.domain_id, 0))

    def original(self, gtid: Gtid) -> Gtid:
        """For an earlier time the number 0, which no group has."""
        return replace(gtid, seq_no=max(0, gtid.seq_no - self.steps.get(gtid.domain_id, 0)))

    def pass_on(self, group: EventGroup) -> EventGroup:
        header, value = self._header(decode_event_header(group.gtid_event)), decode_gtid_event(group.gtid_event)
        renamed = replace_head(group, self._head(value), header)
        return replace_body(renamed, self._header)

    def _head(self, value: GtidEvent) -> GtidEvent:
        step = self.steps.get(value.gtid.domain_id, 0)
        alter = None if value.alter_seq_no is None else value.alter_seq_no + step
        # Groups of two rounds are never one group commit.
        commit = None if value.commit_id is None else value.commit_id ^ self.commit_bits << 48
        return replace(value, gtid=self.renamed(value.gtid), alter_seq_no=alter, commit_id=commit)

    def _header(self, header: EventHeader) -> EventHeader:
        return header._replace(timestamp=(header.timestamp + self.seconds) & 0xFFFFFFFF)


def replace_body(group: EventGroup, change: Callable[[EventHeader], EventHeader]) -> EventGroup:
    """With other headers of the events after the GTID event; sizes stay."""
    return replace(group, body=_with_headers(group.body, change))


def _with_headers(body: Iterable[Buffer], change: Callable[[EventHeader], EventHeader]) -> Iterator[Buffer]:
    events = EventStream(body)
    while (header := events.next_event()) is not None:
        pieces = events.pieces()
        yield HEADER.pack(*change(header)) + next(pieces)[EVENT_HEADER_SIZE:]  # which has all of the header
        yield from pieces


def _renumbered(gtid: Gtid, server_ids: Mapping[int, int], domain_ids: Mapping[int, int]) -> Gtid:
    return replace(
        gtid,
        server_id=server_ids.get(gtid.server_id, gtid.server_id),
        domain_id=domain_ids.get(gtid.domain_id, gtid.domain_id),
    )


def _turned(numbers: Mapping[int, int]) -> dict[int, int]:
    return {new: old for old, new in numbers.items()}
