import json
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.storage.disk import object_directory
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.object_directory import ObjectDirectory, RangeCache
from ibbmaster.storage.disk.place import ObjectPath, is_object_place, local_place, open_disk, place
from tests.built_logs import FIXTURES
from tests.machinery.events import new_group
from tests.machinery.stores import new_store

PAGED = FIXTURES / "ibb" / "xa-and-ddl"
TRADITIONAL = FIXTURES / "classic" / "11.8" / "domains"


@pytest.fixture(params=[PAGED, TRADITIONAL], ids=["paged", "traditional"])
def copied(request, object_store):
    return request.param, object_store.copy(request.param)


def test_what_a_user_names_is_a_path_or_a_url(tmp_path):
    assert place("a/b") == Path("a/b")
    assert place(f"file://{tmp_path}") == place(f"file:{tmp_path}") == tmp_path
    for text in ("s3://b/x/y", "s3a://b/x/y/", "S3://b//x/y", "s3:/b/x/y"):
        assert str(place(text)) == "s3://b/x/y"
        assert place(place(text)) == place(text)
    for scheme in ("gs", "az", "abfss"):
        assert str(place(f"{scheme}://box@host/x").parent / "y") == f"{scheme}://box@host/y"
    assert isinstance(place("s3://b/x").absolute().resolve(), ObjectPath)
    assert is_object_place("s3://b/x")
    assert not is_object_place("b:/x")
    assert isinstance(open_disk(tmp_path), RealDisk)
    assert isinstance(open_disk("s3://b/x"), ObjectDirectory)


def test_a_url_of_something_else_says_what_is_known():
    with pytest.raises(ConfigurationError, match=r"^hdfs://n/x: expected a path, file:// or a URL of an object store"):
        place("hdfs://n/x")
    with pytest.raises(ConfigurationError, match="no object can be called so"):
        place("s3://b/x\ny")


def test_an_object_has_what_a_file_has(object_store):
    url = object_store.new_place()
    object_store.put(f"{url}/sub/one", b"first\nline")
    path = place(url)
    one = path / "sub" / "one"
    assert (path.is_dir(), path.is_file(), path.exists()) == (True, False, True)
    assert (one.is_dir(), one.is_file(), one.exists()) == (False, True, True)
    assert [str(found) for found in path.iterdir()] == [f"{url}/sub"]
    assert (one.stat().st_size, one.read_bytes(), one.read_text()) == (10, b"first\nline", "first\nline")
    with one.open("rb") as file:
        file.seek(-4, 2)
        assert (file.read(), file.tell()) == (b"line", 10)
    assert not (path / "none").exists()
    with pytest.raises(FileNotFoundError):
        (path / "none").open()
    with pytest.raises(ConfigurationError, match="objects are put whole, and never changed"):
        one.open("w")


@pytest.mark.parametrize("kernels", ["on", "off"])
@pytest.mark.parametrize(
    "command", ["cat {}", "cat --format sql {}", "verify --json {}", "info --json {}", "seek --json {} 0-1-20"]
)
def test_a_command_gives_the_same_of_both(copied, run, command, kernels, monkeypatch):
    monkeypatch.setenv("IBBMASTER_KERNELS", kernels)
    directory, url = copied
    said = [run(*command.format(place).split()) for place in (directory, url, url.replace("s3:", "s3a:"))]
    code, out, err = said[0]
    assert code in (0, 1)
    assert out
    for other in said[1:]:
        named = tuple(text.replace(url, str(directory)) for text in other[1:])
        assert (other[0], *named) == (code, out, err) or _without_sizes(named[0]) == _without_sizes(out)


def _without_sizes(text):
    return {name: value for name, value in json.loads(text).items() if name not in ("stored_bytes", "seconds")}


