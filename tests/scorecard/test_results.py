import json
import random
from dataclasses import replace

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster_scorecard import results as results_module
from ibbmaster_scorecard.results import (
    Cell,
    Confirmation,
    Grade,
    Results,
    RunEnd,
    judge,
    new_results,
    parse_results,
    read_results,
)
from tests.case_table import cases_beside
from tests.scorecard_results import consumer, ran, scenario
from .stories import logged, told

CONSUMERS = [consumer("a"), consumer("b")]
SCENARIOS = [scenario("x"), scenario("y")]
CONFIRMED = Confirmation(server="11.8.6-MariaDB", grade=Grade.EXACT, summary="every change once")
FULL = ran("a", "x", Grade.LOSES_SILENTLY, told=("lost, ünd so",), restarts=2, confirmed=CONFIRMED)
RESULTS = new_results(CONSUMERS, SCENARIOS, [Cell(consumer="b", scenario="y", not_run="no node"), FULL])


def test_results_are_read_as_they_were_written(tmp_path):
    (tmp_path / "all.json").write_text(RESULTS.to_json())
    assert read_results(tmp_path / "all.json") == RESULTS
    assert [cell.scenario for cell in RESULTS.cells] == ["x", "y"]
    assert RESULTS.made.endswith("Z")
    assert set(RESULTS.machine) == {"cores", "python", "system"}


def changed(path: str, value: object) -> str:
    given = json.loads(RESULTS.to_json())
    place = given
    *way, last = path.split(".")
    for key in way:
        place = place[int(key) if key.isdigit() else key]
    place[last] = value
    return json.dumps(given)


REFUSED = {
    "": "no JSON: ",
    "[]": "results []: expected a table",
    "{}": "results: 'made' is missing",
    "[" * 100_000: "nested too deeply",
    changed("more", 1): "results: 'more' means nothing here; expected made, ibbmaster, machine, consumers",
    changed("machine", []): "results.machine []: expected a table",
    changed("cells", {}): "cells {}: expected a list",
    changed("cells.0.grade", "good"): "cells[0].grade 'good': expected one of exact, repeats whole groups",
    changed("cells.0.grade", []): "cells[0].grade []: expected one of exact",
    changed("cells.0.missing", [1]): "cells[0].missing[0] 1: expected a text",
    changed("cells.0.restarts", True): "cells[0].restarts True: expected a whole number",
    changed("cells.0.restarts", 1.5): "cells[0].restarts 1.5: expected a whole number",
    changed("cells.0.seconds", "x"): "cells[0].seconds 'x': expected a number",
    changed("cells.0.resumes", [{"position": "x"}]): "cells[0].resumes[0]: 'after_s' is missing",
    changed("cells.0.confirmed", {"server": "x", "grade": None, "summary": ""}): "cells[0].confirmed.grade None",
    changed("cells.0.consumer", "c"): "cells[0]: 'c' and 'x' are not both described",
    changed("scenarios.0.best", None): "scenarios[0].best None: expected one of exact",
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.items(), ids=range(len(REFUSED)))
def test_anything_else_is_refused_with_its_key(text, problem):
    with pytest.raises(ConfigurationError) as caught:
        parse_results(text)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 500


def test_no_changed_byte_does_anything_else():
    data = RESULTS.to_json().encode()
    for _ in range(500):
        place = random.randrange(len(data))
        damaged = data[:place] + bytes([random.randrange(256)]) + data[place + random.randrange(2) :]
        try:
            assert isinstance(parse_results(damaged.decode("utf-8", "replace")), Results)
        except ConfigurationError:
            continue


def test_files_that_cannot_be_read_are_named(tmp_path, monkeypatch):
    path = tmp_path / "all.json"
    for data, problem in ((None, "No such file"), (b"\xff", "no UTF-8 at byte 0"), (b"{}", "'made' is missing")):
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(ConfigurationError, match=problem) as caught:
            read_results(path)
        assert str(caught.value).startswith(f"{path}: ")
    monkeypatch.setattr(results_module, "RESULTS_SIZE_MAX", 1)
    with pytest.raises(ConfigurationError, match="expected a file of at most 1 bytes"):
        read_results(path)


def test_newer_cells_take_the_places_of_older_ones():
    again = replace(FULL, grade=Grade.EXACT)
    newer = new_results([replace(CONSUMERS[0], version="")], SCENARIOS[:1], [again])
    merged = newer.merged(RESULTS)
    assert merged.made == newer.made
    assert {(cell.consumer, cell.scenario): cell.grade for cell in merged.cells} == {
        ("a", "x"): Grade.EXACT,
        ("b", "y"): None,
    }
    assert merged.consumers == tuple(CONSUMERS)
    assert merged.scenarios == tuple(SCENARIOS)
    assert parse_results(merged.to_json()) == merged


ALIVE = RunEnd()
STORIES = {
    name: (story, RunEnd(**json.loads(end or "{}")), Grade(grade), summary)
    for name, (story, end, grade, summary) in cases_beside(__file__).items()
}


@pytest.mark.parametrize(("story", "end", "grade", "summary"), STORIES.values(), ids=STORIES)
def test_a_story_has_its_grade(story, end, grade, summary):
    found = judge(logged(2, 2, 1), told(story.replace("; ", "\n")), end)
    assert (found.grade, found.summary) == (grade, summary)


def test_grades_go_from_the_best_to_the_worst_and_each_has_a_meaning_and_a_story():
    assert [grade.rank for grade in Grade] == list(range(8))
    assert (min(Grade, key=lambda grade: grade.rank), max(Grade, key=lambda grade: grade.rank)) == (
        Grade.EXACT,
        Grade.LOSES_SILENTLY,
    )
    assert len({grade.meaning for grade in Grade}) == 8
    assert {grade for _, _, grade, _ in STORIES.values()} == set(Grade)


def test_a_judgement_lists_what_is_missing_repeated_and_wrong():
    found = judge(logged(3, 1), told("begin 1\nchange 1\nchange 1\nchange 2 7\ncommit 1\nbegin 2\nchange 4"), ALIVE)
    assert found.missing == ("0-3-1 insert shop.orders id=3 total=3.00 is missing",)
    assert found.repeated == ("0-3-1 insert shop.orders id=1 total=1.00 came twice",)
    assert found.wrong == (
        "0-3-1 was told as committed before insert shop.orders id=2 total=2.00",
        "0-3-1 insert shop.orders id=2 total=2.00 came as total='7' instead of 2.00",
    )
    assert found.first == (1, 6)


def test_lists_and_lines_are_bounded():
    found = judge(logged(500), told("error " + "x" * 10_000), ALIVE)
    assert len(found.missing) == 20
    assert len(found.summary) == 300
