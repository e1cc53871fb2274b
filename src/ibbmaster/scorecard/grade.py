"""What a consumer made of a scenario, in one word: what it told against what was logged.

How it is decided:

- A change that was told is matched with one that was logged by table, kind and values. Where several are equal, the
  next one in order is taken. A change is told "again" when all that are equal to it have come.
- A flaw is a change that never came, came with other values, under another GTID, or behind a later one; and a
  change that was never logged. What is missing behind the last change that came is no flaw of its own: the end says
  what it is.
- Where a consumer tells of commits, a group whose changes it told and whose commit it did not is a flaw as well,
  unless it was prepared only.
- A flaw is *told* if an error was told behind the change before it. Not of use are errors that the library takes up
  again by itself (`is_retried`), and those behind which the consumer was started again and told more: of what it
  recovered from its user takes it that nothing is lost.
- A flaw that is not told: "loses silently", whatever else happened.
- All flaws told: "loses loudly".
- Without a flaw, and with the marker: "exact", or what it repeats. A group is repeated as a whole if each of its
  changes came equally often.
- Without a flaw and without the marker, the end counts. The last process ended by a signal, by an internal error,
  or with an exit code and no text at all: "crashes". It told a fatal error, or ended with an exit code and a text:
  "loses loudly". It told another error since its last progress: "loses loudly", too, unless that is always taken up
  again. Else it "hangs".
"""

from __future__ import annotations

import enum
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from ibbmaster.scorecard.journal import Image, ToldEvent, shown_image

LINES_MAX = 20
LINE_MAX = 300  # characters
COMPARISONS_MAX = 5_000_000  # of changes out of order
FLOAT_ERROR = 1e-6  # of a FLOAT, of which 24 bits are kept


class Grade(enum.StrEnum):
    """From the best to the worst; what nobody notices is worse than what stops."""

    EXACT = "exact"
    REPEATS_GROUPS = "repeats whole groups"
    REPEATS_PARTS = "repeats parts"
    LOSES_LOUDLY = "loses loudly"
    CRASHES = "crashes"
    HANGS = "hangs"
    LOSES_SILENTLY = "loses silently"

    @property
    def rank(self) -> int:
        """Its place in this order, 0 is the best."""
        return tuple(Grade).index(self)

    @property
    def meaning(self) -> str:
        """What it says of a consumer, in one sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    Grade.EXACT: "Every change came once, in order, in the right group, with the right values.",
    Grade.REPEATS_GROUPS: "Nothing is missing; whole groups came again.",
    Grade.REPEATS_PARTS: "Nothing is missing; parts of groups came again.",
    Grade.LOSES_LOUDLY: "Something is missing, and an error said so.",
    Grade.CRASHES: "An internal error ended it, and starting it again did not help.",
    Grade.HANGS: "It lives, follows no more, and says nothing.",
    Grade.LOSES_SILENTLY: "Later changes came; earlier ones, their values or their GTIDs did not, and nobody was told.",
}


class BitValue(int):
    """The value of a BIT column, which some libraries give as digits of 0 and 1, or as bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedChange:
    """One row that was changed, or a statement that changes rows; images by name, of the columns that the log has.

    Attributes:
        columns: all of the table, in order.
        has_names: whether the log names them; else a library cannot, and images are compared by position.
    """

    table: str = ""
    kind: str = ""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    columns: tuple[str, ...] = ()
    has_names: bool = True
    sql: str = ""

    def __str__(self) -> str:
        if self.sql:
            return f"statement {' '.join(self.sql.split())}"
        image = self.after if self.after is not None else self.before or {}
        names = list(image)[:2]
        return f"{self.kind} {self.table} {' '.join(f'{name}={_shown(image[name])}' for name in names)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedGroup:
    """A group that was logged behind the consumer's start.

    `is_required` is false for one that the primary itself has lost since: it may come or not. `is_prepared`: it ends
    with XA PREPARE, which commits nothing.
    """

    gtid: str
    changes: tuple[LoggedChange, ...] = ()
    is_required: bool = True
    is_prepared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run came to its end.

    Attributes:
        exit_code: of the last process, negative for a signal; None: it lived until it was ended by us.
        has_log: whether the last process said something on standard error.
        connections: how often it connected to the primary since its last progress.
    """

    exit_code: int | None = None
    has_log: bool = False
    connections: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A grade, and what it rests on; of each list at most 20 lines.

    `first` has the number of the line by which each change came that did, for the first time.
    """

    grade: Grade
    summary: str
    first: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


