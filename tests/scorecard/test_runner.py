import contextlib
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ibbmaster_scorecard import consumer as consumer_module
from ibbmaster_scorecard.adapter import Adapter, read_adapters
from ibbmaster_scorecard.cards import Card, read_cards
from ibbmaster_scorecard.results import Cell, Grade, new_results, parse_results
from ibbmaster_scorecard.runner import (
    RunOverError,
    described,
    described_scenario,
    run_and_ask,
    run_card,
    run_matrix,
)
from tests.case_table import data_beside

CARDS = {card.name: card for card in read_cards()}
PYTHON = read_adapters()["python-mysql-replication"]
SHORT = 0.3  # seconds of silence, of what says nothing more however long it is waited
LONG = 20.0
INSERT = {"insert": "shop.orders", "values": {"id": 1}}
ONE = Card(
    name="one",
    title="One group.",
    family="own",
    about="",
    primary={"profile": "11.8"},
    workload={
        "tables": {"shop.orders": {"id": "int primary key"}},
        "groups": [{"gtid": "0-3-101", "changes": [INSERT]}],
    },
)
TELL = """
import json, os, sys, time, signal
asked = json.loads(sys.stdin.readline())
def tell(event, **keys):
    print(json.dumps({"event": event, **keys}))
tell("version", text="of the test")
def orders(gtid):
    tell("begin", gtid=gtid)
    tell("change", table="shop.orders", kind="insert", before=None, after={"id": 1})
    tell("commit", gtid=gtid)
def wait():
    sys.stdout.flush()
    sys.stdin.read()
def marker():
    sys.stdout.flush()
    time.sleep(0.3)  # it is written meanwhile; if not, it takes longer and comes to the same
    MARKER
"""
MARKER = "tell('change', table='ibb_marker.marks', kind='insert', before=None, after={'id': 1})"


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    monkeypatch.setattr(consumer_module, "RESTARTS_S", (0.0, 0.0, 0.0))


def scripted(directory: Path, script: str, **keys: object) -> Adapter:
    directory.mkdir(exist_ok=True)
    (directory / "adapter.py").write_text((TELL + script).replace("MARKER", MARKER))
    made = Adapter(
        name="scripted",
        directory=directory,
        title="Scripted",
        package="of the test",
        registry="this project",
        run=("python3", "adapter.py"),
        start_s=0.0,
    )
    return replace(made, **keys)


#: What a program does; whether it says nothing more; its grade, its summary, and how often it was started again.
SCRIPTS = data_beside(__file__)


@pytest.mark.parametrize(("script", "is_silent", "grade", "summary", "restarts"), SCRIPTS.values(), ids=SCRIPTS)
def test_a_program_gets_the_grade_of_what_it_does(tmp_path, script, is_silent, grade, summary, restarts):
    cell = run_card(scripted(tmp_path / "scripted", script), ONE, SHORT if is_silent else LONG)
    assert (cell.grade, cell.summary, cell.restarts, cell.not_run) == (Grade[grade], summary, restarts, None)


def test_what_tells_the_same_for_ever_hangs_and_garbage_is_no_grade(tmp_path):
    script = "while True: tell('begin', gtid='0-3-101'); sys.stdout.flush(); time.sleep(0.01)"
    cell = run_card(scripted(tmp_path / "scripted", script), ONE, SHORT)
    assert cell.grade is Grade.HANGS
    assert cell.seconds < 60
    cell = run_card(scripted(tmp_path / "scripted", "print('Hello')"), ONE, SHORT)
    assert cell.grade is None
    assert cell.not_run is not None
    assert cell.not_run.startswith("line 2 of the adapter: b'Hello\\n': no JSON")


@pytest.mark.parametrize(
    ("keys", "card", "why"),
    [
        ({"needs": ("no-such-program",)}, ONE, "needs no-such-program, not found on PATH"),
        ({"run": ("/no/such/program",)}, ONE, "/no/such/program: No such file or directory"),
        ({"start": "now"}, replace(ONE, start=""), "it begins where the primary is, and this scenario elsewhere"),
        ({"start": "file"}, replace(ONE, start="0-3-1"), "it begins where the primary is, and this scenario elsewhere"),
        ({}, replace(ONE, primary={"profile": "5.5"}), "5.5"),
    ],
)
def test_what_cannot_be_run_says_why(tmp_path, keys, card, why):
    cell = run_card(scripted(tmp_path / "scripted", "", **keys), card, SHORT)
    assert cell.grade is None
    assert why in (cell.not_run or "")


