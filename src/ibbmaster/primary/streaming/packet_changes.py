"""Stages for groups that are framed already: kernels do plain things, the stage itself the others."""

import zlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import (
    CHOSEN_DOMAIN,
    CHOSEN_SERVER,
    COMMIT_BITS,
    DOUBTFUL,
    EMPTIED_MAX,
    KEPT,
    LATER,
    LEFT_OUT,
    OLD_DOMAIN,
    OLD_SERVER,
    OPEN_MAX,
    PACKET_MAX,
    STEP,
    ChangeOf,
    FilterField,
    FilterStatus,
    Status,
    TableRow,
)
from ibbmaster.kernel.plain_memory import NOTHING, RowTable, number_rows, numbers, scratch
from ibbmaster.logs.classic.roles import kernel_roles
from ibbmaster.logs.stages.event_stream import NAMES_OFFSET, mapped_table
from ibbmaster.logs.stages.filtering import ContentFilter, OriginFilter
from ibbmaster.logs.stages.renaming import NameChange
from ibbmaster.logs.stages.renumbering import OriginMap, Repetition
from ibbmaster.logs.stages.stage import GroupTransform
from ibbmaster.position import LOG_START
from ibbmaster.replication.dump.framing import divide_events
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import decode_gtid
from ibbmaster.replication.event.header import TYPE_OFFSET, decode_event_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.sqltext.table_name import TableName
from .block import Packets

TABLES_MIN, TABLES_MAX = 256, 1 << 16  # more are forgotten and asked for again
PACKET_HEADER = 4


Changed = tuple[int, int]  # bytes of packets after a change, and the number of the next packet


class PacketChange(Protocol):
    def change(self, packets: Packets, prefix: bytes, out: Any, sequence: int) -> Changed | None:
        """Put changed packets of whole groups into `out`, the first with this number; None: the reference has to.
        Raises StageError, EventError: as the stage."""


def change_of(stage: object, kernels: Kernels) -> PacketChange | None:
    """None if a stage needs the groups."""
    match stage:
        case OriginMap():
            rows = [(OLD_SERVER, *pair) for pair in stage.server_ids.items()]
            rows += [(OLD_DOMAIN, *pair) for pair in stage.domain_ids.items()]
            return _Renumbering(rows, kernels)
        case Repetition():
            # Larger ones become negative: they are added without a sign.
            rows = [(STEP, domain_id, step - (step >> 63 << 64)) for domain_id, step in stage.steps.items()]
            rows += [(LATER, 0, stage.seconds), (COMMIT_BITS, 0, stage.commit_bits)]
            return _Renumbering(rows, kernels)
        case OriginFilter(drops_empty=False):
            rows = [(CHOSEN_DOMAIN, number, 0) for number in stage.domain_ids]
            rows += [(CHOSEN_SERVER, number, 0) for number in stage.server_ids]
            return _Leaving(stage, kernels, number_rows(rows, 3), None)
        case ContentFilter(drops_empty=False):
            return _Leaving(stage, kernels, NOTHING, lambda table: KEPT if stage.has_rows_of(table) else LEFT_OUT)
        case NameChange():
            return _Leaving(stage, kernels, NOTHING, lambda table: KEPT if stage.renamed(table) == table else DOUBTFUL)
        case _:
            return None


class _Renumbering:
    def __init__(self, rows: Sequence[tuple[int, int, int]], kernels: Kernels) -> None:
        self._numbers = number_rows(rows, 3)
        self._kernels = kernels

    def change(self, packets: Packets, prefix: bytes, out: Any, sequence: int) -> Changed | None:
        state = numbers(ChangeOf.SIZE)
        state[ChangeOf.PREFIX_SIZE], state[ChangeOf.SEQUENCE] = len(prefix), sequence
        size, status = self._kernels.change_packets(
            packets.buffer, packets.size, state, self._numbers, kernel_roles(), out
        )
        return (size, int(state[ChangeOf.SEQUENCE])) if status == Status.DONE else None