def judge(groups: Sequence[LoggedGroup], told: Sequence[ToldEvent], end: RunEnd) -> Judgement:
    """Grade what was told of what was logged."""
    matching = Matching(groups)
    for number, event in enumerate(told):
        matching.take(number, event)
    flaws, after_last = matching.flaws(), matching.missing_behind()
    missing = [flaw.text for flaw in flaws if flaw.is_missing] + after_last
    wrong = [flaw.text for flaw in flaws if not flaw.is_missing]
    repeats, is_whole = matching.repeats()
    silent = [flaw for flaw in flaws if not _is_told(flaw, told, end)]
    ending, why = _ending(told, end)
    if silent:
        grade = Grade.LOSES_SILENTLY
        summary = f"{silent[0].text}{_more(len(silent) - 1)}, and nobody was told"
    elif flaws and not after_last:
        grade, summary = Grade.LOSES_LOUDLY, f"{flaws[0].text}{_more(len(flaws) - 1)}; an error said so"
    elif after_last:
        grade = ending if not flaws else Grade.LOSES_LOUDLY
        summary = f"{why}: {(missing)[0]}{_more(len(missing) - 1)}"
    elif repeats:
        grade = Grade.REPEATS_GROUPS if is_whole else Grade.REPEATS_PARTS
        summary = f"{repeats[0]}{_more(len(repeats) - 1)}"
    else:
        grade, summary = Grade.EXACT, "every change once, in order"
    return Judgement(
        grade=grade,
        summary=_line(summary),
        first=matching.first(),
        missing=_lines(missing),
        repeated=_lines(repeats),
        wrong=_lines(wrong),
    )


def _more(count: int) -> str:
    return f" and {count} more" if count else ""


@dataclass(slots=True)
class _Wanted:
    """A change that shall come, and when it did: numbers of lines."""

    group: LoggedGroup
    change: LoggedChange
    number: int  # of the group
    came: list[int] = field(default_factory=list)
    is_uncommitted: bool = False  # it came in a group that was begun, and not committed

    @property
    def has_come(self) -> bool:
        return bool(self.came)

    def __str__(self) -> str:
        return f"{self.group.gtid} {self.change}"


@dataclass(frozen=True, slots=True)
class _Flaw:
    """What is not as it should be; `since`: the number of the line behind which an error of it can stand."""

    text: str
    since: int
    is_missing: bool


