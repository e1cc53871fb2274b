"""The one name for readable bytes: what every decoder takes."""

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


def is_zero(data: Buffer) -> bool:
    """Whether all bytes are zero, as those of a page that is pre-allocated; no bytes are, too."""
    return not data or (not data[0] and bytes(data) == bytes(len(data)))  # a comparison of memory
