"""Answers to wrong logins come late, later each time; right ones come at once.

- Only earlier wrong logins of the address and of the account count.
- Guessing in parallel gains little: of one address and account `LOOKS_A_SECOND` wrong logins are looked at. Further
  ones wait for their turn, right or wrong, or are turned away.
- A wrong login of an unknown account counts as any other: the time reveals no accounts.
- The memory is bounded, and forgets with time.
"""

import functools
import ipaddress
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import trio

from ibbmaster.replication.wire.auth import peer_address

FREE_TRIES = 5  # wrong ones that cost nothing
DELAY_MAX_S = 8.0  # of an answer: clients give up after 10 s
DECAY_S = 10.0  # after which one wrong login is forgotten
COUNT_MAX = 30  # so that everything is forgotten after five minutes
LOOKS_A_SECOND = 200  # of wrong logins: enough for a hundred that guess from one address without waiting
LOOKS_MAX = 400  # of them at once
WAIT_MAX_S = 2.0  # for a turn after those
REMEMBERED_MAX = 10_000  # addresses, as many accounts, and as many pairs of them
NETWORK_BITS = 64  # of an IPv6 address: what one customer is given

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(slots=True)
class _Wrong:
    count: float = 0.0
    at: float = -math.inf

    def decay(self, now: float) -> None:
        self.count = max(self.count - (now - self.at) / DECAY_S, 0.0) if self.count else 0.0
        self.at = now

    @property
    def delay_s(self) -> float:
        return 0.0 if self.count <= FREE_TRIES else min(2.0 ** (math.ceil(self.count - FREE_TRIES) - 1), DELAY_MAX_S)


class LoginGuard:
    """`clock` gives seconds that only grow."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._addresses: OrderedDict[str, _Wrong] = OrderedDict()
        self._accounts: OrderedDict[int, _Wrong] = OrderedDict()
        self._looks: OrderedDict[tuple[str, int], float] = OrderedDict()  # until when those of a pair are paid
        self.delayed = self.refused = 0  # late answers, wrong logins

    async def answer_delay(self, host: str, user: str, *, is_right: bool) -> float | None:
        """Wait for the turn of a login; returns the seconds to hold back its answer. None: too many of its address and
        account wait, and it is turned away, right or wrong.
        """
        now, pair = self._clock(), (address_key(host), hash(user))
        paid_until = max(self._looks.get(pair, now), now)
        wait_s = paid_until - now - LOOKS_MAX / LOOKS_A_SECOND
        if wait_s > WAIT_MAX_S:
            return None
        if not is_right:
            _keep(self._looks, pair, paid_until + 1 / LOOKS_A_SECOND)
        if wait_s > 0:
            await trio.sleep(wait_s)
        return 0.0 if is_right else self.note_wrong(host, user)

    def note_wrong(self, host: str, user: str) -> float:
        """Returns the seconds to hold back the answer."""
        self.refused += 1
        now = self._clock()
        delay = 0.0
        address, account = address_key(host), hash(user)
        found = (
            _keep(self._addresses, address, self._addresses.get(address) or _Wrong()),
            _keep(self._accounts, account, self._accounts.get(account) or _Wrong()),
        )
        for wrong in found:
            wrong.decay(now)
            wrong.count = min(wrong.count + 1, COUNT_MAX)
            delay = max(delay, wrong.delay_s)
        self.delayed += bool(delay)
        return delay

    def slowed_addresses(self) -> int:
        now = self._clock()
        for wrong in self._addresses.values():
            wrong.decay(now)
        return sum(bool(wrong.delay_s) for wrong in self._addresses.values())


@functools.lru_cache(1024)
def address_key(host: str) -> str:
    """The address, or the network of an IPv6 address."""
    address = peer_address(host)
    if address is None:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, NETWORK_BITS), strict=False))


def _keep(table: OrderedDict[Key, Value], key: Key, value: Value) -> Value:
    """Forget what was kept longest ago if there is too much."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > REMEMBERED_MAX:
        table.popitem(last=False)
    return value
