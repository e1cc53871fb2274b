"""Global transaction ids, a replica's position and a primary's state.

A *position* has at most one GTID a domain. A *state* is what a primary has logged: the last sequence number of every
(domain, server) pair, and the latest server of each domain. Text as MariaDB's: `domain-server-seqno`, separated by
commas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .errors import DuplicateDomainError, GtidError

ID_MAX = 2**32 - 1  # domain and server ids are 32 bits wide
SEQ_NO_MAX = 2**64 - 1

_GTID = re.compile(r"([0-9]{1,20})-([0-9]{1,20})-([0-9]{1,20})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gtid:
    """One global transaction id."""

    domain_id: int
    server_id: int
    seq_no: int

    @classmethod
    def parse(cls, text: str) -> Gtid:
        """Read `domain-server-seqno`. Raises GtidError: the text has another shape, or a number is too large."""
        match = _GTID.fullmatch(text.strip())
        if match is None:
            raise GtidError(f"{text[:60]!r} is not a valid GTID: expected domain-server-seqno, as in 0-1-100")
        domain_id, server_id, seq_no = map(int, match.groups())
        if domain_id > ID_MAX or server_id > ID_MAX or seq_no > SEQ_NO_MAX:
            raise GtidError(f"{text[:70]!r} is not a valid GTID: ids end at {ID_MAX}, sequence numbers at {SEQ_NO_MAX}")
        return cls(domain_id=domain_id, server_id=server_id, seq_no=seq_no)

    def __str__(self) -> str:
        return f"{self.domain_id}-{self.server_id}-{self.seq_no}"


class GtidPosition(Mapping[int, Gtid]):
    """How far a replica is: domain id -> GTID, at most one a domain. Immutable."""

    __slots__ = ("_gtids",)

    def __init__(self, gtids: Iterable[Gtid] = ()) -> None:
        self._gtids: dict[int, Gtid] = {}
        for gtid in gtids:
            earlier = self._gtids.setdefault(gtid.domain_id, gtid)
            if earlier is not gtid:
                raise DuplicateDomainError(str(gtid), str(earlier), gtid.domain_id)

    @classmethod
    def parse(cls, text: str) -> GtidPosition:
        """Read a comma-separated list, perhaps empty. Raises GtidError, DuplicateDomainError: two GTIDs of a domain."""
        if not text.strip():
            return cls()
        return cls(Gtid.parse(part) for part in text.split(","))

    def __getitem__(self, domain_id: int) -> Gtid:
        return self._gtids[domain_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._gtids)

    def __len__(self) -> int:
        return len(self._gtids)

    def __str__(self) -> str:
        return ",".join(str(self._gtids[domain_id]) for domain_id in sorted(self._gtids))

    def __repr__(self) -> str:
        return f"GtidPosition({str(self)!r})"


class GtidState:
    """The GTIDs that a primary has logged: per domain the last sequence number of each server, in the order in which
    they last logged, the latest last. Mutable: `copy()` to keep one."""

    __slots__ = ("_domains",)

    def __init__(self, gtids: Iterable[Gtid] = ()) -> None:
        self._domains: dict[int, dict[int, int]] = {}
        for gtid in gtids:
            self.log(gtid)

    @classmethod
    def parse(cls, text: str) -> GtidState:
        """Read a comma-separated list; the last GTID of each domain counts as its latest, unlike in the
        `gtid_binlog_state` of a MariaDB server. Raises GtidError: a part is no GTID."""
        return cls(Gtid.parse(part) for part in text.split(",")) if text.strip() else cls()

    def log(self, gtid: Gtid) -> None:
        """Note that the primary logged `gtid`: it becomes the latest of its domain."""
        servers = self._domains.setdefault(gtid.domain_id, {})
        servers.pop(gtid.server_id, None)  # a dict keeps insertion order: move to the end
        servers[gtid.server_id] = gtid.seq_no

    def drop_domain(self, domain_id: int) -> None:
        """Forget a domain; unknown ones are no error."""
        self._domains.pop(domain_id, None)

    def copy(self) -> GtidState:
        copy = GtidState()
        copy._domains = {domain_id: dict(servers) for domain_id, servers in self._domains.items()}
        return copy

    def seq_no(self, domain_id: int, server_id: int) -> int | None:
        """The last sequence number of this server in this domain, if any."""
        return self._domains.get(domain_id, {}).get(server_id)

    def latest(self, domain_id: int) -> Gtid | None:
        """The GTID logged last in a domain, if any."""
        servers = self._domains.get(domain_id)
        if not servers:
            return None
        server_id, seq_no = next(reversed(servers.items()))
        return Gtid(domain_id=domain_id, server_id=server_id, seq_no=seq_no)

    def highest_seq_no(self, domain_id: int) -> int | None:
        """The highest sequence number of any server in a domain, if any."""
        servers = self._domains.get(domain_id)
        return max(servers.values()) if servers else None

    def is_continued_by(self, gtid: Gtid) -> bool:
        """Whether a GTID is of a known pair, and newer than all of its domain."""
        servers = self._domains.get(gtid.domain_id)
        return servers is not None and gtid.server_id in servers and gtid.seq_no > max(servers.values())

    @property
    def domain_ids(self) -> list[int]:
        """Every domain with an entry, in no particular order."""
        return list(self._domains)

    def position(self) -> GtidPosition:
        """The latest GTID of every domain: the position of a replica that has everything."""
        return GtidPosition(gtid for domain_id in self._domains if (gtid := self.latest(domain_id)) is not None)

    def is_before(self, position: GtidPosition) -> bool:
        """Whether a replica at `position` lacks nothing that was logged up to this state.
        An equal sequence number counts only where it is the latest of its domain; domains that the replica does not
        name must be empty.
        Source: MariaDB 12.3, sql_repl.cc and rpl_gtid.cc, rpl_binlog_state_base::is_before_pos()."""
        return not self.domains_beyond(position)

    def grows_to(self, later: GtidState) -> bool:
        """Whether each position that lacks something of this state lacks something of a later one, too: that one has
        all of this one, and no server has become the latest without logging."""
        for domain_id, servers in self._domains.items():
            there, *_, latest = later.servers(domain_id), *servers
            latest_there = next(reversed(there), None)
            for server_id, seq_no in servers.items():
                seq_no_there = there.get(server_id)
                if seq_no_there is None or seq_no_there < seq_no:
                    return False
                if seq_no_there == seq_no and server_id == latest_there != latest:
                    return False
        return True

    def domains_beyond(self, position: GtidPosition) -> list[int]:
        return [domain_id for domain_id in self._domains if self._is_beyond(domain_id, position.get(domain_id))]

    def _is_beyond(self, domain_id: int, wanted: Gtid | None) -> bool:
        if wanted is None:
            return True
        seq_no = self.seq_no(domain_id, wanted.server_id)
        if seq_no is None:
            return False
        return seq_no > wanted.seq_no or (seq_no == wanted.seq_no and self.latest(domain_id) != wanted)

    def servers(self, domain_id: int) -> Mapping[int, int]:
        """The last sequence number of each server in a domain, the latest server last."""
        return self._domains.get(domain_id, {})

    def __iter__(self) -> Iterator[Gtid]:
        """Every pair, domains together, the latest of a domain last."""
        for domain_id, servers in self._domains.items():
            for server_id, seq_no in servers.items():
                yield Gtid(domain_id=domain_id, server_id=server_id, seq_no=seq_no)

    def __len__(self) -> int:
        return sum(map(len, self._domains.values()))

    def __eq__(self, other: object) -> bool:
        """Same pairs and same latest pair in each domain, whatever the order of the others."""
        if not isinstance(other, GtidState):
            return NotImplemented
        return self._domains == other._domains and self.position() == other.position()

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __str__(self) -> str:
        return ",".join(map(str, self))

    def __repr__(self) -> str:
        return f"GtidState({str(self)!r})"
