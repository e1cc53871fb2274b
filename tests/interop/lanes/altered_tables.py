"""Columns that are added, dropped, renamed, moved and widened at random, between random changes, on a real server."""

import random
from collections.abc import Sequence

from ibbmaster.testkit.mariadb_server import RealServer
from lanes.choosing import Choosing
from lanes.random_ddl import DATABASE, REFUSED, Make, moment, text

IMPOSSIBLE = (1054, 1091, 1060, 1553, 1901, 1906, 1846, 3106, 1292, 1072)  # as to drop what a generated column takes
#: A type, the values it takes, constants for DEFAULT, and wider types of the same values.
CHAINS: dict[str, tuple[Make, Sequence[str], Sequence[str]]] = {
    "TINYINT": (lambda rng: rng.randint(-128, 127), ("7", "-1"), ("INT", "BIGINT", "DECIMAL(30,3)")),
    "SMALLINT UNSIGNED": (lambda rng: rng.randint(0, 65535), ("9",), ("INT UNSIGNED", "BIGINT UNSIGNED")),
    "DECIMAL(8,2)": (
        lambda rng: f"{rng.randint(-999999, 999999)}.{rng.randint(0, 99):02}",
        ("1.5",),
        ("DECIMAL(45,4)",),
    ),
    "FLOAT": (lambda rng: rng.randint(-1000, 1000) / 4, ("0.25",), ("DOUBLE",)),
    "BIT(5)": (lambda rng: rng.randint(0, 31), ("b'101'",), ("BIT(20)", "BIT(64)")),
    "VARCHAR(20)": (lambda rng: text(rng, 20), ("'it''s'", "''", "5"), ("VARCHAR(300)", "TEXT")),
    "CHAR(9) CHARACTER SET latin1": (
        lambda rng: "".join(rng.choice("aZé ") for _ in range(rng.randint(0, 9))).strip(),
        ("'é'",),
        ("VARCHAR(40) CHARACTER SET utf8mb4",),
    ),
    "BINARY(3)": (lambda rng: rng.randbytes(rng.randint(0, 3)), ("'ab'", "x'0041'"), ("BINARY(6)", "VARBINARY(30)")),
    "BLOB": (lambda rng: rng.randbytes(rng.randint(0, 99)), (), ("MEDIUMBLOB",)),
    "DATE": (lambda rng: moment(rng).date(), ("'2020-02-29'",), ("DATETIME", "DATETIME(3)")),
    "DATETIME(1)": (lambda rng: moment(rng), ("'2020-02-29 01:02:03'",), ("DATETIME(4)",)),
    "TIME": (lambda rng: f"{rng.randint(-838, 838)}:{rng.randint(0, 59):02}:30", ("'12:00:00'",), ("TIME(6)",)),
    "YEAR": (lambda rng: rng.randint(1901, 2155), ("2020",), ()),
    "ENUM('a','it''s')": (lambda rng: rng.choice(["a", "it's"]), ("'a'", "'A'"), ("ENUM('new','it''s','a')",)),
    "SET('x','y','z')": (lambda rng: rng.choice(["", "x", "x,z", "x,y,z"]), ("'y,x'",), ("SET('z','y','w','x')",)),
}
GENERATED = ("BIGINT AS ({n} * 2 + 1)", "BIGINT AS (-{n}) STORED", "VARCHAR(90) AS (CONCAT({n}, '-', {n}))")


