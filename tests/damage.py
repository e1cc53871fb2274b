"""Damage to what tests read."""

from collections.abc import Iterator
from pathlib import Path


def flip(path: Path, offset: int, bits: int = 1) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ bits]))


def flipped(data: bytes, first: int = 0, step: int = 1) -> Iterator[bytes]:
    """Copies with one bit flipped: every `step`-th from byte `first` on."""
    for bit in range(first * 8, len(data) * 8, step):
        copy = bytearray(data)
        copy[bit // 8] ^= 1 << bit % 8
        yield bytes(copy)
