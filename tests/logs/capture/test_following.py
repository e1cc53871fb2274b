"""A log that follows has each group of the primary once, whatever fails, and is told why it cannot go on."""

import contextlib
import itertools
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.errors import EventError, RefusedSourceError, SourceError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.kernel import loading
from ibbmaster.logs.capture import following
from ibbmaster.logs.capture.client import PrimaryAddress, connected
from ibbmaster.logs.capture.following import PrimaryFollower, expect_same_history, start_state
from ibbmaster.logs.classic.convert import GroupConverter

GROUPS = 60
LONG = 100_000  # bytes of a group that is not written as one record


@pytest.fixture(scope="module")
def logged(tmp_path_factory) -> Iterator[ibbmaster.WritableLog]:
    with ibbmaster.create(tmp_path_factory.mktemp("primary") / "log") as log:
        log.append("0-1-1", "CREATE TABLE shop.t (id INT PRIMARY KEY, note LONGTEXT)")
        for number in range(2, GROUPS):
            note = "x" * (LONG if number == GROUPS // 2 else number)
            log.append(f"{number % 2}-1-{number}", f"INSERT INTO shop.t VALUES ({number}, '{note}')")
        yield log


@pytest.fixture(scope="module")
def primary(logged) -> Iterator[PrimaryAddress]:
    with ibbmaster.serve(logged, password="x", tls="off", profile="classic-11.8") as served:
        yield PrimaryAddress(
            host=served.host, port=served.port, user=served.user, password="x", uses_tls=False, server_id=9
        )


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(following, "RETRY_S", (0,))


@pytest.fixture(autouse=True, params=["kernels", "reference"])
def path(request) -> str:
    return request.param


@pytest.fixture
def follower_of(path):
    """Make a follower that stores by kernels or without them."""

    def make(primaries, store, **options) -> PrimaryFollower:
        bulk = GroupConverter(store, loading.load()) if path == "kernels" else None
        return PrimaryFollower(primaries, store, bulk=bulk, **options)

    return make


@pytest.fixture
def log(tmp_path) -> Iterator[ibbmaster.WritableLog]:
    with ibbmaster.create(tmp_path / "log") as made:
        yield made


def content(log):
    return [(group.gtid, b"".join(event.data for event in group.events())) for group in log.groups()]


def test_all_groups_come_with_their_bytes(follower_of, primary, log, logged):
    follower = follower_of([primary], log.store, until_end=True)
    follower.run()
    assert (follower.status.state, follower.status.groups) == ("ended", GROUPS - 1)
    assert content(log) == content(logged)


def test_it_goes_on_where_the_log_ends(follower_of, primary, log, logged):
    first = content(logged)[0][0]
    (group,) = itertools.islice(logged.groups(), 1)
    log.append(first, [event.data for event in group.events()])
    follower = follower_of([primary], log.store, until_end=True)
    follower.run()
    assert follower.status.groups == GROUPS - 2
    assert content(log) == content(logged)
    again = follower_of([primary], log.store, until_end=True)
    again.run()
    assert (again.status.groups, again.status.connections) == (0, 0)


@contextlib.contextmanager
def new_log(directory: Path) -> Iterator[ibbmaster.WritableLog]:
    """A log in a directory of its own, which is removed: there are many."""
    with tempfile.TemporaryDirectory(dir=directory) as place, ibbmaster.create(place, durability="write") as log:
        yield log


class FailingSocket:
    """A socket whose call of this number fails, or that is closed there."""

    def __init__(self, stream, calls, failing, error):
        self._stream, self._calls, self._failing, self._error = stream, calls, failing, error

    def recv(self, size):
        if next(self._calls) == self._failing:
            if self._error is None:
                return b""
            raise self._error
        return self._stream.recv(min(size, 4096))

    def __getattr__(self, name):
        return getattr(self._stream, name)


def follow_with_failures(monkeypatch, follower_of, primary, log, failing, error):
    """Follow while the socket fails at one of its calls; returns how many calls there were."""
    calls = itertools.count(1)

    @contextlib.contextmanager
    def failing_connection(address):
        with connected(address) as connection:
            connection._sock = FailingSocket(connection._sock, calls, failing, error)
            yield connection

    monkeypatch.setattr(following, "connected", failing_connection)
    follower_of([primary], log.store, until_end=True, retries_refusals=True).run()
    return next(calls) - 1


@pytest.mark.parametrize("error", [None, ConnectionResetError("cut"), TimeoutError("slow")], ids=repr)
def test_whichever_read_of_the_socket_fails_no_group_is_lost_or_twice(
    monkeypatch, follower_of, path, primary, logged, tmp_path, error, record_property
):
    if path == "reference" and error is not None:
        pytest.skip("as with kernels: the same thread receives")
    wanted = content(logged)
    with new_log(tmp_path) as log:
        count = follow_with_failures(monkeypatch, follower_of, primary, log, 0, error)
        assert content(log) == wanted
    record_property("failures", count)
    assert count > 20
    for failing in range(1, count + 1):
        with new_log(tmp_path) as log:
            follow_with_failures(monkeypatch, follower_of, primary, log, failing, error)
            assert content(log) == wanted, failing


class FailingStore:
    """A store whose call of this number fails."""

    def __init__(self, store, failing):
        self._store, self._failing, self.calls = store, failing, 0

    def _call(self, name, *arguments):
        self.calls += 1
        if self.calls == self._failing:
            raise StoreError("the disk has failed")
        return getattr(self._store, name)(*arguments)

    def state(self):
        return self._store.state()

    def write_direct_ordered(self, *arguments):
        return self._call("write_direct_ordered", *arguments)

    def group_commit_ordered(self, *arguments):
        return self._call("group_commit_ordered", *arguments)

    def sync(self):
        return self._call("sync")

    def place(self, *arguments):
        return self._call("place", *arguments)

    def __getattr__(self, name):
        return getattr(self._store, name)


def test_whichever_call_of_the_store_fails_it_ends_with_that_and_the_next_start_goes_on(
    follower_of, path, primary, logged, tmp_path
):
    wanted = content(logged)
    with new_log(tmp_path) as log:
        store = FailingStore(log.store, 0)
        follower_of([primary], store, until_end=True).run()
        count = store.calls
    assert count > {"kernels": 5, "reference": GROUPS}[path]
    for failing in range(1, count + 1):
        with new_log(tmp_path) as log:
            follower = follower_of([primary], FailingStore(log.store, failing), until_end=True)
            with contextlib.suppress(StoreError):  # fewer syncs may serve all groups in this run
                follower.run()
            assert content(log) == wanted[: len(content(log))]
            follower_of([primary], log.store, until_end=True).run()
            assert content(log) == wanted, failing


def test_a_small_buffer_holds_the_primary_back_and_loses_nothing(follower_of, primary, log, logged):
    follower_of([primary], log.store, until_end=True, buffer_bytes=1).run()
    assert content(log) == content(logged)


def test_it_stops_while_nothing_comes(follower_of, primary, log, logged):
    follower = follower_of([primary], log.store)
    thread = threading.Thread(target=follower.run)
    thread.start()
    while log.store.state().position() != logged.state.position():
        log.store.wait_for_growth(1.0)
    follower.stop()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert content(log) == content(logged)


class Altered(FailingSocket):
    def recv(self, size):
        data = bytearray(self._stream.recv(size))
        if (at := data.find(b"INSERT INTO shop.t VALUES (9,")) >= 0:
            data[at] ^= 1
        return bytes(data)


def test_a_changed_byte_ends_it_and_nothing_of_that_group_is_stored(monkeypatch, follower_of, primary, log, logged):
    @contextlib.contextmanager
    def altered(address):
        with connected(address) as connection:
            connection._sock = Altered(connection._sock, None, 0, None)
            yield connection

    monkeypatch.setattr(following, "connected", altered)
    with pytest.raises(EventError, match="the checksum of an event is wrong"):
        follower_of([primary], log.store, until_end=True).run()
    assert content(log) == [one for one in content(logged) if one[0].seq_no < 9]


# Histories ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "error"),
    [
        ("", "0-1-5", None),
        ("0-1-5", "0-1-5", None),
        ("0-1-5", "0-1-5,0-2-9", None),
        ("0-1-5,0-2-7", "0-1-5,0-2-8", None),
        ("0-1-5", "0-1-4", SourceError),
        ("0-1-5", "1-1-9", SourceError),
        ("0-1-5,1-1-1", "0-1-5", SourceError),
        ("0-1-5", "0-1-4,0-2-5", RefusedSourceError),
        ("0-1-5", "0-2-6", RefusedSourceError),
    ],
)
def test_a_primary_has_all_that_is_here_or_says_what_it_lacks(primary, ours, theirs, error):
    if error is None:
        expect_same_history(primary, GtidState.parse(ours), GtidState.parse(theirs))
        return
    with pytest.raises(SourceError, match=r"there, and at .* here") as found:
        expect_same_history(primary, GtidState.parse(ours), GtidState.parse(theirs))
    assert type(found.value) is error


def test_of_several_primaries_one_that_has_all_is_followed(primary, log, logged, tmp_path):
    with ibbmaster.create(tmp_path / "other") as other:
        other.append("0-7-1", "CREATE DATABASE other")
        with ibbmaster.serve(other, password="x", tls="off", profile="classic-11.8") as served:
            wrong = PrimaryAddress(
                host=served.host, port=served.port, user=served.user, password="x", uses_tls=False, server_id=9
            )
            first = next(logged.groups())
            log.append(first.gtid, [event.data for event in first.events()])
            with pytest.raises(SourceError, match="It is another history"):
                PrimaryFollower([wrong], log.store).run()
            PrimaryFollower([wrong, primary], log.store, until_end=True).run()
    assert content(log) == content(logged)


@pytest.mark.parametrize(("start", "state"), [("oldest", ""), ("0-1-8", "0-1-8"), ("now", f"0-1-58,1-1-{GROUPS - 1}")])
def test_a_new_log_begins_where_it_is_told_to(primary, start, state):
    assert start_state(primary, start) == GtidState.parse(state)
