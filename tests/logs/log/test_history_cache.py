import pytest

from ibbmaster.logs.log.history_cache import CACHE_FILE, HistoryCache


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


def test_the_writer_keeps_it_beside_the_log_and_a_reader_its_own(path, caches):
    cache = HistoryCache(path, is_written=True)
    assert list(cache.read()) == []
    cache.write(b"one")
    assert (path / CACHE_FILE).read_bytes() == b"one"
    assert list(cache.read()) == [b"one"]
    assert not caches.exists()
    HistoryCache(path, is_written=True).write(b"of the writer")
    reader = HistoryCache(path, is_written=False)
    reader.write(b"of the reader")
    assert list(reader.read()) == [b"of the reader", b"of the writer"]
    assert list(HistoryCache(path, is_written=True).read()) == [b"of the writer"]
    assert [file.name for file in path.iterdir()] == [CACHE_FILE]


def test_each_log_has_its_own_and_by_any_path_the_same(path, tmp_path, monkeypatch):
    HistoryCache(path, is_written=False).write(b"one")
    (tmp_path / "link").symlink_to(path)
    monkeypatch.chdir(path)
    for same in (tmp_path / "link", path / "..", path.relative_to(path)):
        assert list(HistoryCache(same, is_written=False).read()) == ([] if same == path / ".." else [b"one"])


def test_a_user_without_a_home_keeps_nothing(path, monkeypatch):
    monkeypatch.setattr("ibbmaster.logs.log.history_cache.cache_directory", lambda: None)
    reader = HistoryCache(path, is_written=False)
    reader.write(b"one")
    assert list(reader.read()) == list(path.iterdir()) == []
