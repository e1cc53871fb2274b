"""Pages in memory, filled by an appender, and their SHA-256 as the format's examples give it."""

import hashlib
from pathlib import Path

import pytest

PAGE = 16384


@pytest.fixture
def pat():
    """The filling of the examples: byte i is (7 i + start) mod 256."""
    return lambda size, start: bytes((7 * i + start) % 256 for i in range(size))


@pytest.fixture
def digest():
    return lambda disk, file_no: hashlib.sha256(disk.files[f"binlog-{file_no:06d}.ibb"]).hexdigest()


@pytest.fixture(scope="session")
def mariadb_files():
    """The `.ibb` files that MariaDB's own engine code wrote: path -> bytes, those in use alone."""
    folder = Path(__file__).parents[3] / "fixtures" / "ibb-mariadb"
    found = {path: path.read_bytes() for path in sorted(folder.glob("*/*.ibb"))}
    return {path: data for path, data in found.items() if any(data)}


@pytest.fixture(scope="session")
def mariadb_chunks(mariadb_files):
    """Every chunk of those files, cut here: (type byte, data). Page borders end a run of chunks, and so does 0."""
    found = []
    for data in mariadb_files.values():
        for page in range(PAGE, len(data), PAGE):
            offset = page
            while offset + 4 <= page + PAGE - 4 and data[offset] not in (0x00, 0xFF):
                size = int.from_bytes(data[offset + 1 : offset + 3], "little")
                found.append((data[offset], data[offset + 3 : offset + 3 + size]))
                offset += 3 + size
    return found


@pytest.fixture(scope="session")
def mariadb_records(mariadb_chunks):
    found = {}
    for type_byte, data in mariadb_chunks:
        if type_byte & 0xC0 == 0x40:
            found.setdefault(type_byte & 0x3F, []).append(data)
    return found
