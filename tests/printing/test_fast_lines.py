"""What kernels print is what the reference prints, to the byte, for every capture and every kind of letter."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from lanes.capture import load_captures

import ibbmaster
from ibbmaster.arrow import collecting
from ibbmaster.cli.main import main
from ibbmaster.errors import IbbMasterError
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.kernel import loading
from ibbmaster.kernel.cache import KernelSet
from ibbmaster.printing import fast_lines
from ibbmaster.printing.fast_lines import FastLines
from ibbmaster.printing.json_lines import JsonLines
from tests.written_log import deleted, inserted, updated, write_log

IBB = Path(__file__).parents[2] / "fixtures" / "ibb"
SMALL = [one for one in load_captures() if one.version == "11.8" and not one.is_encrypted and one.size < 1_500_000]
LETTERS = [*map(chr, range(0x100)), "\u2027", "\u2028", "\u202e", "\u202f", "\u2066", "\u2069", "\ufeff", "é€🚀", ""]


@pytest.fixture(scope="module")
def kernels():
    ready = loading.load(KernelSet.READ)
    assert ready is not None
    return ready


def read_all(fast):
    for run in fast.runs():
        for _ in run:
            pass


@pytest.fixture
def expect_same(kernels, printed):
    def compare(path):
        with ibbmaster.open(path) as log:
            runs = [b"".join(map(bytes, run)) for run in FastLines(log, kernels).runs()]
        wanted = printed(path, JsonLines())
        assert b"".join(runs).decode() == wanted != ""

    return compare


@pytest.mark.parametrize("capture", SMALL, ids=lambda one: one.id)
def test_captures_are_printed_alike(capture, tmp_path, expect_same):
    capture.unpack(tmp_path)
    expect_same(tmp_path)


@pytest.mark.parametrize("name", ["domains", "large-groups", "types", "xa-and-ddl"])
def test_directories_are_printed_alike(name, expect_same, monkeypatch):
    expect_same(IBB / name)
    monkeypatch.setattr(fast_lines, "VALUE_BYTES_MAX", 50)  # a few lines in each array
    expect_same(IBB / name)


def test_every_letter_is_printed_alike(tmp_path, expect_same):
    table = written_table("d.t", {"id": "int", "a": "varchar(99)", "b": "text", "n\u202e": "int"}, table_id=1)
    rows = [[number, f"x{letter}y", letter or None, None] for number, letter in enumerate(LETTERS)]
    write_log(
        tmp_path / "log",
        "CREATE TABLE e (a INT)",
        [inserted(table, *rows)],
        [updated(table, *zip(rows, rows[::-1], strict=True)), "SAVEPOINT s", deleted(table, *rows)],
        [inserted(table, [1, "plain", "plain", 1]), updated(table, ([1, "p", None, 2], [2, "q", "r", None]))],
    )
    expect_same(tmp_path / "log")


@pytest.mark.parametrize("hurt", range(5, 9))
def test_of_a_damaged_log_the_command_prints_what_the_reference_prints(hurt, tmp_path, monkeypatch, capsys):
    shutil.copytree(IBB / "types", tmp_path / "log")
    data = bytearray((path := tmp_path / "log" / "binlog-000001.ibb").read_bytes())
    data[hurt * 16384 + 700] ^= 1
    path.write_bytes(data)
    found = []
    for pays in (True, False):
        monkeypatch.setattr(loading, "do_pay", lambda *given, pays=pays: pays)
        code = main(["cat", str(tmp_path / "log")])
        found.append((code, *capsys.readouterr()))
    assert found[0] == found[1]
    assert found[0][0] == 2
    for line in found[0][1].splitlines():
        json.loads(line)


def test_what_is_read_again_begins_with_the_run_that_was_not_whole(tmp_path, kernels, monkeypatch, capsys):
    monkeypatch.setattr(collecting, "GROUPS_MAX", 2)
    monkeypatch.setattr(loading, "do_pay", lambda *given: True)
    table = written_table("d.t", {"id": "int", "c": "varchar(36)"}, table_id=1)
    bad = [event.replace(b"zz", b"\xff\xfe") for event in inserted(table, [7, "zz"])]
    whole = [[inserted(table, [number, "ok"])] for number in range(6)]
    write_log(tmp_path / "log", "CREATE TABLE d.t (id INT, c VARCHAR(36))", *whole, [bad])
    with ibbmaster.open(tmp_path / "log") as log:
        fast = FastLines(log, kernels)
        with pytest.raises(IbbMasterError):
            read_all(fast)
        assert fast.position > next(iter(log)).start
    assert main(["cat", str(tmp_path / "log")]) == 2
    out, err = capsys.readouterr()
    assert [json.loads(line)["gtid"] for line in out.splitlines()] == [f"0-1-{number}" for number in range(1, 8)]
    assert "d.t column c" in err
