"""Logins that were wrong: who guesses waits, longer each time, and nobody else does.

- The answer to a wrong login comes late: by what its address and its account got wrong before.
- An address that got much wrong has few logins judged at a time, each of which counts until its
  late answer was due, whether or not the client waits for that: to guess in parallel gains nothing.
- A right login is answered at once, from other addresses always, and from the same one as soon as it is judged.
- What is remembered is bounded, and forgotten with time.
"""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

FREE_TRIES = 5  # wrong ones that cost nothing
DELAY_MAX_S = 8.0  # below LOGIN_TIMEOUT_S: who waits for a place shall not wait in vain
DECAY_S = 10.0  # after which one wrong login is forgotten
COUNT_MAX = 30  # so that everything is forgotten after five minutes
JUDGED_MAX = 8  # at a time, of an address that guesses: one a second, once answers are as late as they can be
REMEMBERED_MAX = 10_000  # addresses, and as many accounts
NETWORK_BITS = 64  # of an IPv6 address: what one customer is given


@dataclass(slots=True)
class _Wrong:
    """What somebody got wrong."""

    count: float = 0.0
    at: float = -math.inf  # when that was counted
    judged: list[float] = field(default_factory=list)  # until when each login counts that is judged

    def decay(self, now: float) -> None:
        self.count = max(self.count - (now - self.at) / DECAY_S, 0.0) if self.count else 0.0
        self.at = now

    @property
    def delay_s(self) -> float:
        return 0.0 if self.count <= FREE_TRIES else min(2.0 ** (math.ceil(self.count - FREE_TRIES) - 1), DELAY_MAX_S)


class LoginGuard:
    """What one primary remembers. `clock` gives seconds that only grow.

    Attributes:
        delayed, refused: how many answers came late, and how many logins were wrong.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._addresses: OrderedDict[str, _Wrong] = OrderedDict()
        self._accounts: OrderedDict[int, _Wrong] = OrderedDict()
        self.delayed = self.refused = 0

    async def wait_for_turn(self, host: str) -> LoginTurn:
        """Return when a login from this address may be judged: at once, but where much was wrong."""
        turn = LoginTurn(self, host)
        while (until := self._busy_until(host)) is not None:
            await trio.sleep(max(until - self._clock(), 0.01))
        wrong = self._addresses.get(address_key(host))
        if wrong is not None and wrong.delay_s:
            wrong.judged.append(math.inf)
            turn.has_place = True
        return turn

    def _busy_until(self, host: str) -> float | None:
        """When to look again whether an address may have one more login judged; None: it may now."""
        wrong = self._addresses.get(address_key(host))
        if wrong is None:
            return None
        now = self._clock()
        wrong.decay(now)
        wrong.judged = [until for until in wrong.judged if until > now]
        if not wrong.delay_s or len(wrong.judged) < JUDGED_MAX:
            return None
        return min(min(wrong.judged), now + 1.0)

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

    def leave_place(self, host: str, until: float) -> None:
        """A login was judged: it counts up to a moment."""
        wrong = self._addresses.get(address_key(host))
        if wrong is not None and math.inf in wrong.judged:
            wrong.judged.remove(math.inf)
            wrong.judged.append(until)

    def slowed_addresses(self) -> int:
        """How many addresses wait for their answers now."""
        now = self._clock()
        for wrong in self._addresses.values():
            wrong.decay(now)
        return sum(bool(wrong.delay_s) for wrong in self._addresses.values())


class LoginTurn:
    """A login that is judged."""

    def __init__(self, guard: LoginGuard, host: str) -> None:
        self._guard = guard
        self._host = host
        self.has_place = False

    def end(self, delay_s: float = 0.0) -> None:
        """It was judged, or will not be; its answer is held back for so long. A second call does nothing."""
        if self.has_place:
            self.has_place = False
            self._guard.leave_place(self._host, self._guard._clock() + delay_s)


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
