import json
from pathlib import Path

import ibbmaster

IBB = Path(__file__).parents[3] / "fixtures" / "ibb"


def test_seek_looks_in_one_file_as_the_library_does(run):
    path = IBB / "types" / "binlog-000001.ibb"
    with ibbmaster.open(path) as log:
        starts = [log.seek(position) for position in ("0-1-1", next(iter(log)).gtid, log.position)]
    for start in starts:
        code, out, _ = run("seek", path, start.position)
        assert (code, out) == (0 if start.refusal is None else 1, f"{start.explain()}\n")
    assert [start.refusal is None for start in starts] == [False, True, True]


def test_seek_speaks_json(run):
    _, out, _ = run("seek", IBB / "types", "0-1-50", "--json")
    answer = json.loads(out)
    assert (answer["file"], answer["page"], answer["gtid_state"]) == ("binlog-000000.ibb", 8, "0-1-49")
    _, out, _ = run("seek", IBB / "types", "0-1-999", "--json")
    assert "0-1-999" in json.loads(out)["refused"]


def test_seek_finds_a_time_and_says_which_time_that_is(run):
    code, out, err = run("seek", IBB / "domains", "--time", "2026-11-20T21:57:30+01:00")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "time 2026-11-20 21:57:30+01:00"
    assert "the first one of then or later is 7-77-6 of 2026-11-20 21:57:30+01:00, in binlog-000000.ibb" in lines
    assert lines[-1] == "position before it [0-77-9,1-4294967295-9,2-2-10,7-1-5,4294967295-1-9]"

    _, out, _ = run("seek", IBB / "domains", "--time", "2026-11-20 20:57:30Z", "--json")
    answer = json.loads(out)
    assert (answer["gtid"], answer["gtid_position"]) == ("7-77-6", lines[-1].partition("[")[2][:-1])


def test_who_gives_a_day_for_a_position_is_shown_the_flag(run):
    assert "to look for a day, give it as --time '2026-11-20 00:00'" in run("seek", IBB / "types", "2026-11-20")[2]
