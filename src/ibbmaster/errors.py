"""Every exception of the package, and the place an error points at.

IbbMasterError
├── FormatError                bytes of an .ibb file break the format; knows where
│   ├── ChecksumError          a page or header whose CRC does not match its bytes
│   ├── HeaderError            page 0 is no header this package can read
│   ├── ChunkError             a chunk leaves its page, or has no place in its record
│   └── RecordError            the content of a whole record makes no sense
├── EventError                 bytes of a replication event break its layout
│   └── UndecodableError       ... in a value of a row; knows table, column and type
├── ClassicFormatError         bytes of a traditional binlog file break its format
│   ├── MissingEventError           no event begins where a replica wants to
│   └── GapError               files are missing between two, or they are not of one binlog
├── GtidError                  text that is no GTID or no GTID list
│   └── DuplicateDomainError   two GTIDs of one domain in a position
├── PositionError              a replica asked for a place that cannot be served
│   └── PositionPurgedError    ... because files it needs are gone
│       └── LogResetError      ... and others have taken their place
├── StoreError                 a directory cannot be read or written as a binlog
│   ├── MissingFileError       a binlog file that must be there is not
│   ├── DiskFullError          no room on the disk; the same call may succeed later
│   ├── BusyError              another process has the directory, or a reader still needs what should go
│   ├── FailedError            the disk failed before: nothing is written until the store is opened again
│   ├── GtidOrderError         a GTID that is not newer than what its domain has
│   │   └── DuplicateGtidError ... of a group that the log has already, event for event
│   └── DamageError            recovery found what no crash leaves behind
├── RemoteProtocolError        the peer broke the conversation; drop it
│   ├── PacketOrderError       ... by numbering its packets wrongly
│   └── PacketTooLargeError    ... by announcing more than it may send
├── LocalProtocolError         our own code broke the conversation; fix it
├── StageError                 a group cannot go through a stage without a guess
├── SourceError                a primary that is read cannot be reached, refuses, or breaks off
├── InexactError               rows have changed in ways that the log does not say
└── ConfigurationError         an option or a configuration file cannot be used
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PATH = re.compile(r"""(?<![\w./-])/(?:[^/\s'":,;()]+/)*([^/\s'":,;()]*)""")  # an absolute one, and its last part


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in an `.ibb` file: file number, page number, byte in the page; all count from 0."""

    file_no: int
    page_no: int
    page_offset: int = 0

    def __str__(self) -> str:
        return f"binlog-{self.file_no:06d}.ibb page {self.page_no} offset {self.page_offset}"


class IbbMasterError(Exception):
    """What this package raises on purpose; catch it to catch them all."""


class FormatError(IbbMasterError):
    """The bytes at `location` break the file format."""

    def __init__(self, location: Location, problem: str) -> None:
        super().__init__(location, problem)  # both, or it does not survive pickling
        self.location = location
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.location}: {self.problem}"


class ChecksumError(FormatError):
    """The checksum stored at `location` is not that of the bytes it covers."""


class HeaderError(FormatError):
    """Page 0 is not a file header that can be read."""


class ChunkError(FormatError):
    """A chunk reaches past its page, or does not fit into the record around it."""


class RecordError(FormatError):
    """A record was put together, but its content makes no sense."""


class EventError(IbbMasterError):
    """The bytes of a replication event break the layout of its type."""


class UndecodableError(EventError):
    """A value of a row cannot be read."""

    def __init__(self, table: str, column: str, type_name: str, problem: str) -> None:
        super().__init__(table, column, type_name, problem)
        self.table = table
        self.column = column
        self.type_name = type_name
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.table} column {self.column} of type {self.type_name}: {self.problem}"


class ClassicFormatError(IbbMasterError):
    """The bytes of a traditional binlog file break its format."""

    def __init__(self, file_name: str, file_offset: int, problem: str) -> None:
        super().__init__(file_name, file_offset, problem)
        self.file_name = file_name
        self.file_offset = file_offset
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.file_name} offset {self.file_offset}: {self.problem}"


class MissingEventError(ClassicFormatError):
    """No event begins at an offset that a replica has named; `event_size` is what the bytes there say of one. None:
    there is no whole header. `is_cut`: the file ends before one of that size."""

    def __init__(
        self, file_name: str, file_offset: int, problem: str, event_size: int | None = None, is_cut: bool = False
    ) -> None:
        super().__init__(file_name, file_offset, problem)
        self.args = (file_name, file_offset, problem, event_size, is_cut)
        self.event_size = event_size
        self.is_cut = is_cut


class GapError(ClassicFormatError):
    """A file does not continue the one before it; `gap` says what is missing in words for a replica."""

    def __init__(self, file_name: str, file_offset: int, problem: str, gap: str) -> None:
        super().__init__(file_name, file_offset, problem)
        self.args = (file_name, file_offset, problem, gap)
        self.gap = gap


class GtidError(IbbMasterError):
    """The text is no GTID, or no list of GTIDs."""


class DuplicateDomainError(GtidError):
    """A GTID position names one domain twice."""

    def __init__(self, later: str, earlier: str, domain_id: int) -> None:
        super().__init__(later, earlier, domain_id)
        self.later = later
        self.earlier = earlier
        self.domain_id = domain_id

    def __str__(self) -> str:
        return f"GTID {self.later} and {self.earlier} conflict (duplicate domain id {self.domain_id})"


class PositionError(IbbMasterError):
    """The GTID position a replica asked for cannot be served."""


class PositionPurgedError(PositionError):
    """The position is older than the oldest file: make the replica anew from a backup."""


class LogResetError(PositionPurgedError):
    """The log that was read is there no longer, and another one in its place: ask that one."""


class StageError(IbbMasterError):
    """A group cannot go through a stage: that would take a guess, or a number that no GTID has; the text says why."""


class SourceError(IbbMasterError):
    """A primary that is read cannot be reached, refuses, or breaks off."""


class InexactError(IbbMasterError):
    """A table cannot be rebuilt exactly; `doubts` say since which GTID and why."""

    def __init__(self, table: str, doubts: list[str]) -> None:
        super().__init__(table, doubts)
        self.table = table
        self.doubts = doubts

    def __str__(self) -> str:
        more = f" (and {len(self.doubts) - 1} more reasons)" if len(self.doubts) > 1 else ""
        return f"{self.table}: {self.doubts[0]}{more}; --accept-inexact takes it as it is, and lists them"


class StoreError(IbbMasterError):
    """A directory cannot be read or written as a binlog."""


class MissingFileError(StoreError):
    """A binlog file that other files need is not in the directory."""


class DiskFullError(StoreError):
    """There is no room on the disk. Nothing was lost; the same call may succeed later."""


class BusyError(StoreError):
    """Another process has the directory, or a reader still needs what should be removed."""


class FailedError(StoreError):
    """The disk failed before, so nothing is written any more until the store is opened again."""


class GtidOrderError(StoreError):
    """A group was not taken: its GTID is not newer than what the log has of its domain."""


class DuplicateGtidError(GtidOrderError):
    """A group was not taken: the log has it already, with the same events."""


class DamageError(StoreError):
    """Recovery found what no crash leaves behind, and changes nothing."""


class RemoteProtocolError(IbbMasterError):
    """The peer sent what the conversation does not allow; drop this peer."""


class PacketOrderError(RemoteProtocolError):
    """A packet has another sequence number than the one that is due."""


class PacketTooLargeError(RemoteProtocolError):
    """A packet announces more bytes than its receiver takes."""


class LocalProtocolError(IbbMasterError):
    """Our own code asked for what the conversation does not allow; this is a bug."""


class ConfigurationError(IbbMasterError):
    """An option, a configuration file or a credential cannot be used."""


def without_paths(text: str) -> str:
    """The text of an error as it may be shown to clients on other machines: of paths the last part is left."""
    return _PATH.sub(lambda match: match[1], text)
