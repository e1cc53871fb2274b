"""VECTOR: numbers of four bytes in a VARCHAR; known by the declared type alone."""

from __future__ import annotations

import struct

_NUMBER = struct.Struct("<f")


def vector_of(data: bytes) -> tuple[float, ...]:
    """The numbers of a stored VECTOR.

    Raises:
        ValueError: the bytes are no whole numbers of four.
    """
    if len(data) % _NUMBER.size:
        raise ValueError(f"a vector of {len(data)} bytes")
    return tuple(number for (number,) in _NUMBER.iter_unpack(data))
