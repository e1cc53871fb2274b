import pytest

from ibbmaster.logs.store.redo_names import SEGMENT_NAMES, has_redo_log, holds_log
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.object_directory import ObjectDirectory


@pytest.mark.parametrize("name", SEGMENT_NAMES)
def test_one_file_of_a_redo_log_is_one_and_a_log_is_there_if_a_file_or_a_redo_log_is(tmp_path, name):
    for stray in ("ibbmaster-durable-end", "notes.txt"):
        (tmp_path / stray).touch()
    assert not holds_log(RealDisk(tmp_path))
    (tmp_path / "binlog-000000.ibb").touch()
    assert (holds_log(RealDisk(tmp_path)), has_redo_log(RealDisk(tmp_path))) == (True, False)
    (tmp_path / name).touch()
    (tmp_path / "binlog-000000.ibb").unlink()
    assert (holds_log(RealDisk(tmp_path)), has_redo_log(RealDisk(tmp_path))) == (True, True)


@pytest.mark.parametrize("name", SEGMENT_NAMES)
def test_an_object_store_is_asked_for_the_two_names_unless_they_are_known(object_store, name):
    url = object_store.new_place()
    object_store.put(f"{url}/binlog-000000.ibb", b"")
    object_store.requests.clear()
    assert not has_redo_log(ObjectDirectory(url))
    assert [one.method for one in object_store.requests] == ["HEAD", "HEAD"]
    object_store.put(f"{url}/{name}", b"")
    directory = ObjectDirectory(url)
    directory.list()
    object_store.requests.clear()
    assert has_redo_log(directory)
    assert holds_log(directory)
    assert not object_store.requests
