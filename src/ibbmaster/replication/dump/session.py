"""One dump as a state machine: groups and the passing of time in, packets out."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, TypeVar

from ibbmaster.errors import IbbMasterError, LogResetError, MissingEventError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET, decode_event_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.response import Eof, encode_eof, encode_err
from ibbmaster.storage.codec.buffer import Buffer
from .announcing import Announcements, reopening_format_description
from .error import DumpError, checksums_unknown, not_continuous, reading_failed
from .framing import EventFramer, FramedBlock
from .profile import Profile
from .request import DumpRequest
from .rewriting import FIRST_POSITION, Rewriter, Selection
from .skipping import SEND, GroupFilter, Verdict
from .start import StartCheck, impossible_position

SAME_SERVER_ID = 4052


class SessionState(Enum):
    """The place of a dump, as far as it decides which calls may come."""

    NEW = "before start"
    BETWEEN = "between groups"
    INSIDE = "inside a group"
    FINISHED = "finished"


CALLS: dict[SessionState, set[str]] = {state: set() for state in SessionState}
_STARTED = (SessionState.BETWEEN, SessionState.INSIDE, SessionState.FINISHED)
_OPEN = (SessionState.BETWEEN, SessionState.INSIDE)
_WHOLE = (SessionState.BETWEEN, SessionState.FINISHED)

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _only(*states: SessionState) -> Callable[[_Method], _Method]:
    def marked(method: _Method) -> _Method:
        name = method.__name__
        for state in states:
            CALLS[state].add(name)

        @functools.wraps(method)
        def checked(self: DumpSession, *args: Any, **kwargs: Any) -> Any:
            assert self.state in states, f"{name} may not be called {self.state.value}"
            return method(self, *args, **kwargs)

        return checked  # type: ignore[return-value]

    return marked


class DumpSession:
    """Turns event groups and the passing of time into packets for one replica.

    The caller reports what happened; the session says what to send, and how long it can wait. Every `now` is in
    seconds on the caller's monotonic clock. Only one caller at a time, who takes all pieces of a group before the
    next one, sends what is queued before reading on, and calls `sent` after each send; `CALLS` names the calls of
    each state.

    At the durable end, and while it skips long runs of the log, it waits until more is durable or until
    `heartbeat_due`, when the caller advances the clock.

    Invariants:
    - Packets are numbered over everything, in the order of the stream (test_packet_numbers_run_over_everything).
    - Memory does not depend on the size of a group or an event (test_memory_does_not_grow_with_a_group_or_an_event).
    - A group goes out whole and with the same events each time, or not at all, unless the dump ends inside it
      (test_a_group_is_delivered_with_the_same_events_after_a_reconnect).
    - Only the last packet comes between two events of a group, and no group begins inside another one
      (test_whatever_happens_between_two_calls_groups_come_whole_and_heartbeats_between_them,
      test_a_group_that_begins_inside_another_one_is_a_mistake).
    - The last packet is EOF or ERR, unless the dump ends inside an event, where nothing can be said
      (test_a_client_that_does_not_wait_gets_eof_at_the_end_with_no_header, test_inside_an_event_nothing_can_be_said).

    A dump by GTID counts the positions of a traditional stream from where it begins to read, a dump by file and
    offset from the head of the file.
    """

    def __init__(
        self,
        request: DumpRequest,
        check: StartCheck,
        *,
        profile: Profile,
        server_id: int,
        start_state: GtidState,
        current_state: Callable[[], GtidState],
        position: LogPosition,
        file_name: Callable[[int], str],
        announced_file_name: str | None = None,
        started_at: int = 0,
        opening_timestamp: int = 0,
    ) -> None:
        """Prepare a dump that reads from `position` on. `start_state`: what was logged before it; `current_state`: what
        is logged now. The opening ROTATE says `announced_file_name` (see `start.opening_file_name`), or the file's.
        `started_at`, in seconds since 1970, stamps the head of a traditional file, `opening_timestamp` that of any
        other stream."""
        self._request = request
        self._profile = profile
        self._state = start_state.copy()  # what was logged up to the group seen last
        self._skipping = GroupFilter(request, check, start_state=start_state, current_state=current_state)
        self._is_by_file = request.position is None
        counts_to_start = self._is_by_file and not profile.sends_files
        self._rewriter = Rewriter(request, profile, send_from=request.file_position if counts_to_start else 0)
        self._framer = EventFramer(self._rewriter, has_semi_sync=request.has_semi_sync)
        self._said = Announcements(
            request=request,
            profile=profile,
            rewriter=self._rewriter,
            framer=self._framer,
            server_id=server_id,
            state=self._state,
            file_name=announced_file_name or file_name(position.file_no),
            started_at=started_at,
            opening_timestamp=opening_timestamp,
            has_checksums=profile.event_checksum is ChecksumAlgorithm.CRC32,
        )
        self._needs_no_care = not profile.rotates_with_files  # see receive_group
        self._file_name = file_name
        self._position = position  # after the group seen last
        self._is_started = False
        self._has_begun = False  # a file that is sent as it is
        self._last_word: bytes | None = None  # payload to end with, once the current event is complete
        self.is_inside_group = False  # one has begun, and its last piece or part is still to come
        self.heartbeat_due = math.inf
        self.is_finished = False
        self.error: DumpError | None = None  # why the dump ended, if not in order

    @property
    def state(self) -> SessionState:
        if self.is_finished:
            return SessionState.FINISHED
        if not self._is_started:
            return SessionState.NEW
        return SessionState.INSIDE if self.is_inside_group else SessionState.BETWEEN

    @property
    def sent_state(self) -> GtidState:
        """What was logged up to the group seen last. It changes with the next one."""
        return self._state

    @_only(SessionState.NEW)
    def start(self) -> None:
        """Queue the opening of the stream; if the UNTIL is already met, also the end. Source: MariaDB 12.3,
        sql_repl.cc, mysql_binlog_send() and send_format_descriptor_event()."""
        self._is_started = True
        said = self._said
        said.opening_rotate()
        if self._profile.sends_files:
            return  # the file has what follows
        if said.has_checksums and not self._request.knows_checksums:
            self._rewriter.position += said.format_description_size
            self._fail_without_checksums()
            return
        if self._profile.rotates_with_files:
            try:
                said.file_head()
            except DumpError as error:
                self.fail(error.with_place(said.where()))
                return
        else:
            said.opening()
        if self._skipping.is_until_reached:
            self._reach_until()

    @_only(*_WHOLE)
    def receive_group(self, group: EventGroup) -> Iterator[Buffer]:
        """Yields the packets of a group, if it is wanted, and what has to be said before and after it; each is good
        until the next. An unreadable group ends the dump with an error packet."""
        if self.is_finished:
            return iter(())
        self.is_inside_group = True
        if self._needs_no_care and group.gtid is not None and self._skipping.decides_nothing:
            self._state.log(group.gtid)
            return self._guard(group, SEND)  # the serving path
        return self._receive_judged(group)

    @_only(*_OPEN)
    def check_position(self, position: LogPosition) -> None:
        """Raises DumpError: a reader does not go on where the last one ended: something would be lost or come twice."""
        if position != self._position:
            raise not_continuous(self._named(self._position), self._named(position))

    @_only(SessionState.BETWEEN)
    def begin_group(self, group: EventGroup | None = None) -> None:
        """Begin a group whose parts come by `receive_block`, and nothing else. If `group` begins a file, queue its
        head."""
        if group is not None:
            self._begin_file_of(group)
            self._position = group.start
            self._count_from(group.start)
        self.is_inside_group = True

    @property
    def makes_events(self) -> bool:
        return self._rewriter.makes_events

    @property
    def selection(self) -> Selection | None:
        """How others may frame groups from here on, but those of `watched_domain_ids`; None if they may not."""
        if not self._is_in_announced_file or self.is_finished or self._skipping.watched_domain_ids is None:
            return None
        if not self.is_inside_group:
            self._count_from(self._position)
        return self._framer.selection

    @property
    def _is_in_announced_file(self) -> bool:
        return self._needs_no_care or self._file_name(self._position.file_no) == self._said.file_name

    def selection_of(self, group: EventGroup) -> Selection | None:
        """As `selection`, for a group after its `begin_group`; None if it must be judged."""
        watched = self._skipping.watched_domain_ids
        if self.is_finished or group.gtid is None or watched is None or group.gtid.domain_id in watched:
            return None
        return self._framer.selection

    @property
    def watched_domain_ids(self) -> frozenset[int]:
        """Those that the replica knows and this log did not when the dump began."""
        return self._skipping.watched_domain_ids or frozenset()

    @property
    def limits(self) -> tuple[Gtid, ...]:
        """Others may skip groups of these domains up to these GTIDs, and call `receive_skipped` after each."""
        return self._skipping.limits if self._is_in_announced_file and not self.is_finished else ()

    @_only(SessionState.BETWEEN)
    def receive_skipped(self, gtids: Iterable[Gtid], position: LogPosition) -> None:
        """Others skipped all up to `position`; `gtids` holds the last of each (domain, server) pair."""
        self._position = position
        self._count_from(position)
        ends_skipping = False
        for gtid in gtids:
            self._state.log(gtid)
            ends_skipping |= self._skipping.ends_with(gtid)
        if ends_skipping:
            self._said.gtid_list()

    def _count_from(self, position: LogPosition) -> None:
        if self._profile.sends_files:
            self._rewriter.begin_at(position.offset)

    @property
    def sequence(self) -> int:
        return self._framer.sequence

    @_only(*_OPEN)
    def receive_block(self, block: FramedBlock) -> None:
        """Note a block framed by `selection`, which goes out next, and queue a last word that waited. Raises DumpError:
        it does not begin where the last ended."""
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
        self._framer.note_framed(block)
        if self._last_word is not None and not block.is_inside_event:
            self._end(self._last_word)

    @property
    def waits_at_end(self) -> bool:
        return self._request.waits_at_end and self._rewriter.position >= self._rewriter.send_from

    @_only(*_WHOLE)
    def reached_end(self, *, now: float) -> None:
        """After all that is durable, end the dump or begin to wait for the next heartbeat."""
        if self.is_finished:
            return
        if self._rewriter.position < self._rewriter.send_from:
            self.fail(impossible_position(self._request))
        elif not self._request.waits_at_end:
            self.end_of_service()
        else:
            self.sent_nothing(now=now)

    @_only(*_STARTED)
    def sent_nothing(self, *, now: float) -> None:
        if self.heartbeat_due == math.inf and self._request.heartbeat_period_s and not self.is_finished:
            self.heartbeat_due = now + self._request.heartbeat_period_s

    @_only(*_STARTED)
    def sent(self) -> None:
        """End the wait for a heartbeat; the next end begins another."""
        self.heartbeat_due = math.inf

    @_only(*_STARTED)
    def advance_clock(self, *, now: float) -> None:
        """Queue a heartbeat when nothing was sent for a whole period; inside a group it waits for the group's end."""
        if now < self.heartbeat_due or self.is_finished or self.is_inside_group:
            return
        self.heartbeat_due = now + self._request.heartbeat_period_s
        self._said.heartbeat(self._file_name(self._position.file_no), self._position.offset)

    @property
    def has_data_to_send(self) -> bool:
        return bool(self._said.queued)

    @_only(*_STARTED)
    def data_to_send(self) -> bytes:
        """A second call returns only newer bytes."""
        data = bytes(self._said.queued)
        self._said.queued.clear()
        return data

    @_only(*_STARTED)
    def fail(self, error: DumpError) -> None:
        """End the dump with an error packet; inside an event it ends without one."""
        if self.is_finished:
            return
        self.error = self.error or error
        if self._framer.is_inside_event:
            self.is_finished = True
        else:
            self._end(encode_err(self.error.err))

    @_only(*_STARTED)
    def fail_in_group(self, error: IbbMasterError, group: EventGroup) -> None:
        """As `fail`, for a group that cannot be read to its end."""
        if self._leaves_reset(error):
            return
        failure = reading_failed(error, group_place=self._place(group))
        self.fail(failure.with_place(self._said.where()) if self._profile.rotates_with_files else failure)

    @_only(*_STARTED)
    def fail_reading(self, error: IbbMasterError) -> None:
        if self._leaves_reset(error):
            return
        failure = reading_failed(error)
        if isinstance(error, MissingEventError):
            self._rewriter.read_header_at(error.file_offset, EVENT_HEADER_SIZE if error.event_size is not None else 0)
        self.fail(failure.with_place(self._said.where()) if self._profile.sends_files else failure)

    def _leaves_reset(self, error: IbbMasterError) -> bool:
        """End a dump by GTID in order where another log has replaced this one: its replica comes again."""
        ends = isinstance(error, LogResetError) and not self._is_by_file
        if ends and not self._framer.is_inside_event:
            self.end_of_service()
        self.is_finished |= ends
        return ends

    @_only(*_STARTED)
    def end_of_service(self) -> None:
        self._end(encode_eof(Eof(status=self._request.status)))

    @_only(*_STARTED)
    def terminated_by_newer(self) -> None:
        """End the dump, after the current event: the same server id has asked for another."""
        error = DumpError(
            self._profile.same_server_id_text,
            f"a newer dump of server id {self._request.replica_server_id} has begun: each replica needs its own",
            code=SAME_SERVER_ID,
        )
        if self._profile.rotates_with_files:
            error = error.with_place(self._said.where())
        if self.error is None and not self.is_finished:
            self.error = error
            self._end(encode_err(error.err))

    def _receive_judged(self, group: EventGroup) -> Iterator[Buffer]:
        try:
            verdict = self._judge(group)
        except IbbMasterError as error:
            self.fail(reading_failed(error, group_place=self._place(group)))
            verdict = None
        if self.has_data_to_send:
            yield self.data_to_send()
            if self.is_finished:  # meanwhile
                return
        if verdict is not None and verdict.is_wanted:
            yield from self._guard(group, verdict)
            return
        if verdict is not None:
            self._count_from(group.end)
            self._finish_group(verdict)
            if self.has_data_to_send:
                yield self.data_to_send()
        self._end_group(group)

    def _judge(self, group: EventGroup) -> Verdict | None:
        """None: nothing of it goes out. Queues what comes before it."""
        self._count_from(group.start)
        if group.gtid is None:
            if self._profile.sends_files:
                return self._judge_event(group)
            if self._profile.sends_restarts and not self._skipping.is_skipping:
                self._said.event(group.gtid_event)
            return None
        self._begin_file_of(group)
        verdict = self._skipping.judge(group.gtid)
        self._state.log(group.gtid)
        return verdict

    def _judge_event(self, group: EventGroup) -> Verdict | None:
        event = group.gtid_event
        if event[TYPE_OFFSET] != EventType.FORMAT_DESCRIPTION:
            return SEND._replace(is_last=self._skipping.is_until_reached)
        is_first = not self._has_begun
        self._has_begun = True
        self._said.stored_file(event, None if is_first else self._file_name(group.start.file_no))
        if self._said.has_checksums and not self._request.knows_checksums:
            self._fail_without_checksums()
            return None
        is_inside = is_first and self._is_by_file and self._request.file_position > FIRST_POSITION
        if is_inside or not (self._is_by_file or self._skipping.has_reached_start):
            event = reopening_format_description(event, is_inside_file=is_inside)
        self._said.event(event)
        self._count_from(group.end)
        return None

    def _fail_without_checksums(self) -> None:
        self.fail(checksums_unknown().with_place(self._said.where()))

    def _begin_file_of(self, group: EventGroup) -> None:
        if self._profile.sends_files or not self._profile.rotates_with_files:
            return  # the FORMAT_DESCRIPTION of a file has begun it
        file_name = self._file_name(group.start.file_no)
        if file_name != self._said.file_name:
            self._said.file_change(file_name, decode_event_header(group.gtid_event).timestamp)

    def _guard(self, group: EventGroup, verdict: Verdict) -> Iterator[Buffer]:
        """The packets of a group; an error in it, or a last word said meanwhile, becomes the last packet."""
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
        if self.has_data_to_send:
            yield self.data_to_send()
        self._end_group(group)

    def _end_group(self, group: EventGroup) -> None:
        self.is_inside_group = False
        self._position = group.end

    def _finish_group(self, verdict: Verdict) -> None:
        if self.is_finished:
            return
        if verdict.ends_skipping:
            self._said.gtid_list()
        if verdict.is_last:
            self._reach_until()

    def _reach_until(self) -> None:
        self._said.gtid_list(is_until_reached=True)
        self.end_of_service()

    def _end(self, payload: bytes) -> None:
        if self.is_finished:
            return
        if self._framer.is_inside_event:
            self._last_word = self._last_word or payload
            return
        self._said.queued += self._framer.frame_payload(payload)
        self.is_finished = True
        self.heartbeat_due = math.inf

    def _place(self, group: EventGroup) -> str:
        return f"group {group.gtid} at {self._named(group.start)}"

    def _named(self, position: LogPosition) -> str:
        return f"{self._file_name(position.file_no)} offset {position.offset}"
