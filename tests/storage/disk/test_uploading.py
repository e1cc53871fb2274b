import json
from contextlib import closing

import pytest

import ibbmaster
from ibbmaster.errors import StoreError
from ibbmaster.storage.disk import object_store as stores
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.place import place
from ibbmaster.storage.disk.uploading import CLAIM, made_place, upload
from tests.built_logs import FIXTURES
from tests.machinery.events import new_group
from tests.machinery.stores import new_store

PAGED = FIXTURES / "ibb" / "xa-and-ddl"


@pytest.fixture
def made(tmp_path):
    directory = tmp_path / "made"
    (directory / "sub").mkdir(parents=True)
    (directory / "_SUCCESS").touch()
    (directory / "part").write_bytes(b"part")
    (directory / "sub" / "other").write_bytes(b"other")
    return directory


def names_at(store, url):
    key = url.removeprefix("s3://logs/")
    return [one["path"].removeprefix(f"{key}/") for one in store.objects(key)]


def test_a_directory_is_uploaded_whole_its_mark_at_last(object_store, made):
    url = object_store.new_place()
    upload(made, place(url))
    puts = [request.path for request in object_store.requests if request.method == "PUT"]
    assert [f"s3:/{path}".removeprefix(f"{url}/") for path in puts] == [CLAIM, "part", "sub/other", "_SUCCESS"]
    assert sorted(names_at(object_store, url)) == ["_SUCCESS", "part", "sub/other"]
    assert (place(url) / "sub" / "other").read_bytes() == b"other"


def test_what_is_there_or_was_killed_is_named_and_never_overwritten(object_store, made):
    url = object_store.new_place()
    object_store.put(f"{url}/older", b"1")
    with pytest.raises(StoreError, match=r" is not empty, it holds older: give another prefix$"):
        upload(made, place(url))
    assert names_at(object_store, url) == ["older"]
    object_store.put(f"{url}/{CLAIM}", b"{}")
    with pytest.raises(
        StoreError, match=r"was killed \(_ibbmaster-upload.json is there\): if none is running, remove all"
    ):
        upload(made, place(url))


def test_of_two_uploads_one_is_refused(object_store, made, monkeypatch):
    url = object_store.new_place()
    monkeypatch.setattr(
        "ibbmaster.storage.disk.uploading.expect_nothing_at", lambda target: None
    )  # both saw nothing there
    object_store.put(f"{url}/{CLAIM}", b"{}")
    with pytest.raises(StoreError, match="is there already, and objects are never overwritten"):
        upload(made, place(url))
    assert names_at(object_store, url) == [CLAIM]
    object_store.remove(f"{url}/{CLAIM}")
    object_store.put(f"{url}/sub/other", b"of another")
    with pytest.raises(StoreError, match="/sub/other is there already"):
        upload(made, place(url))
    assert names_at(object_store, url) == ["sub/other"]
    assert (place(url) / "sub" / "other").read_bytes() == b"of another"


def test_an_upload_that_fails_leaves_nothing(object_store, made):
    url = object_store.new_place()
    object_store.fault = lambda request: 403 if request.path.endswith("/other") and request.method == "PUT" else None
    with pytest.raises(StoreError, match="/sub/other: the object store refuses access"):
        upload(made, place(url))
    assert names_at(object_store, url) == []


def test_a_large_file_goes_in_parts(object_store, made, monkeypatch):
    monkeypatch.setattr(stores, "PARTS_FROM_BYTES", 100)
    monkeypatch.setattr(stores, "PART_BYTES", 5 << 20)
    data = bytes(range(256)) * (6 << 12)
    (made / "large").write_bytes(data)
    url = object_store.new_place()
    upload(made, place(url))
    assert (place(url) / "large").read_bytes() == data
    assert sum("uploadId" in request.query and request.method == "PUT" for request in object_store.requests) == 2


def test_what_fails_while_it_is_made_is_not_uploaded(object_store, tmp_path):
    url = object_store.new_place()

    def fail():
        with made_place(place(url)) as staging:
            (staging / "one").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert names_at(object_store, url) == []
    with made_place(tmp_path / "local") as staging:
        (staging / "one").touch()
    assert (tmp_path / "local" / "one").exists()


@pytest.mark.parametrize("is_killed", [False, True], ids=["closed", "killed"])
def test_a_backup_in_a_store_is_the_log_without_what_is_to_come(object_store, run, tmp_path, is_killed):
    source = tmp_path / "log"
    source.mkdir()
    with closing(RealDisk(source)) as disk:
        store = new_store(disk, max_file_bytes=4 << 20, is_sparse=True)
        for seq_no in range(1, 201):
            store.write_direct(*new_group(seq_no, 3000))
        if not is_killed:
            store.close()
    url = object_store.new_place()
    assert run("backup", source, "--to", url)[0] == 0
    assert names_at(object_store, url) == ["binlog-000000.ibb"]
    assert place(f"{url}/binlog-000000.ibb").stat().st_size < 1 << 20
    assert run("verify", url)[0] == 0
    with ibbmaster.open(source) as log, ibbmaster.open(url) as copy:
        assert [str(group.gtid) for group in copy] == [str(group.gtid) for group in log]
        assert str(copy.state) == str(log.state)
    code, out, err = run("backup", source, "--to", url)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert run("backup", url, "--to", tmp_path / "home")[0] == 0
    assert run("verify", tmp_path / "home")[0] == 0


def test_commands_write_to_a_store_what_they_write_to_a_directory(object_store, run, tmp_path):
    url = object_store.new_place()
    assert run("convert", PAGED, f"{url}/traditional")[0] == 0
    assert run("convert", PAGED, tmp_path / "traditional")[0] == 0
    assert run("cat", f"{url}/traditional") == run("cat", tmp_path / "traditional")
    snapshot = ("lake", "snapshot", PAGED, "shop.parent", "--at", "0-1-20", "--json", "--to")
    code, out, _ = run(*snapshot, f"{url}/table")
    assert (code, json.loads(out)["rows"]) == (0, 13)
    assert sorted(names_at(object_store, f"{url}/table")) == ["_SUCCESS", "part-00000.parquet"]
    assert run(*snapshot, tmp_path / "table")[:2] == (code, out)
    part = place(f"{url}/table/part-00000.parquet").read_bytes()
    assert part == (tmp_path / "table" / "part-00000.parquet").read_bytes()
    code, out, err = run(*snapshot, f"{url}/table")
    assert (code, out) == (2, "")
    assert "is not empty" in err
