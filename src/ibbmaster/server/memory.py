"""What sessions keep: each a little by right, and what is more out of one store for all of them.

So what all accounts together can have this process keep is bounded, and a session that keeps next to
nothing, as that of a replica, finds its room whatever the others have.
"""

from __future__ import annotations

import threading

from ibbmaster.wire.refusal import out_of_memory

OWN_BYTES = 64 << 10  # of each session: more than any replica or CDC client sets before its dump
SHARED_BYTES_MAX = 64 << 20  # of all sessions together


class SharedMemory:
    """The store, of which one account can take three quarters. Thread-safe."""

    def __init__(self, size_max: int = SHARED_BYTES_MAX) -> None:
        self._size_max = size_max
        self._taken: dict[str, int] = {}  # by account
        self._lock = threading.Lock()

    def change(self, user: str, size: int) -> bool:
        """Take a number of bytes, or release a negative one; False, and nothing is taken, if there are too few."""
        with self._lock:
            taken = self._taken.get(user, 0) + size
            if size > 0 and (taken > self._size_max * 3 // 4 or self.size + size > self._size_max):
                return False
            self._taken[user] = taken
            if not taken:
                del self._taken[user]
            return True

    @property
    def size(self) -> int:
        """Bytes that are taken."""
        return sum(self._taken.values())


class SessionMemory:
    """What one session keeps, by what it is."""

    def __init__(self, shared: SharedMemory) -> None:
        self._shared = shared
        self.user = ""  # the account, which is there before anything is kept
        self._kept: dict[str, int] = {}
        self._size = 0  # of all that
        self._taken = 0  # of the store

    def hold(self, what: str, size: int) -> None:
        """Note the number of bytes that `what` has now. Raises RefusedError: there is no room for more; what was noted
        before stays."""
        whole = self._size + size - self._kept.get(what, 0)
        wanted = max(whole - OWN_BYTES, 0)
        if wanted != self._taken and not self._shared.change(self.user, wanted - self._taken):
            raise out_of_memory(f"all sessions together keep too much, here in {what}")
        self._kept[what], self._size, self._taken = size, whole, wanted

    def close(self) -> None:
        """The session keeps nothing any more."""
        self._shared.change(self.user, -self._taken)
        self._kept, self._size, self._taken = {}, 0, 0
