"""Faults as values. One is written as a table of TOML, as keyword arguments, or as a line: `place = "after gtid"`,
`gtid = "0-1-7"`, `action = "cut"`, and what the action needs; or `cut after gtid; gtid=0-1-7`."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import threading
import tomllib
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import Gtid
from .action import ACTIONS, BOUNDS, CHOICES, NUMBER_MAX, TEXT_SIZES, FaultAction, PrimaryAction
from .given import expect, naming, only, shown
from .place import OF_CONVERSATION, Landmark, Place, Side

FAULTS_MAX = 10_000
RECORDS_MAX = 100_000
EVENT_KEPT_MAX = 4096  # bytes


TEXT_SIZE_MAX = 4000
LINE_SIZE_MAX = 4000
_WHERE = {"place": str | None, "at": float | None, "gtid": str | None, "sql": str | None}
_COMMON = (*_WHERE, "replica", "times", "connection", "action")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """An action at a place, or at a time.

    Attributes:
        place: None: second `at` of the scenario's clock.
        replica: the server id of the dump; None: any.
        connection: the number, from 1, of the dump, or of the connection before it asks for one; None: any.
        times: how often, over all connections; None: always.
    """

    place: Place | None
    at: float | None = None
    action: FaultAction
    replica: int | None = None
    connection: int | None = None
    times: int | None = 1

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Self:
        """Raises ConfigurationError: a key or a value means nothing."""
        word = given.get("action")
        kind = ACTIONS.get(word) if isinstance(word, str) else None
        if kind is None:
            raise ConfigurationError(f"action {shown(word)}: expected one of {', '.join(ACTIONS)}")
        text, at, gtid, sql = (_checked(kind, name, wanted, given.get(name)) for name, wanted in _WHERE.items())
        counts = {name: _count(kind, name, given[name]) for name in ("replica", "connection", "times") if name in given}
        action = _action(kind, {name: value for name, value in given.items() if name not in _COMMON})
        fault = cls(place=_place(kind, text, at, gtid, sql), at=at, action=action, **counts)
        fault._check()
        return fault

    @classmethod
    def parse(cls, line: str) -> Self:
        """A fault from a line as `cut after gtid; gtid=0-1-7; by=end`; errors as `of`."""
        return cls.of(table_of(line))

    def _check(self) -> None:
        word, place = self.action.word, self.place
        if place is None:
            if not isinstance(self.action, PrimaryAction):
                raise ConfigurationError(f"{word}: it needs a place; only what concerns the whole primary has a time")
            return
        if place.landmark in OF_CONVERSATION:
            allowed = self.action.in_conversation and (place.landmark, place.side) not in self.action.not_at
        else:
            allowed = place.side in self.action.sides
        if not allowed:
            sides = ", ".join(side.value for side in Side if side in self.action.sides)
            places = [f"{sides} an event"] if sides else []
            if self.action.in_conversation:
                places.append(
                    "a step of the conversation that can be answered" if self.action.not_at else "any step before"
                )
            raise ConfigurationError(f"{word}: it cannot happen '{place}': expected {', or '.join(places)}")
        if place.landmark is not Landmark.GTID and self.action.word == "swap":
            raise ConfigurationError("swap: it is about whole groups: expected the place 'at gtid'")

    def __str__(self) -> str:
        return f"{self.action.word} {self.place or f'at {self.at:g} s'}"


def table_of(line: str) -> dict[str, object]:
    """Raises ConfigurationError: it is no fault."""
    if len(line) > LINE_SIZE_MAX:
        raise ConfigurationError(f"a fault of {len(line)} characters: expected at most {LINE_SIZE_MAX}")
    first, *rest = (part.strip() for part in line.split(";"))
    word = next((word for word in sorted(ACTIONS, key=len, reverse=True) if f"{first} ".startswith(f"{word} ")), "")
    if not word:
        raise ConfigurationError(f"{shown(first)}: expected an action first: one of {', '.join(ACTIONS)}")
    given: dict[str, object] = {"action": word}
    if place := first[len(word) :].strip():
        given["place"] = place
    hints = typing.get_type_hints(ACTIONS[word])
    texts = {"gtid", "sql", *(name for name, hint in hints.items() if hint is str or str in typing.get_args(hint))}
    for part in filter(None, rest):
        key, is_pair, value = part.partition("=")
        if not is_pair:
            raise ConfigurationError(f"{word}: {shown(part)}: expected key=value")
        given[key.strip()] = _value(value.strip(), is_text=key.strip() in texts)
    return given


def _place(
    kind: type[FaultAction], text: str | None, at: float | None, gtid: str | None, sql: str | None
) -> Place | None:
    if (text is None) == (at is None):
        raise ConfigurationError(
            f"{kind.word}: expected a place as 'after gtid', or at, seconds on the clock: one of both"
        )
    with naming(kind.word):
        gtid = None if gtid is None else str(Gtid.parse(gtid))
        return None if text is None else Place.parse(text, gtid=gtid, sql=sql)


def _action(kind: type[FaultAction], given: Mapping[str, object]) -> FaultAction:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    needed = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
    only(kind.word, given, fields, needed)
    return kind(**{name: _checked(kind, name, hints[name], value) for name, value in given.items()})


def _checked(kind: type[FaultAction], name: str, wanted: object, value: Any) -> Any:
    choices = CHOICES.get((kind.word, name))
    if choices is not None and value not in choices:
        raise ConfigurationError(f"{kind.word}: {name} {shown(value)}: expected one of {', '.join(choices)}")
    checked = expect(f"{kind.word}: {name}", wanted, value)
    if checked is None or isinstance(checked, bool):
        return checked
    if isinstance(checked, str):
        low, high = TEXT_SIZES.get((kind.word, name), (0, TEXT_SIZE_MAX))
        size, expected = len(checked), "five characters" if low == high == 5 else f"a text of up to {high} characters"
    else:
        low, high = BOUNDS.get((kind.word, name), (0, NUMBER_MAX))
        size, expected = checked, f"a number from {low} to {high}"
    if not low <= size <= high:
        raise ConfigurationError(f"{kind.word}: {name} {shown(value)}: expected {expected}")
    return checked


def _count(kind: type[FaultAction], name: str, value: object) -> int | None:
    if name == "times" and value == "always":
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 1 << 32:
        always = ", or 'always'" if name == "times" else ""
        raise ConfigurationError(f"{kind.word}: {name} {shown(value)}: expected a number from 1 on{always}")
    return value


def _value(text: str, *, is_text: bool) -> object:
    if is_text and not text.startswith(("'", '"')):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    fault: PlannedFault
    connection_id: int | None = None  # None: it happened at a time, to the whole primary
    sent_bytes: int = 0  # of the dump, to the client, before it
    gtid: str | None = None  # of the stream's group
    event: bytes = b""  # as it would have been sent, its first 4096 bytes
    problem: str = ""  # why it could not happen


class FaultPlan:
    """Faults in the order of their planning. The same seed and faults give the same bytes."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.done: list[FaultRecord] = []
        self._lock = threading.Lock()
        self._pending: tuple[PlannedFault, ...] = ()
        self._begun: list[PlannedFault] = []

    @property
    def pending(self) -> tuple[PlannedFault, ...]:
        """The faults to come; `times` counts what is left."""
        return self._pending

    def add_fault(self, fault: PlannedFault) -> PlannedFault:
        """Plan a fault, also for running dumps. Raises ConfigurationError: too many are planned."""
        with self._lock:
            if len(self._pending) >= FAULTS_MAX:
                raise ConfigurationError(f"{FAULTS_MAX} faults are planned already: expected fewer")
            self._pending += (fault,)
        return fault

    def clear(self) -> None:
        """Plan nothing more; what began continues."""
        with self._lock:
            self._pending = ()

    def take(self, is_due: Callable[[PlannedFault], bool]) -> list[PlannedFault]:
        """The faults due now; each has one time less left."""
        if not any(map(is_due, self._pending)):
            return []
        due, kept = [], []
        with self._lock:
            for fault in self._pending:
                if not is_due(fault):
                    kept.append(fault)
                    continue
                due.append(fault)
                if isinstance(fault.action, PrimaryAction):
                    self._begun.append(fault)
                if fault.times is None:
                    kept.append(fault)
                elif fault.times > 1:
                    kept.append(replace(fault, times=fault.times - 1))
            self._pending = tuple(kept)
        return due

    @property
    def unfinished(self) -> list[PlannedFault]:
        """The faults that are to come once at a place, or are happening to the whole primary."""
        waiting = [fault for fault in self._pending if fault.times is not None and fault.place is not None]
        return [*waiting, *self._begun]

    def finish(self, fault: PlannedFault) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._begun.remove(fault)

    def note(self, record: FaultRecord) -> None:
        if len(self.done) < RECORDS_MAX:
            self.done.append(replace(record, event=record.event[:EVENT_KEPT_MAX]))

    def random_bytes(self, fault: PlannedFault, count: int) -> bytes:
        return random.Random(f"{self.seed} {fault}").randbytes(count)
