"""Every exception of the package."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from .position import LogPosition

_PATH = re.compile(r"""(?<![\w./-])/(?:[^/\s'":,;()]+/)*([^/\s'":,;()]*)""")  # an absolute one, and its last part


class IbbMasterError(Exception):
    """The base of all errors that this package raises on purpose."""


class FieldsError(IbbMasterError):
    """An error made of fields: a dataclass that survives pickling."""

    def __post_init__(self) -> None:
        self.args = tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


@dataclass(eq=False, repr=False)
class FormatError(FieldsError):
    """The bytes of an `.ibb` file at `location` break the file format."""

    location: LogPosition
    problem: str

    def __str__(self) -> str:
        return f"{self.location}: {self.problem}"


class ChecksumError(FormatError):
    """The checksum at `location` is not that of the bytes it covers."""


class HeaderError(FormatError):
    """Page 0 is no file header that this package can read."""


class ChunkError(FormatError):
    """A chunk leaves its page, or does not fit into the record around it."""


class RecordError(FormatError):
    """The content of a whole record makes no sense."""


class EventError(FieldsError):
    """The bytes of a replication event break the layout of its type."""


@dataclass(eq=False, repr=False)
class UndecodableError(EventError):
    """A value of a row cannot be read."""

    table: str
    column: str
    type_name: str
    problem: str

    def __str__(self) -> str:
        return f"{self.table} column {self.column} of type {self.type_name}: {self.problem}"


@dataclass(eq=False, repr=False)
class ClassicFormatError(FieldsError):
    """The bytes of a traditional binlog file break its format."""

    file_name: str
    file_offset: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file_name} offset {self.file_offset}: {self.problem}"


@dataclass(eq=False, repr=False)
class MissingEventError(ClassicFormatError):
    """No event begins at an offset that a replica has named."""

    event_size: int | None = None  # as the bytes there say; None: no whole header
    is_cut: bool = False  # the file ends before an event of that size


@dataclass(eq=False, repr=False)
class GapError(ClassicFormatError):
    """A file does not continue the one before it."""

    gap: str  # the missing part, in words for a replica


class GtidError(FieldsError):
    """The text is no GTID, or no list of GTIDs."""


@dataclass(eq=False, repr=False)
class DuplicateDomainError(GtidError):
    """A GTID position names one domain twice."""

    later: str
    earlier: str
    domain_id: int

    def __str__(self) -> str:
        return f"GTID {self.later} and {self.earlier} conflict (duplicate domain id {self.domain_id})"


class PositionError(IbbMasterError):
    """The GTID position a replica asked for cannot be served."""


class PositionPurgedError(PositionError):
    """The position is older than the oldest file: rebuild the replica from a backup."""


class LogResetError(PositionPurgedError):
    """Another log has replaced the one being read."""


class StageError(IbbMasterError):
    """A group cannot pass a stage without a guess, or without a number that no GTID has; the text says why."""


class SourceError(IbbMasterError):
    """A primary that is read cannot be reached, refuses, or breaks off."""


class RefusedSourceError(SourceError):
    """A primary has no log to follow, or one with another history."""


class RestoreError(IbbMasterError):
    """A database cannot be brought to a position, or stopped on the way; the text says where it is and what to do."""


@dataclass(eq=False, repr=False)
class InexactError(FieldsError):
    """A table cannot be rebuilt exactly; `doubts` say since which GTID and why."""

    table: str
    doubts: list[str]

    def __str__(self) -> str:
        more = f" (and {len(self.doubts) - 1} more reasons)" if len(self.doubts) > 1 else ""
        return f"{self.table}: {self.doubts[0]}{more}; --accept-inexact takes it as it is, and lists them"


class StoreError(IbbMasterError):
    """A directory cannot be read or written as a binlog."""


class MissingFileError(StoreError):
    """A binlog file that other files need is not in the directory."""


class DiskFullError(StoreError):
    """The disk has no room. Nothing was lost; the same call may succeed later."""


class BusyError(StoreError):
    """Another process has the directory, or a reader still needs the file to remove."""


class FailedError(StoreError):
    """The disk failed before; the store writes nothing until it is opened again."""


class GtidOrderError(StoreError):
    """The log refused a group whose GTID is not newer than those of its domain."""


class DuplicateGtidError(GtidOrderError):
    """The log refused a group that it has already, event for event."""


class DamageError(StoreError):
    """Recovery found damage that no crash causes, and changes nothing."""


class RemoteProtocolError(IbbMasterError):
    """The peer broke the protocol; drop this peer."""


class PacketOrderError(RemoteProtocolError):
    """A packet has an unexpected sequence number."""


class PacketTooLargeError(RemoteProtocolError):
    """A packet announces more bytes than its receiver takes."""


class LocalProtocolError(IbbMasterError):
    """Our own code broke the protocol; this is a bug."""


class ConfigurationError(IbbMasterError):
    """An option, a configuration file or a credential cannot be used."""


def without_paths(text: str) -> str:
    """The text of an error for clients on other machines: with the last part of each path only."""
    return _PATH.sub(lambda match: match[1], text)
