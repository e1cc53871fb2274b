import contextlib
import io

import pytest

from ibbmaster.errors import EventError, SourceError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.logs.capture import client
from ibbmaster.logs.capture.client import PrimaryAddress, groups_between, logged_position
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.packet import frame_payloads
from tests.machinery.events import make_event, make_gtid_event

EOF = b"\xfe\x00\x00\x00\x00"
LOGGED = ("0-1-1", "5-1-7", "0-1-2", "0-2-3")


class Peer:
    """A connection to a primary, or to a proxy before it, that sends these groups and then EOF."""

    def __init__(self, gtids, position):
        self.send(*(event for text in gtids for event in group(text)))
        self._position = position
        self._sock = self

    def send(self, *events):
        payloads = [*(b"\0" + event for event in events), EOF]
        self._stream = io.BytesIO(frame_payloads(payloads, 1)[0])

    def cursor(self):
        return contextlib.nullcontext(self)

    def execute(self, *statement):
        pass

    def fetchone(self):
        return (self._position,)

    def _execute_command(self, *command):
        pass

    def settimeout(self, seconds):
        pass

    def recv(self, size):
        return self._stream.read(min(size, 50))


def group(text):
    gtid = Gtid.parse(text)
    return make_gtid_event(gtid), make_event(EventType.XID, gtid.server_id, bytes(8))


@pytest.fixture
def primary(monkeypatch):
    """A primary that sends the first so many of its groups."""

    def make(count):
        peer = lambda address: contextlib.nullcontext(Peer(LOGGED[:count], "0-2-3,5-1-7"))  # noqa: E731
        monkeypatch.setattr(client, "connected", peer)
        return PrimaryAddress(host="primary.example", port=3306, user="root", password="x", uses_tls=False, server_id=9)

    return make


def read(address, start, end):
    start, end = GtidPosition.parse(start), GtidPosition.parse(end)
    return [str(group.gtid) for group in groups_between(address, start, end)]


def test_a_primary_says_what_it_has_logged_and_its_address_no_password(primary):
    assert str(logged_position(primary(4))) == "0-2-3,5-1-7"
    assert "password" not in repr(primary(4))


def test_everything_up_to_the_promised_position_is_read(primary):
    assert read(primary(4), "", "0-2-3,5-1-7") == list(LOGGED)
    assert read(primary(1), "5-1-7", "0-1-1,5-1-7") == ["0-1-1"]


@pytest.mark.parametrize(
    ("count", "end", "missing"),
    [
        (0, "0-2-3,5-1-7", "nothing of domain 0, before 0-2-3"),
        (1, "0-2-3,5-1-7", "0-1-1, before 0-2-3"),
        (1, "0-1-1,5-1-7", "nothing of domain 5, before 5-1-7"),
        (2, "0-2-3,5-1-7", "0-1-1, before 0-2-3"),
        (3, "0-2-3,5-1-7", "0-1-2, before 0-2-3"),
    ],
)
def test_a_dump_that_ends_before_the_promised_position_is_an_error_and_no_short_batch(primary, count, end, missing):
    with pytest.raises(SourceError, match=rf"primary\.example:3306: the primary ended the stream at {missing}"):
        read(primary(count), "", end)


def test_a_group_that_begins_inside_of_another_is_an_error_and_no_part_of_it(primary, monkeypatch):
    address = primary(4)
    peer = Peer((), "0-1-2")
    (begun, _), whole = group("0-1-1"), group("0-1-2")
    peer.send(begun, *whole)
    monkeypatch.setattr(client, "connected", lambda address: contextlib.nullcontext(peer))
    with pytest.raises(EventError, match="the primary begins group 0-1-2 before 0-1-1 has ended: try again"):
        read(address, "", "0-1-2")


@pytest.mark.parametrize(("end", "has"), [("0-2-4", "0-2-3"), ("7-1-1", "nothing of domain 7")])
def test_a_primary_that_lacks_what_was_promised_is_an_error_and_no_wait(primary, end, has):
    with pytest.raises(SourceError, match=rf"the primary has logged {has}, and not {end}, which it had before"):
        read(primary(4), "", end)
