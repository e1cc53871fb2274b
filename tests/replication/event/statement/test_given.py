"""What a statement takes from its session: as a real server logged it, and every damage to that."""

import contextlib
from decimal import Decimal
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.errors import EventError
from ibbmaster.replication.event.header import resized
from ibbmaster.replication.event.statement.given import LoggedVariable, decode_intvar, decode_rand, decode_user_var
from ibbmaster.replication.event.types import EventType
from tests.damage import flipped
from tests.machinery.events import make_event

CLASSIC = Path(__file__).parents[4] / "fixtures" / "classic"
DECODERS = {EventType.INTVAR: decode_intvar, EventType.RAND: decode_rand, EventType.USER_VAR: decode_user_var}

VARIABLES = {
    "f": 15000000000.0,
    "s": "text ä".encode(),
    "n": None,
    "d": Decimal("1.25"),
    "b": b"\x00\xff\x10",
    "u": 2**64 - 1,
    "i": -5,
}


def logged(version):
    with ibbmaster.open(CLASSIC / version / "statement") as log:
        events = [event.data for group in log for event in group.events()]
    return [event for event in events if event[4] in DECODERS]


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_what_a_server_logged_is_read(version):
    found = [DECODERS[event[4]](event) for event in logged(version)]
    assert ("insert_id", 1) in found
    assert {one.name: one.value for one in found if isinstance(one, LoggedVariable)} == VARIABLES


def test_every_truncation_and_flipped_bit_is_read_or_an_error():
    for event in {event[4]: event for event in logged("11.8")}.values():
        for size in range(19, len(event)):
            with pytest.raises(EventError):
                DECODERS[event[4]](event[:size])
            hurt = resized(event[:size])
            try:
                DECODERS[event[4]](hurt)
            except EventError:
                continue
            assert event[4] == EventType.USER_VAR  # whose flags may be missing
            assert size == len(event) - 1
        for hurt in flipped(event, 19):
            with contextlib.suppress(EventError):
                DECODERS[event[4]](hurt)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"\1\0\0\0a\1", None),
        (b"\1\0\0\0a\0\2" + bytes(4) + b"\x08\0\0\0" + b"\xff" * 8 + b"\1", 2**64 - 1),
        (b"\1\0\0\0a\0\2" + bytes(4) + b"\x08\0\0\0" + b"\xff" * 8 + b"\0", -1),
        (b"\1\0\0\0a\0\1" + bytes(4) + b"\x08\0\0\0" + b"\0" * 6 + b"\xe0\x3f", 0.5),
        (b"\1\0\0\0a\0\4" + bytes(4) + b"\4\0\0\0" + b"\3\1\x8c\5", Decimal("12.5")),
    ],
)
def test_values_have_their_types(body, value):
    assert decode_user_var(make_event(EventType.USER_VAR, 1, body)).value == value
