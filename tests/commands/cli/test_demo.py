"""`ibbmaster demo`, as far as it needs no server of MariaDB: tests/interop shows it whole."""

from pathlib import Path

import pytest

from ibbmaster.commands.cli import demo

IBB = Path(__file__).parents[3] / "fixtures" / "ibb"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_client_shows_what_it_got(run):
    code, out, err = run("demo", IBB / "domains", "--no-replica")

    assert (code, err) == (0, "")
    assert f"ibbmaster serves {IBB / 'domains'} on 127.0.0.1:" in out
    assert "event groups, " in out
    assert "a real MariaDB replica follows" not in out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_without_a_server_it_says_what_to_install(run, monkeypatch):
    monkeypatch.setattr("ibbmaster.commands.cli.demo.installed_versions", list)
    code, out, _ = run("demo", IBB / "types")
    assert code == 0
    assert out.endswith("install mariadb-server to see a real replica follow\n")


def test_a_row_is_shown_in_a_line():
    assert demo._shown({"values": {"a": 1, "b": "x"}}) == "a=1, b='x'"
    assert demo._shown({"before_values": {"a": 1}, "after_values": {"a": 2}}) == "a=2"
    assert len(demo._shown({"values": {"a": "x" * 200}})) == 70
