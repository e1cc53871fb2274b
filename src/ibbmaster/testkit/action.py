"""What goes wrong at a place: every action as a frozen value, and where it can happen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, dataclass_transform

from ibbmaster.facts import rows_of
from .fixture_logs import TORN
from .incident import Incidents
from .malformed import MALFORMATIONS
from .place import Landmark, Side

BORDERS = frozenset((Side.BEFORE, Side.AFTER))
ANYWHERE = BORDERS | {Side.INSIDE}
EVENTS = frozenset((Side.AT,))
#: Steps of a conversation at which nothing else can be sent instead.
UNANSWERED = frozenset(
    (
        (Landmark.GREETING, Side.AFTER),
        (Landmark.TLS, Side.BEFORE),
        (Landmark.STATEMENT, Side.AFTER),
        (Landmark.REGISTRATION, Side.AFTER),
    )
)
ACTIONS: dict[str, type[FaultAction]] = {}  # by their words
LOGIN = frozenset(((Landmark.HANDSHAKE, Side.BEFORE), (Landmark.LOGIN, Side.BEFORE)))


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class FaultAction:
    """What goes wrong. `word` names it in scenarios; it can happen on these `sides` of an event or a packet, and, if
    `in_conversation`, at each step but those in `not_at`."""

    word: ClassVar[str]
    sides: ClassVar[frozenset[Side]] = EVENTS
    in_conversation: ClassVar[bool] = False
    not_at: ClassVar[frozenset[tuple[Landmark, Side]]] = frozenset()

    def __init_subclass__(cls, **told: object) -> None:
        """Make each kind of action a dataclass, with these class attributes."""
        for name, value in told.items():
            setattr(cls, name, value)
        dataclass(frozen=True, kw_only=True)(cls)
        if "word" in told:
            ACTIONS[cls.word] = cls


class CutConnection(FaultAction, word="cut", sides=ANYWHERE, in_conversation=True):
    """End the connection: `by` a "reset" (RST), an orderly "end" (FIN), or "silence", which never ends."""

    by: str = "reset"


class Stall(FaultAction, word="stall", sides=ANYWHERE, in_conversation=True):
    """Send nothing for `seconds`, heartbeats neither."""

    seconds: float


class Drip(FaultAction, word="drip", sides=ANYWHERE):
    """From here on send `bytes_per_s` bytes a second, one by one; 0 sends at full speed again."""

    bytes_per_s: float


class MuteHeartbeats(FaultAction, word="mute", sides=BORDERS):
    """From here on send no heartbeats in this dump."""


class EndDump(FaultAction, word="eof", sides=BORDERS, in_conversation=True, not_at=UNANSWERED | LOGIN):
    """Send the packet that ends a dump in order, and close; to a statement it is the answer."""


class SendError(FaultAction, word="error", sides=BORDERS, in_conversation=True, not_at=UNANSWERED):
    """Send an error of this `code`, `state` and `text`, and end."""

    code: int = 1236
    state: str = "HY000"
    text: str = "a fault of the test"


class AnswerOtherwise(FaultAction, word="answer", sides=frozenset(), in_conversation=True, not_at=UNANSWERED | LOGIN):
    """Answer a statement with one row of one column, `value`, instead."""

    value: str


class SendGarbage(FaultAction, word="garbage", sides=ANYWHERE, in_conversation=True):
    """Send `count` random bytes that are not a packet; the seed decides which."""

    count: int = 64


class KillConnection(FaultAction, word="kill", sides=BORDERS, in_conversation=True):
    """KILL it; with `query` true KILL QUERY, which ends a dump in order, and a statement by error 1317."""

    query: bool = False


class TakeOver(FaultAction, word="newer dump", sides=BORDERS):
    """End the dump as a newer dump of the same server id does."""


class FlipBits(FaultAction, word="alter"):
    """Change a `byte` of the event by XOR with `bits`; -1 is the last one. Its checksum stays as it was."""

    byte: int = -1
    bits: int = 1


class SpoilChecksum(FaultAction, word="checksum"):
    """Make the event's checksum "wrong", "missing", or "unexpected": there where the stream has none."""

    be: str = "wrong"


