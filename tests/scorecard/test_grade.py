"""Each grade, and what decides between two: what came, in which order, and what the user was told."""

import textwrap

import pytest

from ibbmaster.scorecard.grade import Grade, RunEnd, judge

from .stories import logged, told

ALL = """
    begin 1
    change 1
    change 2
    commit 1
    begin 2
    change 3
    change 4
    commit 2
    begin 3
    change 5
    commit 3
"""
ALIVE = RunEnd()

STORIES: dict[str, tuple[str, RunEnd, Grade, str]] = {
    "everything once": (ALL, ALIVE, Grade.EXACT, "every change once, in order"),
    "a group twice": (
        "begin 1\nchange 1\nchange 2\ncommit 1\n" + ALL,
        ALIVE,
        Grade.REPEATS_GROUPS,
        "0-3-1 insert shop.orders id=1 total=1.00 came twice and 1 more",
    ),
    "a part of a group twice": (
        "begin 1\nchange 1\n" + ALL,
        ALIVE,
        Grade.REPEATS_PARTS,
        "0-3-1 insert shop.orders id=1 total=1.00 came twice",
    ),
    "a GTID twice, but no change": ("begin 1\n" + ALL, ALIVE, Grade.EXACT, "every change once, in order"),
    "without begins and commits": (
        "change 1\nchange 2\nchange 3\nchange 4\nchange 5",
        ALIVE,
        Grade.EXACT,
        "every change once, in order",
    ),
    "a group lost": (
        "begin 1\nchange 1\nchange 2\ncommit 1\nbegin 2\nbegin 3\nchange 5\ncommit 3",
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-2 insert shop.orders id=3 total=3.00 is missing and 1 more, and nobody was told",
    ),
    "a lost connection is no word of a loss": (
        "begin 1\nchange 1\nchange 2\ncommit 1\nbegin 2\nretried the connection is lost\nbegin 3\nchange 5\ncommit 3",
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-2 insert shop.orders id=3 total=3.00 is missing and 1 more, and nobody was told",
    ),
    "an error that ended it is, whatever a start behind it brought": (
        "begin 1\nchange 1\nchange 2\ncommit 1\nbegin 2\nfatal out of order\nrestart\nbegin 3\nchange 5\ncommit 3",
        ALIVE,
        Grade.LOSES_LOUDLY,
        "0-3-2 insert shop.orders id=3 total=3.00 is missing and 1 more; an error said so",
    ),
    "no more is an error before what was lost": (
        "error something else\nbegin 1\nchange 1\nchange 2\ncommit 1\nbegin 3\nchange 5\ncommit 3",
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-2 insert shop.orders id=3 total=3.00 is missing and 1 more, and nobody was told",
    ),
    "an error behind the change before it is": (
        "begin 1\nchange 1\nchange 2\ncommit 1\nerror event 165 is passed over\nbegin 3\nchange 5\ncommit 3",
        ALIVE,
        Grade.LOSES_LOUDLY,
        "0-3-2 insert shop.orders id=3 total=3.00 is missing and 1 more; an error said so",
    ),
    "an error later, too": (
        "begin 1\nchange 1\nchange 2\ncommit 1\nbegin 3\nchange 5\ncommit 3\nerror groups are missing",
        ALIVE,
        Grade.LOSES_LOUDLY,
        "0-3-2 insert shop.orders id=3 total=3.00 is missing and 1 more; an error said so",
    ),
    "a loss nobody was told of, then a fatal error that did": (
        "begin 1\nchange 1\nchange 2\ncommit 1\nbegin 3\nchange 5\ncommit 3\nfatal gap\nrestart\nfatal gap",
        RunEnd(exit_code=1),
        Grade.LOSES_LOUDLY,
        "0-3-2 insert shop.orders id=3 total=3.00 is missing and 1 more; an error said so",
    ),
    "another value": (
        ALL.replace("change 3", "change 3 7.77"),
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-2 insert shop.orders id=3 total=3.00 came as total='7.77' instead of 3.00, and nobody was told",
    ),
    "another value, and then the right one": (
        ALL.replace("change 3", "change 3 7.77\nretried bad\nbegin 2\nchange 3"),
        ALIVE,
        Grade.EXACT,
        "every change once, in order",
    ),
    "under another GTID": (
        ALL.replace("begin 2", "begin 7"),
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-2 insert shop.orders id=3 total=3.00 was told as 0-3-7 and 1 more, and nobody was told",
    ),
    "committed under another GTID": (
        ALL.replace("commit 2", "commit 7"),
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-2 insert shop.orders id=3 total=3.00 was told as 0-3-7 and 1 more, and nobody was told",
    ),
    "a commit too few": (
        ALL.replace("commit 2", ""),
        ALIVE,
        Grade.LOSES_SILENTLY,
        "the commit of 0-3-2 is missing, and nobody was told",
    ),
    "no commits at all": (
        ALL.replace("commit 1", "").replace("commit 2", "").replace("commit 3", ""),
        ALIVE,
        Grade.EXACT,
        "every change once, in order",
    ),
    "a commit too early": (
        ALL.replace("change 4\n    commit 2", "commit 2\n    change 4"),
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-2 was told as committed before insert shop.orders id=4 total=4.00, and nobody was told",
    ),
    "two groups as one": (
        "begin\nchange 1\nchange 2\nchange 3\nchange 4\ncommit\nbegin\nchange 5\ncommit",
        ALIVE,
        Grade.LOSES_SILENTLY,
        "changes of 0-3-1 and 0-3-2 were told as one group, and nobody was told",
    ),
    "in another order": (
        "begin 2\nchange 3\nchange 4\ncommit 2\nbegin 1\nchange 1\nchange 2\ncommit 1\nbegin 3\nchange 5\ncommit 3",
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-1 insert shop.orders id=1 total=1.00 came behind 0-3-2 insert shop.orders id=4 total=4.00 and 1 more, "
        "and nobody was told",
    ),
    "what was never logged": (
        ALL + "change 99",
        ALIVE,
        Grade.LOSES_SILENTLY,
        'change insert shop.orders {"id": 99, "total": "99.0"} was never logged, and nobody was told',
    ),
    "the commit of the last group alone": (
        "begin 3\ncommit 3",
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-1 insert shop.orders id=1 total=1.00 is missing and 4 more, and nobody was told",
    ),
    "nothing more": (
        "begin 1\nchange 1\nchange 2\ncommit 1",
        ALIVE,
        Grade.HANGS,
        "it came no further and said nothing: 0-3-2 insert shop.orders id=3 total=3.00 is missing and 2 more",
    ),
    "nothing at all": (
        "",
        ALIVE,
        Grade.HANGS,
        "it came no further and said nothing: 0-3-1 insert shop.orders id=1 total=1.00 is missing and 4 more",
    ),
    "it connects for ever": (
        "begin 1\nchange 1\nretried lost\nretried lost",
        RunEnd(connections=9),
        Grade.HANGS,
        "it connected 9 times and came no further: 0-3-1 insert shop.orders id=2 total=2.00 is missing and 3 more",
    ),
    "it ends in order": (
        "begin 1",
        RunEnd(exit_code=0),
        Grade.HANGS,
        "it ended and said nothing: 0-3-1 insert shop.orders id=1 total=1.00 is missing and 4 more",
    ),
    "it tells and lives on": (
        "begin 1\nerror 1236 purged",
        RunEnd(connections=9),
        Grade.LOSES_LOUDLY,
        "it came no further: 1236 purged: 0-3-1 insert shop.orders id=1 total=1.00 is missing and 4 more",
    ),
    "it ends with an error": (
        "fatal 1236 purged\nrestart\nfatal 1236 purged",
        RunEnd(exit_code=1),
        Grade.LOSES_LOUDLY,
        "it ended: 1236 purged: 0-3-1 insert shop.orders id=1 total=1.00 is missing and 4 more",
    ),
    "it ends with a text in its log": (
        "",
        RunEnd(exit_code=3, has_log=True),
        Grade.LOSES_LOUDLY,
        "it ended with exit code 3: 0-3-1 insert shop.orders id=1 total=1.00 is missing and 4 more",
    ),
    "it ends with nothing but an exit code": (
        "",
        RunEnd(exit_code=3),
        Grade.CRASHES,
        "it ended with exit code 3 and said nothing: 0-3-1 insert shop.orders id=1 total=1.00 is missing and 4 more",
    ),
    "a signal ends it": (
        "begin 1",
        RunEnd(exit_code=-11, has_log=True),
        Grade.CRASHES,
        "signal 11 ended it: 0-3-1 insert shop.orders id=1 total=1.00 is missing and 4 more",
    ),
    "an error of its own ends it": (
        "begin 1\ninternal NullPointerException",
        RunEnd(exit_code=1),
        Grade.CRASHES,
        "an internal error: NullPointerException: 0-3-1 insert shop.orders id=1 total=1.00 is missing and 4 more",
    ),
    "an error of its own that a start helps": (
        "begin 1\nchange 1\ninternal KeyError\nrestart\n" + ALL,
        ALIVE,
        Grade.REPEATS_PARTS,
        "0-3-1 insert shop.orders id=1 total=1.00 came twice",
    ),
    "a loss in silence, and then it hangs": (
        "begin 2\nchange 3\nchange 4\ncommit 2",
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-1 insert shop.orders id=1 total=1.00 is missing and 1 more, and nobody was told",
    ),
    "a table with another column, and every change": (
        "table id sum\n" + ALL,
        ALIVE,
        Grade.METADATA_WRONG,
        "shop.orders was told with columns ['id', 'sum'] instead of ['id', 'total'], and nobody was told",
    ),
    "a table with its columns": ("table id total\n" + ALL, ALIVE, Grade.EXACT, "every change once, in order"),
    "a table with another column, and an error behind it": (
        "table id sum\nerror no such column\n" + ALL,
        ALIVE,
        Grade.EXACT,
        "every change once, in order",
    ),
    "a table with another column, and a change twice": (
        "table id sum\nbegin 1\nchange 1\n" + ALL,
        ALIVE,
        Grade.METADATA_WRONG,
        "shop.orders was told with columns ['id', 'sum'] instead of ['id', 'total'], and nobody was told; "
        "besides, 0-3-1 insert shop.orders id=1 total=1.00 came twice",
    ),
    "a table with another column, and a loss that nobody was told": (
        "table id sum\nbegin 2\nchange 3\nchange 4\ncommit 2",
        ALIVE,
        Grade.LOSES_SILENTLY,
        "0-3-1 insert shop.orders id=1 total=1.00 is missing and 1 more, and nobody was told",
    ),
    "a loss that is told, and then a crash": (
        "begin 2\nchange 3\nchange 4\ncommit 2\ninternal KeyError",
        RunEnd(exit_code=1),
        Grade.CRASHES,
        "an internal error: KeyError: 0-3-1 insert shop.orders id=1 total=1.00 is missing and 2 more",
    ),
}


@pytest.mark.parametrize(("story", "end", "grade", "summary"), STORIES.values(), ids=STORIES)
def test_a_story_has_its_grade(story, end, grade, summary):
    found = judge(logged(2, 2, 1), told(textwrap.dedent(story)), end)
    assert (found.grade, found.summary) == (grade, summary)


def test_every_grade_is_told_in_a_story():
    assert {grade for _, _, grade, _ in STORIES.values()} == set(Grade)


def test_grades_go_from_the_best_to_the_worst_and_each_has_a_meaning():
    assert [grade.rank for grade in Grade] == list(range(8))
    assert (min(Grade, key=lambda grade: grade.rank), max(Grade, key=lambda grade: grade.rank)) == (
        Grade.EXACT,
        Grade.LOSES_SILENTLY,
    )
    assert len({grade.meaning for grade in Grade}) == 8


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
