"""Faults are read from tables and from lines; what is wrong in one is said with its key."""

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.action import ACTIONS, PrimaryAction
from ibbmaster.testkit.fault import PlannedFault

NEEDED = {"stall": {"seconds": 1}, "drip": {"bytes_per_s": 9}, "answer": {"value": "x"}, "clock": {"seconds": -1}}

WRONG = [
    ({}, "action None: expected one of cut, stall"),
    ({"action": 3}, "action 3: expected one of"),
    ({"action": "cut"}, "cut: expected a place as 'after gtid', or at"),
    ({"action": "cut", "place": "after gtid", "at": 1}, "cut: expected a place as 'after gtid', or at"),
    ({"action": "cut", "at": 1}, "cut: it needs a place"),
    ({"action": "cut", "place": 5}, "cut: place 5: expected a text"),
    ({"action": "cut", "place": "after gtid", "by": "sword"}, "cut: by 'sword': expected one of reset, end, silence"),
    ({"action": "cut", "place": "after gtid", "bye": 1}, "cut: 'bye' means nothing here; it takes by"),
    ({"action": "cut", "place": "after gtid", "gtid": "0-1"}, "cut: gtid '0-1' is not a valid GTID"),
    ({"action": "cut", "place": "after gtid", "times": 0}, "cut: times 0: expected a number from 1 on, or 'always'"),
    ({"action": "cut", "place": "after gtid", "times": True}, "cut: times True"),
    ({"action": "cut", "place": "at gtid"}, "cut: it cannot happen 'at gtid'"),
    ({"action": "stall", "place": "after gtid"}, "stall: 'seconds' is missing"),
    (
        {"action": "stall", "place": "after gtid", "seconds": "1"},
        "stall: seconds '1': expected a number from 0 to 3600",
    ),
    ({"action": "stall", "place": "after gtid", "seconds": 1e300}, "stall: seconds 1e+300: expected a number"),
    ({"action": "stall", "place": "after gtid", "seconds": float("nan")}, "stall: seconds nan: expected a number"),
    ({"action": "stall", "place": "after gtid", "seconds": -1}, "stall: seconds -1: expected a number from 0"),
    ({"action": "garbage", "place": "after gtid", "count": 1 << 31}, "garbage: count 2147483648: expected"),
    ({"action": "lengthen", "place": "at gtid", "count": -1}, "lengthen: count -1: expected"),
    ({"action": "alter", "place": "at gtid", "bits": 256}, "alter: bits 256: expected"),
    ({"action": "header", "place": "at gtid", "flags": 1 << 16}, "header: flags 65536: expected"),
    ({"action": "header", "place": "at gtid", "timestamp": -1}, "header: timestamp -1: expected"),
    ({"action": "header", "place": "at gtid", "event_type": 256}, "header: event_type 256: expected"),
    ({"action": "insert", "place": "after gtid", "file": "x" * 600}, "insert: file 'xxx"),
    ({"action": "error", "place": "after gtid", "state": "toolong"}, "error: state 'toolong': expected five"),
    ({"action": "error", "place": "after gtid", "code": 70000}, "error: code 70000: expected"),
    ({"action": "error", "place": "after greeting"}, "error: it cannot happen 'after greeting'"),
    ({"action": "eof", "place": "before handshake"}, "eof: it cannot happen 'before handshake'"),
    ({"action": "drop", "place": "before gtid"}, "drop: it cannot happen 'before gtid'"),
    ({"action": "swap", "place": "at rows"}, "swap: it is about whole groups"),
    ({"action": "answer", "place": "after gtid", "value": "1"}, "answer: it cannot happen 'after gtid'"),
    ({"action": "mute", "place": "before dump"}, "mute: it cannot happen 'before dump'"),
    ({"action": "failover", "at": 1, "lose": -1}, "failover: lose -1: expected"),
]


@pytest.mark.parametrize(("given", "text"), WRONG)
def test_what_means_nothing_is_said_with_its_key(given, text):
    with pytest.raises(ConfigurationError) as caught:
        PlannedFault.of(given)
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize("word", ACTIONS)
def test_every_action_can_be_written_as_a_table_and_as_a_line(word):
    sides = ACTIONS[word].sides
    place = "before statement" if not sides else "at gtid" if "at" in [side.value for side in sides] else "after gtid"
    given = {"action": word, "place": place, **NEEDED.get(word, {})}
    line = "; ".join([f"{word} {place}", *(f"{key}={value}" for key, value in NEEDED.get(word, {}).items())])
    assert PlannedFault.parse(line) == PlannedFault.of(given)
    assert str(PlannedFault.of(given)) == f"{word} {place}"


def test_what_concerns_the_whole_primary_may_have_a_time_instead_of_a_place():
    for word, kind in ACTIONS.items():
        if issubclass(kind, PrimaryAction):
            assert str(PlannedFault.of({"action": word, "at": 2, **NEEDED.get(word, {})})) == f"{word} at 2 s"


@pytest.mark.parametrize(
    "line", ["", ";", "after gtid", "cut after gtid; by", "cut after gtid; by==", "x" * 10_000, "cutafter gtid"]
)
def test_a_line_that_says_no_fault_is_refused(line):
    with pytest.raises(ConfigurationError):
        PlannedFault.parse(line)


def test_a_line_has_values_as_toml_or_as_they_are():
    assert PlannedFault.parse("restart after gtid; profile=10.6; closed_s=1").action.profile == "10.6"
    assert PlannedFault.parse("error after gtid; text='1'; code=7").action.text == "1"
    fault = PlannedFault.parse("error after rows 2; gtid=0-1-7; code=1105; text=no = sense; times=always")
    assert (fault.action.code, fault.action.text, fault.times) == (1105, "no = sense", None)
    assert str(fault.place) == "after rows 2 of 0-1-7"
