"""Blocks of another maker whose groups stages change, or in the rounds of a repeated recording: kernels do plain things
to framed groups, the stage itself the others.
"""

import zlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import (
    AS_STORED,
    BORDERS,
    CHOSEN_DOMAIN,
    CHOSEN_SERVER,
    COMMIT_BITS,
    DOUBTFUL,
    EMPTIED_MAX,
    EVERY,
    KEPT,
    LATER,
    LEAVES_OUT_ANNOTATE,
    LEAVES_OUT_MARKED,
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
from ibbmaster.kernel.plain_memory import NOTHING, RowTable, kept, number_rows, numbers, scratch
from ibbmaster.logs.classic.roles import kernel_roles
from ibbmaster.logs.player.repeated_log import RepeatedGroups
from ibbmaster.logs.stages.event_stream import NAMES_OFFSET, mapped_table
from ibbmaster.logs.stages.filtering import ContentFilter, OriginFilter
from ibbmaster.logs.stages.renaming import NameChange
from ibbmaster.logs.stages.renumbering import OriginMap, Repetition
from ibbmaster.logs.stages.stage import GroupTransform, GtidTransform
from ibbmaster.position import LOG_START, NOWHERE, LogPosition
from ibbmaster.replication.dump.framing import divide_events
from ibbmaster.replication.dump.profile import LogPosRule
from ibbmaster.replication.dump.rewriting import LogPositions, Selection
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import decode_gtid
from ibbmaster.replication.event.header import TYPE_OFFSET, decode_event_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.sqltext.table_name import TableName
from .block import NO_PACKETS, Block, BlockMaker, BlockShape, FramingState, Groups, Mark, Packets
from .block_cache import BlockCache

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


_LOG_POS = {LogPosRule.STORED: AS_STORED, LogPosRule.EVERY: EVERY, LogPosRule.GROUP_BORDERS: BORDERS}
CHECKSUM_BYTES = 4
ROOM = 1024  # bytes, on top of half as many again


class ChangedBlocks(BlockMaker):
    """Changes the events of another maker's blocks; leaves parts of groups, and all the kernel does not understand, to
    the reference way."""

    def __init__(
        self,
        maker: BlockMaker,
        stages: Sequence[object],
        changes: Sequence[PacketChange],
        cache: BlockCache,
        kernels: Kernels,
    ) -> None:
        """Groups go through `changes`, those of `stages`, and then a selection makes events of them."""
        self._maker = maker
        self._renaming = [stage for stage in stages if isinstance(stage, GtidTransform)]
        self._changes = tuple(changes)
        self._buffers = cache.buffers
        self._kernels = kernels
        self._left_until = NOWHERE  # what is before this place is left to the reference way

    def identity(self, at: Mark, *, only_cached: bool) -> Hashable:
        return self._maker.identity(at, only_cached=only_cached)

    def frame(self, at: Mark, selection: Selection, sequence: int, wanted: BlockShape) -> Block | None:
        if at.position < self._left_until:
            return None
        whole = Selection(leaves_out_annotate=False, leaves_out_marked=False, prefix=selection.prefix)
        block = self._maker.frame(at, whole, sequence, wanted)
        if block is not None and block.ends_inside_group and wanted.is_shared:
            block = self._maker.frame(at, whole, sequence, wanted._replace(is_shared=False))
        if block is None or block.ends_inside_group:
            return None
        changed = self._changed(block, selection, sequence)
        if changed is None:
            self._left_until = block.end
        return changed

    def renumbered(self, block: Block, was: int, sequence: int) -> Block:
        return self._maker.renumbered(block, was, sequence)

    def skip(self, at: Mark, limits: Iterable[Gtid], *, only_cached: bool) -> Block | None:
        there = [self._original(gtid) for gtid in limits]
        block = self._maker.skip(at, there, only_cached=only_cached)
        return None if block is None else self._with(block, NO_PACKETS)

    def _changed(self, block: Block, selection: Selection, sequence: int) -> Block | None:
        """None: the reference has to make it, or report an error."""
        data = memoryview(block.data())
        if data.readonly:
            data = kept(data)
        packets = Packets(data, len(block), sequence)
        positions = None
        try:
            for change in self._changes:
                apply = partial(change.change, prefix=selection.prefix, sequence=sequence)
                if (found := self._applied(packets, apply)) is None:
                    return None
                packets = found
            if selection.made is not None or selection.leaves_out_annotate or selection.leaves_out_marked:
                state = _state_of(selection, sequence)
                if (found := self._applied(packets, partial(self._make, state=state))) is None:
                    return None
                packets = found
                if selection.made is not None:
                    positions = LogPositions(int(state[ChangeOf.POSITION]), int(state[ChangeOf.LAST_POSITION]))
        except IbbMasterError:
            return None
        return self._with(block, packets, positions)

    def _applied(self, packets: Packets, change: Callable[..., Changed | None]) -> Packets | None:
        out, pool = self._buffers.room(packets.size * 3 // 2 + ROOM)
        if (found := change(packets, out=out)) is not None:
            return Packets(out, *found, pool)
        if pool is not None:
            pool.release(out)
        return None

    def _make(self, packets: Packets, out: Any, state: Any) -> Changed | None:
        size, status = self._kernels.change_packets(packets.buffer, packets.size, state, NOTHING, kernel_roles(), out)
        return (size, int(state[ChangeOf.SEQUENCE])) if status == Status.DONE else None

    def _with(self, block: Block, packets: Packets, positions: LogPositions | None = None) -> Block:
        gtids = tuple(map(self._renamed, block.gtids))
        is_in_order = len({(gtid.domain_id, gtid.server_id) for gtid in gtids}) == len(gtids)  # no two became one
        groups = Groups(gtids, block.gtids, block.groups.is_in_order and is_in_order)
        return replace(block, packets=packets, groups=groups, log_positions=positions)

    def _renamed(self, gtid: Gtid) -> Gtid:
        for stage in self._renaming:
            gtid = stage.renamed(gtid)
        return gtid

    def _original(self, gtid: Gtid) -> Gtid:
        for stage in reversed(self._renaming):
            gtid = stage.original(gtid)
        return gtid


def _state_of(selection: Selection, sequence: int) -> Any:
    state = numbers(ChangeOf.SIZE)
    state[ChangeOf.SEQUENCE] = sequence
    state[ChangeOf.FILTERS] = (LEAVES_OUT_ANNOTATE if selection.leaves_out_annotate else 0) | (
        LEAVES_OUT_MARKED if selection.leaves_out_marked else 0
    )
    state[ChangeOf.PREFIX_SIZE] = len(selection.prefix)
    if selection.made is not None:
        assert selection.log_positions is not None
        state[ChangeOf.POSITION], state[ChangeOf.LAST_POSITION] = selection.log_positions
        state[ChangeOf.LOG_POS] = _LOG_POS[selection.made.log_pos_rule]
        state[ChangeOf.CHECKSUM_BYTES] = CHECKSUM_BYTES if selection.made.has_checksums else 0
    return state


class RepeatedBlocks(BlockMaker):
    """Another maker for each round; large groups, and the begin and end of rounds, go the reference way."""

    def __init__(self, groups: RepeatedGroups, maker: BlockMaker, make: Callable[[], BlockMaker | None]) -> None:
        """`make` gives a maker for the round of `groups` whose blocks end between groups; `maker` is that of this
        round."""
        self._groups = groups
        self._make = make
        self._round_no = groups.round_no
        self._maker = maker

    def identity(self, at: Mark, *, only_cached: bool) -> Hashable:
        if self._groups.recorded_files is None:
            return None
        return self._current().identity(self._there(at), only_cached=only_cached)

    def frame(self, at: Mark, selection: Selection, sequence: int, wanted: BlockShape) -> Block | None:
        return self._as_here(self._current().frame(self._there(at), selection, sequence, wanted))

    def renumbered(self, block: Block, was: int, sequence: int) -> Block:
        return self._maker.renumbered(block, was, sequence)

    def skip(self, at: Mark, limits: Iterable[Gtid], *, only_cached: bool) -> Block | None:
        return self._as_here(self._current().skip(self._there(at), limits, only_cached=only_cached))

    def _current(self) -> BlockMaker:
        if self._round_no != self._groups.round_no:
            maker = self._make()
            assert maker is not None, "each round goes through the same stages"
            self._maker, self._round_no = maker, self._groups.round_no
        return self._maker

    def _there(self, at: Mark) -> Mark:
        position = self._groups.there(at.position)
        assert position is not None, "a dump is in the round of its reader"
        return _moved(at, position)

    def _as_here(self, block: Block | None) -> Block | None:
        if block is not None:  # as made just now: no other has seen it
            block.before = _moved(block.before, self._groups.place(block.begin))
            block.after = _moved(block.after, self._groups.place(block.end))
        return block


def _moved(mark: Mark, position: LogPosition) -> Mark:
    assert isinstance(mark, FramingState), "blocks end between groups"
    return mark._replace(position=position)
