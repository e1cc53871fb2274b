"""A cache file is there as a whole or not at all, and is never an error."""

from __future__ import annotations

import os

import pytest

from ibbmaster.disk.cache_file import CacheFile


@pytest.fixture
def cache(tmp_path):
    return CacheFile(tmp_path / "some.cache", size_max=100)


def test_what_was_written_is_read(cache):
    assert cache.read() is None
    assert cache.write(b"one")
    assert cache.write(b"two")
    assert cache.read() == b"two"
    assert [path.name for path in cache.path.parent.iterdir()] == ["some.cache"]


def test_what_is_no_plain_file_or_too_large_is_not_there(cache):
    os.mkfifo(cache.path)
    assert cache.read() is None
    cache.path.unlink()
    cache.path.symlink_to("/etc/passwd")
    assert cache.read() is None
    assert cache.write(b"x" * 101)
    assert not cache.path.is_symlink()
    assert cache.read() is None


def test_where_nothing_can_be_written_nothing_is(tmp_path):
    cache = CacheFile(tmp_path / "missing" / "some.cache", size_max=100)
    assert not cache.write(b"one")
    (tmp_path / "taken").mkdir()
    taken = CacheFile(tmp_path / "taken", size_max=100)
    assert not taken.write(b"one")
    assert taken.read() is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]
