"""Groups go from one thread to another in order, whole or not at all, and wait only for room."""

import threading

import pytest

from ibbmaster.gtid import Gtid
from ibbmaster.logs.capture.group_pipe import (
    Acknowledgement,
    CutGroupError,
    GroupBegin,
    GroupEnd,
    GroupPipe,
    WholeGroup,
)

GTID = Gtid.parse("0-1-1")
BEGIN, WHOLE = GroupBegin(GTID, b"gtid"), WholeGroup(GTID, b"gtid", [b"body"], None)
ACKNOWLEDGEMENT = Acknowledgement(b"binlog.000001", 4)


def pipe_with(*items):
    pipe = GroupPipe(1000)
    for item in items:
        assert pipe.put(item, 10)
    pipe.finish()
    return pipe


def test_items_come_in_order_and_then_nothing():
    pipe = pipe_with(WHOLE, BEGIN)
    assert [pipe.has_group(), pipe.next(), pipe.has_group(), pipe.next(), pipe.has_group(), pipe.next()] == [
        *(True, WHOLE, False, BEGIN),
        *(False, None),
    ]


def test_a_long_group_has_its_pieces_and_the_acknowledgement_of_its_end():
    pipe = pipe_with(b"a", b"b", GroupEnd(is_whole=True, acknowledgement=ACKNOWLEDGEMENT), WHOLE)
    assert list(pipe.body()) == [b"a", b"b"]
    assert pipe.acknowledgement == ACKNOWLEDGEMENT
    assert pipe.next() == WHOLE


@pytest.mark.parametrize("end", [(GroupEnd(is_whole=False),), ()], ids=["said", "of all"])
def test_a_long_group_that_does_not_end_is_an_error(end):
    pipe = pipe_with(b"a", *end)
    with pytest.raises(CutGroupError):
        list(pipe.body())
    assert pipe.next() is None


def test_who_puts_waits_for_room_and_one_item_has_some_always():
    pipe = GroupPipe(100)
    assert not pipe.would_wait(1000)
    pipe.put(WHOLE, 1000)
    assert pipe.would_wait(1)
    thread = threading.Thread(target=pipe.put, args=(BEGIN, 1))
    thread.start()
    assert [pipe.next(), pipe.next()] == [WHOLE, BEGIN]
    thread.join()


def test_who_waits_for_room_hears_that_nobody_takes():
    pipe = GroupPipe(1)
    pipe.put(WHOLE, 10)
    threading.Thread(target=pipe.refuse).start()
    assert not pipe.put(WHOLE, 10)
    assert pipe.is_unwanted
