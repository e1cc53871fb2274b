import json

import pytest

from ibbmaster_scorecard.grade import Grade, RunEnd, judge
from tests.case_table import cases_beside
from .stories import logged, told

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
