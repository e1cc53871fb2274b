"""Writes event groups as traditional binlog files, as the server that a profile names.

Each file begins with FORMAT_DESCRIPTION, GTID_LIST and BINLOG_CHECKPOINT, and ends with a ROTATE, the last one with a
STOP. Every event gets its place and its checksum. Memory does not grow with an event or a group.

Invariants:
- A file is marked as in use until it is ended, so a cut is known as one (test_a_file_is_in_use_until_it_is_ended).
- A group is in one file (test_files_end_between_groups)."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.gtid import GtidState
from ibbmaster.kernel.fields import PlacedField
from ibbmaster.kernel.plain_memory import numbers, scratch
from ibbmaster.logs.log.large_rows import large_rows
from ibbmaster.replication.dump.profile import LogPosRule, Profile
from ibbmaster.replication.event import control, format_description
from ibbmaster.replication.event import header as headers
from ibbmaster.replication.event.group import GroupBoundary
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET
from ibbmaster.replication.event.rows.partial import PartialRows
from ibbmaster.replication.event.split import EventPart, EventSplitter
from ibbmaster.replication.event.types import EventFlag, EventType, type_name
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.interface import Disk
from .roles import kernel_roles
from .series import INDEX_SUFFIX, MAGIC

if TYPE_CHECKING:
    from ibbmaster.kernel.calls import Kernels

STEM = "binlog"
OUT_BYTES = 4 << 20
LOG_POS_MASK = 0xFFFFFFFF
HELD_BYTES = 1 << 18
SMALL_BYTES = 64 * 1024
QUERY_SIZE_MAX = 64 * 1024  # COMMIT and ROLLBACK, which end groups, are short
EVENT_SIZE_MAX = 1 << 30  # bytes: no server reads a larger event
STATE_SUFFIX = ".state"


class ClassicWriter:
    """Writes the files of one binlog into a directory. Raises ConfigurationError: a server like that writes none."""

    def __init__(
        self,
        disk: Disk,
        profile: Profile,
        *,
        state: GtidState | None = None,
        stem: str = STEM,
        first_number: int = 1,
    ) -> None:
        if not profile.rotates_with_files:
            raise ConfigurationError(
                f"a primary as {profile.name!r} has no traditional files: take a classic-… profile"
            )
        self.names: list[str] = []
        self.state = state or GtidState()  # the caller may set it between files
        self.offset = 0
        self.is_open = False
        self._disk = disk
        self._profile = profile
        self._stem = stem
        self._first_number = first_number
        self.index_name, self.state_name = stem + INDEX_SUFFIX, stem + STATE_SUFFIX
        self._has_checksums = profile.event_checksum is format_description.ChecksumAlgorithm.CRC32
        self._type_max = profile.type_count
        self._out: Any = None
        self._numbers: Any = None
        self._says_all = profile.log_pos_rule is LogPosRule.EVERY
        self._fragments = PartialRows(large_rows())
        self._held = bytearray()
        self._written = 0
        self._index = b""

    def begin_file(self, *, is_start: bool = False, **header: int) -> None:
        """Begin the next file; `header` has `server_id` and `timestamp` of the events in its head. `is_start`: a server
        start begins it, at which replicas drop temporary tables. Raises StoreError: it cannot be written."""
        assert not self.is_open
        name = self._name(len(self.names))
        described = format_description.describe_format(
            self._profile.server_version,
            type_count=self._profile.type_count,
            algorithm=self._profile.event_checksum,
            created=header["timestamp"] if is_start else 0,
        )
        size = len(format_description.encode_format_description(described, server_id=header["server_id"]))
        self._disk.create(name)
        self._index += f"./{name}\n".encode()
        if not self.names:
            self._disk.create(self.index_name)
        self._disk.write(self.index_name, 0, self._index)
        self.names.append(name)
        self.is_open = True
        self._written, self.offset = 0, len(MAGIC) + size
        self._held += MAGIC + format_description.encode_format_description(
            described, log_pos=self.offset, flags=EventFlag.IN_USE, **header
        )
        fields = headers.HeaderFields(server_id=header["server_id"], timestamp=header["timestamp"])
        self._put_own(control.encode_gtid_list(control.GtidList(gtids=tuple(self.state)), **fields))
        self._put_own(control.encode_binlog_checkpoint(name, **fields))
        self.flush()

    def end_file(self, *, is_last: bool, **header: int) -> None:
        """End the file: with a STOP if it `is_last`, else with a ROTATE to the next one."""
        fields = headers.HeaderFields(server_id=header["server_id"], timestamp=header["timestamp"])
        if is_last:
            self._put_own(control.encode_stop(**fields))
        else:
            rotate = control.Rotate(position=len(MAGIC), file_name=self._name(len(self.names)))
            self._put_own(control.encode_rotate(rotate, **fields))
        self.flush()
        self._disk.write(self.names[-1], len(MAGIC) + format_description.FLAGS_OFFSET, bytes(2))  # not in use
        self.is_open = False

    def write_state(self) -> None:
        """As a server does when it is stopped in order."""
        text = "".join(f"{gtid}\n" for gtid in self.state).encode()
        self._disk.create(self.state_name)
        self._disk.write(self.state_name, 0, text)

    def sync(self) -> None:
        for name in (*self.names, self.index_name, self.state_name):
            self._disk.sync(name)
        self._disk.sync_dir()

    def _name(self, number: int) -> str:
        return f"{self._stem}.{self._first_number + number:06}"

    def write_group(self, gtid_event: bytes, body: Iterable[Buffer]) -> int:
        """Write one group; returns the bytes of its events. The caller logs its GTID in `state`. Joins fragments of row
        events that a server of this profile does not know. Raises EventError: the bytes do not divide into events, or a
        server of this profile does not know one; StoreError: the file cannot be written."""
        self._group = _GroupEnd(GroupBoundary(gtid_event[GTID_FLAGS_OFFSET]))
        pieces: list[Buffer] = [gtid_event]
        size = len(gtid_event)
        body = iter(body)
        for piece in body:
            pieces.append(bytes(piece))
            size += len(piece)
            if size > SMALL_BYTES:
                break
        else:
            self._write_small(b"".join(pieces))
            self._group.expect_ended()
            return size
        size = sum(map(self._write_event, _events(chain(pieces, body))))
        self._fragments.finish()
        self._group.expect_ended()
        return size

    def place(self, kernels: Kernels, data: Any, groups: Any, first: int, file_max: int) -> int:
        """Place collected groups from row `first` on, while the file has room; returns the next row."""
        if self._out is None:
            self._out, self._numbers = scratch(OUT_BYTES), numbers(PlacedField.SIZE)
        fields = self._numbers
        here = (0, self.offset, file_max, headers.CHECKSUM_SIZE * self._has_checksums, self._says_all, self._type_max)
        fields[:] = array("q", here)
        row = kernels.place_groups(data, groups, first, len(groups), fields, kernel_roles(), self._out)
        self.flush()
        size = fields[PlacedField.OUT]
        self._disk.write(self.names[-1], self._written, memoryview(self._out)[:size])
        self._written += size
        self.offset = fields[PlacedField.FILE_OFFSET]
        return int(row)

    def _write_small(self, data: bytes) -> None:
        offset = 0
        while offset < len(data):
            header = headers.decode_event_header(data, offset)
            event = data[offset : offset + header.size]
            if len(event) < header.size:
                raise EventError(f"the events end inside an event, {header.size - len(event)} bytes early")
            if header.event_type == EventType.PARTIAL_ROW_DATA:
                self._write_event(_in_parts(event))
            else:
                self._expect_known(header)
                self._put(header, event, says_end=self._says_end(header, event))
            offset += header.size
        self._fragments.finish()
        if len(self._held) >= HELD_BYTES:
            self.flush()

    def _says_end(self, header: headers.EventHeader, event: bytes) -> bool:
        return self._group.take(header, event) or self._says_all or header.event_type == EventType.GTID

    def _write_event(self, parts: Iterator[EventPart]) -> int:
        first = next(parts)
        header = first.header
        assert header is not None
        if header.event_type == EventType.PARTIAL_ROW_DATA and header.event_type > self._profile.type_count:
            whole = self._fragments.whole_event(b"".join((first.data, *(part.data for part in parts))))
            if whole is not None:
                self._write_event(_in_parts(whole))
            return header.size
        self._expect_known(header)
        if first.is_last or (header.event_type == EventType.QUERY and header.size <= QUERY_SIZE_MAX):
            event = b"".join((first.data, *(part.data for part in parts)))
            self._put(header, event, says_end=self._says_end(header, event))
            if len(self._held) >= HELD_BYTES:
                self.flush()
            return header.size
        data: Buffer = self._placed(header, says_end=self._says_end(header, b"")) + bytes(
            first.data[headers.EVENT_HEADER_SIZE :]
        )
        checksum = zlib.crc32(data)
        self._held += data
        for part in parts:
            checksum = zlib.crc32(part.data, checksum)
            self._held += part.data
            if len(self._held) >= HELD_BYTES:
                self.flush()
        if self._has_checksums:
            self._held += headers.CHECKSUM.pack(checksum)
        return header.size

    def _expect_known(self, header: headers.EventHeader) -> None:
        if header.event_type > self._profile.type_count:
            name, version = type_name(header.event_type), self._profile.server_version
            raise EventError(f"{name} event, which MariaDB {version} does not know")
        if header.size > EVENT_SIZE_MAX:
            raise EventError(f"event of {header.size} bytes, at most {EVENT_SIZE_MAX} are read from traditional files")

    def _put_own(self, event: bytes) -> None:
        self._put(headers.decode_event_header(event), event, says_end=True)

    def _put(self, header: headers.EventHeader, event: bytes, *, says_end: bool) -> None:
        data = self._placed(header, says_end=says_end) + event[headers.EVENT_HEADER_SIZE :]
        self._held += data
        if self._has_checksums:
            self._held += headers.CHECKSUM.pack(zlib.crc32(data))

    def _placed(self, header: headers.EventHeader, *, says_end: bool) -> bytes:
        timestamp, event_type, server_id, size, _, flags = header
        size += headers.CHECKSUM_SIZE * self._has_checksums
        self.offset += size
        return headers.HEADER.pack(
            timestamp, event_type, server_id, size, self.offset & LOG_POS_MASK if says_end else 0, flags
        )

    def flush(self) -> None:
        """Raises StoreError: what is held cannot be written."""
        self._disk.write(self.names[-1], self._written, self._held)
        self._written += len(self._held)
        self._held.clear()


def _events(pieces: Iterable[Buffer]) -> Iterator[Iterator[EventPart]]:
    """Event by event, each in parts, to be taken before the next one."""
    splitter = EventSplitter()
    parts = (part for piece in pieces for part in splitter.feed(piece))
    for first in parts:
        yield _of_event(first, parts)
    splitter.finish()


class _GroupEnd:
    """Checks that readers of traditional files find the end of a group where it is."""

    def __init__(self, boundary: GroupBoundary) -> None:
        self._boundary = boundary
        self._is_begun = self._has_ended = False

    def take(self, header: headers.EventHeader, event: bytes) -> bool:
        if self._has_ended:
            raise EventError(f"{type_name(header.event_type)} event after the end of its group")
        if self._is_begun:
            self._has_ended = self._boundary.ends_with(header, event)
        self._is_begun = True
        return self._has_ended

    def expect_ended(self) -> None:
        if not self._has_ended:
            raise EventError("it has no event that ends it, as XID or COMMIT: traditional files cannot hold it")


def _in_parts(event: Buffer) -> Iterator[EventPart]:
    view, header = memoryview(event), headers.decode_event_header(event)
    for start in range(0, header.size, HELD_BYTES):
        is_last = start + HELD_BYTES >= header.size
        yield EventPart(None if start else header, view[start : start + HELD_BYTES], is_last)


def _of_event(first: EventPart, parts: Iterator[EventPart]) -> Iterator[EventPart]:
    yield first
    part = first
    while not part.is_last:
        following = next(parts, None)
        if following is None:
            return  # `finish` of the splitter raises
        part = following
        yield part
