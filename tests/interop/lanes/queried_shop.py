"""A shop with a column of every type, nulls and several collations, and random SELECTs of its tables."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from lanes.sql_file import sql_beside

SEED = 20261123
TABLES = sql_beside(__file__)["tables"]
CATEGORIES: tuple[tuple[object, ...], ...] = (
    *((1, None, "all"), (2, 1, "Furniture"), (3, 1, "Food")),
    *((4, 2, "chairs"), (5, 2, "Tables"), (6, None, "x")),
)
CITIES = ("Berlin", "berlin", "Köln", "KOLN", "Paris", "paris ", "Zürich", "Oslo", "Århus", None, "", "São Paulo")
NAMES = ("Ann", "ann", "ANN ", "Bob", "Émile", "emile", "Zoë", "ZOE", "Müller", "muller", "Straße", "strasse", None, "")
NICKS = ("ßeta", "sseta", "Æsir", "aesir", "o'Neil", "O'NEIL", "naïve", "naive", "x y", "xy", None, "z-z", "zz")
STATUSES = ("new", "NEW", "paid", "Paid", "shipped", "lost", "returned")
TITLES = ("Red chair", "red CHAIR", "Blue table", "Lämp", "lamp", "100% wool", "under_score", "a\\b", "Tea 'n' go")
NOTES = (None, "", "gift", "Gift ", "call first", "100% sure", "line\nbreak", "tab\there", "ünïcode", "日本語", "12abc")


def quoted(value: object) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'" if value else "''"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n").replace("\t", "\\t") + "'"
    return str(value)


def statements() -> Iterator[str]:
    """Makes the tables and their rows."""
    yield "CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    yield "USE shop"
    yield "SET binlog_format = ROW, time_zone = '+00:00', sql_mode = '', NAMES utf8mb4 COLLATE utf8mb4_general_ci"
    yield from TABLES
    rng = random.Random(SEED)
    for table, rows in _rows(rng):
        for start in range(0, len(rows), 50):
            values = ", ".join(f"({', '.join(map(quoted, row))})" for row in rows[start : start + 50])
            yield f"INSERT INTO {table} VALUES {values}"
    yield "UPDATE orders SET status = 'shipped', shipped = DATE(placed) WHERE id % 7 = 0"
    yield "DELETE FROM orders WHERE id = 13"


def _rows(rng: random.Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    yield "customers", [_customer(rng, number) for number in range(1, 61)]
    yield "categories", list(CATEGORIES)
    yield "products", [_product(rng, number) for number in range(1, 25)]
    yield "orders", [_order(rng, number) for number in range(1, 161)]
    yield (
        "items",
        [
            (order, line, rng.randint(1, 26), rng.randint(1, 9), f"{rng.randint(1, 99999) / 100:.2f}")
            for order in range(1, 161)
            for line in range(1, 1 + rng.randint(0, 3))
        ],
    )
    yield "events", [_event(rng, number) for number in range(1, 41)]


def _maybe(rng: random.Random, value: object) -> object:
    return None if rng.random() < 0.15 else value


def _moment(rng: random.Random) -> str:
    day = f"{rng.randint(2023, 2025)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    return f"{day} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def _customer(rng: random.Random, number: int) -> tuple[object, ...]:
    born = rng.choice(("1980-02-29", "1999-12-31", "2001-01-01", "0000-00-00", "1970-00-00", "1965-07-04"))
    return (
        number,
        f"{rng.choice(('ann', 'Bob', 'carl'))}{number}@{rng.choice(('example.com', 'Test.org'))}",
        rng.choice(NAMES),
        rng.choice(CITIES),
        rng.choice(("DE", "FR", "de", "NO")),
        _maybe(rng, rng.choice(("A-1", "a-1", "B 2", "b 2 ", "ü", "10", "9", "x"))),
        rng.choice(NICKS),
        rng.choice(("bronze", "silver", "gold", None)),
        rng.choice(("", "new", "vip,b2b", "new,vip", "b2b")),
        _maybe(rng, born),
        f"{rng.randint(-50000, 500000) / 100:.2f}",
        _maybe(rng, rng.choice((0.1, -2.5, 1e-7, 123456789.125, 3.3333333333333335, 1e20, 0.0, 7.0))),
        _maybe(rng, rng.choice((0.1, -2.5, 1.25, 1e10, 3.14159))),
        _moment(rng),
        _maybe(rng, f"{_moment(rng)}.{rng.randint(0, 999):03}"),
        rng.randint(0, 1),
        _maybe(rng, rng.randint(0, 31)),
        _maybe(rng, rng.choice((0, 1, 2**63 - 1, 2**63, 2**64 - 1, rng.randint(0, 10**6)))),
        _maybe(rng, _uuid(rng)),
        _maybe(rng, rng.choice(("::1", "2001:db8::7", "::ffff:1.2.3.4"))),
        _maybe(rng, f'{{"a": {rng.randint(0, 9)}, "b": [1, "x"]}}'),
        rng.choice(NOTES),
        _maybe(rng, rng.randbytes(rng.randint(0, 8))),
    )  # fmt: skip


def _uuid(rng: random.Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def _product(rng: random.Random, number: int) -> tuple[object, ...]:
    return (
        number,
        f"{rng.choice('ABab')}{number:03}",
        rng.choice(TITLES),
        _maybe(rng, rng.randint(1, 6)),
        f"{rng.randint(0, 100000) / 100:.2f}",
        _maybe(rng, f"{rng.randint(0, 10**9) / 10**6:.6f}"),
        _maybe(rng, rng.randint(-5, 500)),
        _maybe(rng, rng.choice((0.5, 1.1, 99.99))),
        _moment(rng),
        _maybe(rng, rng.randbytes(rng.randint(0, 20))),
    )


def _order(rng: random.Random, number: int) -> tuple[object, ...]:
    return (
        number,
        _maybe(rng, rng.randint(1, 65)),
        _moment(rng),
        _maybe(rng, rng.choice(("2024-02-29", "2024-12-31", "2023-01-01", "2025-06-15"))),
        rng.choice(STATUSES),
        _maybe(rng, f"{rng.randint(-1000, 1000000) / 100:.2f}"),
        _maybe(rng, f"{rng.randint(0, 999) / 1000:.3f}"),
        _maybe(rng, rng.choice((0.1, 0.2, 0.30000000000000004, 12.5, 1e15, 1e16, -0.75))),
        _maybe(rng, rng.randint(-3, 300)),
        rng.randint(0, 255),
        rng.choice(NOTES),
        _maybe(rng, rng.choice(("00:00:00", "-01:30:00.50", "12:34:56.78", "838:59:59", "100:00:00"))),
        _maybe(rng, rng.choice((2023, 2024, 1999, 0))),
    )


def _event(rng: random.Random, number: int) -> tuple[object, ...]:
    return (
        number * 1000000007,
        f"{_moment(rng)}.{rng.randint(0, 999999):06}",
        rng.choice(("click", "Click", "view", "buy")),
        _maybe(rng, f"{rng.randint(-(10**18), 10**18)}.{rng.randint(0, 10**10 - 1):010}"),
        _maybe(rng, rng.choice((-(2**63), 2**63 - 1, 0, 42, -7))),
        rng.choice(NOTES),
    )


COLUMNS = json.loads(Path(__file__).with_suffix(".json").read_text())["columns"]
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
        """The next statement, and whether its order counts."""
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
