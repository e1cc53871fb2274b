"""The one name for readable bytes: what every decoder takes."""

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


def is_zero(data: Buffer) -> bool:
    """Whether all bytes are zero, as in a pre-allocated page; also of no bytes."""
    return not data or (not data[0] and bytes(data) == bytes(len(data)))  # a comparison of memory
