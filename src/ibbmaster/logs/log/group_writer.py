"""Writes one event group into a log, in pieces.

A small group becomes one record; of a larger one all but the GTID event goes out of band while it comes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ibbmaster.errors import StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.ibb.commit import HEADER_SIZE_USUAL, CommitHeader, OobStream, encode_commit_header
from ibbmaster.storage.ibb.oob import OobForest, encode_oob_node
from ibbmaster.storage.ibb.xa import Xid
from .limits import LogLimits

NO_STREAM = encode_commit_header(CommitHeader())


class Ticket(NamedTuple):
    """A logged group: where its commit record is, and the LSN that must be durable before it is."""

    ref: LogPosition
    lsn: int


class GroupSink(Protocol):
    """By default it keeps nothing for a group, and waits for nothing."""

    limits: LogLimits

    def append_piece(self, group: GroupWriter, record: Buffer) -> LogPosition: ...

    def append_commit(self, group: GroupWriter | None, record: Buffer, gtid: Gtid | None) -> Ticket: ...

    def make_durable(self, ticket: Ticket) -> None:
        return

    def append_prepare(self, group: GroupWriter, xid: Xid, engine_count: int, stream: OobStream | None) -> None: ...

    def release(self, group: GroupWriter) -> None:
        return


@dataclass(slots=True)
class _Savepoint:
    name: str
    size: int
    forest: OobForest | None = None  # set once the bytes before it are out of band


class _Stream:
    def __init__(self) -> None:
        self.buffer = bytearray()
        self.forest = OobForest()
        self.spilled = 0
        self.savepoints: list[_Savepoint] = []

    @property
    def size(self) -> int:
        return self.spilled + len(self.buffer)

    def piece_size(self, size_max: int) -> int:
        border = next((point.size for point in self.savepoints if point.size > self.spilled), self.size)
        return min(border - self.spilled, len(self.buffer), size_max)

    def note_savepoints(self) -> None:
        for point in self.savepoints:
            if point.size == self.spilled:
                point.forest = self.forest.copy()

    def roll_back_to(self, point: _Savepoint) -> None:
        if point.size >= self.spilled:
            del self.buffer[point.size - self.spilled :]
        else:
            assert point.forest is not None
            self.forest = point.forest.copy()
            self.buffer.clear()
            self.spilled = point.size


class GroupWriter:
    """One group, for one thread; holds two pieces of it. Its statement part, which no savepoint takes back, comes
    first."""

    def __init__(self, sink: GroupSink) -> None:
        self._sink = sink
        self._transaction = _Stream()
        self._statement = _Stream()
        self._is_open = True
        self._record = bytearray()  # the next piece: long ones need no new memory each

    def write(self, data: Buffer) -> None:
        self._take(self._transaction, data)

    def write_statement(self, data: Buffer) -> None:
        self._take(self._statement, data)

    def savepoint(self, name: str) -> None:
        """Replaces a savepoint of the same name. Source: MariaDB 12.3, log.cc."""
        self._check_open()
        stream = self._transaction
        stream.savepoints = [point for point in stream.savepoints if point.name != name]
        point = _Savepoint(name, stream.size)
        if point.size == stream.spilled:
            point.forest = stream.forest.copy()
        stream.savepoints.append(point)

    def roll_back_to(self, name: str) -> None:
        """Forget what was written since a savepoint. Raises StoreError: there is none."""
        self._check_open()
        stream = self._transaction
        for index, point in enumerate(stream.savepoints):
            if point.name == name:
                stream.roll_back_to(point)
                del stream.savepoints[index + 1 :]
                return
        raise StoreError(f"there is no savepoint {name!r}")

    def commit(self, gtid: Gtid | None, gtid_event: Buffer) -> LogPosition:
        """Log the group; returns where its commit record is, once it is as durable as the options say."""
        ticket = self.commit_ordered(gtid, gtid_event)
        self._sink.make_durable(ticket)
        return ticket.ref

    def commit_ordered(self, gtid: Gtid | None, gtid_event: Buffer) -> Ticket:
        """As `commit`, without waiting until it is durable."""
        self._check_open()
        header = CommitHeader(streams=self._spill_all(len(gtid_event)))
        encoded = encode_commit_header(header)
        if header.streams:
            assert len(header.streams) == 2 or len(encoded) <= HEADER_SIZE_USUAL
            record = encoded + gtid_event
        else:
            record = b"".join((encoded, gtid_event, self._statement.buffer, self._transaction.buffer))
        ticket = self._sink.append_commit(self, record, gtid)
        self._is_open = False
        return ticket

    def prepare(self, xid: Xid, *, engine_count: int = 1) -> None:
        """Prepare the group, which is complete, under an XID that finishes it, even after a restart."""
        self._check_open()
        stream = self._transaction
        if self._statement.size or not stream.size:
            raise StoreError("a group that is prepared has a transaction and no statement part")
        assert engine_count > 0
        self._spill(stream, 1)
        self._sink.append_prepare(self, xid, engine_count, stream.forest.stream())
        self._is_open = False

    def abandon(self) -> None:
        """Give the group up; pieces in the log stay there as garbage."""
        if self._is_open:
            self._is_open = False
            self._sink.release(self)

    def _take(self, stream: _Stream, data: Buffer) -> None:
        self._check_open()
        stream.buffer += data
        if len(stream.buffer) > self._sink.limits.inline_size_max:
            self._spill(stream, self._sink.limits.piece_size_max)

    def _spill_all(self, gtid_event_size: int) -> tuple[OobStream, ...]:
        streams = [stream for stream in (self._statement, self._transaction) if stream.size]
        spilled = any(stream.forest.stream() is not None for stream in streams)
        size = len(NO_STREAM) + gtid_event_size + sum(stream.size for stream in streams)
        if not spilled and size <= self._sink.limits.inline_size_max:
            return ()
        for stream in streams:
            self._spill(stream, 1)
        return tuple(found for stream in streams if (found := stream.forest.stream()) is not None)

    def _spill(self, stream: _Stream, rest_max: int) -> None:
        while len(stream.buffer) >= rest_max:
            size = stream.piece_size(self._sink.limits.piece_size_max)
            record = self._record
            record[:] = encode_oob_node(stream.forest.next_node())
            with memoryview(stream.buffer) as view:
                record += view[:size]
            with memoryview(record) as view:
                stream.forest.add(self._sink.append_piece(self, view))
            del stream.buffer[:size]
            stream.spilled += size
            stream.note_savepoints()

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreError("the group was committed, prepared or given up before")


def write_whole_group(sink: GroupSink, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> Ticket:
    """Append a group whose events are in memory: as one record if small, else as `GroupWriter` does."""
    parts: list[Buffer] = [NO_STREAM, gtid_event]
    size = len(NO_STREAM) + len(gtid_event)
    pieces = iter(body)
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size > sink.limits.inline_size_max:
            break
    else:
        return sink.append_commit(None, b"".join(parts), gtid)
    group = GroupWriter(sink)
    try:
        for piece in parts[2:]:
            group.write(piece)
        for piece in pieces:
            group.write(piece)
        return group.commit_ordered(gtid, gtid_event)
    except BaseException:
        group.abandon()
        raise
