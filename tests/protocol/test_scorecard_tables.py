"""The tables of protocol/scorecard/adapters.md say what the code has: keys, lines, grades.

And what is known of consumers by other means, the results that are kept with the project have found.
"""

import dataclasses
import functools
import inspect
import json
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from ibbmaster_scorecard import runner
from ibbmaster_scorecard.adapter import Adapter, read_adapters
from ibbmaster_scorecard.cards import read_cards
from ibbmaster_scorecard.consumer import FATAL_S, RESTARTS_S, Supervised
from ibbmaster_scorecard.journal import TOLD
from ibbmaster_scorecard.results import Cell, Grade, read_results
from tests.case_table import data_beside
from tests.protocol.documents import rows_under

PAGE = Path(__file__).parents[2] / "protocol" / "scorecard" / "adapters.md"
STARTS = get_type_hints(Adapter)["start"]
TYPES = {str: "text", STARTS: "text", float: "number"}  # others are lists


table = functools.partial(rows_under, "protocol/scorecard/adapters.md")


def marked(key: str) -> str:
    return f"`{key[:-1]}`?" if key.endswith("?") else f"`{key}`"


def test_keys_of_an_adapter_are_those_of_the_code() -> None:
    hints = get_type_hints(Adapter)
    of_file = [one for one in dataclasses.fields(Adapter) if one.name not in ("name", "directory")]
    keys = {one.name: one.name if one.default is dataclasses.MISSING else f"{one.name}?" for one in of_file}
    rows = [[marked(key), TYPES.get(hints[name], "list")] for name, key in keys.items()]
    assert [row[:2] for row in table("adapter.toml")] == rows
    (start,) = (row[2] for row in table("adapter.toml") if row[0] == "`start`?")
    assert re.findall(r"`(\w+)`", start) == list(get_args(STARTS))


def test_what_it_is_asked_is_what_the_code_asks() -> None:
    keys = {key for row in table("What it is asked") for key in re.findall(r"`(\w+)`", row[0])}
    asked = inspect.getsource(runner._Run._request) + inspect.getsource(Supervised.start)

    assert keys == set(re.findall(r'"(\w+)": ', asked))


def test_lines_are_those_of_the_code() -> None:
    rows = [[f"`{what}`", ", ".join(map(marked, keys))] for what, keys in TOLD.items()]

    assert [row[:2] for row in table("What it prints")] == rows


def test_grades_and_their_meanings_are_those_of_the_code() -> None:
    assert table("Grades") == [[grade.value, grade.meaning] for grade in Grade]


def test_times_are_those_of_the_code() -> None:
    text = " ".join(PAGE.read_text().split())
    first, second, third = RESTARTS_S
    assert f"up to three times, after {first:g}, {second:g} and {third:g} seconds" in text
    assert f"or is ended {FATAL_S:g} s later" in text
    assert (runner.SILENCE_S, runner.SILENCE_PER_START) == (12.0, 4.0)


def test_every_adapter_of_ours_says_its_version() -> None:
    assert [adapter.name for adapter in read_adapters().values() if len(adapter.package.split()) < 2] == []


ROOT = Path(__file__).parents[2]
RESULTS = read_results(ROOT / "protocol" / "scorecard" / "results.json")
CELLS = {(cell.consumer, cell.scenario): cell for cell in RESULTS.cells}

#: What was measured beside real primaries before there was a scorecard, where it shows, and as what.
KNOWN = data_beside(__file__)


@pytest.mark.parametrize(("consumer", "scenario", "grades"), KNOWN.values(), ids=KNOWN)
def test_what_was_known_before_is_found(consumer, scenario, grades) -> None:
    cell = CELLS[consumer, scenario]
    assert cell.grade.name in grades, cell.summary


def test_who_does_not_register_learns_no_file_of_an_engine() -> None:
    stored = {
        scenario: json.loads(CELLS["connector-java", scenario].position) for scenario in ("plain-11.8", "plain-12.3")
    }
    assert stored["plain-11.8"]["file"] != ""
    assert (stored["plain-12.3"]["file"], stored["plain-12.3"]["offset"]) == ("", 4)


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_real_replicas_are_as_good_as_can_be(version: str) -> None:
    best = {scenario.name: scenario.best for scenario in RESULTS.scenarios}
    cells = [cell for cell in RESULTS.cells if cell.consumer == f"mariadb-{version}" and cell.grade is not None]
    worse = {cell.scenario: cell.summary for cell in cells if cell.grade.rank > best[cell.scenario].rank}
    assert len(cells) > 100
    assert worse == {}


def test_every_consumer_has_a_cell_of_every_scenario() -> None:
    asked = {(consumer.name, scenario.name) for consumer in RESULTS.consumers for scenario in RESULTS.scenarios}
    assert asked == set(CELLS)


@pytest.mark.parametrize("consumer", ["go-mysql", "connector-java", "mysql-cdc", "canal", "zongji", "debezium"])
def test_what_consumers_say_of_tables_is_what_the_primary_has(consumer: str) -> None:
    cell = CELLS[consumer, "table-metadata"]
    assert (cell.grade, cell.metadata) == (Grade.EXACT, ())


def test_they_are_of_the_consumers_and_scenarios_that_there_are() -> None:
    assert {scenario.name for scenario in RESULTS.scenarios} == {card.name for card in read_cards()}
    assert {consumer.name for consumer in RESULTS.consumers} == set(read_adapters())
    assert f"through {len(read_cards())} scenarios" in (ROOT / "README.md").read_text()


def test_a_silent_loss_was_tried_beside_a_real_primary_or_says_why_not() -> None:
    best = {scenario.name: scenario.best for scenario in RESULTS.scenarios}

    def is_open(cell: Cell) -> bool:
        return cell.grade is Grade.LOSES_SILENTLY is not best[cell.scenario] and not (
            cell.confirmed or cell.not_confirmed
        )

    assert [(cell.consumer, cell.scenario) for cell in RESULTS.cells if is_open(cell)] == []
