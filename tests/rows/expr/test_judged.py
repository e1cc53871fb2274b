"""Every type of column beside every kind of literal, every function over every kind of value: as real servers answer.

fixtures/answers/grid has what 10.11 and 11.8 said; a run asks a share of it, all of it with --interop-all.
"""

import contextlib
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from lanes.grid_judge import DIFFERENT, REFUSED, OurServers, questions
from lanes.select_grid import COLUMNS, COMPOSED, LITERALS, SCALARS, in_brackets, load

from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.replication.wire.response import ResultSet
from tests.case_table import data_beside

DATA = data_beside(__file__)
QUESTIONS_MIN = 100_000
SHARE = 25  # one of so many is asked
STRANGE = 2_000
BRACKETS = 10  # and of those through SQLite and the planner, too
ANSWERED_MIN = {"computed": 0.55, "condition": 0.55, "scalar": 0.5}


@pytest.fixture(scope="module")
def servers() -> Iterator[OurServers]:
    made = OurServers()
    yield made
    made.close()


def test_each_answer_is_that_of_both_servers(request: pytest.FixtureRequest, servers: OurServers) -> None:
    every = [*questions(load())]
    assert len(every) >= QUESTIONS_MIN
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    wanted = every if request.config.getoption("--interop-all") else rng.sample(every, len(every) // SHARE)
    asked, answered, wrong = Counter[str](), Counter[str](), []
    for way, sql, right in wanted:
        for mine, theirs in servers.asked(way, sql, right):
            asked[way] += 1
            answered[way] += mine != REFUSED
            if mine not in (REFUSED, theirs):
                wrong.append(f"{way} {sql}: ours {mine}, real {theirs}")
        if way == "computed" and not rng.randrange(BRACKETS):
            mine = servers.newer.condition(in_brackets(sql))
            if mine not in (REFUSED, *right.split(DIFFERENT)):
                wrong.append(f"{in_brackets(sql)}: ours {mine}, real {right}")

    assert not wrong, "\n".join(wrong)
    assert {way: answered[way] / asked[way] for way in asked if answered[way] < ANSWERED_MIN[way] * asked[way]} == {}


def test_no_expression_ends_but_with_rows_or_an_error(servers: OurServers) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    literals = [literal for group in LITERALS for literal in group] + ["1e308", "@x", "''", "USER()", "(SELECT 1)", "*"]
    columns = [name for name, _, _ in COLUMNS]
    answered = 0
    for _ in range(STRANGE):
        expression = rng.choice(literals)
        for _ in range(rng.randint(1, 3)):
            expression = f"({rng.choice((*SCALARS, *COMPOSED)).replace('$', expression)})"
        if not rng.randrange(8):
            place = rng.randrange(len(expression))
            expression = expression[:place] + rng.choice(("", ")", "(", ",", "'", "é")) + expression[place + 1 :]
        sql = rng.choice(
            (
                f"SELECT {expression}",
                f"SET @y = {expression}",
                f"SHOW VARIABLES WHERE {expression}",
                f"SELECT {rng.choice(columns)} FROM grid.g WHERE {expression} LIMIT 2",
            )
        )
        for answer in servers.newer.dialog.query(sql.encode()):
            with contextlib.suppress(RefusedError):
                answered += isinstance(answer, ResultSet) and len(list(answer.rows)) > 0
    assert answered > STRANGE / 20


@pytest.mark.parametrize(("sql", "named"), DATA["forms that are not known"])
def test_a_form_that_is_not_known_is_no_wrong_syntax_and_no_missing_table(
    servers: OurServers, sql: str, named: str
) -> None:
    code, text = servers.newer.ask(sql)
    assert (code, named in text) == (REFUSED, True), text


@pytest.mark.parametrize("sql", DATA["refused with a reason"])
def test_what_is_refused_says_why_and_where_the_rows_are_to_be_had(servers: OurServers, sql: str) -> None:
    code, text = servers.newer.ask(sql)
    assert (code, 'log.snapshot("grid.g' in text) == (REFUSED, True), text
