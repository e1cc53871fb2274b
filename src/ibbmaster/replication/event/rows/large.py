"""Row events that may be larger than the memory: the place of their bytes, and the most they may have."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.storage.codec.buffer import Buffer
from ..header import EVENT_HEADER_SIZE

SIZE_MAX = (1 << 32) - 1  # bytes: an event has its size in four of them
KEPT_SIZE_MAX = 64 << 20  # a server writes wholes of more than 1 GiB


class RowSink(Protocol):
    def write(self, data: Buffer) -> None: ...

    def whole(self) -> Buffer: ...


@dataclass(frozen=True, slots=True)
class LargeRows:
    """Limits of row events in bytes: more than `size_max` is refused, more than `kept_max` goes where `hold` says, if
    given."""

    hold: Callable[[], RowSink] | None = None
    size_max: int = SIZE_MAX
    kept_max: int = KEPT_SIZE_MAX

    def __post_init__(self) -> None:
        if not EVENT_HEADER_SIZE < self.size_max <= SIZE_MAX:
            raise ConfigurationError(
                f"max_row_event_bytes {self.size_max}: expected more than {EVENT_HEADER_SIZE} and at most {SIZE_MAX}"
            )

    def check(self, size: int) -> None:
        """Raise EventError if a row event is too large; the text names the options that allow it."""
        if size > self.size_max:
            what = f"a row event of {size} bytes, put together or unpacked, and at most {self.size_max} are taken"
            how = "max_row_event_bytes, in Spark maxRowEventBytes, of serve --max-row-event-bytes raises that"
            raise EventError(f"{what}; {how}" if size <= SIZE_MAX else f"{what}, as an event can have")

    def joined(self, pieces: Iterable[Buffer], size: int) -> bytes:
        """All pieces, `size` bytes: in memory, or in a sink that can be read and cut as `bytes` can."""
        if self.hold is None or size <= self.kept_max:
            return b"".join(pieces)
        sink = self.hold()
        for piece in pieces:
            sink.write(piece)
        return sink.whole()  # type: ignore[return-value]


ALL_ROWS = LargeRows()
