"""Reads the body of an event field by field."""

from ibbmaster.errors import EventError
from ibbmaster.storage.codec import lenenc
from ibbmaster.storage.codec.buffer import Buffer


class Fields:
    """Its methods raise EventError where the body ends too early; `what` and `early` are words of that error."""

    def __init__(self, body: Buffer, what: str, offset: int = 0, early: str = "early") -> None:
        self._body, self._what, self._early = body, what, early
        self.offset = offset

    @property
    def left(self) -> int:
        return len(self._body) - self.offset

    def take(self, size: int) -> bytes:
        start = self.offset
        if size > len(self._body) - start:
            raise EventError(f"{self._what} ends {size - self.left} bytes {self._early}")
        self.offset += size
        return bytes(self._body[start : self.offset])

    def take_int(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def take_lenenc(self) -> int:
        try:
            value, self.offset = lenenc.decode_int(self._body, self.offset)
        except ValueError as error:
            raise EventError(f"{self._what}: {error}") from None
        return value

    def expect_end(self, what: str) -> None:
        if self.left:
            raise EventError(f"{self._what} has {self.left} bytes behind its {what}")
