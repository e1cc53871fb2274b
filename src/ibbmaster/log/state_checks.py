"""Whether a GTID state record fits the groups before it, and what MariaDB itself leaves out of it.

After a clean restart in the middle of a file MariaDB's differential states lack the pairs that were logged before it
and not since. Its own state is then made from the last of them: after a second restart in the same file it has lost
those pairs for good, or has them as they were when the file began, and so has the full state of the next file.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from ibbmaster.gtid import Gtid, GtidState

Pair = tuple[int, int]  # domain and server


class Fit(enum.Enum):
    """What comparing a state record with the groups has given."""

    EQUAL = "the state is what the groups come to"
    FORGOTTEN = "it lacks what MariaDB forgets when it restarts"
    WRONG = "it contradicts the groups"


class GroupsOfFile:
    """What was logged since a file began: the state then and now, and in which order the pairs came."""

    def __init__(self, base: GtidState) -> None:
        self.base = base.copy()
        self.state = base.copy()
        self._logged: dict[Pair, Gtid] = {}  # the pair that was logged last comes last

    def log(self, gtid: Gtid) -> None:
        """A group was logged."""
        self.state.log(gtid)
        pair = gtid.domain_id, gtid.server_id
        self._logged.pop(pair, None)
        self._logged[pair] = gtid

    @property
    def differential(self) -> GtidState:
        return GtidState(self._logged.values())

    def fit_of_differential(self, found: GtidState) -> Fit:
        """Compare a differential state."""
        return _fit(found, GtidState(), list(self._logged.values()))

    def fit_of_next_file(self, found: GtidState) -> Fit:
        """Compare the full state of the next file, which may lack whole domains of which nothing was logged here."""
        base = self.base.copy()
        logged_domains = {domain_id for domain_id, _ in self._logged}
        for domain_id in base.domain_ids:
            if not found.servers(domain_id) and domain_id not in logged_domains:
                base.drop_domain(domain_id)  # FLUSH BINARY LOGS DELETE_DOMAIN_ID
        return _fit(found, base, list(self._logged.values()))


def _fit(found: GtidState, base: GtidState, logged: list[Gtid]) -> Fit:
    """Compare with what groups come to, all of them or the latest ones."""
    if found == _state_of(base, logged):
        return Fit.EQUAL
    forgotten = 0
    for index, gtid in enumerate(logged):
        if found.seq_no(gtid.domain_id, gtid.server_id) != gtid.seq_no:
            forgotten = index + 1
    return Fit.FORGOTTEN if forgotten and found == _state_of(base, logged[forgotten:]) else Fit.WRONG


def _state_of(base: GtidState, logged: Iterable[Gtid]) -> GtidState:
    state = base.copy()
    for gtid in logged:
        state.log(gtid)
    return state