class AlteredTables(Choosing):
    """Tables by name, with their columns and what makes values of each; generated ones have no maker."""

    refusals = (*REFUSED, *IMPOSSIBLE)

    def __init__(self, server: RealServer, rng: random.Random, *, images: Sequence[str]) -> None:
        super().__init__(server, rng)
        self._images = images
        self._number = 0
        self.tables: dict[str, dict[str, str]] = {}  # the first type of each column; "" of a generated one
        self._types: dict[tuple[str, str], list[str]] = {}  # what it may be widened to
        for statement in (f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", "SET time_zone='+00:00'"):
            self._run(statement)
        self._run("SET sql_mode='STRICT_ALL_TABLES'")
        for number in range(3):
            self._create(f"t{number}")
            self._insert(f"t{number}")

    def step(self) -> None:
        self._do_one_of(
            "_insert=30 _update=20 _delete=8 _add=4 _add_generated=3 _drop=3 _rename=4 _widen=4 _move=2 "
            "_set_image=3 _several=1",
            self._rng.choice(list(self.tables)),
        )

    def _name(self, table: str) -> str:
        """A new name; sometimes that of a column that is no more."""
        used = self.tables.get(table, {})
        old = [f"c{number}" for number in range(self._number) if f"c{number}" not in used]
        if old and self._rng.random() < 0.4:
            return self._rng.choice(old)
        self._number += 1
        return f"c{self._number}"

    def _know(self, table: str, name: str, kind: str) -> None:
        self.tables[table][name] = kind
        self._types[table, name] = list(CHAINS[kind][2]) if kind else []

    def _create(self, table: str) -> None:
        self.tables[table] = {}
        parts = []
        for kind in self._rng.sample(list(CHAINS), 4):
            name = self._name(table)
            self._know(table, name, kind)
            parts.append(f"{name} {kind}")
        self._run(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, {', '.join(parts)})")

    def _value(self, table: str, name: str) -> object:
        return CHAINS[self.tables[table][name]][0](self._rng)

    def _plain(self, table: str) -> list[str]:
        return [name for name, kind in self.tables[table].items() if kind]

    def _insert(self, table: str) -> None:
        columns = self._plain(table)
        rows = [[self._value(table, name) for name in columns] for _ in range(self._rng.randint(1, 4))]
        marks = ", ".join(f"({', '.join(['NULL', *['%s'] * len(columns)])})" for _ in rows)
        self._run(
            f"INSERT INTO {table} ({', '.join(['id', *columns])}) VALUES {marks}", [one for row in rows for one in row]
        )

    def _update(self, table: str) -> None:
        columns = self._plain(table)
        chosen = self._rng.sample(columns, self._rng.randint(1, len(columns)))
        sets = ", ".join(f"{name} = %s" for name in chosen)
        self._run(
            f"UPDATE {table} SET {sets} WHERE MOD(id, 3) = {self._rng.randint(0, 2)}",
            [self._value(table, name) for name in chosen],
        )

    def _delete(self, table: str) -> None:
        self._run(f"DELETE FROM {table} WHERE MOD(id, 7) = {self._rng.randint(0, 6)}")

    def _place(self, table: str, *others: str) -> str:
        names = [name for name in self.tables[table] if name not in others]
        return self._rng.choice(["", "FIRST", "AFTER id", *(f"AFTER {name}" for name in names[:2])])

    def _addition(self, table: str) -> tuple[str, str, str]:
        kind, name = self._rng.choice(list(CHAINS)), self._name(table)
        default = self._rng.choice(["", "NOT NULL", *(f"DEFAULT {one}" for one in CHAINS[kind][1])])
        if default.startswith("DEFAULT"):
            default = self._rng.choice(["", "NOT NULL "]) + default
        return name, kind, f"ADD COLUMN {name} {kind} {default} {self._place(table)}"

    def _add(self, table: str) -> None:
        name, kind, clause = self._addition(table)
        if len(self.tables[table]) < 11 and self._run(f"ALTER TABLE {table} {clause}"):
            self._know(table, name, kind)

    def _add_generated(self, table: str) -> None:
        numbers = [name for name in self._plain(table) if self.tables[table][name] in ("TINYINT", "SMALLINT UNSIGNED")]
        name = self._name(table)
        if len(self.tables[table]) > 11 or not numbers:
            return
        number = self._rng.choice(numbers)
        is_whole = self.tables[table][number] == "SMALLINT UNSIGNED"  # others get a point, also in texts
        expression = self._rng.choice(GENERATED[: 3 if is_whole else 2]).format(n=number)
        if self._run(f"ALTER TABLE {table} ADD COLUMN {name} {expression} {self._place(table)}"):
            self._know(table, name, "")

    def _drop(self, table: str) -> None:
        name = self._rng.choice(list(self.tables[table]))
        if len(self._plain(table)) > 1 and self._run(f"ALTER TABLE {table} DROP COLUMN {name}"):
            del self.tables[table][name]

    def _rename(self, table: str) -> None:
        old, new = self._rng.choice(list(self.tables[table])), self._name(table)
        if self._run(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}"):
            kinds = self._types.pop((table, old))
            self.tables[table] = {new if name == old else name: kind for name, kind in self.tables[table].items()}
            self._types[table, new] = kinds

    def _widen(self, table: str) -> None:
        for name in self._rng.sample(self._plain(table), len(self._plain(table))):
            if self._types[table, name]:
                wider = self._types[table, name].pop(0)
                self._run(f"ALTER TABLE {table} MODIFY {name} {wider} {self._place(table, name)}")
                return

    def _move(self, table: str) -> None:
        name = self._rng.choice(list(self.tables[table]))
        lines = self._asked(f"SHOW CREATE TABLE {table}")[0][1].splitlines()
        (definition,) = [line.strip().rstrip(",") for line in lines if line.strip().startswith(f"`{name}` ")]
        self._run(f"ALTER TABLE {table} MODIFY {definition} {self._rng.choice(['FIRST', 'AFTER id'])}")

    def _several(self, table: str) -> None:
        """Drop a column, and add another one of its name at once."""
        name = self._rng.choice(self._plain(table))
        _, kind, clause = self._addition(table)
        added = clause.split(" ", 3)[3]
        if name in added.split(" ") or len(self._plain(table)) < 2 or "" in self.tables[table].values():
            return  # what a generated column takes would be a label of an ENUM, say
        if self._run(f"ALTER TABLE {table} DROP COLUMN {name}, ADD COLUMN {name} {added}"):
            del self.tables[table][name]
            self._know(table, name, kind)

    def _set_image(self, table: str) -> None:
        self._run(f"SET binlog_row_image = {self._rng.choice(self._images)}")
