"""A primary that is read: what it sends is all it has promised, or an error."""

from __future__ import annotations

import contextlib

import pytest

from ibbmaster.arrow import live
from ibbmaster.arrow.live import LiveArchive, live_range
from ibbmaster.errors import SourceError
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid
from ibbmaster.position import NOWHERE
from ibbmaster.spark.live import LiveTracker
from ibbmaster.spark.offset import decode_offset, encode_offset
from ibbmaster.spark.options import parse_options
from ibbmaster.spark.tracking import Limits
from ibbmaster.testing.crash import make_event, make_gtid_event

EOF = b"\xfe\x00\x00\x00\x00"
LOGGED = ("0-1-1", "5-1-7", "0-1-2", "0-2-3")


class Packet:
    def __init__(self, data):
        self._data = data

    def get_all_data(self):
        return self._data


class Peer:
    """A connection to a primary, or to a proxy before it, that sends these groups and then EOF."""

    def __init__(self, gtids, position):
        self._packets = [Packet(b"\0" + event) for text in gtids for event in group(text)] + [Packet(EOF)]
        self._position = position

    def cursor(self):
        return contextlib.nullcontext(self)

    def execute(self, *statement):
        pass

    def fetchone(self):
        return (self._position,)

    def _execute_command(self, *command):
        pass

    def _read_packet(self):
        return self._packets.pop(0)


def group(text):
    gtid = Gtid.parse(text)
    return make_gtid_event(gtid), make_event(EventType.XID, gtid.server_id, bytes(8))


@pytest.fixture
def primary(monkeypatch):
    """Options of a primary that sends the first so many of its groups."""

    def make(count):
        peer = lambda options: contextlib.nullcontext(Peer(LOGGED[:count], "0-2-3,5-1-7"))  # noqa: E731
        monkeypatch.setattr(live, "connected", peer)
        return parse_options({"host": "primary.example"})

    return make


def read(options, start, end):
    return [str(group.gtid) for group in LiveArchive(options).groups(live_range(start, end))]


def test_everything_up_to_the_promised_position_is_read(primary):
    assert read(primary(4), "", "0-2-3,5-1-7") == list(LOGGED)
    assert read(primary(1), "5-1-7", "0-1-1,5-1-7") == ["0-1-1"]


@pytest.mark.parametrize(
    ("count", "missing"),
    [
        (0, "nothing of domain 0, before 0-2-3"),
        (1, "0-1-1, before 0-2-3"),
        (2, "0-1-1, before 0-2-3"),
        (3, "0-1-2, before 0-2-3"),
    ],
)
def test_a_dump_that_ends_before_the_promised_position_is_an_error_and_no_short_batch(primary, count, missing):
    with pytest.raises(SourceError, match=rf"primary\.example:3306: the primary ended the stream at {missing}"):
        read(primary(count), "", "0-2-3,5-1-7")


def test_a_domain_of_which_nothing_came_is_missed(primary):
    with pytest.raises(SourceError, match="nothing of domain 5, before 5-1-7"):
        read(primary(1), "", "0-1-1,5-1-7")


def test_a_batch_that_is_counted_meets_the_early_end_too(primary):
    tracker = LiveTracker(primary(3))
    start = encode_offset(decode := decode_offset({"v": 1, "gtid": ""}), NOWHERE)
    assert str(decode) == ""
    assert tracker.next(start, Limits(groups_max=2, bytes_max=None, files_max=None))["gtid"] == "0-1-1,5-1-7"
    with pytest.raises(SourceError, match="before 0-2-3"):
        tracker.next(start, Limits(groups_max=9, bytes_max=None, files_max=None))
