"""Random SELECTs over single tables of `queried_shop`, with rows in an order that is told."""

import json
import random
from pathlib import Path

_DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
COLUMNS = _DATA["columns"]
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
                f"({left} + {right})",
                f"({left} - {right})",
                f"({left} * {right})",
                f"({left} / {right})",
                f"({left} % {right})",
                f"ABS({left})",
                f"ROUND({left}, {rng.randint(0, 3)})",
                f"(-{left})",
                f"COALESCE({left}, {right})",
                f"IF({self._condition(depth - 1)}, {left}, {right})",
                f"CASE WHEN {self._condition(depth - 1)} THEN {left} ELSE {right} END",
                f"CAST({left} AS DECIMAL(20,3))",
                f"({self._condition(depth - 1)})",
            )
        )

    def _text(self, depth: int) -> str:
        rng = self._rng
        if depth <= 0 or rng.random() < 0.4:
            return self._column("text") if rng.random() < 0.8 else rng.choice(LITERALS["text"])
        one = self._text(depth - 1)
        return rng.choice(
            (
                f"CONCAT({one}, {self._number(0)})",
                f"UPPER({one})",
                f"LOWER({one})",
                f"LEFT({one}, {rng.randint(1, 4)})",
                f"SUBSTRING({one}, {rng.choice((-3, -1, 1, 2))}, {rng.randint(1, 4)})",
                f"COALESCE({one}, 'none')",
                f"IF({self._condition(depth - 1)}, {one}, 'x')",
                f"IFNULL({one}, '')",
                f"CAST({self._number(0)} AS CHAR)",
                f"SUBSTRING_INDEX({one}, 'n', 1)",
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
        return rng.choice(
            (
                moment,
                f"DATE({moment})",
                f"COALESCE({moment}, '2020-01-01')",
            )
        )

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
        order = rng.choice(
            (
                f"{self._prefix}id",
                f"{self._value(1)}, {self._prefix}id",
                f"{self._column('text')} DESC, {self._prefix}id",
            )
        )
        limit = rng.choice(("", "", " LIMIT 7", " LIMIT 5 OFFSET 3"))
        return f"SELECT {self._prefix}id, {items} FROM {source}{self._where()} ORDER BY {order}{limit}", True

    def _aggregate(self) -> str:
        rng = self._rng
        number = self._number(1)
        return rng.choice(
            (
                "COUNT(*)",
                f"COUNT({self._value(1)})",
                f"SUM({self._column('int', 'decimal')})",
                f"AVG({self._column('int', 'decimal')})",
                f"MIN({self._column('int', 'decimal', 'moment', 'real')})",
                f"MAX({self._column('int', 'decimal', 'moment', 'text')})",
                f"COUNT(DISTINCT {self._column('int', 'text', 'decimal')})",
                f"SUM({self._condition(0)})",
                f"MAX({number})",
                f"SUM({self._column('decimal')} * {self._column('int')})",
                f"AVG({self._column('decimal')} / 3)",
                f"ROUND(AVG({self._column('int')}), 2)",
                f"SUM({self._column('int')}) / COUNT(*)",
            )
        )

    def _grouped(self) -> tuple[str, bool]:
        rng = self._rng
        source = self._choose()
        key = rng.choice(
            (
                self._column("int", "decimal"),
                self._column("text"),
                self._column("label"),
                f"{self._column('int')} % 3",
                f"LEFT({self._column('text')}, 1)",
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
