"""Objects are created once and exchanged only while they are known, wherever they are; the one in memory that other
tests use, too."""

import pytest

from ibbmaster.errors import BusyError, ConfigurationError, MissingFileError, StoreError
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.object_store import BusyNameError, ChangedError, RefusalError
from ibbmaster.storage.disk.place import place
from ibbmaster.storage.disk.whole_objects import STAGED, LocalObjects, objects_at
from tests.machinery.objects import MemoryObjects


@pytest.fixture(params=["directory", "object store", "memory"])
def objects(request, tmp_path):
    if request.param == "memory":
        return MemoryObjects()
    if request.param == "directory":
        return objects_at(tmp_path / "made" / "later")
    return objects_at(place(request.getfixturevalue("object_store").new_place()))


def test_an_object_is_created_once(objects, tmp_path):
    assert objects.list() == ([], [])
    objects.create("a", b"1")
    with pytest.raises(BusyNameError, match="is there already"):
        objects.create("a", b"2")
    (tmp_path / "file").write_bytes(b"345")
    objects.upload("b", tmp_path / "file", 2)
    with pytest.raises(BusyNameError, match="is there already"):
        objects.upload("b", tmp_path / "file", 3)
    assert [bytes(objects.get(name)[0]) for name in "ab"] == [b"1", b"34"]
    assert sorted((one.name, one.size) for one in objects.list()[0]) == [("a", 1), ("b", 2)]


def test_an_object_is_exchanged_only_while_it_is_known(objects):
    first = objects.exchange("a", b"1", None)
    with pytest.raises((BusyNameError, ChangedError)):
        objects.exchange("a", b"other", None)
    second = objects.exchange("a", b"2", first)
    with pytest.raises((BusyNameError, ChangedError)):
        objects.exchange("a", b"other", first)
    data, version = objects.get("a")
    assert (bytes(data), version) == (b"2", second)
    objects.exchange("a", b"3", version)
    assert bytes(objects.get("a")[0]) == b"3"


def test_an_object_is_removed_and_may_be_missing(objects):
    objects.create("a", b"1")
    objects.remove("a")
    objects.remove("a")
    with pytest.raises(MissingFileError):
        objects.get("a")


def test_a_file_is_no_place_for_objects(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="is a file: expected a directory, or a URL of an object store"):
        objects_at(tmp_path / "file")


def test_what_a_killed_process_half_wrote_is_not_listed_and_written_anew(tmp_path):
    objects = LocalObjects(tmp_path)
    (tmp_path / f"{STAGED}a").write_bytes(b"ha")
    assert objects.list() == ([], [])
    objects.create("a", b"whole")
    assert bytes(objects.get("a")[0]) == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_two_processes_do_not_exchange_at_once(tmp_path):
    objects = LocalObjects(tmp_path)
    known = objects.exchange("a", b"1", None)
    other = RealDisk(tmp_path)
    other.lock()
    with pytest.raises(BusyError, match="another process is writing here"):
        objects.exchange("a", b"2", known)
    other.close()


def test_a_directory_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file/below/a: Not a directory"):
        LocalObjects(tmp_path / "file" / "below").create("a", b"1")


def test_missing_rights_and_buckets_are_final(object_store):
    object_store.fault = lambda request: 403
    with pytest.raises(RefusalError, match="the object store refuses access"):
        objects_at(place(object_store.new_place())).get("a")
    object_store.fault = lambda request: None
    with pytest.raises(MissingFileError, match=r"^s3://nothing/here: there is no such bucket$"):
        objects_at(place("s3://nothing/here")).exchange("a", b"1", None)
