"""Sequence numbers that go back or repeat: of a page in the wrong place, or of a primary that lets them.

A page does not say where it belongs. So where a number of one domain and server is not
above the one before, the states decide, and a page that is there twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ibbmaster.errors import Location
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.log.fault import Fault, Severity

NAMED_MAX = 20  # in one file; more are counted
HELD_MAX = 1000  # of which the first are named


@dataclass(slots=True)
class _Back:
    """A group whose number is not above the one before."""

    gtid: Gtid
    location: Location
    earlier: tuple[int, Location]
    is_decided: bool = False  # a state record after it was compared
    is_contradicted: bool = False  # and says something else than the groups


class OrderChecks:
    """What is known of the order of groups while they pass.
    `find_copy` gives another page with the same bytes as one that has been read, if there is one."""

    def __init__(self, find_copy: Callable[[Location], Location | None]) -> None:
        self._find_copy = find_copy
        self._last: dict[tuple[int, int], tuple[int, Location]] = {}
        self._backs: list[_Back] = []
        self._unheld = 0

    def begin_file(self, state: GtidState, location: Location) -> None:
        """A file begins after these groups."""
        self._last = {(gtid.domain_id, gtid.server_id): (gtid.seq_no, location) for gtid in state}

    def log(self, gtid: Gtid, location: Location) -> None:
        """A group begins at a place."""
        pair = gtid.domain_id, gtid.server_id
        earlier = self._last.get(pair)
        if earlier is not None and gtid.seq_no <= earlier[0]:
            if len(self._backs) < HELD_MAX:
                self._backs.append(_Back(gtid, location, earlier))
            else:
                self._unheld += 1
        self._last[pair] = gtid.seq_no, location

    def decide(self, *, is_contradicted: bool) -> None:
        """A state record was compared with the groups before it."""
        for back in self._backs:
            if not back.is_decided:
                back.is_decided, back.is_contradicted = True, is_contradicted

    def lose_track(self) -> None:
        """What comes next does not follow what was seen."""
        self._last.clear()

    def finish_file(self) -> Iterator[Fault]:
        """Report what was found; every page of the file has been read, and the state that follows it."""
        backs = sorted(self._backs, key=lambda back: (back.location.page_no, back.location.page_offset))
        for back in backs[:NAMED_MAX]:
            seq_no, place = back.earlier
            problem = f"group {back.gtid} comes behind number {seq_no} of its domain and server at {place}"
            copies = ((page, self._find_copy(page)) for page in (back.location, place))
            copy = next(((page, other) for page, other in copies if other is not None), None)
            if copy is not None:
                page, other = copy
                why = f"{_page(page)} is {_page(other)} once more: a page was written to the wrong place"
            elif back.is_contradicted:
                why = "the next GTID state contradicts the groups: pages stand in the wrong places, or are older images"
            else:
                why = "no GTID state contradicts that; a primary without gtid_strict_mode logs so, too"
            severity = Severity.DAMAGE if copy is not None or back.is_contradicted else Severity.NOTE
            yield Fault(location=back.location, problem=f"{problem}: {why}", severity=severity, is_misplaced=True)
        if (more := len(backs[NAMED_MAX:]) + self._unheld) > 0:
            severity = Severity.DAMAGE if any(back.is_contradicted for back in backs) else Severity.NOTE
            name = format_file_name(backs[-1].location.file_no)
            yield Fault(problem=f"{name}: {more} more groups come behind higher numbers", severity=severity)
        self._backs.clear()
        self._unheld = 0


def _page(location: Location) -> str:
    return f"{format_file_name(location.file_no)} page {location.page_no}"
