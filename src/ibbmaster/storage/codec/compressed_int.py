"""Compressed integers: 64 bits in 1 to 7 or 9 bytes. Layout: protocol/ibb/compressed-int.md."""

from .buffer import Buffer

TAG_BITS = 3  # the low bits of the first byte say how many bytes follow it
TAG_MASK = (1 << TAG_BITS) - 1
TAG_NINE_BYTES = 7  # there is no form of 8 bytes
VALUE_MAX = 2**64 - 1
SIZE_MAX = 9


def encode(value: int) -> bytes:
    """The shortest form of a number from 0 to `VALUE_MAX`."""
    assert 0 <= value <= VALUE_MAX, value
    size = (value.bit_length() + TAG_BITS + 7) // 8 or 1
    if size >= 8:
        return (value << TAG_BITS | TAG_NINE_BYTES).to_bytes(SIZE_MAX, "little")
    return (value << TAG_BITS | size - 1).to_bytes(size, "little")


def decode(data: Buffer, offset: int) -> tuple[int, int]:
    """The number at `offset`, and the offset after it. Raises ValueError: it runs over the end of `data`, or needs more
    than 64 bits. Source: MariaDB 12.3, compr_int.h, compr_int_read()."""
    if offset >= len(data):
        raise ValueError("a compressed integer starts at the end of the data")
    first = data[offset]
    if first & TAG_MASK == 0:  # one byte: by far the most frequent
        return first >> TAG_BITS, offset + 1
    size = SIZE_MAX if first & TAG_MASK == TAG_NINE_BYTES else (first & TAG_MASK) + 1
    end = offset + size
    if end > len(data):
        raise ValueError(f"a compressed integer of {size} bytes runs {end - len(data)} bytes over the end of the data")
    value = int.from_bytes(data[offset:end], "little") >> TAG_BITS
    if value > VALUE_MAX:
        raise ValueError("a compressed integer needs more than 64 bits")
    return value, end
