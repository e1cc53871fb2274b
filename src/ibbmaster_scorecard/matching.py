"""Matches what a consumer told with what was logged, line by line.

Where several changes are equal, the one that comes next in order is meant, of the group that is open if its GTID was
told. A change is told "again" when all that are equal to it have come.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ibbmaster.replication.event.column_types.decimals import Decimals
from ibbmaster.replication.event.column_types.integer import Bit
from ibbmaster.replication.event.column_types.registry import BY_WORD
from ibbmaster.replication.event.rows.column import LABELLED, Column, ColumnType
from .journal import Image, ToldEvent, shown_image
from .same_value import is_same_value, shown_value

COMPARISONS_MAX = 1_000_000  # of changes out of order
_TYPE = re.compile(r"\s*(\w+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedChange:
    """One row that was changed, or a statement that changes rows; images by name, with the columns in the log."""

    table: str = ""
    kind: str = ""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    columns: tuple[str, ...] = ()  # all of the table, in order
    has_names: bool = True  # the log names them; else images are compared by position
    key: tuple[str, ...] = ()  # columns; `types` are all columns, as in the TABLE_MAP
    types: tuple[Column, ...] = ()
    sql: str = ""

    def __str__(self) -> str:
        if self.sql:
            return f"statement {' '.join(self.sql.split())}"
        image = self.after if self.after is not None else self.before or {}
        names = list(image)[:2]
        return f"{self.kind} {self.table} {' '.join(f'{name}={shown_value(image[name])}' for name in names)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedGroup:
    """A group after the consumer's start. Without `is_required` the primary has lost it since: it may come or not.
    `is_prepared`: it ends with XA PREPARE, which commits nothing."""

    gtid: str
    changes: tuple[LoggedChange, ...] = ()
    is_required: bool = True
    is_prepared: bool = False


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something wrong or missing; `since`: the number of the line after which an error may report it."""

    text: str
    since: int
    is_missing: bool


@dataclass(slots=True)
class _Wanted:
    group: LoggedGroup
    change: LoggedChange
    number: int  # of the group
    came: list[int] = field(default_factory=list)
    wrong: Flaw | None = None  # it came with other values
    is_uncommitted: bool = False  # it came in a group without a commit

    @property
    def is_due(self) -> bool:
        return not self.came and self.wrong is None

    def __str__(self) -> str:
        return f"{self.group.gtid} {self.change}"