class ShortenEvent(FaultAction, word="shorten"):
    """Leave out the last `count` bytes of the event; its header still counts them."""

    count: int = 1


class LengthenEvent(FaultAction, word="lengthen"):
    """Add `count` zeros to the event, which its header does not count."""

    count: int = 1


class LeaveOut(FaultAction, word="drop"):
    """Leave the event out; at a GTID event the whole group, which makes a gap."""


class SendTwice(FaultAction, word="repeat"):
    """Send the event twice; at a GTID event the whole group."""


class SwapGroups(FaultAction, word="swap"):
    """At a GTID event: send the group after the one that follows it."""


class ChangeHeader(FaultAction, word="header"):
    """Give the event another `timestamp`, `server_id`, `log_pos`, `flags` or `event_type`, and a right checksum."""

    timestamp: int | None = None
    server_id: int | None = None
    log_pos: int | None = None
    flags: int | None = None
    event_type: int | None = None


class SpoilEvent(FaultAction, word="malform"):
    """Let the event `be` one whose parts contradict each other, as in [malformed events](#malformed-events)."""

    be: str = "hidden event"


class InsertEvent(FaultAction, word="insert", sides=BORDERS):
    """Send an unexpected `event`: "rotate" to `file` and `position`, "format", "heartbeat", or "stop"."""

    event: str = "rotate"
    file: str = "elsewhere.000001"
    position: int = 4


class PrimaryAction(FaultAction, ABC, sides=ANYWHERE, in_conversation=True):
    """What happens to the whole primary, at a place or at a time."""

    @abstractmethod
    def happen(self, primary: Incidents) -> None:
        """Do it; this may take as long as it says."""


class CrashPrimary(PrimaryAction, word="crash"):
    """Reset all connections, close the port, recover a log that is `torn`; `closed_s` seconds later listen again."""

    closed_s: float = 0.0
    torn: str | None = None

    def happen(self, primary: Incidents) -> None:
        primary.crash(self.torn)
        primary.restart(self.closed_s)


class RestartPrimary(PrimaryAction, word="restart"):
    """Shut down in order; `closed_s` seconds later listen again, as another `profile` or version if given."""

    closed_s: float = 0.0
    profile: str | None = None

    def happen(self, primary: Incidents) -> None:
        primary.stop()
        primary.restart(self.closed_s, profile=self.profile)


class PurgeFiles(PrimaryAction, word="purge"):
    """Remove every file of the log but the newest; dumps that read them are reset, and find their place purged."""

    def happen(self, primary: Incidents) -> None:
        primary.purge()


class FailOver(PrimaryAction, word="failover"):
    """From now on another primary is there: it lacks the last `lose` groups, and has `add` groups of its own."""

    lose: int = 0
    add: int = 0
    server_id: int | None = None

    def happen(self, primary: Incidents) -> None:
        primary.fail_over(lose=self.lose, add=self.add, server_id=self.server_id)


class MoveClock(PrimaryAction, word="clock"):
    """Let the primary's clock jump by `seconds`, back if negative."""

    seconds: float

    def happen(self, primary: Incidents) -> None:
        primary.clock.advance(self.seconds)


CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    ("cut", "by"): ("reset", "end", "silence"),
    ("checksum", "be"): ("wrong", "missing", "unexpected"),
    ("crash", "torn"): TORN,
    ("malform", "be"): MALFORMATIONS,
    ("insert", "event"): ("rotate", "format", "heartbeat", "stop"),
}
NUMBER_MAX = 3600
#: The bounds of numbers other than 0 and `NUMBER_MAX`.
BOUNDS = {(word, key): (int(low), int(high)) for word, key, low, high in rows_of(__package__, "action_bounds")}
TEXT_SIZES: dict[tuple[str, str], tuple[int, int]] = {("error", "state"): (5, 5), ("insert", "file"): (0, 511)}
