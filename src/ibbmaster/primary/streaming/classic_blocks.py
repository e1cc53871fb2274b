"""Blocks of packets from traditional files, made by kernels."""

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ibbmaster.errors import ClassicFormatError, EventError, IbbMasterError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import Field, Progress
from ibbmaster.kernel.plain_memory import NOTHING, number_rows, numbers
from ibbmaster.logs.classic.binlog import ClassicGroups
from ibbmaster.logs.classic.framing import PART_FIELDS, WINDOW_BYTES, FileFraming
from ibbmaster.logs.classic.roles import kernel_roles
from ibbmaster.position import LogPosition
from ibbmaster.replication.dump.framing import check_event_size
from ibbmaster.replication.dump.rewriting import LogPositions, Selection
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, HEADER
from .block import (
    NO_PACKETS,
    Block,
    BlockMaker,
    BlockPump,
    BlockShape,
    BrokenGroupError,
    FindEnd,
    FramingState,
    Groups,
    Mark,
    Packets,
    file_end,
    joined,
)
from .block_cache import BlockCache
from .buffers import SHARED_BYTES, Workspace, framed_packets, renumbered

BORDER_BYTES = 256 * 1024  # all dumps' blocks end at the last group before a multiple of it
SHORT_BYTES = 1 << 14  # of the first block of a dump, which shall come soon
BUDGET_BYTES = 16 << 20  # in one call of a pump: beside that a hop to a thread costs nothing
PIECES_MAX = 16  # are one block for many readers
EMPTY_PIECES_MAX = 64  # if they hold no packet
EVERYTHING = Selection(leaves_out_annotate=False, leaves_out_marked=False, prefix=b"")
STORED = EVERYTHING._replace(is_stored=True)


class ClassicPart(NamedTuple):
    """Inside a group that begins at `position` and goes out in parts; `fields` are `PART_FIELDS`, none at first."""

    position: LogPosition
    offset: int  # in the file
    fields: tuple[int, ...] = ()

    @property
    def is_inside_group(self) -> bool:
        return True

    @property
    def is_inside_event(self) -> bool:
        return bool(self.fields) and self.fields[1] == 1 and self.fields[2] == 0

    @property
    def packet_left(self) -> int:
        return self.fields[3] if self.is_inside_event else 0

    def __str__(self) -> str:
        return f"{FramingState(self.position)} (offset {self.offset} of a group)"


class ClassicBlocks(BlockMaker):
    """The `BlockMaker` of traditional files; only the way to the first group is framed on the event loop. A group goes
    out in parts if it is longer than `WINDOW_BYTES`, or its packets than a buffer."""

    def __init__(self, groups: ClassicGroups, cache: BlockCache, kernels: Kernels, find_end: FindEnd) -> None:
        self.find_end = find_end
        self.groups = groups
        self.buffers = cache.buffers
        self.kernels = kernels

    def identity(self, at: Mark, *, only_cached: bool) -> Hashable:
        is_at_hand = self.groups.is_in_file and at.position.file_no == self.groups.position.file_no
        return self.groups.log_identity if is_at_hand else None

    def large_group(self, group: EventGroup) -> ClassicPart | None:
        if not self.groups.is_cut:
            return None
        self.groups.continue_at(group.start, ())
        return ClassicPart(group.start, group.start.offset)

    def frame(self, at: Mark, selection: Selection, sequence: int, wanted: BlockShape) -> Block | None:
        if wanted.only_cached and not (wanted.is_short and isinstance(at, FramingState) and self.groups.is_in_file):
            return None
        with self.groups.reading(only_cached=wanted.only_cached):
            block = self._frame(at, selection, sequence, SHORT_BYTES if wanted.is_short else _to_border(at))
        if block is None or not wanted.is_shared:
            return block
        return _longer(
            block,
            lambda last: self._frame(
                last.after, selection.behind(last.log_positions), last.sequence_after, _to_border(last.after)
            ),
        )

    def _frame(self, at: Mark, selection: Selection, sequence: int, size: int) -> Block | None:
        with self.buffers.workspace() as workspace:
            out = self.buffers.take()
            framing = ClassicFraming(self.groups, self.kernels, workspace, at, selection, sequence, out=out)
            framing.file_end = file_end(self.find_end(), at.position)
            try:
                if not framing.is_in_parts and framing.advance(size) and self._may_part(at):
                    framing.go_in_parts()
                if framing.is_in_parts:
                    framing.advance(WINDOW_BYTES)
            except (ClassicFormatError, BlockingIOError):  # the reference finds damage in packed data
                framing.stay()
            if framing.has_advanced:
                return framing.block(framed_packets(out, self.buffers, framing.state))
            self.buffers.release(out)
        if isinstance(at, ClassicPart):
            raise self._problem(at)
        return None

    def renumbered(self, block: Block, was: int, sequence: int) -> Block:
        first = block.before.packet_left if isinstance(block.before, ClassicPart) else 0
        return renumbered(block, was, sequence, kernels=self.kernels, pool=self.buffers, first=first)

    def skip(self, at: Mark, limits: Iterable[Gtid], *, only_cached: bool) -> Block | None:
        if self.identity(at, only_cached=only_cached) is None or self.groups.is_before_other:
            return None
        rows = [(gtid.domain_id, gtid.server_id, gtid.seq_no) for gtid in limits]
        skips = number_rows(rows, 3)
        with self.buffers.workspace() as workspace:
            framing = ClassicFraming(
                self.groups, self.kernels, workspace, at, STORED if self.groups.is_stored else EVERYTHING
            )
            framing.file_end = file_end(self.find_end(), at.position)
            try:
                with self.groups.reading(only_cached=only_cached):
                    framing.skip(skips)
            except BlockingIOError:  # up to here
                if framing.is_in_parts:
                    framing.stay()
            except ClassicFormatError:
                return None
            if not framing.has_advanced:
                return None
            return replace(framing.block(NO_PACKETS), is_stopped=framing.is_stopped)

    @contextlib.contextmanager
    def pump(self, socket: int) -> Iterator["ClassicPump"]:
        with self.buffers.workspace() as workspace:
            yield ClassicPump(self, workspace, socket)

    def _may_part(self, at: Mark) -> bool:
        """Whether parts of a long group may go out; of an open file only if all is there."""
        if not self.groups.window.is_in_use:
            return True
        with self.buffers.workspace() as workspace:
            framing = ClassicFraming(self.groups, self.kernels, workspace, at)
            framing.skip_group()
            return framing.has_advanced

    def _problem(self, at: ClassicPart) -> BrokenGroupError:
        with self.groups.group_at(at.position) as group:
            try:
                for _ in group.body:
                    pass
                header = bytearray(EVENT_HEADER_SIZE)
                self.groups.read_into(at.offset, memoryview(header))
                check_event_size(HEADER.unpack(header)[3] - self.groups.window.checksum_size)
            except IbbMasterError as error:
                return BrokenGroupError(group, error)
            return BrokenGroupError(group, EventError(f"the events from offset {at.offset} on cannot be read"))


