import os
import re

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.user_cache import cache_directory, distrust, make_directory, program_directory

STRANGER = 54321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def place(tmp_path):
    """A file in a cache, with a directory above it that may be opened to others."""
    path = tmp_path / "above" / "cache" / "file"
    make_directory(path.parent)
    path.write_bytes(b"x")
    path.chmod(0o644)
    return path


def test_what_is_its_user_s_alone_is_believed_also_below_a_sticky_directory(place):
    assert distrust(place) is None
    above = place.parent.parent
    above.chmod(0o1777)
    assert distrust(place) is None
    assert distrust(above) == f"other users can write {above}"


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
@pytest.mark.parametrize("which", [0, 1, 2], ids=["file", "its directory", "the one above"])
def test_what_others_can_write_is_not(place, which, mode):
    opened = [place, *place.parents][which]
    opened.chmod(mode)
    assert distrust(place) == f"other users can write {opened}"


@as_root
@pytest.mark.parametrize("which", [0, 1, 2], ids=["file", "its directory", "the one above"])
def test_what_belongs_to_another_user_is_not(place, which):
    given = [place, *place.parents][which]
    os.chown(given, STRANGER, -1)
    assert distrust(place) == f"{given} belongs to user {STRANGER}"
    assert distrust(place, owners=[STRANGER]) is None


def test_a_link_is_followed_step_by_step_and_not_in_a_circle(place, tmp_path):
    (tmp_path / "one").symlink_to("above/../two")
    (tmp_path / "two").symlink_to(place.parent)
    assert distrust(tmp_path / "one" / "file") is None
    place.parent.chmod(0o777)
    assert distrust(tmp_path / "one" / "file") == f"other users can write {place.parent}"
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="levels of symbolic links"):
        distrust(tmp_path / "link")


def test_a_link_that_others_can_replace_is_not_followed(place, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "link").symlink_to(place)
    (tmp_path / "link").symlink_to(shared / "link")
    assert distrust(tmp_path / "link") == f"other users can write {shared}"


@as_root
def test_a_link_of_another_user_is_not_followed(place, tmp_path):
    (tmp_path / "link").symlink_to(place)
    os.chown(tmp_path / "link", STRANGER, -1, follow_symlinks=False)
    assert distrust(tmp_path / "link") == f"{tmp_path / 'link'} belongs to user {STRANGER}"


def test_what_is_not_there_is_judged_by_where_it_would_be(place):
    missing = place.parent / "not" / "there"
    assert distrust(missing) is distrust(place / "below a file") is None
    place.parent.chmod(0o777)
    assert distrust(missing) == f"other users can write {place.parent}"


def test_a_directory_that_is_made_is_for_its_user_to_write_whatever_the_umask_is(tmp_path):
    before = os.umask(0)
    try:
        make_directory(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert distrust(tmp_path / "a" / "b") is None
    make_directory(tmp_path / "a")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_directory(tmp_path / "file")


def test_the_directory_of_all_caches_is_that_of_the_user(tmp_path, monkeypatch):
    assert str(cache_directory({"XDG_CACHE_HOME": "/srv/cache"})) == "/srv/cache/ibbmaster"
    monkeypatch.setenv("HOME", "/home/u")
    assert str(cache_directory({})) == "/home/u/.cache/ibbmaster"


def test_no_program_is_run_from_where_others_can_put_one(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert program_directory() == tmp_path / "ibbmaster"
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigurationError, match=rf"^nothing is run from {re.escape(str(tmp_path))}/ibbmaster: other"):
        program_directory()
    monkeypatch.setattr("ibbmaster.user_cache.cache_directory", lambda: None)
    with pytest.raises(ConfigurationError, match="let XDG_CACHE_HOME name one"):
        program_directory()
