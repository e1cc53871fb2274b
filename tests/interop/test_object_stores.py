"""The same commands and requests in each kind of object store: S3 and Google's of moto, Azure's of Azurite."""

import base64
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lanes.primary import ibbmaster, run_program

from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.storage.disk import object_store as stores
from ibbmaster.storage.disk.object_directory import ObjectDirectory
from ibbmaster.storage.disk.object_store import BusyNameError, ChangedError, client_of
from ibbmaster.storage.disk.place import directory_at
from ibbmaster.storage.disk.uploading import CLAIM
from tests.object_stores import BUCKET

PAGED = Path(__file__).parents[2] / "fixtures" / "ibb" / "xa-and-ddl"
REFUSED = "the object store refuses access: credentials or rights are missing"

_numbers = itertools.count()


@pytest.fixture(params=["s3", "gs", "az"])
def url(request, running_object_store, tmp_path, monkeypatch) -> Iterator[str]:
    """A place of which nothing is there yet, which this process finds by its environment."""
    environment = {
        "s3": lambda: running_object_store.environment,
        "gs": lambda: running_object_store.google_environment(tmp_path),
        "az": lambda: request.getfixturevalue("azurite").environment,
    }[request.param]()
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZUR"))]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    yield f"{request.param}://{BUCKET}/stores/{next(_numbers)}"
    running_object_store.fault = lambda request: None
    stores._client_of.cache_clear()
    directory_at.cache_clear()


def names_at(url: str) -> list[str]:
    return sorted(one.name for one in client_of(url).list()[0])


def test_a_log_is_written_read_and_verified(url, run, tmp_path):
    assert run("backup", PAGED, "--to", url)[0] == 0
    assert names_at(url) == ["binlog-000000.ibb"]
    for command in (("cat",), ("cat", "--after", "0-1-10", "--until", "0-1-14")):
        code, out, _ = run(command[0], url, *command[1:])
        assert (code, out.replace(url, str(PAGED))) == run(command[0], PAGED, *command[1:])[:2]
    assert [run(command, url)[0] for command in ("info", "verify")] == [0, 0]
    assert run("backup", url, "--to", tmp_path / "home")[0] == 0
    assert run("cat", tmp_path / "home") == run("cat", PAGED)


def test_what_is_there_is_kept(url, run):
    client = client_of(url)
    client.create(CLAIM, b"{}")
    with pytest.raises(BusyNameError, match=r"is there already, and objects are never overwritten$"):
        client.create(CLAIM, b"other")
    code, out, err = run("backup", PAGED, "--to", url)
    assert (code, out, err.count("\n"), "an upload is under way, or was killed" in err) == (2, "", 1, True)
    client.remove(CLAIM)
    client.remove(CLAIM)  # no error: it is not there
    client.create("other", b"1")
    code, out, err = run("backup", PAGED, "--to", url)
    assert (code, out, err.count("\n"), "is not empty, it holds other" in err) == (2, "", 1, True)
    assert names_at(url) == ["other"]


def test_an_object_that_has_changed_is_not_read(url):
    client = client_of(url)
    client.create("one", b"first")
    [listed], _ = client.list()
    assert client.head("one") == listed
    assert bytes(client.read(listed, 1, 3)) == b"ir"
    client.replace("one", b"other")
    with pytest.raises(ChangedError, match=r"/one: another object has taken its place while it was read$"):
        client.read(listed, 0, 5)
    client.remove("one")
    with pytest.raises((ChangedError, MissingFileError), match=r"/one: (another object|no such object)"):
        client.read(listed, 0, 5)
    assert client.head("one") is None


def test_a_large_file_goes_in_parts(url, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "PARTS_FROM_BYTES", 100)
    monkeypatch.setattr(stores, "PART_BYTES", 5 << 20)
    data = os.urandom(11 << 20)
    (tmp_path / "large").write_bytes(data)
    client_of(url).upload("large", tmp_path / "large", len(data))
    assert ObjectDirectory(url).read("large", 0, len(data)) == data
    with pytest.raises(StoreError, match=r"is there already, and objects are never overwritten$"):
        client_of(url).upload("large", tmp_path / "large", len(data))


def test_a_bucket_that_is_missing_is_named(url, run):
    elsewhere = url.replace(f"//{BUCKET}/", "//nowhere/")
    for command in (("info", elsewhere), ("backup", PAGED, "--to", elsewhere)):
        assert run(*command) == (2, "", f"ibbmaster: {elsewhere}: there is no such bucket\n")
    with pytest.raises(MissingFileError, match=f"^{elsewhere}: there is no such bucket$"):
        client_of(elsewhere).create("first", b"")  # as who begins by writing does


def test_a_store_that_refuses_access_says_so(url, run, running_object_store, monkeypatch):
    running_object_store.fault = lambda request: 403
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(bytes(64)).decode())
    assert run("cat", url) == (2, "", f"ibbmaster: {url}/archive.json: {REFUSED}\n")  # it may be an archive
    assert run("backup", PAGED, "--to", url) == (2, "", f"ibbmaster: {url}: {REFUSED}\n")


@pytest.mark.one_of("url")
def test_tables_that_are_kept_in_a_store_are_those_of_a_directory(url, grow, tmp_path):
    directory = tmp_path / "lake"
    for count in (1, 3, 9):  # in other processes: delta-rs holds up all threads of its own
        command = [*ibbmaster("lake", "maintain"), grow(count), "--json", "--to"]
        there, here = (run_program([*command, f"delta://{place}"]) for place in (url, directory))
        assert there == here
    said = json.loads(there)
    assert said["written"]
    script = """if True:
        import sys, deltalake
        place, options = sys.argv[1], {"allow_http": "true"} if "://" in sys.argv[1] else None
        for name in sys.argv[2:]:
            dataset = deltalake.DeltaTable(f"{place}/{name}", storage_options=options).to_pyarrow_dataset()
            rows = dataset.to_table(use_threads=False).to_pylist()  # threads may abort Python at its end
            print(name, len(rows), sorted(map(str, rows)))
    """
    rows = [run_program([sys.executable, "-c", script, one, *said["written"]]) for one in (url, directory)]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 200
