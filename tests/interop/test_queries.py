"""Queries of any form over tables: what a real server says, and what ours says that knows its binlog alone."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from lanes.answers import RawClient, Session
from lanes.pair import Pair, answer, served_beside
from lanes.primary import login_of
from lanes.sql import sql_beside

from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.case_table import data_beside

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


def told_of(field: Any) -> tuple[object, ...]:
    """What a column is told to be; of texts and moments not what means nothing there."""
    if field.type_code in TEXTS:
        return field.name, BLOB if field.type_code in BLOBS else field.type_code, field.charsetnr
    is_unsigned = field.type_code in NUMBERS and field.flags & UNSIGNED
    return field.name, field.type_code, field.charsetnr, is_unsigned, field.scale


def told_apart(mine: Answer, theirs: Answer, sql: str, *, is_ordered: bool) -> str | None:
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


def expect_answers(pair: Pair, asked: Iterable[tuple[str, bool]], database: str = "shop") -> int:
    """Statements, each with whether its order counts, are answered as by the real server or refused; how many were."""
    wrong, answered = [], 0
    with pair.asking(SESSION, f"USE {database}") as (ours, real):
        for sql, is_ordered in asked:
            mine, theirs = (answer(one, sql, told_of) for one in (ours, real))
            answered += mine != NOT_SUPPORTED
            found = told_apart(mine, theirs, sql, is_ordered=is_ordered)
            wrong += [] if found is None else [found]
    assert not wrong, "\n".join(wrong)
    return answered


def with_order(asked: Iterable[str]) -> list[tuple[str, bool]]:
    return [(sql, "order by" in sql.lower()) for sql in asked]


def test_the_queries_of_tools_and_analysts_are_answered_as_by_a_real_server_or_refused(shop_pair):
    assert expect_answers(shop_pair, with_order(corpus())) >= ANSWERED_MIN * len(corpus())


def test_all_that_connectors_ask_is_answered_as_by_a_real_server(shop_pair):
    assert expect_answers(shop_pair, with_order(copying()[1]), "mart") == len(copying()[1])


def test_their_rows_are_the_same_in_the_binary_protocol(shop_pair):
    answers: list[list[object]] = []
    for primary in shop_pair:
        found: list[object] = []
        session = Session(SESSION, "utf8mb4", 45, 0)
        with RawClient(session, **login_of(primary), database="shop", ssl_disabled=True) as client:
            for sql, is_ordered in with_order(corpus()):
                try:
                    rows = client.binary(sql).rows
                    found.append(rows if is_ordered else sorted(rows))
                except pymysql.Error as error:
                    found.append(error.args[0])
        answers.append(found)
    theirs, mine = answers
    differing = [one for one in zip(corpus(), mine, theirs, strict=True) if one[1] not in (NOT_SUPPORTED, one[2])]
    assert not differing, "\n".join(f"{sql}\n  ours {a!s:.300}\n  real {b!s:.300}" for sql, a, b in differing)


def test_random_queries_are_answered_as_by_a_real_server_or_refused(shop_pair):
    print(f"seed {SEED}")
    queries = RandomQueries(random.Random(SEED))
    asked = (queries.statement() for _ in range(RANDOM_STATEMENTS))
    assert expect_answers(shop_pair, asked) > RANDOM_STATEMENTS / 2


ROWS_SEED = 20261123
TABLES = sql_beside(__file__)["tables"]
CATEGORIES: tuple[tuple[object, ...], ...] = (
    *((1, None, "all"), (2, 1, "Furniture"), (3, 1, "Food")),
    *((4, 2, "chairs"), (5, 2, "Tables"), (6, None, "x")),
)
#: Columns that have values of each kind, and what rows are made of, as `_made` reads it.
_DATA = data_beside(__file__)
COLUMNS = _DATA["columns"]
RARELY = 0.15


def quoted(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'" if value else "''"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n").replace("\t", "\\t") + "'"
    return str(value)


def statements() -> Iterator[str]:
    yield "CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    yield "USE shop"
    yield "SET binlog_format = ROW, time_zone = '+00:00', sql_mode = '', NAMES utf8mb4 COLLATE utf8mb4_general_ci"
    yield from TABLES
    rng = random.Random(ROWS_SEED)
    for table, rows in _rows(rng):
        for start in range(0, len(rows), 50):
            values = ", ".join(f"({', '.join(map(quoted, row))})" for row in rows[start : start + 50])
            yield f"INSERT INTO {table} VALUES {values}"
    yield "UPDATE orders SET status = 'shipped', shipped = DATE(placed) WHERE id % 7 = 0"
    yield "DELETE FROM orders WHERE id = 13"


def _rows(rng: random.Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    for table, (count, row) in _DATA["rows"].items():
        rows = []
        for number in range(1, count + 1):
            first = rng.choice(_DATA["first of customers"]) if table == "customers" else None
            rows.append(tuple(_made(rng, one, number, first) for one in row))
        yield table, rows
        if table == "customers":
            yield "categories", list(CATEGORIES)
        if table == "orders":
            yield (
                "items",
                [
                    (order, line, rng.randint(1, 26), rng.randint(1, 9), f"{rng.randint(1, 99999) / 100:.2f}")
                    for order in range(1, 161)
                    for line in range(1, 1 + rng.randint(0, 3))
                ],
            )


def _made(rng: random.Random, how: Any, number: int, first: object) -> object:
    """A value of the row of a number, of which `first` is drawn before all others; a list is of choices."""
    match how:
        case "number":
            return number
        case "first":
            return first
        case "moment":
            day = f"{rng.randint(2023, 2025)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
            return f"{day} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
        case "uuid":
            digits = f"{rng.getrandbits(128):032x}"
            return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
        case list():
            return rng.choice([_made(rng, one, number, first) if isinstance(one, dict) else one for one in how])
        case {"maybe": one}:
            value = _made(rng, one, number, first)
            return None if rng.random() < RARELY else value
        case {"int": [least, most]}:
            return rng.randint(least, most)
        case {"decimal": [least, most, digits]}:
            return f"{rng.randint(least, most) / 10**digits:.{digits}f}"
        case {"bytes": most}:
            return rng.randbytes(rng.randint(0, most))
        case {"text": form, "of": parts}:
            return form.format(*(_made(rng, one, number, first) for one in parts))
        case {"times": factor}:
            return number * factor
    raise ValueError(how)


LITERALS = {
    "int": ("0", "1", "7", "-3", "100", "NULL", "2147483648"),
    "decimal": ("0.5", "1.25", "100.00", "-2.5", "0", "3"),
    "real": ("0.1", "1e0", "-2.5e0", "1e10", "2"),
    "text": ("'ann'", "'NEW'", "'a'", "''", "'gift '", "'Köln'", "'zoe'", "'A-1'"),
    "moment": ("'2024-06-01'", "'2024-02-29 12:00:00'", "'2023-01-01'"),
    "label": ("'gold'", "'vip'", "''"),
}
PATTERNS = ("'a%'", "'%e%'", "'_n%'", "'%'", "'%\\\\%%'", "'Z%'", "'%ß%'", "'g_ft'")


class RandomQueries:
    """Statements, each with whether its rows have an order."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._prefix = ""
        self._table = "orders"

    def statement(self) -> tuple[str, bool]:
        return self._rng.choice((self._plain, self._plain, self._grouped, self._nested))()

    def _columns(self, kind: str) -> tuple[str, ...]:
        return COLUMNS[self._table].get(kind, ())

    def _column(self, *kinds: str) -> str:
        names = [name for kind in kinds for name in self._columns(kind)]
        return f"{self._prefix}{self._rng.choice(names)}" if names else f"{self._prefix}id"

    def _number(self, depth: int) -> str:
        rng = self._rng
        if depth <= 0 or rng.random() < 0.3:
            kind = rng.choice(("int", "decimal", "real"))
            return self._column(kind) if rng.random() < 0.7 else rng.choice(LITERALS[kind])
        left, right = self._number(depth - 1), self._number(depth - 1)
        return rng.choice(
            (
                *(f"({left} + {right})", f"({left} - {right})", f"({left} * {right})", f"({left} / {right})"),
                *(f"({left} % {right})", f"ABS({left})", f"ROUND({left}, {rng.randint(0, 3)})", f"(-{left})"),
                *(f"COALESCE({left}, {right})", f"IF({self._condition(depth - 1)}, {left}, {right})"),
                f"CASE WHEN {self._condition(depth - 1)} THEN {left} ELSE {right} END",
                *(f"CAST({left} AS DECIMAL(20,3))", f"({self._condition(depth - 1)})"),
            )
        )

    def _text(self, depth: int) -> str:
        rng = self._rng
        if depth <= 0 or rng.random() < 0.4:
            return self._column("text") if rng.random() < 0.8 else rng.choice(LITERALS["text"])
        one = self._text(depth - 1)
        return rng.choice(
            (
                *(f"CONCAT({one}, {self._number(0)})", f"UPPER({one})", f"LOWER({one})"),
                f"LEFT({one}, {rng.randint(1, 4)})",
                *(f"SUBSTRING({one}, {rng.choice((-3, -1, 1, 2))}, {rng.randint(1, 4)})", f"COALESCE({one}, 'none')"),
                *(f"IF({self._condition(depth - 1)}, {one}, 'x')", f"IFNULL({one}, '')"),
                *(f"CAST({self._number(0)} AS CHAR)", f"SUBSTRING_INDEX({one}, 'n', 1)"),
            )
        )

    def _condition(self, depth: int) -> str:
        rng = self._rng
        kind = rng.choice(("int", "decimal", "real", "text", "moment", "label"))
        column = self._column(kind)
        plain = (
            f"{column} {rng.choice(('=', '<', '>', '<=', '>=', '<>', '<=>'))} {rng.choice(LITERALS[kind])}",
            f"{column} IS {rng.choice(('', 'NOT '))}NULL",
            f"{self._column('int')} BETWEEN {rng.randint(-5, 50)} AND {rng.randint(20, 200)}",
            f"{self._column('text')} {rng.choice(('', 'NOT '))}LIKE {rng.choice(PATTERNS)}",
            f"{self._column('int')} IN ({', '.join(rng.sample(LITERALS['int'], 3))})",
            f"{self._column('text')} IN ({', '.join(rng.sample(LITERALS['text'], 3))})",
            f"{self._number(depth)} > {self._number(depth - 1)}",
        )
        if depth <= 0 or rng.random() < 0.6:
            return rng.choice(plain)
        one, other = self._condition(depth - 1), self._condition(depth - 1)
        return rng.choice((f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"))

    def _value(self, depth: int = 2) -> str:
        rng = self._rng
        chosen = rng.random()
        if chosen < 0.45:
            return self._number(depth)
        if chosen < 0.75:
            return self._text(depth)
        if chosen < 0.85:
            return self._condition(1)
        moment = self._column("moment")
        return rng.choice((moment, f"COALESCE({moment}, '2020-01-01')"))

    def _choose(self) -> str:
        self._table = self._rng.choice(tuple(COLUMNS))
        self._prefix = self._rng.choice(("", "t."))
        return f"{self._table} t" if self._prefix else self._table

    def _where(self, chance: float = 0.6) -> str:
        return f" WHERE {self._condition(2)}" if self._rng.random() < chance else ""

    def _plain(self) -> tuple[str, bool]:
        rng = self._rng
        source = self._choose()
        items = ", ".join(f"{self._value()} AS v{number}" for number in range(rng.randint(1, 3)))
        orders = (
            f"{self._prefix}id",
            f"{self._value(1)}, {self._prefix}id",
            f"{self._column('text')} DESC, {self._prefix}id",
        )
        order = rng.choice(orders)
        limit = rng.choice(("", "", " LIMIT 7", " LIMIT 5 OFFSET 3"))
        return f"SELECT {self._prefix}id, {items} FROM {source}{self._where()} ORDER BY {order}{limit}", True

    def _aggregate(self) -> str:
        rng = self._rng
        number = self._number(1)
        return rng.choice(
            (
                *("COUNT(*)", f"COUNT({self._value(1)})", f"SUM({self._column('int', 'decimal')})"),
                f"AVG({self._column('int', 'decimal')})",
                f"MIN({self._column('int', 'decimal', 'moment', 'real')})",
                f"MAX({self._column('int', 'decimal', 'moment', 'text')})",
                *(f"COUNT(DISTINCT {self._column('int', 'text', 'decimal')})", f"SUM({self._condition(0)})"),
                *(f"MAX({number})", f"SUM({self._column('decimal')} * {self._column('int')})"),
                *(f"AVG({self._column('decimal')} / 3)", f"ROUND(AVG({self._column('int')}), 2)"),
                f"SUM({self._column('int')}) / COUNT(*)",
            )
        )

    def _grouped(self) -> tuple[str, bool]:
        rng = self._rng
        source = self._choose()
        key = rng.choice(
            (
                *(self._column("int", "decimal"), self._column("text"), self._column("label")),
                *(f"{self._column('int')} % 3", f"LEFT({self._column('text')}, 1)"),
                f"DATE({self._column('moment')})",
            )
        )
        items = ", ".join(self._aggregate() for _ in range(rng.randint(1, 3)))
        having = rng.choice(
            ("", "", f" HAVING COUNT(*) > {rng.randint(0, 4)}", f" HAVING {self._aggregate()} IS NOT NULL")
        )
        return f"SELECT {key} AS k, {items} FROM {source}{self._where(0.4)} GROUP BY {key}{having} ORDER BY k", False

    def _nested(self) -> tuple[str, bool]:
        source = self._choose()
        inner = f"SELECT {self._prefix}id AS k, {self._value(1)} AS v FROM {source}{self._where()}"
        return f"SELECT COUNT(*), COUNT(v), MAX(k) FROM ({inner}) q", False
