"""The events that a primary adds to those of its log in one dump, framed and queued in order."""

import functools
from dataclasses import dataclass, field

from ibbmaster.gtid import GtidState
from ibbmaster.replication.event import control
from ibbmaster.replication.event.format_description import (
    CREATED_OFFSET,
    CREATED_SIZE,
    ChecksumAlgorithm,
    describe_format,
    encode_format_description,
    has_checksums,
)
from ibbmaster.replication.event.header import CHECKSUM_SIZE, LOG_POS_OFFSET, LOG_POS_SIZE, append_checksum
from ibbmaster.replication.event.types import EventFlag
from .framing import EventFramer
from .profile import OpeningRotate, Profile
from .request import CAPABILITY_ENGINE, DumpRequest
from .rewriting import FIRST_POSITION, LOG_POS_MASK, Rewriter
from .start import impossible_position


@functools.lru_cache(64)  # each dump begins with one
def opening_format_description(
    server_version: str, *, type_count: int, algorithm: ChecksumAlgorithm, **header: int
) -> bytes:
    """Opens a stream or a file. `created` is 0, so a replica keeps its temporary tables. Source: MariaDB 12.3,
    sql_repl.cc, fake_format_description_event() and send_format_descriptor_event()."""
    return encode_format_description(
        describe_format(server_version, type_count=type_count, algorithm=algorithm), **header
    )


def reopening_format_description(event: bytes, *, is_inside_file: bool) -> bytes:
    """The first event of a file for a replica that has read part of it: `created` is 0, so temporary tables stay;
    inside the file the event does not count for its position. One without checksums keeps its old one, which nothing
    reads, as at a primary. Source: MariaDB 10.11, sql_repl.cc, send_format_descriptor_event()."""
    changed = bytearray(event)
    changed[CREATED_OFFSET : CREATED_OFFSET + CREATED_SIZE] = bytes(CREATED_SIZE)
    if is_inside_file:
        changed[LOG_POS_OFFSET : LOG_POS_OFFSET + LOG_POS_SIZE] = bytes(LOG_POS_SIZE)
    if not has_checksums(event):
        return bytes(changed)
    return append_checksum(bytes(changed[:-CHECKSUM_SIZE]))


def artificial_rotate(file_name: str, position: int, *, server_id: int, with_checksum: bool) -> bytes:
    """Source: MariaDB 12.3, sql_repl.cc, fake_rotate_event()."""
    value, flags = control.Rotate(file_name=file_name, position=position), EventFlag.ARTIFICIAL
    return control.encode_rotate(value, server_id=server_id, flags=flags, with_checksum=with_checksum)


