"""What an adapter prints is read as it is meant, and anything else is refused in one line."""

import contextlib
import json
import random

import pytest

from ibbmaster.errors import RemoteProtocolError
from ibbmaster.scorecard.journal import LINE_SIZE_MAX, TOLD, ToldEvent, parse_told
from tests.case_table import cases_beside

LINES = {line: shown for line, (shown,) in cases_beside(__file__).items()}
REFUSED = {
    b"": "no JSON",
    b"Traceback (most recent call last):\n": "b'Traceback (most recent call last):\\n': no JSON",
    b'{"event": "begin", "gtid": "0-': "no JSON",
    b"\xff\xfe": "no UTF-8 at byte 0",
    b"[]": "expected an object",
    b"7": "expected an object",
    b"{}": "event None: expected one of version, begin, change, table, statement, commit, position, error, unknown",
    b'{"event": ["begin"]}': "event ['begin']: expected one of",
    b'{"event": "begin", "gtid": 7}': "begin: gtid 7: expected a text or null",
    b'{"event": "begin", "gtids": "0-1-1"}': "begin: 'gtids' means nothing here; expected gtid",
    b'{"event": "version"}': "version: 'text' is missing",
    b'{"event": "error", "text": "x", "is_fatal": 1}': "error: is_fatal 1: expected true or false",
    b'{"event": "change", "table": "t.a", "kind": "replace"}': "kind 'replace': expected insert, update, delete",
    b'{"event": "change", "table": "t.a", "kind": "insert", "after": "x"}': (
        "after 'x': expected an object or a list or null"
    ),
    b'{"event": "change", "table": "t.a", "kind": "insert", "after": {"a": [1]}}': (
        "change: after: [1]: expected null, a number or a text"
    ),
    b'{"event": "change", "table": "t.a", "kind": "insert", "after": {"a": NaN}}': "NaN is no number",
    b'{"event": "position"}': "position: 'position' is missing",
    b'{"event": "position", "position": "%s"}' % (b"x" * 70_000): "position: more than 65536 characters",
    b'{"event": "position", "position": %s}' % (b"[" * 1_000_000 + b"]" * 1_000_000): "nested too deeply",
    b"[" * 1_000_000: "nested too deeply",
    b'{"event": "begin", "gtid": %s}' % (b"9" * 5000): "no JSON",
}


@pytest.mark.parametrize(("line", "shown"), LINES.items(), ids=LINES)
def test_a_line_is_read_and_shown(line, shown):
    assert str(parse_told(line.encode())) == shown


@pytest.mark.parametrize(("line", "problem"), REFUSED.items(), ids=range(len(REFUSED)))
def test_anything_else_is_refused_in_one_short_line(line, problem):
    expect_refused(line, problem)


def test_a_line_that_is_too_long_is_refused_in_a_short_one():
    expect_refused(b'{"a": 1}' + b" " * LINE_SIZE_MAX, f"a line of more than {LINE_SIZE_MAX} bytes")


def expect_refused(line: bytes, problem: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        parse_told(line)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


def test_no_truncation_and_no_changed_byte_of_a_line_does_anything_else():
    for line in map(str.encode, LINES):
        damaged = [line[:size] for size in range(len(line))]
        for _ in range(200):
            place = random.randrange(len(line))
            damaged.append(line[:place] + bytes([random.randrange(256)]) + line[place + 1 :])
        for one in damaged:
            with contextlib.suppress(RemoteProtocolError):
                assert isinstance(parse_told(one), ToldEvent)


def test_what_is_told_of_the_log_is_progress_and_the_rest_is_not():
    progress = {what for what in TOLD if ToldEvent(what=what).is_progress}
    assert progress == {"begin", "change", "statement", "commit", "unknown"}


def test_long_texts_of_errors_are_cut():
    line = json.dumps({"event": "error", "text": "x" * 100_000}).encode()
    assert len(parse_told(line).text) == 4000
