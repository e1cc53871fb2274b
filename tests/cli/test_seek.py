"""`ibbmaster seek`: where a position starts, or why it cannot be served."""

from __future__ import annotations

import json
from pathlib import Path

IBB = Path(__file__).parents[2] / "fixtures" / "ibb"


def test_seek_explains_a_place(run):
    code, out, err = run("seek", IBB / "types", "0-1-50")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "position [0-1-50]"
    assert "start at binlog-000000.ibb page 8, state [0-1-49]" in out


def test_seek_explains_a_refusal(run):
    code, out, _ = run("seek", IBB / "types", "0-1-999")
    assert code == 1
    assert "refused: Error: connecting slave requested to start from GTID 0-1-999" in out
    assert "because: domain 0: the log ends at 0-1-151" in out


def test_seek_speaks_json(run):
    _, out, _ = run("seek", IBB / "types", "0-1-50", "--json")
    answer = json.loads(out)
    assert (answer["file"], answer["page"], answer["state"]) == ("binlog-000000.ibb", 8, "0-1-49")
    _, out, _ = run("seek", IBB / "types", "0-1-999", "--json")
    assert "0-1-999" in json.loads(out)["refused"]


def test_a_position_that_is_none_is_refused(run):
    code, _, err = run("seek", IBB / "types", "nonsense")
    assert (code, err) == (
        2,
        "ibbmaster: 'nonsense' is not a valid GTID: expected domain-server-seqno, as in 0-1-100\n",
    )
