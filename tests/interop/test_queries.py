"""Queries of any form over tables: what a real server says, and what ours says that knows its binlog alone."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from lanes.answers import RawClient, Session
from lanes.pair import Pair, connect, served_beside
from lanes.primary import login_of
from lanes.queried_shop import RandomQueries, statements

from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary

CORPUS = Path(__file__).parent / "lanes" / "queries.sql"
CONNECTORS = CORPUS.parent / "connectors.sql"
SESSION = "SET time_zone = '+00:00', NAMES utf8mb4 COLLATE utf8mb4_general_ci"
NOT_SUPPORTED = 1235
ANSWERED_MIN = 0.2  # most of them are of dashboards
SEED = 4
RANDOM_STATEMENTS = 150
UNSIGNED = 0x20
NUMBERS = (1, 2, 3, 8, 9, 13, 246)
BLOB = 252
BLOBS = (250, 251, BLOB)
TEXTS = (*BLOBS, 253, 254)

Answer = tuple[list[tuple[object, ...]], list[tuple[object, ...]]] | int


def copying() -> tuple[list[str], list[str]]:
    """What makes the tables that connectors copy, and what they ask."""
    lines = [line.rstrip(";") for line in CONNECTORS.read_text().splitlines() if not line.startswith("--")]
    return [one for one in lines if not one.startswith("SELECT")], [one for one in lines if one.startswith("SELECT")]


def corpus() -> list[str]:
    return [line for line in CORPUS.read_text().splitlines() if line and not line.startswith("--")]


@pytest.fixture(scope="module", params=MARIADB_VERSIONS)
def shop_pair(request, server_of, tmp_path_factory) -> Iterator[Pair]:
    server = server_of(RealPrimary, request.param, [])
    made = [*statements(), "SET sql_mode = ''", *copying()[0]]
    with served_beside(server, made, tmp_path_factory.mktemp("binlogs")) as both:
        yield both


def asking(primary: Any) -> Any:
    connection = connect(primary)
    connection.query(SESSION)
    connection.query("USE shop")
    return connection


def ask(connection: Any, sql: str) -> Answer:
    """What tells the columns, and the rows; or the number of an error."""
    try:
        connection.query(sql)
    except pymysql.Error as error:
        return int(error.args[0])
    found = connection._result
    return [told_of(field) for field in found.fields], list(found.rows)


def told_of(field: Any) -> tuple[object, ...]:
    """What a column is told to be; of texts and moments not what means nothing there."""
    if field.type_code in TEXTS:
        return field.name, BLOB if field.type_code in BLOBS else field.type_code, field.charsetnr
    is_unsigned = field.type_code in NUMBERS and field.flags & UNSIGNED
    return field.name, field.type_code, field.charsetnr, is_unsigned, field.scale


def told_apart(mine: Answer, theirs: Answer, sql: str, *, is_ordered: bool) -> str | None:
    """How our answer is wrong."""
    if mine in (NOT_SUPPORTED, theirs):
        return None
    if isinstance(mine, int) or isinstance(theirs, int):
        return f"{sql}\n  ours {str(mine)[:300]}\n  real {str(theirs)[:300]}"
    if mine[0] != theirs[0]:
        return f"{sql}\n  ours {mine[0]}\n  real {theirs[0]}"
    if is_ordered or Counter(mine[1]) != Counter(theirs[1]):
        differing = [pair for pair in zip(mine[1], theirs[1], strict=False) if pair[0] != pair[1]][:3]
        return f"{sql}\n  ours {len(mine[1])} rows, real {len(theirs[1])}: {differing}"
    return None


def test_the_queries_of_tools_and_analysts_are_answered_as_by_a_real_server_or_refused(shop_pair):
    wrong, answered = [], 0
    with asking(shop_pair.real) as real, asking(shop_pair.ours) as ours:
        for sql in corpus():
            mine, theirs = ask(ours, sql), ask(real, sql)
            answered += mine != NOT_SUPPORTED
            found = told_apart(mine, theirs, sql, is_ordered="order by" in sql.lower())
            wrong += [] if found is None else [found]

    assert not wrong, "\n".join(wrong)
    assert answered >= ANSWERED_MIN * len(corpus())


def test_all_that_connectors_ask_is_answered_as_by_a_real_server(shop_pair):
    wrong = []
    with asking(shop_pair.real) as real, asking(shop_pair.ours) as ours:
        real.query("USE mart")
        ours.query("USE mart")
        for sql in copying()[1]:
            mine, theirs = ask(ours, sql), ask(real, sql)
            if mine == NOT_SUPPORTED:
                wrong.append(sql)
            found = told_apart(mine, theirs, sql, is_ordered="order by" in sql.lower())
            wrong += [] if found is None else [found]

    assert not wrong, "\n".join(wrong)


def test_their_rows_are_the_same_in_the_binary_protocol(shop_pair):
    wrong = []
    clients = []
    for primary in (shop_pair.ours, shop_pair.real):
        session = Session(SESSION, "utf8mb4", 45, 0)
        clients.append(RawClient(session, **login_of(primary), database="shop", ssl_disabled=True))
    for sql in corpus():
        answers: list[object] = []
        for client in clients:
            try:
                rows = client.binary(sql).rows
                answers.append(rows if "order by" in sql.lower() else sorted(rows))
            except pymysql.Error as error:
                answers.append(error.args[0])
        if answers[0] not in (NOT_SUPPORTED, answers[1]):
            wrong.append(f"{sql}\n  ours {str(answers[0])[:300]}\n  real {str(answers[1])[:300]}")
    for client in clients:
        client.close()

    assert not wrong, "\n".join(wrong)


def test_random_queries_are_answered_as_by_a_real_server_or_refused(shop_pair):
    print(f"seed {SEED}")
    queries = RandomQueries(random.Random(SEED))
    wrong, answered = [], 0
    with asking(shop_pair.real) as real, asking(shop_pair.ours) as ours:
        for _ in range(RANDOM_STATEMENTS):
            sql, is_ordered = queries.statement()
            mine, theirs = ask(ours, sql), ask(real, sql)
            answered += mine != NOT_SUPPORTED
            found = told_apart(mine, theirs, sql, is_ordered=is_ordered)
            wrong += [] if found is None else [found]

    assert not wrong, "\n".join(wrong)
    assert answered > RANDOM_STATEMENTS / 2
