"""Bytes go from one thread to another in order, and wait only for room."""

import threading

from ibbmaster.logs.capture.byte_pipe import BytePipe


def test_all_that_has_come_is_taken_at_once_and_at_the_end_nothing():
    pipe = BytePipe(1000)
    assert pipe.is_empty
    assert pipe.put(b"one")
    assert pipe.put(b"two")
    pipe.finish()
    assert [pipe.is_empty, pipe.next(), pipe.is_empty, pipe.next()] == [False, b"onetwo", True, b""]


def test_one_that_takes_waits_for_bytes():
    pipe = BytePipe(1)
    threading.Thread(target=pipe.put, args=(b"late",)).start()
    assert pipe.next() == b"late"


def test_one_that_puts_waits_for_room_and_one_piece_has_some_always():
    pipe = BytePipe(100)
    assert not pipe.would_wait(1000)
    pipe.put(bytes(1000))
    assert pipe.would_wait(1)
    thread = threading.Thread(target=pipe.put, args=(b"x",))
    thread.start()
    assert pipe.next().rstrip(b"x") == bytes(1000)
    thread.join()


def test_one_that_waits_for_room_hears_that_nobody_takes():
    pipe = BytePipe(1)
    pipe.put(bytes(10))
    threading.Thread(target=pipe.refuse).start()
    assert not pipe.put(bytes(10))
    assert pipe.is_unwanted
