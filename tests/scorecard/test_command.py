import sys
import tomllib
import types
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ibbmaster_scorecard import command
from ibbmaster_scorecard import runner as runner_module
from ibbmaster_scorecard.adapter import Adapter
from ibbmaster_scorecard.cards import Card
from ibbmaster_scorecard.results import Cell, Confirmation, Grade, Results, parse_results, read_results
from tests.case_table import data_beside

MANIFEST = """
title = "{name}"
package = "{name} 1.0"
registry = "this project"
needs = {needs}
run = ["python3", "adapter.py"]
"""


@pytest.fixture
def adapters(tmp_path: Path) -> Path:
    for name, needs in (("good", []), ("bad", ["no-such-program"])):
        (tmp_path / "adapters" / name).mkdir(parents=True)
        (tmp_path / "adapters" / name / "adapter.toml").write_text(MANIFEST.format(name=name, needs=needs))
    return tmp_path / "adapters"


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    runs: list[tuple[str, str]] = []

    def run_matrix(adapters: Any, cards: Any, times: Any, *, jobs: int) -> Generator[tuple[Cell, str]]:
        for adapter in adapters:
            for card in cards:
                if card.name == "plain-12.3":
                    raise KeyboardInterrupt
                runs.append((adapter.name, card.name))
                grade = Grade.LOSES_SILENTLY if card.family == "cuts" else Grade.EXACT
                yield Cell(consumer=adapter.name, scenario=card.name, grade=grade, summary="so"), "1.0, it says"

    monkeypatch.setattr(runner_module, "run_matrix", run_matrix)
    return runs


def grades(results: Results) -> dict[tuple[str, str], Grade | None]:
    return {(cell.consumer, cell.scenario): cell.grade for cell in results.cells}


def test_a_real_consumer_is_run_and_shown_in_a_line(run, tmp_path) -> None:
    path = tmp_path / "results.json"
    code, out, err = run("scorecard", "python-mysql-replication", "--scenario", "cut-after-gtid", "--json", path)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "python-mysql-replication: python-mysql-replication 1.0.17, Python " + sys.version.split()[0],
        "  cut-after-gtid                   ! repeats whole groups  "
        "0-3-101 insert shop.orders id=2 total=20.00 came twice",
        "  0 of 1 at the best possible grade",
    ]
    assert run("scorecard", "--from", path) == (0, out, "")
    assert run("scorecard", "--from", path, "--json", "-") == (0, path.read_text(), "")


def test_a_scenario_is_shown_as_a_file_and_consumers_are_listed(run, adapters) -> None:
    code, out, _ = run("scorecard", "--show", "cut-after-gtid")
    assert code == 0
    assert tomllib.loads(out)["fault"] == [{"action": "cut", "place": "after gtid", "gtid": "0-3-102"}]
    code, out, _ = run("scorecard", "--list", "--adapters", adapters)
    lines = out.splitlines()
    assert code == 0
    assert "  bad                               bad 1.0 (this project)" in lines
    assert "  python-mysql-replication          mysql-replication 1.0.17 (PyPI)" in lines
    assert "cuts:" in lines
    assert any(line.startswith("  cut-after-gtid  ") for line in lines)


def test_what_can_be_built_is_run_and_the_rest_is_named(run, adapters, matrix) -> None:
    chosen = ("--scenario", "xa", "--scenario", "savepoints", "--family", "order")
    code, out, _ = run("scorecard", "good", "bad", "--adapters", adapters, *chosen)
    assert code == 0
    assert "bad: not run: needs no-such-program, not found on PATH" in out.splitlines()
    assert {consumer for consumer, _ in matrix} == {"good"}
    assert {"xa", "savepoints", "group-missing"} <= {scenario for _, scenario in matrix}
    assert "cut-after-gtid" not in {scenario for _, scenario in matrix}
    assert out.splitlines()[0] == "good: 1.0, it says"


def test_what_is_run_anew_takes_the_place_of_older_cells(run, adapters, matrix, tmp_path) -> None:
    path = tmp_path / "all.json"
    first = ("scorecard", "good", "--adapters", adapters, "--json", path)
    run(*first, "--scenario", "cut-after-gtid", "--scenario", "xa")
    run(*first, "--scenario", "savepoints", "--merge", path)
    results = read_results(path)
    assert grades(results) == {
        ("good", "cut-after-gtid"): Grade.LOSES_SILENTLY,
        ("good", "xa"): Grade.EXACT,
        ("good", "savepoints"): Grade.EXACT,
    }
    assert [consumer.version for consumer in results.consumers] == ["1.0, it says"]
    assert not list(tmp_path.glob(".all.json*"))


def test_a_run_that_is_broken_off_keeps_what_it_has(run, adapters, matrix, tmp_path) -> None:
    path = tmp_path / "all.json"
    chosen = ("--scenario", "plain-11.8", "--scenario", "plain-12.3", "--scenario", "xa")
    code, out, err = run("scorecard", "good", "--adapters", adapters, "--json", path, *chosen)
    assert (code, err) == (130, "interrupted: 1 of 3 runs are kept\n")
    assert grades(read_results(path)) == {("good", "plain-11.8"): Grade.EXACT}
    assert "plain-11.8" in out


def test_long_runs_are_saved_on_the_way(run, adapters, matrix, tmp_path, monkeypatch) -> None:
    saved: list[int] = []
    monkeypatch.setattr(command, "SAVE_S", -1.0)
    monkeypatch.setattr(command, "_save", lambda args, results: saved.append(len(results.cells)))
    run("scorecard", "good", "--adapters", adapters, "--scenario", "plain-11.8", "--scenario", "xa", "--json", "x")
    assert saved == [1, 2, 2]