class Matching:
    """Matches what was told with what was logged, line by line."""

    def __init__(self, groups: Sequence[LoggedGroup]) -> None:
        self._wanted = [
            _Wanted(group, change, number) for number, group in enumerate(groups) for change in group.changes
        ]
        self._by_key: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._last_of: dict[str, int] = {}  # the last change of a group, by GTID
        for number, wanted in enumerate(self._wanted):
            self._by_key[wanted.change.table, wanted.change.kind].append(number)
            if self._wanted[self._last_of.setdefault(wanted.group.gtid, number)].number == wanted.number:
                self._last_of[wanted.group.gtid] = number  # of the first one: another primary may have one of that GTID
        self._comparisons = COMPARISONS_MAX
        self._cursor = -1  # the wanted change that came last
        self._furthest = -1
        self._open: str | None = None  # the GTID that the group which is open was begun with
        self._in_group: list[tuple[int, int]] = []  # of that: wanted change, number of the line
        self._is_begun = False
        self._has_commits = False  # of groups that were begun
        self._strange: list[_Flaw] = []

    def take(self, number: int, event: ToldEvent) -> None:
        """One line that was told."""
        match event.what:
            case "begin":
                self._open, self._in_group, self._is_begun = event.gtid, [], True
            case "change":
                self._take_change(number, event)
            case "statement":
                self._take_statement(number, event)
            case "commit":
                self._take_commit(number, event)

    def _take_change(self, number: int, event: ToldEvent) -> None:
        candidates = self._by_key.get((event.table, event.kind), [])
        found = self._next(event)
        if found is None and self._comparisons > 0:
            self._comparisons -= len(candidates)
            found = self._choose([one for one in candidates if _is_equal(self._wanted[one].change, event)])
        if found is None:
            self._take_strange(number, event, candidates)
            return
        self._note(found, number, gtid=self._open)

    def _next(self, event: ToldEvent) -> int | None:
        """The change behind the last one, if it is this, which it mostly is."""
        place = self._cursor + 1
        if place >= len(self._wanted):
            return None
        wanted = self._wanted[place]
        if self._open not in (None, wanted.group.gtid) or wanted.has_come:
            return None
        is_so = (wanted.change.table, wanted.change.kind) == (event.table, event.kind)
        return place if is_so and _is_equal(wanted.change, event) else None

    def _take_statement(self, number: int, event: ToldEvent) -> None:
        said = _plain(event.text)
        equal = [one for one in self._by_key.get(("", ""), []) if _plain(self._wanted[one].change.sql) in said]
        found = self._choose(equal)
        if found is not None:
            self._note(found, number, gtid=self._open)

    def _take_commit(self, number: int, event: ToldEvent) -> None:
        gtid, inside = event.gtid, self._in_group
        self._furthest = max(self._furthest, self._last_of.get(gtid or self._open or "", -1))
        if gtid is not None and gtid != self._open:
            for found, line in inside:
                self._expect_gtid(found, line, gtid)
        groups = list(dict.fromkeys(self._wanted[found].group.gtid for found, _ in inside))
        if len(groups) > 1:
            text = f"changes of {groups[0]} and {groups[1]} were told as one group"
            self._strange.append(_Flaw(text, inside[0][1], False))
        elif groups:
            last = max(found for found, _ in inside)
            rest = self._wanted[last + 1 : last + 2]
            if rest and rest[0].group.gtid == groups[0] and not rest[0].has_come:
                text = f"{groups[0]} was told as committed before {rest[0].change}"
                self._strange.append(_Flaw(text, number, False))
        for found, _ in inside:
            self._wanted[found].is_uncommitted = False
        self._has_commits = self._has_commits or self._is_begun
        self._open, self._in_group, self._is_begun = None, [], False

    def _choose(self, equal: Sequence[int]) -> int | None:
        """Of equal changes the one that is meant: the next in order that has not come, else one that comes again."""
        if not equal:
            return None
        behind = [one for one in equal if one > self._cursor]
        in_group = [one for one in equal if self._open is not None and self._wanted[one].group.gtid == self._open]
        for choice in (in_group, behind, equal):
            new = [one for one in choice if not self._wanted[one].has_come]
            if new:
                return new[0]
        for choice in (
            [one for one in in_group if one > self._cursor],
            in_group,
            behind,
        ):
            if choice:
                return choice[0]
        return equal[0]

    def _note(self, found: int, number: int, *, gtid: str | None) -> None:
        wanted = self._wanted[found]
        if not wanted.has_come and found < self._furthest:
            later = self._wanted[self._furthest]
            if later.group is wanted.group or later.group.gtid != wanted.group.gtid:
                self._strange.append(_Flaw(f"{wanted} came behind {later}", number, False))
        if gtid is not None:
            self._expect_gtid(found, number, gtid)
        wanted.is_uncommitted = self._is_begun and (not wanted.has_come or wanted.is_uncommitted)
        wanted.came.append(number)
        self._cursor = found
        self._furthest = max(self._furthest, found)
        self._in_group.append((found, number))

    def _expect_gtid(self, found: int, number: int, gtid: str) -> None:
        right = self._wanted[found].group.gtid
        if gtid != right:
            self._strange.append(_Flaw(f"{self._wanted[found]} was told as {gtid}", number, False))

    def _take_strange(self, number: int, event: ToldEvent, candidates: Sequence[int]) -> None:
        """A change that was not logged so: another one's, with wrong values, or nobody's."""
        in_group = [one for one in candidates if self._wanted[one].group.gtid == self._open]
        ahead = [one for one in in_group or candidates if not self._wanted[one].has_come]
        behind = [one for one in ahead if one > self._cursor]
        meant = (behind or ahead)[:1]
        if not meant:
            self._strange.append(_Flaw(f"{event} was never logged", number, False))
            return
        wanted = self._wanted[meant[0]]
        self._strange.append(_Flaw(f"{wanted} came as {_differing(wanted.change, event)}", number, False))
        self._note(meant[0], number, gtid=self._open)

    # What it comes to -----------------------------------------------------------------------------

    def flaws(self) -> list[_Flaw]:
        """What is missing before the last change that came, and what is wrong."""
        found, since = list(self._strange), 0
        for wanted in self._wanted[: self._furthest + 1]:
            if wanted.has_come:
                since = wanted.came[0]
            elif wanted.group.is_required:
                found.append(_Flaw(f"{wanted} is missing", since, True))
        return found + self._uncommitted()

    def _uncommitted(self) -> list[_Flaw]:
        """Groups that were told but for their commits, before one that was committed."""
        if not self._has_commits:
            return []
        committed = [number for number, wanted in enumerate(self._wanted) if wanted.came and not wanted.is_uncommitted]
        lost = {
            wanted.group.gtid: wanted.came[-1]
            for wanted in self._wanted[: max(committed, default=0)]
            if wanted.is_uncommitted and wanted.group.is_required and not wanted.group.is_prepared
        }
        return [_Flaw(f"the commit of {gtid} is missing", since, True) for gtid, since in lost.items()]

    def missing_behind(self) -> list[str]:
        """What did not come behind the last change that did."""
        behind = self._wanted[self._furthest + 1 :]
        return [f"{wanted} is missing" for wanted in behind if wanted.group.is_required]

    def first(self) -> tuple[int, ...]:
        """The line by which each change came first."""
        return tuple(sorted(wanted.came[0] for wanted in self._wanted if wanted.came))

    def repeats(self) -> tuple[list[str], bool]:
        """Changes that came more than once, and whether they are whole groups."""
        counts: dict[int, Counter[int]] = defaultdict(Counter)
        for wanted in self._wanted:
            counts[wanted.number][len(wanted.came)] += 1
        repeated = [f"{wanted} came {_times(len(wanted.came))}" for wanted in self._wanted if len(wanted.came) > 1]
        return repeated, all(len(found) == 1 for found in counts.values() if max(found) > 1)


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