class _Leaving:
    """Leaves out groups and events."""

    def __init__(
        self, stage: GroupTransform, kernels: Kernels, numbers: Any, judge: Callable[[TableName], int] | None
    ) -> None:
        """`judge` decides by table, if that matters."""
        self._stage = stage
        self._kernels = kernels
        self._numbers = numbers
        self._judge = judge
        self._opened = RowTable(OPEN_MAX, 2).memory
        self._forget(TABLES_MIN)

    def _forget(self, room: int) -> None:
        self._names = scratch(64 * room)
        self._tables = RowTable(room, TableRow.COLUMNS).memory
        self._filled = self._count = 0

    def change(self, packets: Packets, prefix: bytes, out: Any, sequence: int) -> Changed | None:
        state = numbers(FilterField.SIZE)
        state[FilterField.PREFIX_SIZE], state[FilterField.SEQUENCE] = len(prefix), sequence
        state[FilterField.BY_TABLE] = self._judge is not None
        while True:
            stop = self._kernels.leave_out(
                packets.buffer[: packets.size], state, self._numbers, self._names, self._tables, self._opened, out
            )
            if stop == FilterStatus.DONE:
                return int(state[FilterField.OUT]), int(state[FilterField.SEQUENCE])
            if stop == FilterStatus.TABLE:
                self._learn(packets, int(state[FilterField.TABLE_AT]))
            elif stop != FilterStatus.GROUP or not self._decide(packets, prefix, state, out):
                return None

    def _learn(self, packets: Packets, at: int) -> None:
        """Note the verdict about the table of a TABLE_MAP."""
        assert self._judge is not None
        size = decode_event_header(memoryview(packets.buffer)[at:]).size
        event = bytes(memoryview(packets.buffer)[at : at + size])
        table_at = NAMES_OFFSET + event[NAMES_OFFSET] + 2
        names = event[NAMES_OFFSET : table_at + event[table_at] + 2]
        try:
            verdict = self._judge(mapped_table(event))
        except NotUnderstoodError:
            verdict = DOUBTFUL
        if 2 * (self._count + 1) > len(self._tables) or self._filled + len(names) > len(self._names):
            self._forget(min(2 * len(self._tables), TABLES_MAX))
        digest = zlib.crc32(names)
        row, mask = digest & (len(self._tables) - 1), len(self._tables) - 1
        while self._tables[row, TableRow.BYTES]:
            row = (row + 1) & mask
        for column, number in enumerate((digest, self._filled, len(names), verdict)):
            self._tables[row, column] = number
        self._names[self._filled : self._filled + len(names)] = names
        self._filled += len(names)
        self._count += 1

    def _decide(self, packets: Packets, prefix: bytes, state: Any, out: Any) -> bool:
        """Let the stage itself change the group here; whether there was room."""
        events, end = _group_at(packets, int(state[FilterField.READ_AT]), len(prefix))
        gtid, _ = decode_gtid(decode_event_header(events[0]), events[0])
        group = EventGroup(gtid=gtid, gtid_event=events[0], body=iter(events[1:]), start=LOG_START, end=LOG_START)
        passed = self._stage.pass_on(group)
        assert passed is not None, "no group is left out"
        position, sequence = int(state[FilterField.OUT]), int(state[FilterField.SEQUENCE])
        for event in divide_events(passed.gtid_event + b"".join(passed.body)):
            payload = prefix + event
            if len(payload) >= PACKET_MAX or position + len(payload) + EMPTIED_MAX > len(out):
                return False
            packet = len(payload).to_bytes(3, "little") + bytes((sequence,)) + payload
            memoryview(out)[position : position + len(packet)] = packet
            position += len(packet)
            sequence = (sequence + 1) & 0xFF
        state[FilterField.READ_AT], state[FilterField.OUT], state[FilterField.SEQUENCE] = end, position, sequence
        return True


def _group_at(packets: Packets, offset: int, prefix_size: int) -> tuple[list[bytes], int]:
    data = memoryview(packets.buffer)
    events: list[bytes] = []
    while offset < packets.size:
        size = int.from_bytes(data[offset : offset + 3], "little")
        start = offset + PACKET_HEADER + prefix_size
        end = offset + PACKET_HEADER + size
        if events and data[start + TYPE_OFFSET] == EventType.GTID:
            break
        events.append(bytes(data[start:end]))
        offset = end
    return events, offset
