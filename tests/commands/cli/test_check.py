"""Whether a log or a primary is fit for work: named lines, and an exit code that a script can ask."""

import json
import shutil
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.cli import check
from ibbmaster.testkit.mariadb_server import free_port

FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.mark.parametrize("log", ["classic/10.11/domains", "ibb/domains"])
def test_a_sound_log_is_ok_line_by_line(run, log):
    code, out, _ = run("check", FIXTURES / log)
    lines = [line.split(": ") for line in out.splitlines()]
    assert code == 0
    assert [name for name, *_ in lines] == ["readable", "durable end", "last file", "writer", "free space"]
    assert {verdict for _, verdict, *_ in lines} == {"OK"}


def test_what_is_wrong_is_named_and_the_rest_is_told_all_the_same(run, tmp_path, monkeypatch):
    shutil.copytree(FIXTURES / "ibb" / "domains", log := tmp_path / "log")
    last = log / "binlog-000000.ibb"
    data = bytearray(last.read_bytes())
    data[30000] ^= 1
    last.write_bytes(data)
    monkeypatch.setattr(check, "FREE_MIN", 2.0)
    code, out, _ = run("check", log, "--json")
    told = {line["name"]: line for line in json.loads(out)["checks"]}
    assert (code, json.loads(out)["is_ok"]) == (1, False)
    assert {"last file", "free space"} <= {name for name, line in told.items() if not line["is_ok"]}
    assert told["writer"]["is_ok"]
    assert f"{last.name} page 1 " in told["last file"]["text"]
    assert "expected 200%" in told["free space"]["text"]


@pytest.mark.parametrize("what", ["nothing", "empty", "file"])
def test_a_place_without_a_log_is_not_ok(run, tmp_path, what):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    code, out, err = run("check", tmp_path / what)
    assert (code, err) == (1, "")
    assert out.startswith("readable: FAILED: ")


def test_a_process_that_writes_the_log_is_named(run, tmp_path, feed):
    feed(tmp_path / "log", [1])
    with ibbmaster.open(tmp_path / "log", writable=True):
        assert "writer: OK: process " in run("check", tmp_path / "log")[1]
    assert "writer: OK: nobody writes it" in run("check", tmp_path / "log")[1]


def test_a_primary_is_checked_from_its_address_to_semi_synchronous_replication(run):
    with ibbmaster.serve(FIXTURES / "ibb" / "domains", password="right") as primary:
        where = f"{primary.host}:{primary.port}"
        code, out, _ = run("check", where, "--password", "right", "--tls")
        assert code == 0
        assert [line.partition(": OK: ")[0] for line in out.splitlines()] == [
            "reachable",
            "login",
            "TLS",
            "GTIDs",
            "binlog format",
            "semi-synchronous",
            "purged",
        ]
        assert "TLS: OK: TLS_" in out
        code, out, _ = run("check", where, "--password", "wrong")
        assert (code, out.startswith("login: FAILED: "), out.count("\n")) == (1, True, 1)


def test_a_primary_that_is_not_there_is_not_reachable(run):
    code, out, _ = run("check", f"127.0.0.1:{free_port()}")
    assert (code, out.startswith("reachable: FAILED: ")) == (1, True)
