import os

import pytest

from ibbmaster.storage.disk.cache_file import CacheFile


@pytest.fixture
def cache(tmp_path):
    return CacheFile(tmp_path / "some.cache", size_max=100)


def test_what_was_written_is_read_unless_others_can_write_there(cache):
    assert cache.read() is None
    assert cache.write(b"one")
    assert cache.write(b"two")
    assert cache.read() == b"two"
    assert [path.name for path in cache.path.parent.iterdir()] == ["some.cache"]
    cache.write(b"one")
    cache.path.parent.chmod(0o777)
    assert cache.read() is None


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
    assert not CacheFile(tmp_path / "missing" / "some.cache", size_max=100).write(b"one")
    (tmp_path / "taken").mkdir()
    taken = CacheFile(tmp_path / "taken", size_max=100)
    assert not taken.write(b"one")
    assert taken.read() is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]


@pytest.fixture
def of_user(tmp_path):
    return CacheFile(tmp_path / "caches" / "kind" / "some.cache", size_max=100, count_max=3)


def test_the_directory_of_a_user_s_caches_is_made_and_stays_small(of_user):
    assert of_user.write(b"one")
    directory = of_user.path.parent
    for age, name in enumerate("abcd"):
        (directory / name).touch()
        os.utime(directory / name, ns=(0, 100 - age))
    assert of_user.write(b"two")
    assert sorted(path.name for path in directory.iterdir()) == ["a", "b", "some.cache"]


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o602])
def test_what_others_can_write_is_not_there_and_that_is_said_once(cache, of_user, caplog, mode):
    for file in (cache, of_user):
        file.write(b"one")
        file.path.chmod(mode)
        assert file.read() is file.read() is None
        assert caplog.messages == [
            f"{file.path} is not used, others may have written it: other users can write {file.path}"
        ]
        caplog.clear()
        assert file.write(b"two")  # in its place
        assert file.read() == b"two"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_beside_a_log_it_may_be_of_who_owns_the_log(cache, of_user):
    for file in (cache, of_user):
        file.write(b"one")
        os.chown(file.path, 54321, -1)
        assert file.read() is None
        os.chown(file.path.parent, 54321, -1)
    assert cache.read() == b"one"
    assert of_user.read() is None