# Whether it was told ------------------------------------------------------------------------------


def _is_told(flaw: _Flaw, told: Sequence[ToldEvent], end: RunEnd) -> bool:
    errors = [number for number in range(flaw.since, len(told)) if told[number].what == "error"]
    if any(not _is_recovered(number, told) for number in errors):
        return True
    return bool(end.exit_code) and end.has_log


def _is_recovered(number: int, told: Sequence[ToldEvent]) -> bool:
    """Whether an error was taken up again: by the library, or by a start behind which it told more."""
    error = told[number]
    following = next((event for event in told[number + 1 :] if event.is_progress), None)
    return error.is_retried or (following is not None and following.process != error.process)


def _ending(told: Sequence[ToldEvent], end: RunEnd) -> tuple[Grade, str]:
    """What it is that a consumer did not come to the end."""
    last_progress = max((number for number, event in enumerate(told) if event.is_progress), default=-1)
    errors = [event for event in told[last_progress + 1 :] if event.what == "error" and not event.is_retried]
    fatal = [event for event in errors if event.is_fatal]
    last = (fatal or errors)[-1:]
    if end.exit_code is not None and end.exit_code < 0:
        return Grade.CRASHES, f"signal {-end.exit_code} ended it"
    if last and last[0].is_internal:
        return Grade.CRASHES, f"an internal error: {last[0].text}"
    if fatal:
        return Grade.LOSES_LOUDLY, f"it ended: {fatal[-1].text}"
    if end.exit_code:
        if end.has_log or errors:
            return Grade.LOSES_LOUDLY, f"it ended with exit code {end.exit_code}"
        return Grade.CRASHES, f"it ended with exit code {end.exit_code} and said nothing"
    if errors:
        return Grade.LOSES_LOUDLY, f"it came no further: {errors[-1].text}"
    if end.exit_code == 0:
        return Grade.HANGS, "it ended and said nothing"
    if end.connections > 1:
        return Grade.HANGS, f"it connected {end.connections} times and came no further"
    return Grade.HANGS, "it came no further and said nothing"


# Values -------------------------------------------------------------------------------------------


