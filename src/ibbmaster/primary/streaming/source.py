"""Remembers where a dump is, and gives its packets in blocks.

Two ways put the same bytes on the wire and take turns: the reference way reads group after group, and the session
decides about each; a `BlockMaker` turns runs of a file into packets, where nothing has to be decided.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from ibbmaster.errors import FormatError, IbbMasterError, PositionPurgedError, StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.log.interface import EventGroups, are_cached, are_far, files_of
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.replication.dump.error import DumpError, not_continuous
from ibbmaster.replication.dump.rewriting import Selection
from ibbmaster.replication.dump.session import DumpSession
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.codec.buffer import Buffer
from .block import (
    NO_PACKETS,
    AbsentPump,
    Block,
    BlockMaker,
    BlockPump,
    BlockShape,
    BrokenGroupError,
    FramingState,
    Groups,
    Key,
    Mark,
    check_continues,
    joined,
    plain_block,
    sent_block,
)
from .shared import EndProbe, SentSteps, SharedBlocks
from .sink import PATIENCE_MS, Sink, left_of

if TYPE_CHECKING:
    from .block_cache import BlockCache

REFERENCE_BYTES = 256 * 1024  # in one block of the reference way
FIRST_BYTES = 16 * 1024  # in the first of them, which shall come soon
FAR_BEHIND_BYTES = 128 * 1024  # a longer block is not the last one
EMPTY_BLOCKS_MAX = 8  # without a packet, skipped in one call
SKIPPED_BLOCKS_MAX = 32  # in one call: about 10 ms
KNOWN_WAYS_MAX = 64  # in one call: each takes some 20 us
SKIP_TRIES = 3  # in a row may be in vain: at the begin of a file, or a part out of band
GROUPS_OF_SKIP = 50  # groups take as long to read as many to skip
GROUPS_MAX = 5000  # read in one hop: a long way keeps no other dump waiting
GROUPS_BEFORE_KERNELS = 500  # likewise: kernels may be loaded meanwhile
GROUPS_AT_ONCE = 8  # read on the event loop before a block is framed; a thread reads more
OPENING_STEPS = 8  # to the first group that goes out
SKIPPED_AT_ONCE = 2  # blocks on the event loop, about half a millisecond
PUMPED_BYTES = 64 << 20  # in one visit of a thread, some 10 ms


class BlockSource:
    """The blocks of one dump, in order, whichever way makes them, for one caller at a time. Between calls the dump is
    at one mark. Each block is compared with it, and by the session with its own count: a group is never lost, sent
    twice, or begun inside another one.
    """

    def __init__(self, groups: EventGroups, session: DumpSession, shared: SharedBlocks) -> None:
        self._groups = groups
        self._files = files_of(groups)
        self._cached_groups = groups if are_cached(groups) else None
        self._far_groups = groups if are_far(groups) else None
        self._session = session
        self._shared = shared
        self._at: Mark = FramingState(groups.position)
        self._maker: BlockMaker | None = None
        self._cache: BlockCache | None = None
        self._reference_before = NOWHERE  # up to here: there is a group of a watched domain
        self._pieces: Iterator[Buffer] | None = None  # the rest of the group that goes the reference way
        self.probe: EndProbe | None = None  # others rely on it, while this dump looks whether the log ends
        self._begun: tuple[Gtid, ...] = ()  # groups that the reader does not know of yet
        self._note: Callable[[], None] | None = None  # a way for which the first block did not wait
        self._groups_at_once = 0
        self._is_first = True  # no block yet: the first one shall come soon
        self._is_far_behind = False
        self._is_opening = True  # there was no answer yet
        self.opens_alone = False  # the opening of the stream is a block of its own
        self._are_long = False  # blocks, while a thread sends them
        self.is_at_end = False  # after the block that was given last

    @property
    def position(self) -> LogPosition:
        """Of the log, up to where it was read."""
        return self._at.position

    def close(self) -> None:
        """No thread may be in a call."""
        self._note_way()
        if self._cache is not None:
            self._cache.remove_reader(self)
        self._pieces = None
        self._groups.close()

    def next_block(self, generation: int, *, may_wait: bool) -> Block | None:
        """The next packets, perhaps none; None: ask again in a worker thread, with `may_wait`. `generation` is of the
        log's end, read before. What the session has queued goes out by itself and first, as it belongs between the
        parts of a group; the opening goes with the first groups, if they are in memory.
        """
        self.is_at_end = False
        self._note_way()
        is_opening, self._is_opening = self._is_opening and not self.opens_alone and not may_wait, False
        if self._session.has_data_to_send:
            return self._opening() if is_opening else self._queued()
        maker = self._ready_maker()
        if not may_wait:
            return None if maker is None or self._pieces is not None else self._block_at_once(maker, generation)
        data = bytearray()
        with self._failures_reported():
            if maker is not None and self._pieces is None:
                block = self._framed_block(maker, only_cached=False)
                if block is not None:
                    self._is_far_behind = len(block) >= FAR_BEHIND_BYTES
                    return block
            self._read_groups(data, maker, generation)
        return self._queued(data)

    @property
    def is_far_behind(self) -> bool:
        """The last block was full, and not shared: `pump` is worth a hop to a thread."""
        return self._is_far_behind and not self._is_decided and self._cache is not None and not self._cache.is_shared

    @property
    def _is_decided(self) -> bool:
        """What goes out next is not for a pump."""
        return self._pieces is not None or self._session.has_data_to_send or bool(self._session.watched_domain_ids)

    def fetch_ahead(self) -> Future[None] | None:
        """Begin to fetch what comes next from far away; the session is free until that is here. None: it is here."""
        if self._far_groups is None or self._pieces is not None or self._at.is_inside_group:
            return None
        return self._far_groups.fetch_ahead()

    def pump(self, sink: Sink) -> tuple[Block, int]:
        """In a worker thread, send until something has to be decided, or much was sent. Returns what the socket did not
        take, which goes out next, and the size of what it took.
        """
        self._is_far_behind = self.is_at_end = False
        rest, framed_bytes = plain_block(b"", self._at), 0
        maker, session, cache = self._maker, self._session, self._cache
        if maker is None or cache is None or self._is_decided:
            return rest, 0
        with self._failures_reported(), self._pump_of(maker, sink) as pump:
            while framed_bytes < PUMPED_BYTES and not len(rest) and sink.is_flushed and not session.has_data_to_send:
                selection = session.selection
                if cache.is_shared or selection is None:
                    break  # far ahead of others, it would share no blocks
                block = self._pumped_block(pump, selection)
                if block is not None:
                    rest = block
                elif (block := self._block_to_pump(maker, pump)) is not None:
                    rest = plain_block(left_of(block.data(), sink, PATIENCE_MS) or b"", block.after)
                else:
                    break
                framed_bytes += block.framed_bytes
        self._is_far_behind = framed_bytes > 0
        return rest, framed_bytes - len(rest)

    def end_probe(self) -> bool:
        """After `next_block`: whether others have relied on an end that is none."""
        probe, self.probe = self.probe, None
        if probe is None:
            return False
        if self._shared.probe is probe:
            self._shared.probe = None
        return probe.has_others and self._shared.known_end != probe.place

    # What many get at once

    @property
    def standing(self) -> Hashable | None:
        """Equal for dumps at the end of the log that get the same next but for packet numbers; None: it is alone."""
        session, maker = self._session, self._maker
        if maker is None or self._is_decided or session.limits or self._at.is_inside_group or not self._may_frame:
            return None
        identity, selection = maker.identity(self._at, only_cached=True), session.selection
        is_alone = identity is None or selection is None or not session.waits_at_end
        return None if is_alone else (identity, self._at, selection)

    def follow(self, steps: SentSteps, sequence: int) -> None:
        """Continue after steps that went out; `sequence` is of the next packet."""
        with self._failures_reported():
            self._note_sent(sent_block([steps.block], sequence))
            self._is_first, self._groups_at_once = False, 0

    # Blocks that a maker makes

    def _ready_maker(self) -> BlockMaker | None:
        if self._maker is None and (found := self._shared.maker(self._groups, self._session)) is not None:
            self._maker, self._cache = found
            self._files = files_of(self._groups)
            self._cache.add_reader(self)
        return self._maker

    def _block_at_once(self, maker: BlockMaker, generation: int) -> Block | None:
        if self._is_known_end(generation):
            self.is_at_end = True
            return plain_block(b"", self._at)
        with self._failures_reported():
            block = self._framed_block(maker, only_cached=True)
            is_full = block is not None and len(block) >= FAR_BEHIND_BYTES
            self._is_far_behind = is_full or (block is not None and not len(block))  # large groups were skipped
            if block is None:
                block = self._begun_block(maker)
            if block is None:
                self._begin_probe(generation)
            return block
        return self._queued()

    def _opening(self) -> Block:
        data = bytearray(self._session.data_to_send())
        maker = self._ready_maker()
        if maker is not None and self._session.limits:
            with self._failures_reported():
                data += self._opened(maker)
                framed = self._framed_block(maker, only_cached=True)
                data += b"" if framed is None else framed.data()
        return self._queued(data)

    def look_ahead(self) -> None:
        """Go to the first group that goes out, as far as memory has the way: a later dump knows it then."""
        maker = self._ready_maker()
        if maker is not None and self._session.limits:
            self._session.data_to_send()
            with self._failures_reported():
                self._opened(maker)

    def walk(self) -> Iterator[None]:
        """As `look_ahead`, on to the end, step by step, in a worker thread."""
        maker = self._ready_maker()
        with self._failures_reported():
            while maker is not None and not self._session.is_finished:
                self._session.data_to_send()
                if not self._skip(maker, SKIPPED_BLOCKS_MAX):
                    group = self._next_group()
                    if group is None:
                        return
                    for _ in self._session.receive_group(group):
                        pass
                    self._follow_reader()
                yield

    def _opened(self, maker: BlockMaker) -> bytes:
        data = b""
        for _ in range(OPENING_STEPS):
            begun = self._begun_block(maker)
            data += b"" if begun is None else begun.data()
            if begun is None or not self._session.limits:
                break
        return data

    def _begun_block(self, maker: BlockMaker) -> Block | None:
        """Go from the begin of a dump or a file to what the maker can frame, as far as memory has it."""
        groups, before = self._cached_groups, self._at
        if groups is None or self._session.is_finished or before.is_inside_group:
            return None
        if self._groups_at_once >= GROUPS_AT_ONCE:
            return None
        if not self._session.limits and maker.identity(before, only_cached=True) is not None:
            return None  # the end of the log, or a large group
        has_skipped, behind_skipped = self._skip(maker, SKIPPED_AT_ONCE, only_cached=True), self._at
        if self._session.has_data_to_send:
            return self._queued()  # after the last group that the replica has
        try:
            self._session.check_position(groups.position)
            group = groups.next_group_at_once()
        except BlockingIOError:
            if self._at.position == groups.position and not has_skipped:
                return None
            self._follow_reader()  # after states
            self._session.receive_skipped((), self._at.position)
            return plain_block(b"", self._at)
        self._groups_at_once += 1
        gtid, data = group.gtid, b"".join(self._session.receive_group(group))
        self._follow_reader()
        if gtid is not None and not data:  # behind the rest of an earlier one
            self._keep_to_note(
                maker, [Block(NO_PACKETS, behind_skipped, self._at, Groups((gtid,)), b"")], only_cached=True
            )
        return self._queued(data)

    def _framed_block(self, maker: BlockMaker, *, only_cached: bool) -> Block | None:
        """None: the reference way has to continue, or this would wait."""
        passed: list[Block] = []
        for _ in range(EMPTY_BLOCKS_MAX):
            selection = self._session.selection
            if selection is None or not self._may_frame:
                break
            self._check_position()
            self._join_group(maker)
            try:
                block = self._found_block(maker, selection, only_cached=only_cached)
            except (FormatError, StoreError):
                if self._at.is_inside_group:
                    raise
                block = None  # gone, or begun again: the reference way says why, or waits
            if block is None:
                break
            if any(gtid.domain_id in self._session.watched_domain_ids for gtid in block.gtids):
                self._reference_before = _behind_begins(block)
                break
            self._go_behind(block)
            self._session.receive_block(block)
            self._is_first, self._groups_at_once = False, 0
            passed.append(block)
            if len(block):
                break
        if len(passed) < 2 or any(block.begins_inside_group or block.ends_inside_group for block in passed):
            return passed[-1] if passed else None
        whole = joined(passed)  # others go the whole way by it
        self._keep_way(maker, whole, only_cached=only_cached)
        return whole

    @property
    def _may_frame(self) -> bool:
        return self._at.is_inside_group or self._at.position >= self._reference_before

    def _found_block(self, maker: BlockMaker, selection: Selection, *, only_cached: bool) -> Block | None:
        at, sequence, cache = self._at, self._session.sequence, self._cache
        key = self._key(maker, at, selection, only_cached=only_cached)
        if key is None or cache is None:
            return None
        is_shared = bool(key[-1])

        def make(like: tuple[Block, int] | None) -> Block | None:
            if like is not None:
                return maker.renumbered(*like, sequence)
            shape = BlockShape(only_cached, is_shared, is_short=self._is_first and not is_shared)
            return maker.frame(at, selection, sequence, shape)

        return cache.find(key, sequence, make, only_cached=only_cached, is_shared=is_shared)

    def _key(self, maker: BlockMaker, at: Mark, selection: Selection | None, *, only_cached: bool) -> Key | None:
        identity = maker.identity(at, only_cached=only_cached)
        if identity is None or self._cache is None or selection is None:
            return None
        return identity, at, selection, self._cache.is_shared or self._are_long

    def _go_behind(self, block: Block) -> None:
        """Raises DumpError: the block does not begin here; PositionPurgedError: the log was reset."""
        check_continues(block, self._at)
        files = self._files
        assert files is not None
        position = files.position
        files.check_log()
        self._at = block.after
        self._begun += block.stored_gtids
        if isinstance(block.after, FramingState):
            if position == block.begin:
                inside = block.after.skip_type
                files.continue_at(
                    block.end, self._begun, head=block.head, is_inside_record=inside >= 0, record_type=inside
                )
            elif position != block.end:  # where a large group ends that the reader has read
                raise not_continuous(str(block.after), str(FramingState(position)))
            self._begun = ()
        elif block.end != block.begin:  # a large group begins after others
            files.continue_at(block.end, ())

    def _keep_way(self, maker: BlockMaker, whole: Block, *, only_cached: bool) -> None:
        """Let others go to the commit of a large group in one step, without packets."""
        if len(whole) or whole.gtids or whole.stored_gtids:
            return
        key = self._key(maker, whole.before, self._session.selection, only_cached=only_cached)
        if key is not None and self._cache is not None:
            self._cache.keep(key, self._session.sequence, whole)

    def _join_group(self, maker: BlockMaker) -> None:
        known = None if self._at.is_inside_group else maker.known_group(self._at)
        if known is not None and known[0].domain_id not in self._session.watched_domain_ids:
            self._session.begin_group()
            self._begun, self._at = (known[0],), known[1]

    def _begin_large_group(self, maker: BlockMaker, group: EventGroup) -> bool:
        mark = None if self._session.selection_of(group) is None else maker.large_group(group)
        if mark is None:
            return False
        self._session.begin_group(group)
        self._at = mark
        return True

    # What a pump sends

    @contextlib.contextmanager
    def _pump_of(self, maker: BlockMaker, sink: Sink) -> Iterator[BlockPump]:
        """Straight from the files, if packets go out unchanged; else blocks are long."""
        if sink.descriptor is not None:
            with maker.pump(sink.descriptor) as pump:
                yield pump
            return
        self._are_long = True
        try:
            yield AbsentPump()
        finally:
            self._are_long = False

    def _pumped_block(self, pump: BlockPump, selection: Selection) -> Block | None:
        assert self._files is not None
        self._files.check_log()
        self._check_position()
        before = self._at
        block = pump.send(before, selection, self._session.sequence)
        if block is None or block.after == before:
            return None
        self._note_sent(block)
        return block

    def _note_sent(self, block: Block) -> None:
        failure = None
        try:
            self._go_behind(block)
        except PositionPurgedError:
            pass  # the next block shall meet it
        except DumpError as error:
            failure = error  # likewise, but nothing more may go out
        self._at = block.after
        self._session.receive_block(block)
        if failure is not None:
            self._end(failure)

    def _block_to_pump(self, maker: BlockMaker, pump: BlockPump) -> Block | None:
        """A block that no pump makes, but not where a large group begins."""
        commit = pump.commit_ahead(self._at)
        if commit is not None:
            return self._block_ahead(maker, pump, commit)
        block = self._framed_block(maker, only_cached=False)
        if block is not None:
            return block
        if self._at.is_inside_group:
            return None
        group = self._next_group()
        if group is None:
            return None
        if self._begin_large_group(maker, group):
            return plain_block(b"", self._at)
        self._pieces = self._session.receive_group(group)
        return None

    def _block_ahead(self, maker: BlockMaker, pump: BlockPump, commit: LogPosition) -> Block | None:
        """As `_block_to_pump`, of a large group committed there; if it cannot begin, check its way."""
        self._go_behind(Block(NO_PACKETS, self._at, FramingState(commit), head=b""))
        self._session.receive_skipped((), commit)
        group, is_begun = None, False
        try:
            group = self._next_group()
            is_begun = group is not None and group.start == commit and self._begin_large_group(maker, group)
        finally:
            if not is_begun:
                pump.check_way()
        if is_begun:
            return plain_block(b"", self._at)
        self._pieces = None if group is None else self._session.receive_group(group)
        return None

    # The reference way

    def _read_groups(self, data: bytearray, maker: BlockMaker | None, generation: int) -> None:
        groups_left = GROUPS_BEFORE_KERNELS if maker is None else GROUPS_MAX
        tries_left = SKIP_TRIES
        bytes_max = FIRST_BYTES if maker is None and self._is_first else REFERENCE_BYTES
        while len(data) < bytes_max and groups_left > 0:
            if self._pieces is None:
                if maker is not None and tries_left:
                    if self._skip(maker, SKIPPED_BLOCKS_MAX):
                        tries_left, groups_left = SKIP_TRIES, groups_left - GROUPS_OF_SKIP
                    else:
                        tries_left -= 1
                    if self._session.has_data_to_send:
                        break  # after the last group of a domain that the replica has
                group = None if self._session.is_finished else self._next_group()
                if group is None:
                    self.is_at_end = True
                    if maker is not None and not self._session.is_finished:
                        self._shared.known_end = generation, self._at.position
                    break
                groups_left -= 1
                if group.gtid is None:
                    tries_left = max(tries_left, 1)  # much may be skipped after it
                if maker is not None and self._begin_large_group(maker, group):
                    break
                self._pieces = self._session.receive_group(group)
            piece = next(self._pieces, None)
            if piece is not None:
                data += piece
                continue
            self._pieces = None
            self._follow_reader()
            if maker is not None and self._session.selection is not None and self._may_frame:
                break
        self._is_first &= maker is not None or not data

    def _skip(self, maker: BlockMaker, blocks_max: int, *, only_cached: bool = False) -> bool:
        """Go after groups that the replica has; whether there were any."""
        limits = self._session.limits
        skipped: list[Block] = []
        has_news, blocks_left = False, blocks_max if limits else 0
        while blocks_left and len(skipped) < KNOWN_WAYS_MAX:
            self._check_position()
            block, is_known = self._skipped_block(maker, limits, only_cached=only_cached)
            if block is None:
                break
            has_news |= not is_known or len(skipped) > 1  # many ways are one from now on
            blocks_left -= not is_known
            skipped.append(block)
            self._go_behind(block)
            self._session.receive_skipped(block.gtids, block.end)
            if block.is_stopped:
                break
        if has_news:
            self._keep_to_note(maker, skipped, limits, only_cached=only_cached)
        return any(block.gtids for block in skipped)

    def _keep_to_note(
        self, maker: BlockMaker, skipped: list[Block], limits: tuple[Gtid, ...] = (), *, only_cached: bool
    ) -> None:
        before = skipped[0].before
        identity = None if before == skipped[-1].after else maker.identity(before, only_cached=only_cached)
        if identity is not None:
            self._note_way()
            assert self._cache is not None
            self._note = partial(self._cache.skips.note, (identity, before), skipped, limits)

    def _note_way(self) -> None:
        """Let replicas that begin here later take this way in one step."""
        note, self._note = self._note, None
        if note is not None:
            note()

    def _skipped_block(
        self, maker: BlockMaker, limits: tuple[Gtid, ...], *, only_cached: bool
    ) -> tuple[Block | None, bool]:
        """The next groups to skip, as far as another replica has gone or a step further; whether that is known."""
        at, cache = self._at, self._cache
        identity = maker.identity(at, only_cached=only_cached)
        if identity is None or cache is None:
            return None, False
        known = cache.skips.find((identity, at), limits)
        if known is not None:
            return known, True
        return maker.skip(at, limits, only_cached=only_cached), False

    def _next_group(self) -> EventGroup | None:
        self._session.check_position(self._groups.position)
        assert self._pieces is None
        assert not self._session.is_inside_group, "the rest of a group would be lost"
        group = self._groups.next_group()
        if group is None:
            self._follow_reader()  # after states, or in the next file
            self._session.receive_skipped((), self._at.position)
        return group

    def _follow_reader(self) -> None:
        if self._at.position != self._groups.position:
            self._at = FramingState(self._groups.position)

    def _check_position(self) -> None:
        if self._at.is_inside_group:
            return
        try:
            self._session.check_position(self._groups.position)
        except DumpError:
            if self._files is not None:
                self._files.check_log()  # a reset is no fault of ours
            raise

    @contextlib.contextmanager
    def _failures_reported(self) -> Iterator[None]:
        """The session ends the dump when reading fails; what was produced before stays."""
        try:
            yield
        except BrokenGroupError as broken:
            self._session.fail_in_group(broken.error, broken.group)
            self.is_at_end = True
        except DumpError as error:
            self._end(error)
        except IbbMasterError as error:
            self._session.fail_reading(error)
            self._pieces = None
            self.is_at_end = True

    def _end(self, error: DumpError) -> None:
        self._session.fail(error)
        self._pieces = None
        self.is_at_end = True

    def _queued(self, data: bytes | bytearray = b"") -> Block:
        return plain_block(data + self._session.data_to_send(), self._at)

    # The end of the log

    def _is_known_end(self, generation: int) -> bool:
        if self._at.is_inside_group:
            return False
        place = generation, self._at.position
        probe = self._shared.probe
        session = self._session
        if probe is not None and probe.place == place and session.waits_at_end and session.selection:
            probe.has_others = True
            return True
        return self._shared.known_end == place

    def _begin_probe(self, generation: int) -> None:
        """Others rely on this dump's look; inside a group there is more to come."""
        if not self._at.is_inside_group:
            self.probe = self._shared.probe = EndProbe((generation, self._at.position))


def _behind_begins(block: Block) -> LogPosition:
    return block.begin._replace(offset=block.begin.offset + 1) if block.ends_inside_group else block.end
