"""The errors that answer a dump: MariaDB's code and words for the replica, ours for the log."""

from dataclasses import dataclass, replace

from ibbmaster import errors
from ibbmaster.replication.wire.response import Err

FATAL_ERROR_READING_BINLOG = 1236  # the only code that stops a replica for good; after others it connects again
EVENT_SIZE_MAX = 1 << 30  # bytes: MariaDB's limit for max_allowed_packet; it sends none that is larger
GENERAL_STATE = "HY000"


@dataclass(eq=False, repr=False)
class DumpError(errors.FieldsError):
    """`text` and `advice` go to the replica, `explanation` to our log; `kind` is a word for the figures."""

    text: str
    explanation: str
    code: int = FATAL_ERROR_READING_BINLOG
    sqlstate: str = GENERAL_STATE
    advice: str = ""
    kind: str = "other"

    def __str__(self) -> str:
        return f"error {self.code} ({self.text}): {self.explanation}"

    @property
    def log_fields(self) -> dict[str, object]:
        """What a JSON line of the log has of it."""
        return {"error": self.code, "reason": self.explanation}

    @property
    def err(self) -> Err:
        return Err(code=self.code, sqlstate=self.sqlstate, text=self.text + _in_brackets(self.advice))

    def with_place(self, place: str) -> "DumpError":
        """As a traditional primary says it."""
        return replace(self, text=self.text + place)


def reading_failed(cause: errors.IbbMasterError, *, group_place: str = "") -> DumpError:
    """Fatal to the replica too. Names the place of the damage, or else `group_place`, that of the group around it."""
    if isinstance(cause, DumpError):
        return cause
    if isinstance(cause, errors.PositionPurgedError):
        return too_old(str(cause))
    if isinstance(cause, errors.MissingEventError):
        return DumpError(_no_event_text(cause), str(cause))
    if isinstance(cause, errors.StageError):
        return DumpError(str(cause), str(cause))
    if isinstance(cause, errors.GapError):
        return DumpError(f"could not find next log ({cause.gap})", str(cause))
    if isinstance(cause, errors.ChecksumError):
        text = "event read from binlog did not pass crc check"
    elif isinstance(cause, errors.StoreError):
        text = "I/O error reading log event"
    else:
        text = "bogus data in log event"
    return DumpError(text + _in_brackets(_place(cause) or group_place or _reason(cause)), str(cause), kind="damaged")


def _no_event_text(cause: errors.MissingEventError) -> str:
    """The words of a primary that takes the bytes at an offset for an event; it adds the place itself. Source: MariaDB
    10.11, log_event.cc, Log_event::read_log_event(IO_CACHE *, ...), and sql_repl.cc, send_events()."""
    if (cause.event_size or 0) > EVENT_SIZE_MAX:
        return "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master"
    if cause.is_cut:
        return "binlog truncated in the middle of event; consider out of disk space on master"
    return "bogus data in log event"


def seeking_failed(cause: errors.IbbMasterError) -> DumpError:
    """Damage lies on the way to a replica's position."""
    if isinstance(cause, errors.PositionPurgedError):
        return too_old(str(cause))
    text = "Error while looking up GTID position in engine binlog"
    return DumpError(text + _in_brackets(_place(cause) or _reason(cause)), str(cause), kind="damaged")


def _place(cause: errors.IbbMasterError) -> str:
    if isinstance(cause, errors.FormatError):
        return str(cause.location)
    if isinstance(cause, errors.ClassicFormatError):
        return f"{cause.file_name} offset {cause.file_offset}"
    return ""


def _reason(cause: errors.IbbMasterError) -> str:
    """A replica need not know where a directory or file lies."""
    return errors.without_paths(str(cause).rpartition(": ")[2]) if isinstance(cause, errors.StoreError) else ""


def _in_brackets(place: str) -> str:
    return f" ({place})" if place else ""


def not_continuous(ended: str, begins: str) -> DumpError:
    """A fault of this server, found before it does harm."""
    places = f"{ended}, and {begins} would come next"
    return DumpError(
        f"the stream would not go on where it ended: {places}",
        f"the stream ended at {places}: nothing of that was sent; the replica may connect again, but please report it",
    )


def too_old(explanation: str) -> DumpError:
    return DumpError(
        "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and "
        "required binlog files have been purged.",
        explanation,
        kind="purged",
    )


def checksums_unknown() -> DumpError:
    return DumpError(
        "Slave can not handle replication events with the checksum that master is configured to log",
        "the client never set @master_binlog_checksum, so it does not know that events have checksums",
    )