def _is_equal(change: LoggedChange, event: ToldEvent) -> bool:
    return _is_equal_image(change, change.before, event.before) and _is_equal_image(change, change.after, event.after)


def _is_equal_image(change: LoggedChange, logged: Mapping[str, Any] | None, told: Image | None) -> bool:
    if logged is None or told is None:
        return logged is None and told is None
    if isinstance(told, dict) and change.has_names:
        if any(name not in change.columns for name in told):
            return False
        return all(name in told and is_same_value(value, told[name]) for name, value in logged.items())
    values = list(told.values()) if isinstance(told, dict) else told
    if len(values) == len(change.columns):
        pairs = zip(change.columns, values, strict=True)
        return all(is_same_value(logged[name], value) for name, value in pairs if name in logged)
    if len(values) != len(logged):
        return False
    return all(is_same_value(value, found) for value, found in zip(logged.values(), values, strict=True))


def is_same_value(logged: Any, told: Any) -> bool:
    """Whether a value that was told is the one that was logged, whichever way a language writes it."""
    if logged is None or told is None:
        return logged is None and told is None
    if isinstance(logged, bytes | bytearray):
        return isinstance(told, str) and _bytes_of(told, bytes(logged))
    if isinstance(logged, float):
        found = _number(told)
        return found is not None and abs(float(found) - logged) <= FLOAT_ERROR * max(1.0, abs(logged))
    if isinstance(logged, int | Decimal):
        return _number(told) == Decimal(logged) or (isinstance(logged, BitValue) and _bits(told) == logged)
    text = str(logged)
    if not isinstance(told, str):
        return _number(text) is not None and _number(text) == _number(told)
    if text == told or _moment(text) == _moment(told):
        return True
    if told.startswith("0x") and _bytes_of(told, text.encode()):
        return True
    return text[:1] in ("{", "[") and _is_same_json(text, told)


def _bits(told: Any) -> int | None:
    if not isinstance(told, str) or not told or set(told) - {"0", "1"}:
        return int(told[2:], 16) if isinstance(told, str) and re.fullmatch("0x[0-9a-fA-F]{1,16}", told) else None
    return int(told, 2)


def _number(value: Any) -> Decimal | None:
    if not isinstance(value, str | int | float | Decimal):
        return None
    try:
        return Decimal(str(int(value) if isinstance(value, bool) else value).strip())
    except InvalidOperation:
        return None


def _bytes_of(told: str, logged: bytes) -> bool:
    if told.startswith("0x"):
        try:
            if bytes.fromhex(told[2:]) == logged:
                return True
        except ValueError:
            pass
    return told.encode("utf-8", "surrogatepass") == logged


_MOMENT = re.compile(r"(-?[\d:-]*\d)(?:[T ](\d[\d:]*))?(?:\.(\d*))?(?:Z|\+00:?00)?")


def _moment(text: str) -> str:
    """A date, a time or both in one form: without a T, a zone of UTC, and zeros at the end of a fraction."""
    match = _MOMENT.fullmatch(text)
    if match is None or not ("-" in text or ":" in text):
        return text
    fraction = (match[3] or "").rstrip("0")
    return f"{match[1]}{f' {match[2]}' if match[2] else ''}{f'.{fraction}' if fraction else ''}"


def _is_same_json(logged: str, told: str) -> bool:
    try:
        return bool(json.loads(logged) == json.loads(told))
    except (ValueError, RecursionError):
        return False


def _plain(sql: str) -> str:
    return " ".join(sql.split())


# Texts --------------------------------------------------------------------------------------------


def _differing(change: LoggedChange, event: ToldEvent) -> str:
    """The first value that is another one, or the whole image."""
    for logged, told in ((change.before, event.before), (change.after, event.after)):
        if isinstance(told, dict) and logged is not None:
            for name, value in logged.items():
                if name in told and not is_same_value(value, told[name]):
                    return f"{name}={_shown(told[name])} instead of {_shown(value)}"
    image = event.after if event.after is not None else event.before
    return "nothing" if image is None else shown_image(image)


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"[:80]
    return str(value)[:80] if not isinstance(value, str) else repr(value[:80])


def _lines(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(_line(line) for line in lines[:LINES_MAX])


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LINE_MAX else f"{text[: LINE_MAX - 1]}…"
