"""Random DDL between random changes of rows, on a real server."""

import datetime
import random
from collections.abc import Callable, Sequence
from typing import Any

from ibbmaster.testkit.mariadb_server import RealServer
from lanes.choosing import Choosing
from lanes.described import Described, described_by

DATABASE = "r"
IMAGES = ("FULL", "MINIMAL", "NOBLOB")
REFUSED = (1062, 1264, 1265, 1048, 1366, 1406, 1364, 1292, 1118, 1071, 1137, 4078, 4124, 4135)  # of what does not fit
Make = Callable[[random.Random], object]

TYPES: dict[str, Make] = {
    "TINYINT": lambda rng: rng.randint(-128, 127),
    "SMALLINT UNSIGNED": lambda rng: rng.randint(0, 65535),
    "MEDIUMINT": lambda rng: rng.randint(-(2**23), 2**23 - 1),
    "INT": lambda rng: rng.randint(-(2**31), 2**31 - 1),
    "INT UNSIGNED": lambda rng: rng.randint(0, 2**32 - 1),
    "BIGINT": lambda rng: rng.randint(-(2**63), 2**63 - 1),
    "BIGINT UNSIGNED": lambda rng: rng.choice([0, 2**64 - 1, rng.randint(0, 2**64 - 1)]),
    "BIT(64)": lambda rng: rng.choice([0, 2**64 - 1, rng.randint(0, 2**64 - 1)]),
    "BIT(11)": lambda rng: rng.randint(0, 2047),
    "DECIMAL(20,0)": lambda rng: rng.randint(1 - 10**20, 10**20 - 1),
    "DECIMAL(12,4)": lambda rng: f"{rng.randint(-(10**7), 10**7)}.{rng.randint(0, 9999):04}",
    "DOUBLE": lambda rng: rng.randint(-1000, 1000) / 4,
    "VARCHAR(20)": lambda rng: text(rng, 20),
    "VARCHAR(300)": lambda rng: text(rng, 290),
    "CHAR(9)": lambda rng: text(rng, 9),
    "TEXT": lambda rng: text(rng, 400),
    "VARBINARY(30)": lambda rng: rng.randbytes(rng.randint(0, 30)),
    "BLOB": lambda rng: rng.randbytes(rng.randint(0, 600)),
    "DATE": lambda rng: moment(rng).date(),
    "DATETIME(3)": lambda rng: moment(rng),
    "TIMESTAMP(6) NULL": lambda rng: moment(rng),
    "TIME(2)": lambda rng: f"{rng.randint(-838, 838)}:{rng.randint(0, 59):02}:{rng.randint(0, 58):02}.25",
    "YEAR": lambda rng: rng.randint(1901, 2155),
    "ENUM('a','b,c','it''s')": lambda rng: rng.choice(["a", "b,c", "it's"]),
    "SET('x','y','z')": lambda rng: rng.choice(["", "x", "x,z", "x,y,z"]),
}
WIDER = {"VARCHAR(20)": "VARCHAR(300)", "ENUM('a','b,c','it''s')": "ENUM('a','b,c','it''s','new')"}


def text(rng: random.Random, size_max: int) -> str:
    return "".join(rng.choice("aZ0 ',`\\é漢😀") for _ in range(rng.randint(0, size_max))).rstrip(" ")


def moment(rng: random.Random) -> datetime.datetime:
    seconds = datetime.timedelta(seconds=rng.randint(86400, 2_000_000_000), milliseconds=rng.randint(0, 999))
    return datetime.datetime(1970, 1, 1) + seconds


