"""VECTOR: numbers of four bytes in a VARCHAR; known by the declared type alone."""

from __future__ import annotations

import struct

_NUMBER = struct.Struct("<f")
VECTOR_NUMBER_SIZE = _NUMBER.size


def vector_of(data: bytes) -> tuple[float, ...]:
    """The numbers of a stored VECTOR. Raises ValueError: the bytes are no whole numbers of four."""
    if len(data) % _NUMBER.size:
        raise ValueError(f"a vector of {len(data)} bytes")
    return tuple(number for (number,) in _NUMBER.iter_unpack(data))


def vector_bytes(value: object) -> bytes:
    """A VECTOR as it is stored, from numbers, or a list of them as text; bytes are taken as they are.

    Raises ValueError: that is none.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    numbers = value.strip().removeprefix("[").removesuffix("]").split(",") if isinstance(value, str) else value
    try:
        return b"".join(_NUMBER.pack(float(number)) for number in numbers)  # type: ignore[attr-defined]
    except (TypeError, OverflowError):
        raise ValueError(f"{value!r} is no vector") from None
