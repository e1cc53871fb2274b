"""Pages in memory, filled by an appender, and their SHA-256 as the format's examples give it."""

from __future__ import annotations

import hashlib

import pytest

from ibbmaster.testing.disk import MemoryDisk


def pattern(size: int, start: int) -> bytes:
    """The filling of the examples: byte i is (7 i + start) mod 256."""
    return bytes((7 * i + start) % 256 for i in range(size))


def sha256(disk: MemoryDisk, file_no: int) -> str:
    return hashlib.sha256(disk.files[f"binlog-{file_no:06d}.ibb"]).hexdigest()


@pytest.fixture
def pat():
    return pattern


@pytest.fixture
def digest():
    return sha256