class Campaign(Choosing):
    refusals = REFUSED

    def __init__(self, server: RealServer, rng: random.Random, images: Sequence[str] = IMAGES) -> None:
        super().__init__(server, rng)
        self._server = server
        self.seen: list[tuple[str, str, Described]] = []  # statements, positions, and what the tables were there
        self._images = images
        self._number = 0
        self.tables: dict[str, dict[str, str]] = {}  # columns and their types but for the key; the name is quoted
        for statement in (f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}"):
            self._run(statement)
        self._run("SET time_zone='+00:00', sql_mode='STRICT_ALL_TABLES'")
        for _ in range(3):
            self.create()

    def look(self) -> None:
        """Note what the tables of the server are here."""
        gtid = self._asked("SELECT @@gtid_binlog_pos")[0][0]
        self.seen.append((self.statements[-1], gtid, described_by(self._server)))

    def step(self) -> None:
        """One statement, or a transaction of some."""
        self._do_one_of(
            "insert=30 update=20 delete=12 transaction=6 set_image=4 add_column=3 drop_column=2 harmless=2 "
            "index=3 widen=1 rename_column=1 truncate=1 replace=1 rename=1 recreate=1"
        )

    def _table(self) -> str:
        return self._rng.choice(list(self.tables))

    def _new_name(self, what: str) -> str:
        self._number += 1
        return f"`{self._rng.choice([what, what + ',', what + ' x'])}{self._number}`"

    def _some(self, table: str) -> list[str]:
        columns = list(self.tables[table])
        return self._rng.sample(columns, self._rng.randint(0, len(columns)))

    _inserted = _some  # columns

    def _value(self, table: str, column: str) -> object:
        return None if self._rng.random() < 0.15 else TYPES_OF[self.tables[table][column]](self._rng)

    def create(self) -> None:
        kinds = self._rng.sample(list(TYPES), self._rng.randint(2, 6))
        columns = {self._new_name("c"): kind for kind in kinds}
        table = self._new_name("t")
        self.tables[table] = columns
        parts = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        self._run(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, {parts})")

    def insert(self) -> None:
        self.insert_into(self._table())

    def insert_into(self, table: str) -> None:
        columns = self._inserted(table)
        rows = [[self._value(table, column) for column in columns] for _ in range(self._rng.randint(1, 5))]
        marks = ", ".join(f"({', '.join(['NULL', *['%s'] * len(columns)])})" for _ in rows)
        verb = self._rng.choice(["INSERT", "INSERT IGNORE", "REPLACE"])
        self._run(
            f"{verb} INTO {table} ({', '.join(['id', *columns])}) VALUES {marks}", [one for row in rows for one in row]
        )

    def update(self) -> None:
        table = self._table()
        columns = self._some(table)
        if columns:
            sets = ", ".join(f"{column} = %s" for column in columns)
            values = [self._value(table, column) for column in columns]
            self._run(f"UPDATE {table} SET {sets} WHERE MOD(id, 3) = {self._rng.randint(0, 2)}", values)
        else:
            self._run(f"UPDATE {table} SET id = id + 100000 WHERE MOD(id, 7) = 1 ORDER BY id DESC")

    def delete(self) -> None:
        self._run(f"DELETE FROM {self._table()} WHERE MOD(id, 5) = {self._rng.randint(0, 4)}")

    def transaction(self) -> None:
        self._run("BEGIN")
        for _ in range(self._rng.randint(1, 6)):
            self._rng.choice([self.insert, self.update, self.delete])()
        self._run(self._rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]))

    def set_image(self) -> None:
        self._run(f"SET binlog_row_image = {self._rng.choice(self._images)}")

    def add_column(self) -> None:
        table = self._table()
        if len(self.tables[table]) > 9:
            return
        kind = self._rng.choice(list(TYPES))
        name = self._new_name("c")
        self.tables[table][name] = kind
        default = " DEFAULT 7" if kind in ("INT", "BIGINT UNSIGNED") and self._rng.random() < 0.3 else ""
        self._run(
            f"ALTER TABLE {table} ADD COLUMN {name} {kind}{default} {self._rng.choice(['', 'FIRST', 'AFTER id'])}"
        )

    def drop_column(self) -> None:
        table = self._table()
        if len(self.tables[table]) > 1:
            name = self._rng.choice(list(self.tables[table]))
            del self.tables[table][name]
            self._run(f"ALTER TABLE {table} DROP COLUMN {name}")

    def harmless(self) -> None:
        clause = self._rng.choice(["COMMENT 'x, DROP'", "FORCE", "ENGINE=Aria", "ENGINE=InnoDB", "AUTO_INCREMENT=5000"])
        self._run(f"ALTER TABLE {self._table()} {clause}")

    def index(self) -> None:
        table = self._table()
        names = sorted({row[2] for row in self._asked(f"SHOW INDEX FROM {table}")} - {"PRIMARY"})
        if names and (len(names) > 4 or self._rng.random() < 0.4):
            self._run(f"ALTER TABLE {table} DROP KEY `{self._rng.choice(names)}`")
            return
        columns = self._some(table)[: self._rng.randint(1, 3)]
        parts = [
            f"{name}(5)"
            if any(word in self.tables[table][name] for word in ("CHAR", "TEXT", "BLOB", "BINARY"))
            else name
            for name in columns
        ]
        if parts:
            self._run(f"ALTER TABLE {table} ADD KEY ({', '.join(parts)})")

    def widen(self) -> None:
        table = self._table()
        for name, kind in self.tables[table].items():
            if kind in WIDER:
                self.tables[table][name] = WIDER[kind]
                self._run(f"ALTER TABLE {table} MODIFY {name} {WIDER[kind]}")
                return

    def rename_column(self) -> None:
        table = self._table()
        old, name = self._rng.choice(list(self.tables[table])), self._new_name("c")
        self.tables[table][name] = self.tables[table].pop(old)
        self._run(f"ALTER TABLE {table} RENAME COLUMN {old} TO {name}")

    def truncate(self) -> None:
        prefix = self._rng.choice(["", "SET STATEMENT lock_wait_timeout=60 FOR ", "/*!50000 "])
        self._run(f"{prefix}TRUNCATE /* no */ TABLE {self._table()}{' */' * prefix.startswith('/')}")

    def replace(self) -> None:
        table = self._table()
        columns = ", ".join(["id", *self.tables[table]])
        select = f"SELECT {columns} FROM {table} WHERE MOD(id, 2) = 0"
        other = self._new_name("t")
        keys = "(id INT PRIMARY KEY AUTO_INCREMENT)"
        self._run(f"CREATE TABLE {other} LIKE {table}")
        self._run(f"CREATE OR REPLACE TABLE {other} {keys} {select}")
        self._run(f"CREATE OR REPLACE TABLE {table} {keys} SELECT {columns} FROM {other}")
        self._run(f"DROP TABLE IF EXISTS {other}, `none, such`")

    def rename(self) -> None:
        table, other = self._table(), self._new_name("t")
        self.tables[other] = self.tables.pop(table)
        self._run(f"RENAME TABLE {table} TO {other}")

    def recreate(self) -> None:
        table = self._table()
        del self.tables[table]
        self._run(f"DROP TABLE {table}")
        self.create()


TYPES_OF: dict[str, Make] = TYPES | {wide: TYPES[kind] for kind, wide in WIDER.items()}


def content_of(
    server: RealServer, table: str, names: Sequence[str] = (), *, database: str = DATABASE
) -> list[tuple[Any, ...]]:
    """The rows of a table as hexadecimal digits of what each value is as bytes; `names` may be of hidden columns."""
    names = names or [row[0] for row in server.sql(f"SHOW COLUMNS FROM {database}.{table}")]
    values = ", ".join(f"HEX(CAST(`{name}` AS BINARY))" for name in names)
    server.sql("SET time_zone='+00:00'")
    return sorted(server.sql(f"SELECT {values} FROM {database}.{table}"), key=repr)