def test_pages_tables_pictures_and_texts_come_from_their_modules(run, adapters, matrix, tmp_path, monkeypatch) -> None:
    def of(name: str, **functions: object) -> None:
        monkeypatch.setitem(sys.modules, f"ibbmaster_scorecard.{name}", types.SimpleNamespace(**functions))

    of("page", render=lambda results: f"page of {len(results.cells)}")
    of("picture", render=lambda results: f"picture of {len(results.cells)}")
    of("report", table=lambda results: "table", text_for_authors=lambda results, consumer: f"to {consumer}\n")
    files = [tmp_path / name for name in ("a.html", "a.md", "a.svg")]
    options = ("--html", files[0], "--markdown", files[1], "--picture", files[2], "--report", "good")
    assert run("scorecard", "good", "--adapters", adapters, "--scenario", "xa", *options) == (0, "to good\n", "")
    assert [path.read_text() for path in files] == ["page of 1", "table", "picture of 1"]


def test_silent_losses_are_confirmed_where_that_is_wanted(run, adapters, matrix, monkeypatch) -> None:
    asked: list[tuple[str, str]] = []
    answers = [(Confirmation(server="11.8.6-MariaDB", grade=Grade.EXACT, summary="so"), ""), (None, "no server")]

    def confirm(adapter: Adapter, card: Card) -> tuple[Confirmation | None, str]:
        asked.append((adapter.name, card.name))
        return answers[len(asked) - 1]

    monkeypatch.setitem(sys.modules, "ibbmaster_scorecard.confirming", types.SimpleNamespace(confirm=confirm))
    names = ("xa", "cut-after-gtid", "cut-before-gtid")
    options = ("good", "--adapters", adapters, *(f"--scenario={name}" for name in names), "--json", "-")
    run("scorecard", *options)
    assert asked == []
    _, out, _ = run("scorecard", *options, "--confirm")
    assert asked == [("good", "cut-before-gtid"), ("good", "cut-after-gtid")]
    cells = {cell.scenario: cell for cell in parse_results(out).cells}
    assert cells["cut-before-gtid"].confirmed == answers[0][0]
    assert (cells["cut-after-gtid"].confirmed, cells["cut-after-gtid"].not_confirmed) == (None, "no server")
    assert cells["xa"].confirmed is None


def test_silent_losses_of_older_results_are_confirmed_and_nothing_is_run(run, adapters, matrix, tmp_path, monkeypatch):
    found = Confirmation(server="11.8.6-MariaDB", grade=Grade.LOSES_SILENTLY, summary="so")
    fake = types.SimpleNamespace(confirm=lambda adapter, card: (found, ""))
    monkeypatch.setitem(sys.modules, "ibbmaster_scorecard.confirming", fake)
    file = tmp_path / "results.json"
    run("scorecard", "good", "--adapters", adapters, "--scenario", "cut-before-gtid", "--json", file)
    matrix.clear()
    _, out, _ = run("scorecard", "--from", file, "--adapters", adapters, "--confirm", "--json", "-")
    assert matrix == []
    assert [cell.confirmed for cell in parse_results(out).cells] == [found]


def test_consumers_can_be_built_without_being_run(run, adapters, matrix) -> None:
    code, out, _ = run("scorecard", "good", "bad", "--adapters", adapters, "--build")
    assert (code, matrix) == (0, [])
    assert "good: ready\n" in out
    assert "bad: unavailable (" in out


def test_brief_results_have_no_more_than_a_table_shows(run, adapters, matrix, tmp_path) -> None:
    file = tmp_path / "brief.json"
    options = ("scorecard", "good", "--adapters", adapters, "--scenario", "xa", "--brief")
    _, out, _ = run(*options, "--json", "-")
    run(*options, "--json", file)
    for text in (out, file.read_text()):
        results = parse_results(text)
        assert [scenario.toml for scenario in results.scenarios] == [""]
        assert [(cell.sent, cell.arrived, cell.bytes, cell.statements, cell.log) for cell in results.cells] == [
            ((), (), (), (), "")
        ]


@pytest.mark.parametrize("option", ["--json", "--html", "--markdown", "--picture"])
def test_a_full_disk_is_said_and_a_device_stays_one(run, adapters, matrix, tmp_path, option) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    answer = run("scorecard", "good", "--adapters", adapters, "--scenario", "xa", option, full)
    assert answer == (2, "", f"ibbmaster: {full}: No space left on device\n")
    assert (full.is_symlink(), Path("/dev/full").is_char_device()) == (True, True)


WRONG = data_beside(__file__)


@pytest.mark.parametrize(("arguments", "problem"), WRONG.items(), ids=WRONG)
def test_what_means_nothing_is_one_line(run, adapters, matrix, arguments, problem) -> None:
    assert run("scorecard", "--adapters", adapters, *arguments.split()) == (2, "", f"ibbmaster: {problem}\n")
    assert matrix == []


def test_a_report_of_a_consumer_that_is_not_there_is_an_error(run, adapters, matrix, tmp_path) -> None:
    path = tmp_path / "all.json"
    run("scorecard", "good", "--adapters", adapters, "--scenario", "xa", "--json", path)
    code, _, err = run("scorecard", "--from", path, "--report", "other")
    assert code == 2
    assert err.startswith("ibbmaster: there is no consumer 'other'")