class Matching:
    def __init__(self, groups: Sequence[LoggedGroup]) -> None:
        self._wanted = [
            _Wanted(group, change, number) for number, group in enumerate(groups) for change in group.changes
        ]
        self._by_key: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._last_of: dict[str, int] = {}  # the last change of a group, by GTID
        for number, wanted in enumerate(self._wanted):
            self._by_key[wanted.change.table, wanted.change.kind].append(number)
            if self._wanted[self._last_of.setdefault(wanted.group.gtid, number)].number == wanted.number:
                self._last_of[wanted.group.gtid] = number  # of the first: another primary may reuse a GTID
        self._first_of = {wanted.group.gtid: place for place, wanted in reversed(list(enumerate(self._wanted)))}
        self._comparisons = COMPARISONS_MAX
        self._cursor = -1  # the wanted change that came last
        self._furthest = -1
        self._open: str | None = None  # the GTID with which the open group was begun
        self._in_group: list[tuple[int, int]] = []  # of that: wanted change, number of the line
        self._is_begun = False
        self._has_commits = False  # of groups that were begun
        self._strange: list[Flaw] = []
        self._metadata: dict[str, Flaw] = {}  # by their texts

    def take(self, number: int, event: ToldEvent) -> None:
        match event.what:
            case "begin":
                self._open, self._in_group, self._is_begun = event.gtid, [], True
            case "change":
                self._take_change(number, event)
            case "table":
                self._take_table(number, event)
            case "statement":
                self._take_statement(number, event)
            case "commit":
                self._take_commit(number, event)

    def _take_change(self, number: int, event: ToldEvent) -> None:
        candidates = self._by_key.get((event.table, event.kind), [])
        found = self._next(event)
        if found is None:
            self._comparisons -= len(candidates)
            if self._comparisons < 0:
                candidates = []
            found = self._choose([one for one in candidates if _is_equal(self._wanted[one].change, event)])
        if found is None:
            self._take_strange(number, event, candidates)
        else:
            self._note(found, number, gtid=self._open)

    def _take_table(self, number: int, event: ToldEvent) -> None:
        """What a library tells of a table is right if the log has it so at some place, or if it tells nothing."""
        changes = [wanted.change for wanted in self._wanted if wanted.change.table == event.table]
        flaws = [_differing_table(change, event) for change in changes]
        if flaws and all(flaws):
            text = f"{event.table} was told with {flaws[0]}"
            self._metadata.setdefault(text, Flaw(text, number, False))

    def _next(self, event: ToldEvent) -> int | None:
        """The change after the last one, or the first one of the group, if it is this one, as mostly."""
        places = [self._cursor + 1]
        if self._open is not None and not self._in_group:
            places.append(self._first_of.get(self._open, self._cursor + 1))
        for place in places:
            if self._is_next(place, event):
                return place
        return None

    def _is_next(self, place: int, event: ToldEvent) -> bool:
        if place >= len(self._wanted):
            return False
        wanted = self._wanted[place]
        last_count = len(self._wanted[place - 1].came) if place else 0
        if self._open not in (None, wanted.group.gtid) or (wanted.came and len(wanted.came) >= last_count):
            return False
        is_so = (wanted.change.table, wanted.change.kind) == (event.table, event.kind)
        return is_so and _is_equal(wanted.change, event)

    def _take_statement(self, number: int, event: ToldEvent) -> None:
        said = _plain(event.text)
        equal = [one for one in self._by_key.get(("", ""), []) if _plain(self._wanted[one].change.sql) in said]
        found = self._choose(equal)
        if found is not None:
            self._note(found, number, gtid=self._open)

    def _take_commit(self, number: int, event: ToldEvent) -> None:
        gtid, inside = event.gtid, self._in_group
        committed = gtid or self._open or ""
        if not inside or any(self._wanted[found].group.gtid == committed for found, _ in inside):
            self._furthest = max(self._furthest, self._last_of.get(committed, -1))
        if gtid is not None and gtid != self._open:
            for found, line in inside:
                self._expect_gtid(found, line, gtid)
        groups = list({self._wanted[found].number: self._wanted[found].group for found, _ in inside}.items())
        if len(groups) > 1:
            text = f"changes of {groups[0][1].gtid} and {groups[1][1].gtid} were told as one group"
            self._strange.append(Flaw(text, inside[0][1], False))
        elif groups:
            last = max(found for found, _ in inside)
            rest = self._wanted[last + 1 : last + 2]
            if rest and rest[0].number == groups[0][0] and not rest[0].came:
                text = f"{groups[0][1].gtid} was told as committed before {rest[0].change}"
                self._strange.append(Flaw(text, number, False))
        for done in {committed, *(group.gtid for _, group in groups)}:  # a restart may go on in a group
            for wanted in self._wanted[self._first_of.get(done, 0) : self._last_of.get(done, -1) + 1]:
                wanted.is_uncommitted = False
        self._has_commits = self._has_commits or self._is_begun
        self._open, self._in_group, self._is_begun = None, [], False

    def _choose(self, equal: Sequence[int]) -> int | None:
        """The next in order that has not come, else one that comes again."""
        equal = [one for one in equal if self._wanted[one].group.gtid == self._open] or equal
        behind = [one for one in equal if one > self._cursor]
        new = [one for one in (*behind, *equal) if not self._wanted[one].came]
        return next(iter((*new, *behind, *equal)), None)

    def _note(self, found: int, number: int, *, gtid: str | None) -> None:
        wanted = self._wanted[found]
        if not wanted.came and found < self._furthest:
            later = self._wanted[self._furthest]
            if later.group is wanted.group or later.group.gtid != wanted.group.gtid:
                self._strange.append(Flaw(f"{wanted} came behind {later}", number, False))
        if gtid is not None:
            self._expect_gtid(found, number, gtid)
        wanted.is_uncommitted = self._is_begun and (not wanted.came or wanted.is_uncommitted)
        wanted.came.append(number)
        self._cursor = found
        self._furthest = max(self._furthest, found)
        self._in_group.append((found, number))

    def _expect_gtid(self, found: int, number: int, gtid: str) -> None:
        right = self._wanted[found].group.gtid
        if gtid != right:
            self._strange.append(Flaw(f"{self._wanted[found]} was told as {gtid}", number, False))

    def _take_strange(self, number: int, event: ToldEvent, candidates: Sequence[int]) -> None:
        in_group = [one for one in candidates if self._wanted[one].group.gtid == self._open]
        ahead = [one for one in in_group or candidates if self._wanted[one].is_due]
        behind = [one for one in ahead if one > self._cursor]
        meant = (behind or ahead)[:1]
        if not meant:
            self._strange.append(Flaw(f"{event} was never logged", number, False))
            return
        wanted = self._wanted[meant[0]]
        wanted.wrong = Flaw(f"{wanted} came as {_differing(wanted.change, event)}", number, False)
        self._cursor = meant[0]
        self._furthest = max(self._furthest, meant[0])

    # What it comes to

    def flaws(self) -> list[Flaw]:
        """What is missing before the last change, and what is wrong."""
        found, since = list(self._strange), 0
        for wanted in self._wanted[: self._furthest + 1]:
            if wanted.came:
                since = wanted.came[0]
            elif wanted.wrong is not None:
                found.append(wanted.wrong)
            elif wanted.group.is_required:
                found.append(Flaw(f"{wanted} is missing", since, True))
        return found + self._uncommitted()

    def _uncommitted(self) -> list[Flaw]:
        if not self._has_commits:
            return []
        committed = [number for number, wanted in enumerate(self._wanted) if wanted.came and not wanted.is_uncommitted]
        lost = {
            wanted.group.gtid: wanted.came[-1]
            for wanted in self._wanted[: max(committed, default=0)]
            if wanted.is_uncommitted and wanted.group.is_required and not wanted.group.is_prepared
        }
        return [Flaw(f"the commit of {gtid} is missing", since, True) for gtid, since in lost.items()]

    def metadata_flaws(self) -> list[Flaw]:
        return list(self._metadata.values())

    def missing_behind(self) -> list[str]:
        """What did not come after the last change that did."""
        behind = self._wanted[self._furthest + 1 :]
        return [f"{wanted} is missing" for wanted in behind if wanted.group.is_required]

    def first(self) -> tuple[int, ...]:
        return tuple(sorted(wanted.came[0] for wanted in self._wanted if wanted.came))

    def repeats(self) -> tuple[list[str], bool]:
        """Changes that came more than once, and whether they are whole groups."""
        counts: dict[int, Counter[int]] = defaultdict(Counter)
        for wanted in self._wanted:
            counts[wanted.number][len(wanted.came)] += 1
        repeated = [f"{wanted} came {_times(len(wanted.came))}" for wanted in self._wanted if len(wanted.came) > 1]
        return repeated, all(len(found) == 1 for found in counts.values() if max(found) > 1)