def test_a_consumer_is_told_where_and_how(tmp_path):
    card = replace(ONE, primary={"profile": "11.8"}, start="0-3-1", delay_ms=7)
    cell = run_card(scripted(tmp_path / "scripted", "tell('statement', sql=json.dumps(asked)); wait()"), card, SHORT)
    (asked,) = {line for line in cell.arrived if line.startswith("statement ")}
    for part in ('"host": "127.0.0.1"', '"server_id": 4001', '"tls": false', '"start": "0-3-1"', '"delay_ms": 7'):
        assert part in asked


# A real one

FOUND = {  # of this version, in these scenarios
    "plain-12.3": (Grade.EXACT, "every change once, in order"),
    "cut-after-gtid": (Grade.REPEATS_GROUPS, "0-3-101 insert shop.orders id=2 total=20.00 came twice"),
    "short-names-12.3": (
        Grade.LOSES_SILENTLY,
        '0-3-101 insert t.a a=1 came as {"UNKNOWN_COL0": 1} and 2 more; no error said so',
    ),
    "savepoints": (Grade.EXACT, "every change once, in order"),
}


@pytest.fixture(scope="module")
def cells() -> dict[str, Cell]:
    found = run_matrix([PYTHON], [CARDS[name] for name in FOUND], jobs=2)
    return {cell.scenario: cell for cell, version in found if version.startswith("python-mysql-replication 1.0.17, ")}


@pytest.mark.parametrize("name", FOUND)
def test_a_real_consumer_gets_its_grade(cells, name):
    assert (cells[name].grade, cells[name].summary) == FOUND[name]


def test_a_cell_tells_what_was_sent_asked_and_told(cells):
    cell = cells["cut-after-gtid"]
    (resume,) = cell.resumes
    assert cell.recovered_s is not None
    assert cell.recovered_s >= 0
    assert (cell.restarts, cell.told, cell.missing, cell.wrong) == (0, (), (), ())
    assert cell.repeated == ("0-3-101 insert shop.orders id=2 total=20.00 came twice",)
    assert "connection 1: GTID 0-3-102" in cell.sent
    assert "connection 1: XID 0-3-102" not in cell.sent
    assert "begin 0-3-102" in cell.arrived
    assert any(line.startswith("change insert ibb_marker.marks") for line in cell.arrived)
    assert any(f"slave_connect_state = '{resume.position}'" in line for line in cell.statements)
    (fault,) = cell.bytes
    assert (fault.fault, fault.gtid) == ("cut after gtid of 0-3-102", "0-3-102")
    assert bytes.fromhex(fault.event)[4] == 162
    assert fault.sent_bytes > 0


def test_results_of_a_run_are_read_again(cells):
    cards = [described_scenario(CARDS[name]) for name in FOUND]
    results = new_results([described(PYTHON)], cards, cells.values())
    assert parse_results(results.to_json()) == results
    assert [cell.scenario for cell in results.cells] == list(FOUND)


def test_a_fault_whose_place_never_comes_is_named_and_groups_with_a_time_are_written_in_turn():
    cell = run_card(PYTHON, replace(ONE, faults=("cut before tls",)))
    assert (cell.grade, cell.not_run) == (None, "it never came to the place of: cut before tls")
    groups = [{"gtid": f"0-3-{101 + n}", "at": n / 10, "changes": [{**INSERT, "values": {"id": n}}]} for n in range(3)]
    card = replace(ONE, workload={**ONE.workload, "groups": groups})
    assert run_card(PYTHON, card).grade is Grade.EXACT


def test_a_run_is_broken_off_and_its_consumer_ends(tmp_path):
    adapter = scripted(
        tmp_path / "scripted", f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nsys.stdin.read()"
    )
    over = threading.Event()
    runs = threading.Thread(target=lambda: _break_off(adapter, over))
    runs.start()
    _wait(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    over.set()
    runs.join(30)
    assert not runs.is_alive()
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


def _break_off(adapter: Adapter, over: threading.Event) -> None:
    with contextlib.suppress(RunOverError):
        run_and_ask(adapter, ONE, 60.0, over)


def test_a_matrix_that_is_closed_gives_what_is_there(tmp_path):
    quick = scripted(tmp_path / "quick", "orders('0-3-101'); marker(); wait()", name="quick")
    slow = scripted(tmp_path / "slow", "wait()", name="slow")
    matrix = run_matrix([quick, slow], [ONE], 60.0, jobs=2)
    cell, version = next(matrix)
    matrix.close()
    assert (cell.consumer, version) == ("quick", "of the test")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ibbmaster-scorecard")]


def _wait(is_so: object) -> None:
    deadline = time.monotonic() + 30
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)
