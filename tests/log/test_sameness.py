"""Whether two groups are the same transaction: cut anywhere, short or long."""

import pytest

from ibbmaster.errors import EventError
from ibbmaster.event.control import encode_xid
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid
from ibbmaster.log.sameness import KEPT_BYTES_MAX, Content
from tests.machinery.events import make_event, make_gtid_event

HEAD = make_gtid_event(Gtid.parse("0-1-5"))


def group(size, fill=b"x", xid=1, note=b""):
    note_event = [make_event(EventType.ANNOTATE_ROWS, 1, note)] if note else []
    return [HEAD, *note_event, make_event(EventType.USER_VAR, 1, fill * size), encode_xid(xid, server_id=1)]


@pytest.mark.parametrize("size", [10, KEPT_BYTES_MAX + 1])
def test_what_a_replica_logs_is_the_same_however_it_is_cut_and_other_events_are_not(size):
    whole = b"".join(group(size, xid=7, note=b"INSERT"))
    here, again = Content(group(size)), Content([whole[at : at + 1000] for at in range(0, len(whole), 1000)])
    other = Content(group(size, fill=b"y"))
    assert here.is_same(again)
    assert here.digest == again.digest
    assert not here.is_same(other)
    assert here.digest != other.digest
    assert here.difference(other) == "event 1, USER_VAR, differs"
    assert here.difference(Content(group(size)[:-1])) == "event 2 is not there, XID was expected"


def test_equal_bytes_are_the_same_whatever_they_are_and_damage_is_an_error_where_they_differ():
    broken = [HEAD, make_event(EventType.QUERY, 1, b"")]
    assert Content(broken).is_same(Content(broken))
    with pytest.raises(EventError, match="QUERY of 19 bytes"):
        Content(broken).is_same(Content(group(3)))
