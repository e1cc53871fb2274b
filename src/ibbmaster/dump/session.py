"""One dump as a state machine: groups and the passing of time in, packets out."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Protocol, TypeVar

from ibbmaster.codec.buffer import Buffer
from ibbmaster.dump.artificial import (
    artificial_rotate,
    file_head,
    file_tail,
    heartbeat,
    opening_format_description,
    reopening_format_description,
)
from ibbmaster.dump.error import DumpError, not_continuous, reading_failed
from ibbmaster.dump.framing import EventFramer
from ibbmaster.dump.profile import OpeningRotate, Profile
from ibbmaster.dump.request import CAPABILITY_ENGINE, DumpRequest
from ibbmaster.dump.rewriting import FIRST_POSITION, LOG_POS_MASK, LogPositions, Rewriter, Selection
from ibbmaster.dump.skipping import SEND, GroupFilter, Verdict
from ibbmaster.dump.start import StartCheck, impossible_position
from ibbmaster.errors import IbbMasterError, LogResetError, MissingEventError
from ibbmaster.event.control import FLAG_UNTIL_REACHED, GtidList, encode_gtid_list
from ibbmaster.event.format_description import ChecksumAlgorithm, has_checksums
from ibbmaster.event.group import EventGroup
from ibbmaster.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET, decode_event_header
from ibbmaster.event.types import EventFlag, EventType
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.wire.response import Eof, encode_eof, encode_err

SAME_SERVER_ID = 4052


class FramedBlock(Protocol):
    """Packets that were framed without the session: all that it has to know of them."""

    @property
    def framed_bytes(self) -> int: ...

    @property
    def sequence_after(self) -> int:
        """Number of the packet that comes next."""

    @property
    def begin(self) -> LogPosition: ...

    @property
    def end(self) -> LogPosition: ...

    @property
    def begins_inside_group(self) -> bool:
        """Whether it is a later part of a group; `begin` says nothing then."""

    @property
    def ends_inside_group(self) -> bool:
        """Whether a group is to continue in the next block; `end` says nothing then."""

    @property
    def is_inside_event(self) -> bool:
        """Whether it ends there."""

    @property
    def gtids(self) -> Iterable[Gtid]:
        """The last of each (domain, server) pair whose group begins in it."""

    @property
    def log_positions(self) -> LogPositions | None:
        """As they are after it, where they are counted."""


class SessionState(Enum):
    """Where a dump is, as far as it decides which calls may come."""

    NEW = "before start"
    BETWEEN = "between groups"
    INSIDE = "inside a group"
    FINISHED = "finished"


_ALWAYS = frozenset(
    (
        *("data_to_send", "sent", "sent_nothing", "advance_clock", "fail", "fail_in_group", "fail_reading"),
        *("end_of_service", "terminated_by_newer"),
    )
)
CALLS = {  # what may be called in which state; the table of `DumpSession` is drawn from it
    SessionState.NEW: frozenset({"start"}),
    SessionState.BETWEEN: _ALWAYS
    | {"receive_group", "begin_group", "receive_block", "receive_skipped", "check_position", "reached_end"},
    SessionState.INSIDE: _ALWAYS | {"receive_block", "check_position"},
    SessionState.FINISHED: _ALWAYS | {"receive_group", "reached_end"},
}

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _call(method: _Method) -> _Method:
    """A call that `CALLS` allows or not."""
    name = method.__name__
    states = [state for state, names in CALLS.items() if name in names]  # few: sooner compared than hashed

    @functools.wraps(method)
    def checked(self: DumpSession, *args: Any, **kwargs: Any) -> Any:
        assert self.state in states, f"{name} may not be called {self.state.value}"
        return method(self, *args, **kwargs)

    return checked  # type: ignore[return-value]


class DumpSession:
    """Turns event groups and the passing of time into packets for one replica.

    The caller brings what happened; the session says what to send, and until when it can
    wait. Every `now` is in seconds on the caller's monotonic clock. One caller at a time,
    who asks for all pieces of a group before the next one, sends what is queued before
    anything else is read, and calls `sent` after each send. What may be called when (`CALLS`):

                             before start  between groups  inside a group  finished
        start                yes           -               -               -
        receive_group        -             yes             -               yes
        check_position       -             yes             yes             -
        begin_group          -             yes             -               -
        receive_skipped      -             yes             -               -
        receive_block        -             yes             yes             -
        reached_end          -             yes             -               yes
        sent_nothing         -             yes             yes             yes
        sent                 -             yes             yes             yes
        advance_clock        -             yes             yes             yes
        data_to_send         -             yes             yes             yes
        fail                 -             yes             yes             yes
        fail_in_group        -             yes             yes             yes
        fail_reading         -             yes             yes             yes
        end_of_service       -             yes             yes             yes
        terminated_by_newer  -             yes             yes             yes

    At the durable end it waits until more is durable or `heartbeat_due`, then lets the clock
    advance; likewise while long runs of the log are skipped.

    Invariants:
    - Packets are numbered over everything, in the order in which they are handed out
      (test_packet_numbers_run_over_everything).
    - Nothing of a group is kept; memory does not depend on the size of a group or an event
      (test_memory_does_not_grow_with_a_group_or_an_event).
    - A group goes out whole and with the same events each time, or not at all, unless the dump ends inside it
      (test_a_group_is_delivered_with_the_same_events_after_a_reconnect).
    - Nothing but the last packet comes between two events of a group, and no group begins inside another one
      (test_whatever_happens_between_two_calls_groups_come_whole_and_heartbeats_between_them,
      test_a_group_that_begins_inside_another_one_is_a_mistake).
    - The last packet is EOF or ERR, unless the dump ends inside an event: there nothing can be said
      (test_the_last_packet_is_no_event_and_has_no_semi_sync_header, test_inside_an_event_nothing_can_be_said).

    A dump by GTID counts the positions of a traditional stream from where it begins to
    read; only a dump by file and offset counts them from the head of the file.
    """

    def __init__(
        self,
        request: DumpRequest,
        check: StartCheck,
        *,
        profile: Profile,
        server_id: int,
        server_version: str | None = None,
        start_state: GtidState,
        current_state: Callable[[], GtidState],
        position: LogPosition,
        file_name: Callable[[int], str],
        announced_file_name: str | None = None,
        started_at: int = 0,
        opening_timestamp: int = 0,
    ) -> None:
        """Prepare a dump that reads from a position on.

        `start_state` is what was logged before it, `current_state` gives what is logged now, `file_name` the name of a
        file. The opening ROTATE says `announced_file_name`, by default that of the file; `start.opening_file_name`
        chooses it. `started_at`, in seconds since 1970, stamps what opens a traditional file, `opening_timestamp` the
        artificial FORMAT_DESCRIPTION of any other stream; `server_version` None is that of the profile.
        """
        self._request = request
        self._profile = profile
        self._server_id = server_id
        self._server_version = profile.server_version if server_version is None else server_version
        self._started_at = started_at
        self._opening_timestamp = opening_timestamp
        self._state = start_state.copy()  # what was logged up to the group seen last; unless it will not be asked
        self._skipping = GroupFilter(request, check, start_state=start_state, current_state=current_state)
        self._is_by_file = request.position is None
        self._opens_with_rotate = profile.opening_rotate is OpeningRotate.EVERYBODY or (
            profile.opening_rotate is OpeningRotate.OLD_REPLICAS
            and request.is_registered
            and request.capability < CAPABILITY_ENGINE
        )
        counts_to_start = self._is_by_file and not profile.sends_files
        self._rewriter = Rewriter(request, profile, send_from=request.file_position if counts_to_start else 0)
        self._framer = EventFramer(self._rewriter, has_semi_sync=request.has_semi_sync)
        self._has_checksums = profile.event_checksum is ChecksumAlgorithm.CRC32
        self._needs_no_care = not profile.rotates_with_files  # see receive_group
        self._file_name = file_name
        self._announced_file_name = announced_file_name or file_name(position.file_no)  # what the last ROTATE said
        self._position = position  # after the group seen last
        self._queued = bytearray()
        self._is_started = False
        self._has_begun = False  # a file that is sent as it is
        self._last_word: bytes | None = None  # payload to end with, once the current event is complete
        self.is_inside_group = False  # one has begun, and its last piece or part is still to come
        self.heartbeat_due = math.inf
        self.is_finished = False
        self.error: DumpError | None = None  # why the dump ended, if not in order

    @property
    def state(self) -> SessionState:
        """Which calls may come: see `CALLS`."""
        if self.is_finished:
            return SessionState.FINISHED
        if not self._is_started:
            return SessionState.NEW
        return SessionState.INSIDE if self.is_inside_group else SessionState.BETWEEN

    @_call
    def start(self) -> None:
        """Queue what opens the stream; with an UNTIL that is already met, also what ends it.

        Source: MariaDB 12.3, sql_repl.cc, mysql_binlog_send() and send_format_descriptor_event().
        """
        self._is_started = True
        if self._opens_with_rotate:
            position = self._request.file_position if self._is_by_file else FIRST_POSITION
            self._queue_rotate(position, with_checksum=self._request.wants_rotate_checksum)
        if self._profile.sends_files:
            return  # the file has what follows
        if self._has_checksums and not self._request.knows_checksums:
            self._rewriter.position += len(self._format_description(log_pos=0))
            self._fail_without_checksums()
            return
        if self._profile.rotates_with_files:
            try:
                self._queue_file_head()
            except DumpError as error:
                self.fail(error.with_place(self._where()))
                return
        else:
            timestamp = self._opening_timestamp
            self._queue_event(self._format_description(timestamp=timestamp, log_pos=0, flags=EventFlag.ARTIFICIAL))
            if self._profile.opens_with_gtid_list:
                self._queue_gtid_list()
        if self._skipping.is_until_reached:
            self._reach_until()

    @_call
    def receive_group(self, group: EventGroup) -> Iterator[Buffer]:
        """The packets of a group, if it is wanted, and what else is to be said before and after it.

        Take all of them before the next group comes. A piece is good until the next one is
        asked for. What cannot be read ends the dump with an error packet.
        """
        if self.is_finished:
            return iter(())
        self.is_inside_group = True
        if self._needs_no_care and group.gtid is not None and self._skipping.decides_nothing:
            return self._guard(group, SEND)  # the serving path
        return self._receive_judged(group)

    @_call
    def check_position(self, position: LogPosition) -> None:
        """What comes next is read from this place in the log on, by any reader.

        Raises DumpError: that is not where the last ended, so something would be lost or come twice.
        """
        if position != self._position:
            raise not_continuous(self._named(self._position), self._named(position))

    @_call
    def begin_group(self, group: EventGroup | None = None) -> None:
        """A group begins that comes in parts, reported by `receive_block`: until its last one nothing else may come.

        With `group` it may begin a file: what has to be said before it is queued.
        """
        if group is not None:
            self._begin_file_of(group)
            self._position = group.start
            self._count_from(group.start)
        self.is_inside_group = True

    @property
    def makes_events(self) -> bool:
        """Whether what goes out are events that a traditional file would have, made of those of the log."""
        return self._rewriter.makes_events

    @property
    def selection(self) -> Selection | None:
        """How groups may be framed elsewhere from here on, reported by `receive_block`; None if they may not.

        Those of `watched_domain_ids` may never.
        """
        if not self._is_in_announced_file or self.is_finished or self._skipping.watched_domain_ids is None:
            return None
        if not self.is_inside_group:
            self._count_from(self._position)
        return self._framer.selection

    @property
    def _is_in_announced_file(self) -> bool:
        """Whether what comes next needs no head of a file before it."""
        return self._needs_no_care or self._file_name(self._position.file_no) == self._announced_file_name

    def selection_of(self, group: EventGroup) -> Selection | None:
        """How a group may be framed elsewhere once its `begin_group` was called; None if it must be judged."""
        watched = self._skipping.watched_domain_ids
        if self.is_finished or group.gtid is None or watched is None or group.gtid.domain_id in watched:
            return None
        return self._framer.selection

    @property
    def watched_domain_ids(self) -> frozenset[int]:
        """Domains that the replica knows and this log did not when the dump began."""
        return self._skipping.watched_domain_ids or frozenset()

    @property
    def limits(self) -> tuple[Gtid, ...]:
        """Others may skip groups of these domains up to these GTIDs, and call `receive_skipped` after each of these."""
        return self._skipping.limits if self._is_in_announced_file and not self.is_finished else ()

    @_call
    def receive_skipped(self, gtids: Iterable[Gtid], position: LogPosition) -> None:
        """The log was read up to a position, nothing was sent; `gtids` are the last of each (domain, server) pair.

        What is to be said where the skipping of a domain ends is queued.
        """
        self._position = position
        self._count_from(position)
        ends_skipping = False
        for gtid in gtids:
            self._state.log(gtid)
            ends_skipping |= self._skipping.ends_with(gtid)
        if ends_skipping:
            self._queue_gtid_list()

    def _count_from(self, position: LogPosition) -> None:
        """What comes next lies at a position; files that are sent as they are say it, and others are counted."""
        if self._profile.sends_files:
            self._rewriter.begin_at(position.offset)

    @property
    def sequence(self) -> int:
        """Number of the next packet."""
        return self._framer.sequence

    @_call
    def receive_block(self, block: FramedBlock) -> None:
        """A block was framed by `selection`, and goes out next.

        A last word that waited for the end of an event is queued now.

        Raises DumpError: the block does not begin where the last ended.
        """
        assert block.begins_inside_group == self.is_inside_group, (
            "a group begins inside another one, or goes on in none"
        )
        if not block.begins_inside_group:
            self.check_position(block.begin)
        if not block.ends_inside_group:
            self._position = block.end
        self.is_inside_group = block.ends_inside_group
        self._rewriter.go_to(block.log_positions)
        for gtid in block.gtids:
            self._state.log(gtid)
        self._framer.note_framed(block.framed_bytes, block.sequence_after, is_inside_event=block.is_inside_event)
        if self._last_word is not None and not block.is_inside_event:
            self._end(self._last_word)

    @property
    def waits_at_end(self) -> bool:
        """Whether the end of the log means nothing but to wait for more."""
        return self._request.waits_at_end and self._rewriter.position >= self._rewriter.send_from

    @_call
    def reached_end(self, *, now: float) -> None:
        """All that is durable was sent: end the dump, or begin to wait for the next heartbeat."""
        if self.is_finished:
            return
        if self._rewriter.position < self._rewriter.send_from:
            self.fail(impossible_position(self._request))
        elif not self._request.waits_at_end:
            self.end_of_service()
        else:
            self.sent_nothing(now=now)

    @_call
    def sent_nothing(self, *, now: float) -> None:
        """Groups were read and none was to be sent: if it continues like this, a heartbeat is due."""
        if self.heartbeat_due == math.inf and self._request.heartbeat_period_s and not self.is_finished:
            self.heartbeat_due = now + self._request.heartbeat_period_s

    @_call
    def sent(self) -> None:
        """Something was sent: the wait for a heartbeat begins anew, at the next end."""
        self.heartbeat_due = math.inf

    @_call
    def advance_clock(self, *, now: float) -> None:
        """Queue a heartbeat when nothing was sent for a whole period; inside a group it waits for the end of that."""
        if now < self.heartbeat_due or self.is_finished or self.is_inside_group:
            return
        self.heartbeat_due = now + self._request.heartbeat_period_s
        file_name, position = self._file_name(self._position.file_no), self._position.offset
        if self._opens_with_rotate:
            # A replica stops when a position is below its own count in the file it was given.
            file_name = self._announced_file_name
            position = self._framer.size_sent + FIRST_POSITION
            if self._profile.rotates_with_files:
                position = self._rewriter.position
        self._queue_event(heartbeat(file_name, position, server_id=self._server_id, with_checksum=self._has_checksums))

    @property
    def has_data_to_send(self) -> bool:
        return bool(self._queued)

    @_call
    def data_to_send(self) -> bytes:
        """Hand over what is queued; a second call returns only newer bytes."""
        data = bytes(self._queued)
        self._queued.clear()
        return data

    @_call
    def fail(self, error: DumpError) -> None:
        """End the dump with an error packet; inside an event nothing can be said any more."""
        if self.is_finished:
            return
        self.error = self.error or error
        if self._framer.is_inside_event:
            self.is_finished = True
        else:
            self._end(encode_err(self.error.err))

    @_call
    def fail_in_group(self, error: IbbMasterError, group: EventGroup) -> None:
        """As `fail`: a group that is under way cannot be read on."""
        if self._leaves_reset(error):
            return
        failure = reading_failed(error, group_place=self._place(group))
        self.fail(failure.with_place(self._where()) if self._profile.errors_name_places else failure)

    @_call
    def fail_reading(self, error: IbbMasterError) -> None:
        """As `fail`: what comes next cannot be read."""
        if self._leaves_reset(error):
            return
        failure = reading_failed(error)
        if isinstance(error, MissingEventError):
            self._rewriter.read_header_at(error.file_offset, EVENT_HEADER_SIZE if error.event_size is not None else 0)
        self.fail(failure.with_place(self._where()) if self._profile.sends_files else failure)

    def _leaves_reset(self, error: IbbMasterError) -> bool:
        """End a dump by GTID in order where the log is another one: its replica comes back, and is judged anew."""
        ends = isinstance(error, LogResetError) and not self._is_by_file
        if ends and self._framer.is_inside_event:
            self.is_finished = True  # nothing can be said there
        elif ends:
            self.end_of_service()
        return ends

    @_call
    def end_of_service(self) -> None:
        """End the dump in order, after the current event: nothing more comes, or the primary shuts down."""
        self._end(encode_eof(Eof()))

    @_call
    def terminated_by_newer(self) -> None:
        """End the dump, after the current event, because the same server id has asked for another one."""
        error = DumpError(
            self._profile.same_server_id_text,
            f"a newer dump of server id {self._request.replica_server_id} has begun: each replica needs its own",
            code=SAME_SERVER_ID,
        )
        if self._profile.errors_name_places:
            error = error.with_place(self._where())
        if self.error is None and not self.is_finished:
            self.error = error
            self._end(encode_err(error.err))

    def _receive_judged(self, group: EventGroup) -> Iterator[Buffer]:
        """As `receive_group`, where the group has to be judged or may begin a file."""
        try:
            verdict = self._judge(group)
        except IbbMasterError as error:
            self.fail(reading_failed(error, group_place=self._place(group)))
            verdict = None
        if self._queued:
            yield self.data_to_send()
            if self.is_finished:  # meanwhile
                return
        if verdict is not None and verdict.is_wanted:
            yield from self._guard(group, verdict)
            return
        if verdict is not None:
            self._count_from(group.end)
            self._finish_group(verdict)
            if self._queued:
                yield self.data_to_send()
        self._end_group(group)

    def _judge(self, group: EventGroup) -> Verdict | None:
        """What to do with a group, None for nothing; queues what comes before it."""
        self._count_from(group.start)
        if group.gtid is None:
            if self._profile.sends_files:
                return self._judge_event(group)
            if self._profile.sends_restarts and not self._skipping.is_skipping:
                self._queue_event(group.gtid_event)
            return None
        self._begin_file_of(group)
        verdict = self._skipping.judge(group.gtid)
        self._state.log(group.gtid)
        return verdict

    def _judge_event(self, group: EventGroup) -> Verdict | None:
        """What to do with an event that is in no group; queues what comes before it, and what begins a file."""
        event = group.gtid_event
        if event[TYPE_OFFSET] != EventType.FORMAT_DESCRIPTION:
            return SEND._replace(is_last=self._skipping.is_until_reached)
        is_first = not self._has_begun
        self._has_begun = True
        if not is_first:
            self._announced_file_name = self._file_name(group.start.file_no)
            self._queue_rotate(FIRST_POSITION, with_checksum=self._has_checksums)
        self._has_checksums = has_checksums(event)
        self._rewriter.begin_stored_file(len(event), has_checksums=self._has_checksums)
        if self._has_checksums and not self._request.knows_checksums:
            self._fail_without_checksums()
            return None
        is_inside = is_first and self._is_by_file and self._request.file_position > FIRST_POSITION
        if is_inside or not (self._is_by_file or self._skipping.has_reached_start):
            event = reopening_format_description(event, is_inside_file=is_inside)
        self._queue_event(event)
        self._count_from(group.end)
        return None

    def _fail_without_checksums(self) -> None:
        self.fail(
            DumpError(
                "Slave can not handle replication events with the checksum that master is configured to log",
                "the client never set @master_binlog_checksum, so it does not know that events have checksums",
            ).with_place(self._where())
        )

    def _begin_file_of(self, group: EventGroup) -> None:
        file_name = self._file_name(group.start.file_no)
        if self._profile.sends_files:
            return  # its FORMAT_DESCRIPTION has begun it
        if self._profile.rotates_with_files and file_name != self._announced_file_name:
            self._queue_file_change(file_name, group)

    def _guard(self, group: EventGroup, verdict: Verdict) -> Iterator[Buffer]:
        """The packets of a group; what goes wrong in it becomes the last packet, as does a last word said meanwhile."""
        try:
            for piece in self._framer.frame_group(group.gtid_event, group.body):
                yield piece
                if self.is_finished:
                    return
                if self._last_word is not None and not self._framer.is_inside_event:
                    break
        except IbbMasterError as error:
            self.fail_in_group(error, group)
        if self._last_word is not None:
            self._end(self._last_word)
        else:
            self._finish_group(verdict)
        if self._queued:
            yield self.data_to_send()
        self._end_group(group)

    def _end_group(self, group: EventGroup) -> None:
        self.is_inside_group = False
        self._position = group.end

    def _finish_group(self, verdict: Verdict) -> None:
        """Queue what is to be said after a group."""
        if self.is_finished:
            return
        if verdict.ends_skipping:
            self._queue_gtid_list()
        if verdict.is_last:
            self._reach_until()

    def _reach_until(self) -> None:
        self._queue_gtid_list(is_until_reached=True)
        self.end_of_service()

    def _end(self, payload: bytes) -> None:
        if self.is_finished:
            return
        if self._framer.is_inside_event:
            self._last_word = self._last_word or payload
            return
        self._queued += self._framer.frame_payload(payload)
        self.is_finished = True
        self.heartbeat_due = math.inf

    def _queue_file_change(self, file_name: str, group: EventGroup) -> None:
        """Queue the end of one traditional file and the head of the next."""
        rewriter = self._rewriter
        timestamp = decode_event_header(group.gtid_event).timestamp
        self._queue_rewritten(file_tail(file_name, server_id=self._server_id, timestamp=timestamp))
        if rewriter.position <= rewriter.send_from:
            raise impossible_position(self._request)
        rewriter.send_from = 0
        self._announced_file_name = file_name
        self._queue_rotate(FIRST_POSITION, with_checksum=self._has_checksums)
        self._queue_file_head()

    def _queue_file_head(self) -> None:
        rewriter = self._rewriter
        is_inside = rewriter.send_from > FIRST_POSITION
        size = len(self._format_description(log_pos=0))
        event = self._format_description(timestamp=self._started_at, log_pos=0 if is_inside else FIRST_POSITION + size)
        self._queue_event(event)
        rewriter.begin_file(event)
        head = file_head(self._state, self._announced_file_name, server_id=self._server_id, timestamp=self._started_at)
        for event in head:
            self._queue_rewritten(event)

    def _format_description(self, *, timestamp: int = 0, log_pos: int, flags: int = 0) -> bytes:
        return opening_format_description(
            self._server_version,
            server_id=self._server_id,
            type_count=self._profile.type_count,
            algorithm=self._profile.event_checksum,
            timestamp=timestamp,
            log_pos=log_pos,
            flags=flags,
        )

    def _queue_rotate(self, position: int, *, with_checksum: bool) -> None:
        name = self._announced_file_name
        self._queue_event(artificial_rotate(name, position, server_id=self._server_id, with_checksum=with_checksum))

    def _queue_gtid_list(self, *, is_until_reached: bool = False) -> None:
        """Say what was logged up to here; one bit says that the replica's UNTIL is reached.

        Source: MariaDB 12.3, sql_repl.cc, fake_gtid_list_event().
        """
        listed = GtidList(gtids=tuple(self._state), flags=FLAG_UNTIL_REACHED if is_until_reached else 0)
        log_pos = self._rewriter.position & LOG_POS_MASK if self._profile.rotates_with_files else 0
        of_us = {"server_id": self._server_id, "flags": EventFlag.ARTIFICIAL}
        self._queue_event(encode_gtid_list(listed, log_pos=log_pos, with_checksum=self._has_checksums, **of_us))

    def _queue_rewritten(self, event: bytes) -> None:
        rewritten = self._rewriter.rewrite(event, is_between_groups=True)
        if rewritten is not None:
            self._queue_event(rewritten)

    def _queue_event(self, event: bytes) -> None:
        self._queued += self._framer.frame_event(event)

    def _where(self) -> str:
        """The place of the last event, as a traditional primary puts it after its errors."""
        first = self._request.file_name or "."
        name, rewriter = self._announced_file_name, self._rewriter
        return (
            f"; the first event '{first}' at {self._request.file_position}, the last event read from '{name}' at "
            f"{rewriter.last_position}, the last byte read from '{name}' at {rewriter.position}."
        )

    def _place(self, group: EventGroup) -> str:
        return f"group {group.gtid} at {self._named(group.start)}"

    def _named(self, position: LogPosition) -> str:
        return f"{self._file_name(position.file_no)} offset {position.offset}"
