"""UUID, INET4 and INET6 as text. In rows they look like BINARY; they are known by the declared type alone."""

import uuid

UUID_SIZE = 16
INET4_SIZE = 4
INET6_SIZE = 16
UUID_VARIANT_BIT = 0x80
REORDERED_VARIANT_BYTE = 6  # where a stored UUID in reverse order has its variant ...
REORDERED_VERSION_BYTE = 8  # ... and its version
REORDERED_VERSION_END = 0x60  # later versions sort by time as they are, and are stored so
STORED_SEGMENTS = ((10, 16), (8, 10), (6, 8), (4, 6), (0, 4))  # of the text's bytes, in the order they are stored


def uuid_text(data: bytes) -> str:
    """A UUID of a row event, as it reads; or as it is stored, where versions 1 to 5 have their segments in
    reverse order, so that they sort by time. No value that a server takes can be meant in both ways.

    Raises ValueError: not 16 bytes.

    Source: MariaDB 12.3, plugin/type_uuid/sql_type_uuid.h.
    """
    if len(data) != UUID_SIZE:
        raise ValueError(f"a UUID of {len(data)} bytes")
    if data[REORDERED_VARIANT_BYTE] & UUID_VARIANT_BIT and 0 < data[REORDERED_VERSION_BYTE] < REORDERED_VERSION_END:
        parts = {}
        offset = 0
        for start, end in STORED_SEGMENTS:
            parts[start] = data[offset : offset + end - start]
            offset += end - start
        data = b"".join(parts[start] for start in sorted(parts))
    text = data.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def uuid_bytes(text: str) -> bytes:
    """A UUID as real servers write it into row events: as it reads, whatever its version. Raises ValueError: the text
    is none."""
    return uuid.UUID(text).bytes


def inet4_text(data: bytes) -> str:
    """Four bytes as dotted decimals. Raises ValueError: not 4 bytes."""
    if len(data) != INET4_SIZE:
        raise ValueError(f"an INET4 of {len(data)} bytes")
    return ".".join(map(str, data))


def inet6_text(data: bytes) -> str:
    """Sixteen bytes as MariaDB writes them: the longest run of zero words short, even if it is one, IPv4 in decimals.
    Raises ValueError: not 16 bytes. Source: MariaDB 12.3, plugin/type_inet/sql_type_inet.cc, Inet6::to_string()."""
    if len(data) != INET6_SIZE:
        raise ValueError(f"an INET6 of {len(data)} bytes")
    words = [int.from_bytes(data[start : start + 2], "big") for start in range(0, INET6_SIZE, 2)]
    gap_start, gap_size = _longest_gap(words)
    is_compatible = gap_start == 0 and gap_size == 6
    is_mapped = gap_start == 0 and gap_size == 5 and words[5] == 0xFFFF
    count = 6 if is_compatible or is_mapped else 8
    tail = [inet4_text(data[12:])] if count == 6 else []
    texts = [*(f"{word:x}" for word in words[:count]), *tail]
    if not gap_size:
        return ":".join(texts)
    return f"{':'.join(texts[:gap_start])}::{':'.join(texts[gap_start + gap_size :])}"


def _longest_gap(words: list[int]) -> tuple[int, int]:
    """Start and length of the first longest run of zero words."""
    best = (0, 0)
    start = 0
    for index, word in enumerate([*words, 1]):
        if word:
            if index - start > best[1]:
                best = (start, index - start)
            start = index + 1
    return best
