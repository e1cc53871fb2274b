"""Where traditional files meet the log they are added to: what it has already, and whether the rest continues it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import closing

from ibbmaster.errors import StoreError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.log.interface import LogEngine

AHEAD_MAX = 1_000_000  # groups of the log that were read before the files had them, in another order of the domains


class Overlap:
    """Compares the files with the log, domain by domain.

    A domain is joined once the files have logged exactly what the log holds of it. Groups
    before that must be in the log already.
    """

    def __init__(self, *, log: GtidState, classic: GtidState) -> None:
        self._log = log.copy()
        self._classic = classic.copy()
        self.joined: set[int] = set()

    def has(self, gtid: Gtid) -> bool:
        """Whether the log has the next group of the files already.

        Raises:
            StoreError: it neither has the group nor ends right before it.
        """
        domain_id = gtid.domain_id
        if self._is_joined(domain_id):
            return False
        seq_no = self._log.seq_no(domain_id, gtid.server_id)
        if seq_no is None or seq_no < gtid.seq_no:
            log, classic = _domain(self._log, domain_id), _domain(self._classic, domain_id)
            raise StoreError(
                f"the log ends at GTID state [{log}] in domain {domain_id}, but before {gtid} the files are at "
                f"[{classic}]: they do not continue it"
            )
        self._classic.log(gtid)
        return True

    def _is_joined(self, domain_id: int) -> bool:
        if domain_id not in self.joined and _domain(self._log, domain_id) == _domain(self._classic, domain_id):
            self.joined.add(domain_id)
        return domain_id in self.joined

    @property
    def is_complete(self) -> bool:
        """Whether all that follows only has to be written."""
        return all(self._is_joined(domain_id) for domain_id in {*self._log.domain_ids, *self._classic.domain_ids})

    def joined_pairs(self, state: GtidState) -> Iterator[Gtid]:
        """The pairs of the domains whose groups only have to be written."""
        return (gtid for gtid in state if gtid.domain_id in self.joined)


def check_overlap(groups: Iterable[EventGroup], log: LogEngine, overlap: Overlap) -> None:
    """Read files as far as they overlap a log, before anything is written; groups in both must be equal.

    What was logged before the oldest file of the log cannot be compared.

    Raises:
        FormatError: the log is damaged.
        StoreError: the files do not continue the log, or have other groups than it has.
    """
    if overlap.is_complete:
        return
    plan = log.start_of_file()
    with closing(log.groups(plan)) as reader:
        logged = _Logged(iter(reader.next_group, None))
        for group in groups:
            gtid = group.gtid
            assert gtid is not None
            if not overlap.has(gtid):
                if overlap.is_complete:
                    return
                continue
            if (plan.state.seq_no(gtid.domain_id, gtid.server_id) or 0) >= gtid.seq_no:
                continue
            logged.compare(gtid, _digest(group))


class _Logged:
    """The groups of the log, each read once, in its order."""

    def __init__(self, groups: Iterator[EventGroup]) -> None:
        self._groups = groups
        self._ahead: dict[Gtid, list[bytes]] = {}

    def compare(self, gtid: Gtid, digest: bytes) -> None:
        """Raise StoreError unless the log has a group of that GTID with these events."""
        while gtid not in self._ahead:
            group = next(self._groups, None)
            if group is None:
                raise StoreError(f"the files have group {gtid}, which the log does not have: they do not continue it")
            if group.gtid is not None:
                self._ahead.setdefault(group.gtid, []).append(_digest(group))
            if len(self._ahead) > AHEAD_MAX:
                raise StoreError(f"group {gtid} of the files was not found among {AHEAD_MAX} groups of the log")
        found = self._ahead[gtid]
        if found.pop(0) != digest:
            raise StoreError(f"the log has another group {gtid} than the files: they do not continue it")
        if not found:
            del self._ahead[gtid]


def _digest(group: EventGroup) -> bytes:
    digest = hashlib.blake2b(group.gtid_event, digest_size=16)
    for piece in group.body:
        digest.update(piece)
    return digest.digest()


def _domain(state: GtidState, domain_id: int) -> GtidState:
    return GtidState(gtid for gtid in state if gtid.domain_id == domain_id)
