"""The events of real binlogs, cut by a walker that shares no code with the package."""

from __future__ import annotations

import json
import lzma
import struct
from pathlib import Path

import pytest

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic"
CAPTURES = sorted(
    path.parent.relative_to(CLASSIC).as_posix()
    for path in CLASSIC.glob("*/*/expected.json")
    if path.parent.name not in ("encrypted", "big", "big-none")
)


def events_of(capture: str) -> list[bytes]:
    """Every event of a capture, checksums cut off but that of FORMAT_DESCRIPTION."""
    events = []
    for path in sorted((CLASSIC / capture).glob("binlog.0*")):
        data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        if path.suffix == ".idx":
            continue
        offset, checksum_size = 4, 0
        while offset + 19 <= len(data):
            (size,) = struct.unpack_from("<I", data, offset + 9)
            event = data[offset : offset + size]
            offset += size
            if event[4] == 15:
                checksum_size = 4 if event[-5] else 0
            elif checksum_size:
                event = event[:9] + struct.pack("<I", size - 4) + event[13:-4]
            events.append(event)
    return events


@pytest.fixture(params=CAPTURES)
def capture(request):
    return request.param


@pytest.fixture
def events(capture):
    return events_of(capture)


@pytest.fixture
def expected(capture):
    return json.loads((CLASSIC / capture / "expected.json").read_text())


@pytest.fixture(scope="session")
def sample_events():
    """One event of each type and size class, of all captures."""
    found: dict[tuple[int, int], bytes] = {}
    for capture in CAPTURES:
        for event in events_of(capture):
            found.setdefault((event[4], len(event) // 40), event)
    return [event for event in found.values() if len(event) < 1000]
