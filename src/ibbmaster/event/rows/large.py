"""Row events that may be larger than the memory: where their bytes go, and how many they may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.header import EVENT_HEADER_SIZE

SIZE_MAX = (1 << 32) - 1  # bytes: an event has its size in four of them
KEPT_SIZE_MAX = 64 << 20  # what is more is held elsewhere: the wholes of a server are more than 1 GiB


class RowSink(Protocol):
    """Where a large row event is put together."""

    def write(self, data: Buffer) -> None:
        """Take its next bytes."""

    def whole(self) -> Buffer:
        """All of them."""


@dataclass(frozen=True, slots=True)
class LargeRows:
    """What is done with row events in fragments, and with compressed ones, that are large."""

    hold: Callable[[], RowSink] | None = None  # makes what takes one of more than 64 MiB; None: it stays in memory
    size_max: int = SIZE_MAX  # of a row event, put together and unpacked, in bytes; a larger one is refused
    kept_max: int = KEPT_SIZE_MAX  # what is more, in bytes, is held

    def __post_init__(self) -> None:
        if not EVENT_HEADER_SIZE < self.size_max <= SIZE_MAX:
            raise ConfigurationError(
                f"max_row_event_bytes {self.size_max}: expected more than {EVENT_HEADER_SIZE} and at most {SIZE_MAX}"
            )

    def check(self, size: int) -> None:
        """See that a row event may have this size. Raises EventError: it is too large; the text says who may change
        that."""
        if size > self.size_max:
            what = f"a row event of {size} bytes, put together or unpacked, and at most {self.size_max} are taken"
            how = "max_row_event_bytes, in Spark maxRowEventBytes, of serve --max-row-event-bytes raises that"
            raise EventError(f"{what}; {how}" if size <= SIZE_MAX else f"{what}, as an event can have")


ALL_ROWS = LargeRows()
