"""Which groups a replica gets: not those it has, and none after its UNTIL, per domain."""

from collections.abc import Callable
from typing import NamedTuple

from ibbmaster.gtid import Gtid, GtidState
from .error import DumpError
from .request import DumpRequest
from .start import StartCheck, is_logged, not_in_binlog


class Verdict(NamedTuple):
    is_wanted: bool
    ends_skipping: bool  # in its domain; the state is worth sending after this group
    is_last: bool  # UNTIL is reached after this group


SEND = Verdict(is_wanted=True, ends_skipping=False, is_last=False)


class GroupFilter:
    """Judges the groups in the order of the log, from `start_state` on; calls `current_state` for a domain that was
    unknown when the dump began. Source: MariaDB 12.3, sql_repl.cc, send_event_to_slave(), gtid_find_engine_pos()."""

    def __init__(
        self, request: DumpRequest, check: StartCheck, *, start_state: GtidState, current_state: Callable[[], GtidState]
    ) -> None:
        self._is_strict = request.is_strict
        self._until_is_before = request.until_is_before
        self._current_state = current_state
        self._unknown_domain_ids = set(check.unknown_domain_ids)
        self._awaited_domain_ids = check.awaited_domain_ids
        self._to_skip = {
            domain_id: gtid for domain_id, gtid in check.position.items() if start_state.latest(domain_id) != gtid
        }
        self._until: dict[int, Gtid] | None = None
        if check.until is not None:
            self._until = {domain: gtid for domain, gtid in check.until.items() if not is_logged(gtid, start_state)}

    @property
    def is_until_reached(self) -> bool:
        """There is an UNTIL and no domain continues."""
        return self._until is not None and not self._until

    @property
    def is_skipping(self) -> bool:
        """Some domain is still before the replica's position."""
        return bool(self._to_skip)

    @property
    def has_reached_start(self) -> bool:
        """The replica lacks all that comes, except perhaps in domains where it is ahead of this log."""
        return self._to_skip.keys() <= self._unknown_domain_ids | self._awaited_domain_ids

    @property
    def decides_nothing(self) -> bool:
        """Every later group goes out."""
        return not self._to_skip and self._until is None

    @property
    def watched_domain_ids(self) -> frozenset[int] | None:
        """The domains whose first group must be judged, if every other group goes out; else None."""
        if self._until is not None or not self.has_reached_start:
            return None
        return frozenset(self._to_skip)

    @property
    def limits(self) -> tuple[Gtid, ...]:
        """Up to these, groups of their domains are skipped without a decision."""
        if self._until is not None:
            return ()
        judged = self._unknown_domain_ids | self._awaited_domain_ids
        return tuple(gtid for domain_id, gtid in self._to_skip.items() if domain_id not in judged)

    def ends_with(self, gtid: Gtid) -> bool:
        """Others skipped a group; returns whether it was the last to skip in its domain."""
        if self._to_skip.get(gtid.domain_id) != gtid:
            return False
        del self._to_skip[gtid.domain_id]
        return True

    def judge(self, gtid: Gtid) -> Verdict:
        """Raises DumpError: a strict replica's GTID lies in a hole, or its domain has turned up without it."""
        if self.decides_nothing:
            return SEND
        is_wanted, ends_skipping = self._judge_position(gtid)
        if self._until is None:
            return Verdict(is_wanted, ends_skipping, False)
        is_wanted = self._judge_until(gtid, self._until) and is_wanted
        return Verdict(is_wanted, ends_skipping, not self._until)

    def _judge_position(self, gtid: Gtid) -> tuple[bool, bool]:
        """Whether the replica needs the group, and whether skipping ends in its domain."""
        wanted = self._to_skip.get(gtid.domain_id)
        if wanted is None:
            return True, False
        if gtid.domain_id in self._unknown_domain_ids:
            state = self._current_state()
            if not is_logged(wanted, state):
                raise not_in_binlog(wanted, state)
            self._unknown_domain_ids.discard(gtid.domain_id)
        if gtid.server_id != wanted.server_id or gtid.seq_no < wanted.seq_no:
            return False, False
        if gtid.seq_no == wanted.seq_no:
            del self._to_skip[gtid.domain_id]
            return False, True
        if self._is_strict and gtid.domain_id not in self._awaited_domain_ids:
            raise DumpError(
                f"The binlog on the master is missing the GTID {wanted} requested by the slave (even though both a "
                "prior and a subsequent sequence number does exist), and GTID strict mode is enabled",
                f"domain {wanted.domain_id}: the log goes on with {gtid}, {wanted} lies in a hole: set the replica's "
                "gtid_slave_pos to a GTID of this log, or let it go on behind the hole without gtid_strict_mode",
            )
        del self._to_skip[gtid.domain_id]
        return True, True

    def _judge_until(self, gtid: Gtid, until: dict[int, Gtid]) -> bool:
        limit = until.get(gtid.domain_id)
        if limit is None:
            return False
        if gtid.server_id != limit.server_id or gtid.seq_no < limit.seq_no:
            return True
        del until[gtid.domain_id]
        return gtid.seq_no == limit.seq_no and not self._until_is_before
