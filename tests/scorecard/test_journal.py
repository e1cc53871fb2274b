import contextlib
import json
import random

import pytest

from ibbmaster.errors import RemoteProtocolError
from ibbmaster_scorecard.journal import LINE_SIZE_MAX, TOLD, ToldEvent, parse_told
from tests.case_table import cases_beside, data_beside

LINES = {line: shown for line, (shown,) in cases_beside(__file__).items()}
REFUSED = {line.encode("latin-1"): problem for line, problem in data_beside(__file__).items()} | {
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


def test_a_line_that_is_too_long_is_refused_and_a_long_text_cut():
    expect_refused(b'{"a": 1}' + b" " * LINE_SIZE_MAX, f"a line of more than {LINE_SIZE_MAX} bytes")
    line = json.dumps({"event": "error", "text": "x" * 100_000}).encode()
    assert len(parse_told(line).text) == 4000


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
