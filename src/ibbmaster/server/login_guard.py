"""Logins that were wrong: who guesses waits, longer each time, and others do not.

- The answer to a wrong login comes late: by what its address and its account got wrong before.
- An address that got much wrong has few logins answered at a time, each of which counts until its
  late answer was due, whether or not the client waits for that: to guess in parallel gains nothing.
  The others of that address wait their turn, first come, first served, right ones and wrong ones
  alike; no more wait than get their turn within the longest delay, and the rest is turned away.
- Who has logged in before, from the same address to the same account, does not wait after those: that
  pair's logins are looked at before their turn, and answered at once if they are right, as long as few
  are wrong. A wrong one waits like any other: the time reveals neither accounts nor who has used them.
- A right login is answered at once from all addresses that got little wrong.
- What is remembered is bounded, and forgotten with time.
"""

from __future__ import annotations

import functools
import ipaddress
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

FREE_TRIES = 5  # wrong ones that cost nothing
DELAY_MAX_S = 8.0  # of an answer, and of the wait for a turn: clients give up after 10 s
DECAY_S = 10.0  # after which one wrong login is forgotten
COUNT_MAX = 30  # so that everything is forgotten after five minutes
JUDGED_MAX = 8  # at a time, of an address that guesses: one a second, once answers are as late as they can be
WAITING_MAX = JUDGED_MAX  # of an address: all of them get their turn within DELAY_MAX_S
EARLY_MAX = 2  # wrong ones of an address and account that belong together are looked at early, in each DELAY_MAX_S
REMEMBERED_MAX = 10_000  # addresses, and as many accounts
NETWORK_BITS = 64  # of an IPv6 address: what one customer is given


Pair = tuple[str, int]  # address, and hash of the account's name


@dataclass(slots=True)
class _Wrong:
    """Wrong logins of one account or address."""

    count: float = 0.0
    at: float = -math.inf  # when that was counted
    judged: list[float] = field(default_factory=list)  # until when each login counts that was wrong
    turn: trio.Lock = field(default_factory=trio.Lock)  # of the next one: fair

    def decay(self, now: float) -> None:
        self.count = max(self.count - (now - self.at) / DECAY_S, 0.0) if self.count else 0.0
        self.at = now

    @property
    def delay_s(self) -> float:
        return 0.0 if self.count <= FREE_TRIES else min(2.0 ** (math.ceil(self.count - FREE_TRIES) - 1), DELAY_MAX_S)

    def busy_until(self, now: float) -> float | None:
        """When the next login may have its turn; None: now."""
        self.decay(now)
        self.judged = [until for until in self.judged if until > now]
        if not self.delay_s or len(self.judged) < JUDGED_MAX:
            return None
        return min(self.judged)

    @property
    def waiting(self) -> int:
        """How many logins wait for their turn."""
        statistics = self.turn.statistics()
        return statistics.locked + statistics.tasks_waiting


class LoginGuard:
    """What one primary remembers. `clock` gives seconds that only grow.

    Attributes:
        delayed, refused: how many answers came late, and how many logins were wrong.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._addresses: OrderedDict[str, _Wrong] = OrderedDict()
        self._accounts: OrderedDict[int, _Wrong] = OrderedDict()
        self._early: OrderedDict[Pair, list[float]] = OrderedDict()  # who logged in, and until when each look counts
        self.delayed = self.refused = 0

    async def answer_delay(self, host: str, user: str, *, is_right: bool) -> float | None:
        """Wait for the turn of a login; returns for how many seconds its answer is to be held back.

        None if too many of its address wait already: it is turned away, whether or not it is right.
        """
        address = address_key(host)
        pair = address, hash(user)
        if self._is_early(pair, is_right=is_right) and is_right:
            return 0.0
        wrong = self._addresses.get(address)
        if wrong is None or (not wrong.waiting and wrong.busy_until(self._clock()) is None):
            return self._judge(host, user, pair, is_right=is_right)
        if wrong.waiting >= WAITING_MAX:
            return None
        async with wrong.turn:
            while (until := wrong.busy_until(now := self._clock())) is not None:
                await trio.sleep(max(until - now, 0.001))
            return self._judge(host, user, pair, is_right=is_right)

    def _judge(self, host: str, user: str, pair: Pair, *, is_right: bool) -> float:
        if is_right:
            self._early.setdefault(pair, [])
            self._early.move_to_end(pair)
            if len(self._early) > REMEMBERED_MAX:
                self._early.popitem(last=False)
            return 0.0
        delay = self.note_wrong(host, user)
        if delay:
            self._addresses[pair[0]].judged.append(self._clock() + delay)
        return delay

    def _is_early(self, pair: Pair, *, is_right: bool) -> bool:
        """Whether a login of a pair that has logged in before is looked at before its turn; wrong ones count."""
        looked_at = self._early.get(pair)
        if looked_at is None:
            return False
        now = self._clock()
        looked_at[:] = [until for until in looked_at if until > now]
        if len(looked_at) >= EARLY_MAX:
            return False
        if not is_right:
            looked_at.append(now + DELAY_MAX_S)
        return True

    def note_wrong(self, host: str, user: str) -> float:
        """Count a wrong login; returns for how many seconds its answer is to be held back."""
        self.refused += 1
        now = self._clock()
        delay = 0.0
        for wrong in (_of(self._addresses, address_key(host)), _of(self._accounts, hash(user))):
            wrong.decay(now)
            wrong.count = min(wrong.count + 1, COUNT_MAX)
            delay = max(delay, wrong.delay_s)
        self.delayed += bool(delay)
        return delay

    def slowed_addresses(self) -> int:
        """How many addresses wait for their answers now."""
        now = self._clock()
        for wrong in self._addresses.values():
            wrong.decay(now)
        return sum(bool(wrong.delay_s) for wrong in self._addresses.values())


@functools.lru_cache(1024)
def address_key(host: str) -> str:
    """What counts as one address: of IPv6 a network."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, NETWORK_BITS), strict=False))


def _of(table: OrderedDict[str, _Wrong] | OrderedDict[int, _Wrong], key: object) -> _Wrong:
    """The entry of a key; of too many the one is forgotten that was used longest ago."""
    entries: OrderedDict[object, _Wrong] = table  # type: ignore[assignment]
    found = entries.setdefault(key, _Wrong())
    entries.move_to_end(key)
    if len(entries) > REMEMBERED_MAX:
        entries.popitem(last=False)
    return found