class ClassicFraming(FileFraming):
    """From a mark on, until there is a block; without `out` it skips."""

    def __init__(
        self,
        groups: ClassicGroups,
        kernels: Kernels,
        workspace: Workspace,
        at: Mark,
        selection: Selection = EVERYTHING,
        sequence: int = 0,
        *,
        out: Any = None,
        segments: Any = None,
    ) -> None:
        workspace.prepare(selection, sequence)
        state = numbers(Field.SIZE)
        state[: Field.SIZE] = workspace.state
        state[Field.IS_STORED] = selection.is_stored
        self._counts_positions = selection.log_positions is not None
        if selection.log_positions is not None:
            state[Field.POSITION], state[Field.LAST_POSITION] = selection.log_positions
        offset = at.position.offset
        if isinstance(at, ClassicPart):
            offset = at.offset
            state[Field.IN_PARTS], state[Field.GROUP_OFFSET] = 1, at.position.offset
            for place, value in zip(PART_FIELDS, at.fields, strict=False):  # none at first
                state[place] = value
        buffers = workspace.framing(NOTHING if out is None else out, NOTHING if segments is None else segments)
        super().__init__(groups, kernels, workspace.pages, buffers._replace(state=state), offset)
        self._before = at

    def block(self, packets: Packets) -> Block:
        state, file_no = self.state, self._before.position.file_no
        offset, fields = self.place
        after: Mark = FramingState(LogPosition(file_no, offset))
        if fields:
            after = ClassicPart(LogPosition(file_no, int(state[Field.GROUP_OFFSET])), offset, fields)
        log_positions = LogPositions(int(state[Field.POSITION]), int(state[Field.LAST_POSITION]))
        groups = Groups(self.gtids, is_in_order=self.is_in_order)
        counted = log_positions if self._counts_positions else None
        return Block(packets, self._before, after, groups, log_positions=counted)


class ClassicPump(BlockPump):
    def __init__(self, maker: ClassicBlocks, workspace: Workspace, socket: int) -> None:
        self._maker = maker
        self._workspace = workspace
        self._socket = socket

    def send(self, at: Mark, selection: Selection, sequence: int) -> Block | None:
        maker, workspace = self._maker, self._workspace
        groups, buffers, kernels = maker.groups, maker.buffers, maker.kernels
        descriptor = groups.window.source.descriptor if groups.is_in_file else None
        if descriptor is None:
            return None
        out, rest = buffers.take(), buffers.take()
        framing = ClassicFraming(
            groups, kernels, workspace, at, selection, sequence, out=out, segments=workspace.segments
        )
        framing.state[Field.MAY_BE_IN_PARTS] = not groups.window.is_in_use
        progress = numbers(Progress.SIZE)
        progress[Progress.BUDGET], progress[Progress.FILE_OFFSET] = BUDGET_BYTES, framing.offset
        progress[Progress.END] = file_end(maker.find_end(), at.position)
        sending = workspace.sending(descriptor, self._socket, progress, rest)
        kernels.pump_classic(workspace.pages, framing.framing, kernel_roles(), sending)
        buffers.release(out)
        framing.offset = int(progress[Progress.FILE_OFFSET])
        size = framing.state[Field.OUT] = progress[Progress.REST]
        return framing.block(framed_packets(rest, buffers, framing.state, int(progress[Progress.FRAMED] - size)))


def _to_border(at: Mark) -> int:
    """The bytes of a block that begins here: those of all dumps end at the same borders."""
    count = BORDER_BYTES - at.position.offset % BORDER_BYTES
    return count if count >= BORDER_BYTES // 2 else count + BORDER_BYTES


def _longer(first: Block, follow: Callable[[Block], Block | None]) -> Block:
    """For many readers: up to a border in the file, or as many bytes inside a group."""
    border = (first.end.offset // SHARED_BYTES + 1) * SHARED_BYTES
    pieces, size = [first], len(first)
    while len(pieces) < PIECES_MAX or (not size and len(pieces) < EMPTY_PIECES_MAX):
        last = pieces[-1]
        is_over = size + len(first) > SHARED_BYTES if last.ends_inside_group else size and last.end.offset >= border
        if is_over or first.begins_inside_group != last.ends_inside_group:
            break
        piece = follow(last)
        if piece is None:
            break
        pieces.append(piece)
        size += len(piece)
    return joined(pieces)
