"""Places in a conversation and in the stream after it."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from ibbmaster.errors import ConfigurationError
from ibbmaster.facts import NULL, rows_of
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES
from ibbmaster.replication.event.types import EventType

TEXT_SIZE_MAX = 1000


class Landmark(enum.Enum):
    """A step of the conversation, or an event of the stream."""

    HANDSHAKE = "handshake"
    GREETING = "greeting"
    TLS = "tls"
    LOGIN = "login"
    STATEMENT = "statement"
    REGISTRATION = "registration"
    DUMP = "dump"
    OPENING_ROTATE = "opening rotate"
    OPENING_FORMAT = "opening format description"
    OPENING_GTID_LIST = "opening gtid list"
    GTID = "gtid"
    ANNOTATE = "annotate"
    TABLE_MAP = "table map"
    ROWS = "rows"
    QUERY = "query"
    COMMIT = "commit"
    FILE_END = "file end"
    FORMAT = "format description"
    HEARTBEAT = "heartbeat"
    EVENT = "event"
    PACKET = "packet"


class Side(enum.Enum):
    """The side of a landmark; `AT` is the event itself."""

    BEFORE = "before"
    INSIDE = "inside"
    AFTER = "after"
    AT = "at"


_ROWS = [(Landmark(word), sides, what, types) for word, sides, what, types in rows_of(__package__, "landmarks")]
#: Landmark -> the sides on which it has places, and its meaning.
LANDMARKS: dict[Landmark, tuple[frozenset[Side], str]] = {
    landmark: (frozenset(map(Side, sides.split())), meaning) for landmark, sides, meaning, _ in _ROWS
}
OF_CONVERSATION = frozenset(list(Landmark)[: list(Landmark).index(Landmark.OPENING_ROTATE)])
_OPENING: dict[int, Landmark] = {}
_OF_TYPE: dict[int, Landmark] = dict.fromkeys(ROW_EVENT_TYPES, Landmark.ROWS)
for _landmark, _, _, _types in _ROWS:
    _known = _OPENING if _landmark.value.startswith("opening ") else _OF_TYPE
    _known |= {EventType[name]: _landmark for name in _types.split() if name != NULL}
_TEXT = re.compile(
    r"(?P<side>before|inside|after|at) (?P<landmark>[a-z ]+?)(?: (?P<nth>[1-9][0-9]{0,8}))?"
    r"(?: at byte (?P<byte>-?[0-9]{1,9}))?"
)


def landmark_of(
    event_type: int, *, is_opening: bool, ends_group: bool = False, is_artificial: bool = False
) -> Landmark:
    """The landmark of an event: `is_opening` before the first group and the first end of a file, `ends_group` for the
    last of a group, `is_artificial` if no file has it, as a ROTATE at the start of a stream or of each file in it."""
    if event_type == EventType.ROTATE and is_artificial != is_opening:
        return Landmark.EVENT if is_artificial else Landmark.FILE_END
    if is_opening and event_type in _OPENING:
        return _OPENING[event_type]
    return Landmark.COMMIT if ends_group else _OF_TYPE.get(event_type, Landmark.EVENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place as `before commit`, `after rows 2`, `inside table map at byte 12`, `before statement`.

    Attributes:
        nth: number among its kind: in its group with `gtid`, in the connection during a conversation, else in the dump;
            None: any.
        byte: of the event with its header, or of the packet; negative from its end. Only inside.
        gtid: its group; None: any.
        sql: a text in the statement, in any case; None: any.
    """

    side: Side
    landmark: Landmark
    nth: int | None = None
    byte: int | None = None
    gtid: str | None = None
    sql: str | None = None

    @classmethod
    def parse(cls, text: str, *, gtid: str | None = None, sql: str | None = None) -> Place:
        """A place from its words. Raises ConfigurationError: they name none."""
        match = _TEXT.fullmatch(text.strip().lower()) if len(text) <= TEXT_SIZE_MAX else None
        landmarks = {landmark.value: landmark for landmark in Landmark}
        if match is None or match["landmark"] not in landmarks:
            expected = f"before, inside, after or at, and one of: {', '.join(landmarks)}; then a number, or 'at byte n'"
            raise ConfigurationError(f"{text[:80]!r} is no place: expected {expected}")
        side, landmark = Side(match["side"]), landmarks[match["landmark"]]
        sides = LANDMARKS[landmark][0]
        if side not in sides:
            expected = " or ".join(choice.value for choice in Side if choice in sides)
            raise ConfigurationError(f"{text!r} is no place: expected {expected} {landmark.value}")
        if (match["byte"] is not None) != (side is Side.INSIDE):
            raise ConfigurationError(f"{text!r}: a place inside an event needs 'at byte n', and no other has it")
        if gtid is not None and (landmark in OF_CONVERSATION or landmark is Landmark.PACKET):
            raise ConfigurationError(f"{text!r} is in no group: it takes no gtid")
        if sql is not None and landmark is not Landmark.STATEMENT:
            raise ConfigurationError(f"{text!r} is at no statement: it takes no sql")
        return cls(
            side=side,
            landmark=landmark,
            nth=None if match["nth"] is None else int(match["nth"]),
            byte=None if match["byte"] is None else int(match["byte"]),
            gtid=gtid,
            sql=sql,
        )

    def __str__(self) -> str:
        number = "" if self.nth is None else f" {self.nth}"
        byte = "" if self.byte is None else f" at byte {self.byte}"
        group = "" if self.gtid is None else f" of {self.gtid}"
        statement = "" if self.sql is None else f" with {self.sql!r}"
        return f"{self.side.value} {self.landmark.value}{number}{byte}{group}{statement}"
