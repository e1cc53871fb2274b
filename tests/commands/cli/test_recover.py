import json

import pytest


def test_recover_applies_the_redo_log_and_a_second_time_nothing(run, feed, tmp_path):
    feed(tmp_path, range(1, 20), crash=True)
    code, out, err = run("recover", tmp_path, "--json")
    answer = json.loads(out)
    assert (code, err, answer["gtid_state"], answer["prepared"]) == (0, "", "0-1-19", [])
    assert answer["replayed_records"] > 0
    code, out, _ = run("recover", tmp_path)
    assert out.startswith("0 redo records applied, 0 transactions rolled back\nthe log ends at binlog-000000.ibb")
    assert run("verify", tmp_path)[0] == 0


@pytest.mark.parametrize(
    "command",
    [["recover"], ["flush"], ["purge", "--max-total", "1"], ["reset", "--yes"], ["backup", "--to", "elsewhere"]],
    ids=lambda command: command[0],
)
def test_a_log_is_not_begun_where_there_is_none(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    code, out, err = run(command[0], "empty", *command[1:])
    assert (code, out, err) == (2, "", "ibbmaster: empty: no binlog files (binlog-000000.ibb and so on)\n")
    assert list((tmp_path / "empty").iterdir()) == []
