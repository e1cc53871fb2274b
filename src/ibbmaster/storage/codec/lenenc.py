"""Length-encoded integers and strings of the client protocol. Layout: protocol/wire/packet.md."""

from .buffer import Buffer

NULL = 0xFB  # a row value that is NULL
TWO_BYTES = 0xFC
THREE_BYTES = 0xFD
EIGHT_BYTES = 0xFE
_SIZES = {TWO_BYTES: 2, THREE_BYTES: 3, EIGHT_BYTES: 8}


def encode_int(value: int) -> bytes:
    """The shortest form of a number below 2**64."""
    assert 0 <= value < 2**64, value
    if value < NULL:
        return bytes((value,))
    if value < 1 << 16:
        return b"\xfc" + value.to_bytes(2, "little")
    if value < 1 << 24:
        return b"\xfd" + value.to_bytes(3, "little")
    return b"\xfe" + value.to_bytes(8, "little")


def decode_int(data: Buffer, offset: int) -> tuple[int, int]:
    """The number at `offset`, and the offset after it.
    Raises ValueError: the number runs over the end of `data`, or its first byte starts none."""
    if offset >= len(data):
        raise ValueError("a length-encoded integer starts at the end of the data")
    first = data[offset]
    if first < NULL:
        return first, offset + 1
    size = _SIZES.get(first)
    if size is None:
        raise ValueError(f"byte {first:#04x} starts no length-encoded integer")
    end = offset + 1 + size
    if end > len(data):
        raise ValueError(f"a length-encoded integer runs {end - len(data)} bytes over the end of the data")
    return int.from_bytes(data[offset + 1 : end], "little"), end


def encode_bytes(value: bytes) -> bytes:
    """A length-encoded string."""
    return encode_int(len(value)) + value


def decode_bytes(data: Buffer, offset: int) -> tuple[bytes, int]:
    """A copy of the string at `offset`, and the offset after it.
    Raises ValueError: the length or the string runs over the end of `data`."""
    size, start = decode_int(data, offset)
    end = start + size
    if end > len(data):
        raise ValueError(f"a string of {size} bytes runs {end - len(data)} bytes over the end of the data")
    return bytes(data[start:end]), end
