"""Places in what a replica is sent, named by what they mean."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.table_map import ROW_EVENT_TYPES
from ibbmaster.event.types import EventType


class Part(enum.Enum):
    """What an event is to a stream."""

    OPENING_ROTATE = "opening rotate"
    OPENING_FORMAT = "opening format description"
    OPENING_GTID_LIST = "opening gtid list"
    GTID = "gtid"
    ANNOTATE = "annotate"
    TABLE_MAP = "table map"
    ROWS = "rows"
    STATEMENT = "statement"
    COMMIT = "commit"  # XID, XA PREPARE, or the statement that ends a group
    FILE_END = "file end"  # the ROTATE or STOP at the end of a traditional file
    FORMAT = "format description"
    HEARTBEAT = "heartbeat"
    EVENT = "event"  # any at all


class Side(enum.Enum):
    """Where a place is to its event."""

    BEFORE = "before"
    INSIDE = "inside"
    AFTER = "after"


_PARTS: dict[int, Part] = {
    EventType.GTID: Part.GTID,
    EventType.ANNOTATE_ROWS: Part.ANNOTATE,
    EventType.TABLE_MAP: Part.TABLE_MAP,
    EventType.XID: Part.COMMIT,
    EventType.XA_PREPARE: Part.COMMIT,
    EventType.QUERY: Part.STATEMENT,
    EventType.QUERY_COMPRESSED: Part.STATEMENT,
    EventType.EXECUTE_LOAD_QUERY: Part.STATEMENT,
    EventType.ROTATE: Part.FILE_END,
    EventType.STOP: Part.FILE_END,
    EventType.FORMAT_DESCRIPTION: Part.FORMAT,
    EventType.HEARTBEAT: Part.HEARTBEAT,
    **dict.fromkeys(ROW_EVENT_TYPES, Part.ROWS),
}
_OPENING = {
    Part.FILE_END: Part.OPENING_ROTATE,
    Part.FORMAT: Part.OPENING_FORMAT,
}
_TEXT = re.compile(
    r"(?P<side>before|inside|after) (?P<part>[a-z ]+?)(?: (?P<nth>[1-9][0-9]{0,8}))?"
    r"(?: at byte (?P<byte>-?[0-9]{1,9}))?"
)


def part_of(event_type: int, *, is_opening: bool, ends_group: bool) -> Part:
    """What an event of a type is; `is_opening`: no group came yet, `ends_group`: it is the last of one."""
    if is_opening and event_type == EventType.GTID_LIST:
        return Part.OPENING_GTID_LIST
    part = _PARTS.get(event_type, Part.EVENT)
    if is_opening:
        return _OPENING.get(part, part)
    return Part.COMMIT if ends_group and part is not Part.ROWS else part


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a stream: `before commit`, `after rows 2`, `inside table map at byte 12`.

    Attributes:
        nth: the how-manieth event of its part: of its group with `gtid`, else of the stream.
        byte: of the event, header included, from its end if negative; only inside.
        gtid: the group it is in; None: any.
    """

    side: Side
    part: Part
    nth: int = 1
    byte: int | None = None
    gtid: str | None = None

    @classmethod
    def parse(cls, text: str, gtid: str | None = None) -> Place:
        """A place from its words.

        Raises:
            ConfigurationError: they name none.
        """
        match = _TEXT.fullmatch(text.strip().lower())
        parts = {part.value: part for part in Part}
        if match is None or match["part"] not in parts:
            expected = f"before, inside or after, and one of: {', '.join(parts)}; then a number, or 'at byte n'"
            raise ConfigurationError(f"{text!r} is no place in a stream: expected {expected}")
        side = Side(match["side"])
        if (match["byte"] is not None) != (side is Side.INSIDE):
            raise ConfigurationError(f"{text!r}: a place inside an event needs 'at byte n', and no other has it")
        return cls(
            side=side,
            part=parts[match["part"]],
            nth=int(match["nth"] or 1),
            byte=None if match["byte"] is None else int(match["byte"]),
            gtid=gtid,
        )

    def __str__(self) -> str:
        number = f" {self.nth}" if self.nth != 1 else ""
        byte = "" if self.byte is None else f" at byte {self.byte}"
        group = "" if self.gtid is None else f" of {self.gtid}"
        return f"{self.side.value} {self.part.value}{number}{byte}{group}"
