import os
import subprocess
import sys

import pytest

from ibbmaster.errors import ConfigurationError, MissingFileError, StoreError
from ibbmaster.storage.disk.object_store import ChangedError, client_of


def test_objects_and_directories_of_one_level_are_listed(object_store):
    url = object_store.new_place()
    object_store.put(f"{url}/a b%c?.txt", b"hello")
    object_store.put(f"{url}/sub/other", b"")
    [found], below = client_of(url).list()
    assert (found.name, found.size, below) == ("a b%c?.txt", 5, ["sub"])
    assert bytes(client_of(url).read(found, 1, 4)) == b"ell"


def test_an_object_that_has_changed_is_not_read(object_store):
    url = object_store.new_place()
    object_store.put(f"{url}/one", b"first")
    found = client_of(url).head("one")
    object_store.put(f"{url}/one", b"other")
    with pytest.raises(ChangedError, match=r"/one: another object has taken its place while it was read$"):
        client_of(url).read(found, 0, 5)
    object_store.remove(f"{url}/one")
    assert client_of(url).head("one") is None
    with pytest.raises(MissingFileError, match=r"/one: no such object, or no such bucket$"):
        client_of(url).read(found, 0, 5)


def test_what_goes_wrong_is_one_line(object_store, monkeypatch):
    url = object_store.new_place()
    object_store.put(f"{url}/one", b"first")
    client = client_of(url)
    found, said = client.head("one"), []
    for fault in (401, 403, 400, "break"):
        object_store.fault = lambda request, fault=fault: fault
        with pytest.raises(StoreError) as caught:
            client.read(found, 0, 5)
        said.append(str(caught.value).removeprefix(f"{url}/one: "))
    assert said[0] == said[1] == "the object store refuses access: credentials or rights are missing"
    assert f"({object_store.endpoint})" in said[2]
    assert "body error" in said[3]
    assert not any("\n" in one or len(one) > 300 for one in said)
    object_store.fault = lambda request: 403
    with pytest.raises(StoreError, match="refuses access"):
        client.list()


def test_a_store_that_cannot_be_reached_is_named(object_store, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StoreError, match=r"^s3://b/x: .*\(http://127.0.0.1:1, 4 retries\)$"):
        client_of("s3://b/x").list()


def test_a_url_that_lacks_something_says_what(object_store):
    with pytest.raises(ConfigurationError, match=r"^az://box/x: .*Account must be specified$"):
        client_of("az://box/x")


def test_the_extra_is_named_where_it_is_missing(object_store):
    script = (
        "import sys; sys.modules['obstore'] = None\n"
        "from ibbmaster.commands.cli.main import main\n"
        "sys.exit(main(['cat', 's3://logs/x']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ))
    needed = "needs the extra 'objects' (no module obstore): pip install 'ibbmaster[objects]'"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"ibbmaster: s3://logs/x {needed}\n")
