"""What sessions keep: a little each by right, more out of one store, of which one account cannot take all."""

import pytest

from ibbmaster.primary.server.client import OWN_BYTES, SessionMemory, SharedMemory
from ibbmaster.replication.wire.refusal import RefusedError


def session(shared, user):
    memory = SessionMemory(shared)
    memory.user = user
    return memory


def test_a_little_is_everybodys_right():
    shared = SharedMemory(0)
    session(shared, "a").hold("user variables", OWN_BYTES)
    with pytest.raises(RefusedError, match="all sessions together keep too much, here in commands"):
        session(shared, "a").hold("commands", OWN_BYTES + 1)


def test_more_comes_out_of_the_store_and_goes_back():
    shared = SharedMemory(400)
    first = session(shared, "a")
    first.hold("x", OWN_BYTES + 100)
    first.hold("y", 50)
    assert shared.size == 150
    first.hold("x", 0)
    assert shared.size == 0
    first.hold("x", OWN_BYTES + 200)
    for _ in range(2):
        first.close()
        assert (shared.size, shared._taken) == (0, {})  # nothing is left of the account


def test_what_is_refused_changes_nothing():
    shared = SharedMemory(400)
    first = session(shared, "a")
    first.hold("x", OWN_BYTES + 100)
    with pytest.raises(RefusedError):
        first.hold("x", OWN_BYTES + 500)
    assert shared.size == 100
    first.close()
    assert shared.size == 0


def test_one_account_leaves_a_quarter_to_others():
    shared = SharedMemory(400)
    for _ in range(3):
        session(shared, "a").hold("x", OWN_BYTES + 100)
    with pytest.raises(RefusedError):
        session(shared, "a").hold("x", OWN_BYTES + 1)
    session(shared, "b").hold("x", OWN_BYTES + 100)
    with pytest.raises(RefusedError):
        session(shared, "b").hold("x", OWN_BYTES + 1)