def _plain(sql: str) -> str:
    return " ".join(sql.split())


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


# Images


def _is_equal(change: LoggedChange, event: ToldEvent) -> bool:
    return _is_equal_image(change, change.before, event.before) and _is_equal_image(change, change.after, event.after)


def _is_equal_image(change: LoggedChange, logged: Mapping[str, Any] | None, told: Image | None) -> bool:
    if logged is None or told is None:
        return logged is None and told is None
    has_right_names = isinstance(told, dict) and told.keys() <= set(change.columns)
    if isinstance(told, dict) and (change.has_names or has_right_names):  # some libraries ask for names in SQL
        return has_right_names and all(
            name in told and is_same_value(value, told[name]) for name, value in logged.items()
        )
    values = list(told.values()) if isinstance(told, dict) else told
    if len(values) == len(change.columns):
        pairs = zip(change.columns, values, strict=True)
        return all(is_same_value(logged[name], value) for name, value in pairs if name in logged)
    if len(values) != len(logged):
        return False
    return all(is_same_value(value, found) for value, found in zip(logged.values(), values, strict=True))


def _differing_table(change: LoggedChange, event: ToldEvent) -> str:
    pairs = (("columns", event.columns, change.columns), ("the key", event.key, change.key))
    for name, told, logged in pairs:
        if change.has_names and told is not None and told != logged:
            return f"{name} {list(told)} instead of {list(logged)}"
    types, told_types = change.types, event.types
    if told_types is None or (len(types) == len(told_types) and all(map(is_same_type, types, told_types))):
        return ""
    shown = ", ".join(column.type_name for column in types)
    return f"the types {list(told_types)} instead of {shown}"


def _differing(change: LoggedChange, event: ToldEvent) -> str:
    for logged, told in ((change.before, event.before), (change.after, event.after)):
        if isinstance(told, dict) and logged is not None:
            for name, value in logged.items():
                if name in told and not is_same_value(value, told[name]):
                    return f"{name}={shown_value(told[name])} instead of {shown_value(value)}"
    image = event.after if event.after is not None else event.before
    return "nothing" if image is None else shown_image(image)


def is_same_type(logged: Column, told: int | str) -> bool:
    """Whether a type is that of the column.

    A number is that of a TABLE_MAP. A text is SQL, as `decimal(10,2)`; what it leaves out is not compared, nor lengths
    of texts, which depend on a character set, nor widths of integers.
    """
    if isinstance(told, int):
        return told == logged.type or (told == ColumnType.STRING and logged.type in LABELLED)
    found = _TYPE.fullmatch(told.lower())
    if found is None:
        return False
    kind = BY_WORD.get(found[1])
    if kind is None or logged.type not in kind.codes:
        return False
    if kind.is_integer and logged.is_unsigned is not None and logged.is_unsigned != ("unsigned" in found[4].split()):
        return False
    if found[2] is None or logged.has_old_format:
        return True
    if kind.is_clock:
        return logged.scale == int(found[2])
    if isinstance(kind, Decimals):
        return (logged.size, logged.scale) == (int(found[2]), int(found[3] or 0))
    return not isinstance(kind, Bit) or logged.size == int(found[2])