def test_python_reads_the_same_of_both(copied):
    directory, url = copied
    with ibbmaster.open(directory) as local, ibbmaster.open(url) as stored:
        assert [group.gtid for group in stored] == [group.gtid for group in local]
        assert stored.to_arrow().equals(local.to_arrow())
        assert str(stored.state) == str(local.state)
        assert stored.stored_bytes > 0
    with ibbmaster.open(f"{url}/{sorted(path.name for path in directory.glob('*binlog*0*'))[0]}") as part:
        assert len(part.files) >= 1


def test_a_replica_is_sent_the_same_of_both(copied, run, tmp_path):
    directory, url = copied
    (tmp_path / "password").write_text("x")
    (tmp_path / "password").chmod(0o600)
    account = ("--password-file", tmp_path / "password")
    with ibbmaster.serve(url, password="x") as primary:
        code, out, err = run("diff", directory, f"{primary.host}:{primary.port}", "--user", primary.user, *account)
    assert (code, err) == (0, "")
    assert out


def test_a_log_in_a_store_can_be_taken_home(object_store, run, tmp_path):
    url = object_store.copy(PAGED)
    assert run("backup", url, "--to", tmp_path / "home")[0] == 0
    assert run("cat", tmp_path / "home")[1] == run("cat", PAGED)[1]
    url = object_store.copy(TRADITIONAL)
    assert run("convert", "--to", "ibb", url, tmp_path / "imported")[0] == 0
    assert [line for line in run("info", tmp_path / "imported")[1].splitlines() if "GTID position" in line]


def test_a_start_by_gtid_fetches_few_ranges(object_store, memory_path, run):
    store = new_store(RealDisk(memory_path), max_file_bytes=1 << 24, state_interval_bytes=1 << 19)
    for seq_no in range(1, 500):
        store.write_direct(*new_group(seq_no, 30_000))
    store.close()
    for path in memory_path.glob("ibbmaster-*"):
        path.unlink()
    url = object_store.copy(memory_path)
    object_store.requests.clear()
    assert run("seek", url, "0-1-250")[0] == 0
    fetched = [request.range.removeprefix("bytes=").split("-") for request in object_store.requests if request.range]
    assert len(fetched) <= 60  # 32 states, 16 at a time, and a search in them
    assert sum(int(last) - int(first) + 1 for first, last in fetched) < (15 << 20) / 8
    assert sum("list-type" in request.query for request in object_store.requests) == 1


OF_WRITERS = ("serve --own {}", "flush {}", "convert --to ibb --append {} {}", "reset --yes {}", "record h:1 --to {1}")


@pytest.mark.parametrize("command", [*OF_WRITERS, "recover {}"])
def test_what_appends_is_refused(object_store, run, command):
    url = object_store.copy(PAGED)
    object_store.requests.clear()
    code, out, err = run(*command.format(url, f"{url}-new").split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "which object stores cannot: give a directory" in err
    assert {request.method for request in object_store.requests} <= {"GET", "HEAD"}
    with pytest.raises(ConfigurationError, match="object stores cannot"):
        local_place(url, "a test")
    with pytest.raises(ConfigurationError, match="object stores cannot"):
        ibbmaster.create(url)


def test_a_file_that_vanishes_while_it_is_read_is_one_line(copied, object_store, monkeypatch):
    monkeypatch.setattr(object_directory, "BLOCKS", RangeCache(1))
    directory, url = copied
    with ibbmaster.open(url) as log:
        files = [f"{url}/{path.name}" for path in directory.iterdir()]
        object_store.fault = lambda request: 404 if request.range else None
        with pytest.raises(ibbmaster.IbbMasterError) as caught:
            list(log)
        assert any(str(caught.value).startswith(f"{file}: ") for file in files)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fault", [403, "break"])
def test_a_store_that_fails_is_one_line(copied, object_store, run, tmp_path, fault):
    _, url = copied
    object_store.fault = lambda request: fault if request.range else None
    code, out, err = run("cat", url, "--output", tmp_path / "out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
