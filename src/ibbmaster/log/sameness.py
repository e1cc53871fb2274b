"""Whether two groups are the same transaction, as a server logs it or a replica of it.

A log asks here what to do with a group whose GTID it has already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import chain

from ibbmaster.codec.buffer import Buffer
from ibbmaster.event.essence import OF_REPLICA, Essence, Sums, first_difference
from ibbmaster.event.group import EventGroup
from ibbmaster.event.split import events_of
from ibbmaster.event.types import type_name
from ibbmaster.log.event_groups import EVENT_SIZE_MAX
from ibbmaster.log.large_rows import large_rows

KEPT_BYTES_MAX = 1 << 20  # of a group's events; those of a longer one are summed while they are read
DIGEST_SIZE = 16
ESSENCE = Essence(OF_REPLICA, large_rows())


class Content:
    """What is compared of a group; reading its events is done once this is made.

    Raises EventError: an event is damaged; of a short group when it is compared with one of other bytes.
    """

    def __init__(self, pieces: Iterable[Buffer]) -> None:
        """The bytes of all events, the GTID event first, cut anywhere."""
        self._data: bytes | None = None
        self._sums: Sums | None = None
        kept: list[bytes] = []
        size, pieces = 0, iter(pieces)
        for piece in pieces:
            kept.append(bytes(piece))
            size += len(piece)
            if size > KEPT_BYTES_MAX:
                self._sums = ESSENCE.sums(events_of(chain(kept, pieces), size_max=EVENT_SIZE_MAX))
                return
        self._data = b"".join(kept)

    @classmethod
    def of(cls, group: EventGroup) -> Content:
        """That of a group, whose body is read."""
        return cls(chain((group.gtid_event,), group.body))

    @property
    def sums(self) -> Sums:
        if self._sums is None:
            assert self._data is not None
            self._sums = ESSENCE.sums(events_of((self._data,), size_max=EVENT_SIZE_MAX))
        return self._sums

    @property
    def digest(self) -> bytes:
        """One of all that is compared."""
        return hashlib.blake2b(b"".join(one for _, one in self.sums), digest_size=DIGEST_SIZE).digest()

    def is_same(self, other: Content) -> bool:
        """Whether both are one transaction."""
        return (self._data is not None and self._data == other._data) or self.sums == other.sums

    def difference(self, other: Content) -> str:
        """In which event the other is not the same, for people."""
        number = first_difference(self.sums, other.sums) or 0
        mine, theirs = (type_name(one.sums[number][0]) if number < len(one.sums) else "" for one in (self, other))
        if mine == theirs:
            return f"event {number}, {mine}, differs"
        return f"event {number} is {theirs or 'not there'}, {mine or 'nothing'} was expected"