@dataclass(slots=True, kw_only=True)
class Announcements:
    request: DumpRequest
    profile: Profile
    rewriter: Rewriter
    framer: EventFramer
    server_id: int
    state: GtidState  # what was logged up to here; its owner keeps it up to date
    file_name: str  # what the last ROTATE said
    started_at: int  # these two as `DumpSession` has them
    opening_timestamp: int
    has_checksums: bool  # the events of the stream
    queued: bytearray = field(default_factory=bytearray)

    def event(self, event: bytes) -> None:
        self.queued += self.framer.frame_event(event)

    def rotate(self, position: int, *, with_checksum: bool) -> None:
        self.event(artificial_rotate(self.file_name, position, server_id=self.server_id, with_checksum=with_checksum))

    @property
    def _opens_with_rotate(self) -> bool:
        rule, request = self.profile.opening_rotate, self.request
        is_old = request.is_registered and request.capability < CAPABILITY_ENGINE
        return rule is OpeningRotate.EVERYBODY or (rule is OpeningRotate.OLD_REPLICAS and is_old)

    def opening_rotate(self) -> None:
        if self._opens_with_rotate:
            position = self.request.file_position if self.request.position is None else FIRST_POSITION
            self.rotate(position, with_checksum=self.request.wants_rotate_checksum)

    def opening(self) -> None:
        self.event(self._format_description(timestamp=self.opening_timestamp, flags=EventFlag.ARTIFICIAL))
        if self.profile.opens_with_gtid_list:
            self.gtid_list()

    @property
    def format_description_size(self) -> int:
        return len(self._format_description())

    def gtid_list(self, *, is_until_reached: bool = False) -> None:
        """What was logged up to here, and whether UNTIL is reached. Source: MariaDB 12.3, sql_repl.cc,
        fake_gtid_list_event()."""
        listed = control.GtidList(gtids=tuple(self.state), flags=control.FLAG_UNTIL_REACHED if is_until_reached else 0)
        log_pos = self.rewriter.position & LOG_POS_MASK if self.profile.rotates_with_files else 0
        of_us = {"server_id": self.server_id, "flags": EventFlag.ARTIFICIAL}
        self.event(control.encode_gtid_list(listed, log_pos=log_pos, with_checksum=self.has_checksums, **of_us))

    def heartbeat(self, file_name: str, position: int) -> None:
        if self._opens_with_rotate:  # a replica stops at a position below its own count in its file
            file_name, position = self.file_name, self.framer.size_sent + FIRST_POSITION
            if self.profile.rotates_with_files:
                position = self.rewriter.position
        server_id, has_checksums = self.server_id, self.has_checksums
        self.event(control.encode_heartbeat(file_name, position, server_id=server_id, with_checksum=has_checksums))

    def file_change(self, file_name: str, timestamp: int) -> None:
        """Raises DumpError: the replica asks for an offset beyond the file."""
        self._rewritten(
            control.encode_rotate(
                control.Rotate(file_name=file_name, position=4), server_id=self.server_id, timestamp=timestamp
            )
        )
        if self.rewriter.position <= self.rewriter.send_from:
            raise impossible_position(self.request)
        self.rewriter.send_from = 0
        self.file_name = file_name
        self.rotate(FIRST_POSITION, with_checksum=self.has_checksums)
        self.file_head()

    def stored_file(self, format_description: bytes, file_name: str | None) -> None:
        """Begin a file that goes out as it is, with a ROTATE to `file_name` unless the opening had one."""
        if file_name is not None:
            self.file_name = file_name
            self.rotate(FIRST_POSITION, with_checksum=self.has_checksums)
        self.has_checksums = has_checksums(format_description)
        self.rewriter.begin_stored_file(len(format_description), has_checksums=self.has_checksums)

    def file_head(self) -> None:
        """Begin a traditional file: FORMAT_DESCRIPTION, GTID_LIST, BINLOG_CHECKPOINT."""
        is_inside = self.rewriter.send_from > FIRST_POSITION
        log_pos = 0 if is_inside else FIRST_POSITION + self.format_description_size
        event = self._format_description(timestamp=self.started_at, log_pos=log_pos)
        self.event(event)
        self.rewriter.begin_file(event)
        server_id, timestamp = self.server_id, self.started_at
        listed = control.GtidList(gtids=tuple(self.state))
        self._rewritten(control.encode_gtid_list(listed, server_id=server_id, timestamp=timestamp))
        self._rewritten(control.encode_binlog_checkpoint(self.file_name, server_id=server_id, timestamp=timestamp))

    def where(self) -> str:
        first = self.request.file_name or "."
        name, rewriter = self.file_name, self.rewriter
        return (
            f"; the first event '{first}' at {self.request.file_position}, the last event read from '{name}' at "
            f"{rewriter.last_position}, the last byte read from '{name}' at {rewriter.position}."
        )

    def _format_description(self, **header: int) -> bytes:
        profile = self.profile
        return opening_format_description(
            profile.server_version,
            type_count=profile.type_count,
            algorithm=profile.event_checksum,
            server_id=self.server_id,
            **header,
        )

    def _rewritten(self, event: bytes) -> None:
        """As in a traditional file, unless the replica does not get it."""
        rewritten = self.rewriter.rewrite(event, is_between_groups=True)
        if rewritten is not None:
            self.event(rewritten)
