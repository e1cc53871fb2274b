"""Faults as values: what goes wrong, where, and how often; the same seed gives the same bytes.

A fault is written as a table of TOML, or as keyword arguments: `place = "after gtid"`,
`gtid = "0-1-7"`, `action = "cut"`, and what the action needs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.place import Place

SECONDS_MAX = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultAction:
    """What goes wrong at a place. `word` names it in scenarios."""

    word: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(FaultAction):
    """End the connection: by a reset, by an orderly end, or by never sending anything again."""

    word = "cut"
    by: str = "reset"  # or "end", "silence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall(FaultAction):
    """Send nothing for a while, heartbeats neither."""

    word = "stall"
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drip(FaultAction):
    """From here on send so many bytes a second, one by one."""

    word = "drip"
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfFile(FaultAction):
    """Send the packet that ends a dump in order."""

    word = "eof"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPacket(FaultAction):
    """Send an error, and end."""

    word = "error"
    code: int = 1236
    state: str = "HY000"
    text: str = "a fault of the test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alter(FaultAction):
    """Change one byte of the event by XOR; its checksum stays as it was."""

    word = "alter"
    byte: int = -1
    bits: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shorten(FaultAction):
    """Leave out the last bytes of the event; its header still counts them."""

    word = "shorten"
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengthen(FaultAction):
    """Add zeros to the event, which its header does not count."""

    word = "lengthen"
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(FaultAction):
    """Leave the event out; a GTID event with its whole group."""

    word = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat(FaultAction):
    """Send the event twice; a GTID event with its whole group."""

    word = "repeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap(FaultAction):
    """Send the group behind the one that follows it."""

    word = "swap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header(FaultAction):
    """Give the event another timestamp, server id, end position, or flags; its checksum is made anew."""

    word = "header"
    timestamp: int | None = None
    server_id: int | None = None
    log_pos: int | None = None
    flags: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(FaultAction):
    """Send an artificial event that nobody expects there: `rotate` or `format`."""

    word = "insert"
    event: str = "rotate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mute(FaultAction):
    """From here on send no heartbeats."""

    word = "mute"


ACTIONS: dict[str, type[FaultAction]] = {
    kind.word: kind
    for kind in (
        *(Cut, Stall, Drip, EndOfFile, ErrorPacket, Alter, Shorten, Lengthen, Drop, Repeat, Swap, Header, Insert),
        Mute,
    )
}
CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    ("cut", "by"): ("reset", "end", "silence"),
    ("insert", "event"): ("rotate", "format"),
}
_COMMON = ("place", "gtid", "times", "connection", "action")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An action at a place.

    Attributes:
        times: how often it happens, over all connections; None: whenever its place comes.
        connection: the number of the dump it happens in, counted from 1; None: any.
    """

    place: Place
    action: FaultAction
    times: int | None = 1
    connection: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Self:
        """A fault from a table of a scenario.

        Raises:
            ConfigurationError: it has a key or a value that means nothing.
        """
        word, text = given.get("action"), given.get("place")
        kind = ACTIONS.get(word) if isinstance(word, str) else None
        if kind is None:
            raise ConfigurationError(f"action {word!r}: expected one of {', '.join(ACTIONS)}")
        if not isinstance(text, str):
            raise ConfigurationError(f"{word}: place {text!r}: expected words as 'after gtid'")
        gtid, times, connection = given.get("gtid"), given.get("times", 1), given.get("connection")
        if gtid is not None and not isinstance(gtid, str):
            raise ConfigurationError(f"{word}: gtid {gtid!r}: expected a text as '0-1-7'")
        return cls(
            place=Place.parse(text, gtid),
            action=_action(kind, {name: value for name, value in given.items() if name not in _COMMON}),
            times=None if times == "always" else _count(word, "times", times),
            connection=None if connection is None else _count(word, "connection", connection),
        )

    def __str__(self) -> str:
        return f"{self.action.word} {self.place}"


def _action(kind: type[FaultAction], given: Mapping[str, object]) -> FaultAction:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    unknown = next((name for name in given if name not in fields), None)
    if unknown is not None:
        raise ConfigurationError(
            f"{kind.word}: {unknown!r} means nothing here; it takes {', '.join(fields) or 'nothing'}"
        )
    missing = [name for name, field in fields.items() if field.default is dataclasses.MISSING and name not in given]
    if missing:
        raise ConfigurationError(f"{kind.word}: {missing[0]!r} is missing")
    return kind(**{name: _checked(kind.word, name, str(fields[name].type), value) for name, value in given.items()})


def _checked(word: str, name: str, wanted: str, value: object) -> object:
    choices = CHOICES.get((word, name))
    if choices is not None:
        if value not in choices:
            raise ConfigurationError(f"{word}: {name} {value!r}: expected one of {', '.join(choices)}")
        return value
    return _CHECKS[wanted.removesuffix(" | None")](word, name, value)


def _count(word: object, name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigurationError(f"{word}: {name} {value!r}: expected a number from 1 on, or for times 'always'")
    return value


def _integer(word: str, name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 32:
        raise ConfigurationError(f"{word}: {name} {value!r}: expected a whole number below 2^32")
    return value


def _number(word: str, name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= SECONDS_MAX:
        raise ConfigurationError(f"{word}: {name} {value!r}: expected a number from 0 to {SECONDS_MAX:.0f}")
    return float(value)


def _text(word: str, name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{word}: {name} {value!r}: expected a text")
    return value


_CHECKS: dict[str, Callable[[str, str, object], object]] = {"int": _integer, "float": _number, "str": _text}
