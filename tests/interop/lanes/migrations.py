"""What applications and their migrations do to tables at random, on a real server, and the rows after some of it."""

import random

from ibbmaster.testkit.mariadb_server import RealServer
from lanes.choosing import Looking
from lanes.sql import sql_beside

DATABASE = "m"
IMAGES = ("FULL", "FULL", "MINIMAL", "NOBLOB")
METADATA = ("NO_LOG", "MINIMAL", "FULL")
PARENTS = ("p0", "p1")
CHILDREN = ("c0", "c1", "c2", "g0", "s0")
TABLES = sql_beside(__file__)["tables"]
#: How tables are partitioned.
PARTED = {table.split()[2]: how for table, by, how in (one.partition("PARTITION BY ") for one in TABLES) if by}
PLAIN = ("a0", "a1", "a2", "n0")
CHANGES = (  # of a column's type, as migrations make them
    ("BIGINT", "DECIMAL(20,0)", "DOUBLE"),
    ("VARCHAR(40)", "TEXT", "VARCHAR(200) CHARACTER SET latin1"),
    ("DATE", "DATETIME", "DATETIME(3)", "VARCHAR(30)"),
    ("ENUM('new','paid')", "ENUM('paid','new','sent')", "VARCHAR(20)"),
    ("DECIMAL(8,2)", "DECIMAL(12,4)", "DECIMAL(9,1)"),
    ("TIMESTAMP(3) NULL", "DATETIME(3)"),
)
ADDED = ("INT", "INT NOT NULL", "VARCHAR(9) NOT NULL DEFAULT 'z'", "DATE", "DECIMAL(8,3) DEFAULT 1.5")
VALUES = ("{n}", "'text {n}'", "'2024-0{m}-11'", "'{label}'", "{n}.25", "'2024-0{m}-11 10:11:12.5'")


class Migrations(Looking):
    def __init__(self, server: RealServer, rng: random.Random, *, binlog_format: str = "ROW") -> None:
        super().__init__(server, rng)
        self._next = 0
        session = ("SET time_zone = '+00:00'", f"SET binlog_format = {binlog_format}")
        for statement in (f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *session, *TABLES):
            self._run(statement)

    def look(self) -> None:
        tables = [row[0] for row in self._asked("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")]
        self._look_at(f"SELECT * FROM {DATABASE}.`{name}`" for name in tables)

    def step(self) -> None:
        self._do_one_of(
            "_insert=30 _update=15 _delete=8 _transaction=8 _image=6 _change_parent=8 _remove_parent=4 "
            "_change_type=4 _columns=4 _keys=3 _generated=3 _empty_partition=3 _exchange=2 _repartition=2 "
            "_ghost=2 _toolkit=2 _truncate=1 _swap=2 _checks=1 _time_zone=2"
        )

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _some(self) -> str:
        count = len(self._asked("SHOW TABLES"))
        return self._rng.choice([*PARENTS, *CHILDREN, *CHILDREN, *PARTED, *PLAIN, *PLAIN]) if count else PLAIN[0]

    # Rows -------------------------------------------------------------------------------------

    def _insert(self, table: str | None = None) -> None:
        table = table or self._some()
        for _ in range(self._rng.randint(1, 4)):
            number = self._number()
            if table in PARENTS:
                self._run(f"INSERT INTO {table} (id, k, v) VALUES ({number}, 'k{number}', {self._rng.randint(0, 9)})")
            elif table in CHILDREN:
                parent = {"c0": "p0", "c1": "p0", "c2": "p1", "g0": "c0", "s0": "s0"}[table]
                column = "k" if table == "c1" else "id"
                self._run(
                    f"INSERT INTO {table} (id, f, v) SELECT {number}, (SELECT {column} FROM {parent} "
                    f"ORDER BY MOD(id * {number}, 17), id LIMIT 1), 7"
                )
            elif table in PARTED:
                moment = f"202{self._rng.randint(2, 4)}-0{self._rng.randint(1, 4)}-11"
                values = f"{number}, {self._rng.randint(0, 99)}, '{moment}', 'x{number}'"
                self._run(f"INSERT INTO {table} (id, v, d, t) VALUES ({values})")
            else:
                given = [
                    self._rng.choice(["NULL", text, text, text]).format(
                        n=number, m=self._rng.randint(1, 9), label=self._rng.choice(["new", "paid"])
                    )
                    for text in VALUES
                ]
                names = ", ".join(f"c{index}" for index in range(len(VALUES)))
                self._run(f"INSERT INTO {table} (id, v, {names}) VALUES ({number}, {number % 10}, {', '.join(given)})")

    def _update(self) -> None:
        table = self._some()
        by = f"WHERE MOD(id, 3) = {self._rng.randint(0, 2)}"
        if self._rng.random() < 0.3:
            moved = "id = id + 100000" if table not in (*PARENTS, *CHILDREN) else "id = id + 100"
            self._run(f"UPDATE {table} SET {moved} WHERE MOD(id, 7) = 1 ORDER BY id DESC")
        elif table in PLAIN:
            number = self._rng.randrange(len(VALUES))
            value = VALUES[number].format(n=self._number(), m=self._rng.randint(1, 9), label="paid")
            self._run(f"UPDATE {table} SET c{number} = {value} {by}")
        else:
            self._run(f"UPDATE {table} SET v = {self._rng.randint(0, 99)} {by}")

    def _delete(self) -> None:
        self._run(f"DELETE FROM {self._some()} WHERE MOD(id, 5) = {self._rng.randint(0, 4)}")

    def _transaction(self) -> None:
        self._run("BEGIN")
        for _ in range(self._rng.randint(1, 5)):
            self._rng.choice([self._insert, self._update, self._delete, self._change_parent])()
            if self._rng.random() < 0.2:
                self._run(self._rng.choice(["SAVEPOINT a", "ROLLBACK TO a"]))
        self._run(self._rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]))

    def _image(self) -> None:
        self._run(f"SET binlog_row_image = {self._rng.choice(IMAGES)}")
        self._run(f"SET GLOBAL binlog_row_metadata = {self._rng.choice(METADATA)}")

    def _change_parent(self) -> None:
        parent = self._rng.choice([*PARENTS, "c0", "s0"])
        change = "k = CONCAT(k, 'x')" if parent in PARENTS and self._rng.random() < 0.5 else "id = id + 1000"
        self._run(f"UPDATE {parent} SET {change} WHERE MOD(id, 4) = {self._rng.randint(0, 3)} ORDER BY id DESC")

    def _remove_parent(self) -> None:
        parent = self._rng.choice([*PARENTS, "c0", "s0"])
        verb = self._rng.choice(["DELETE", "DELETE", "REPLACE"])
        if verb == "REPLACE" and parent in PARENTS:
            self._run(f"REPLACE INTO {parent} (id, k, v) SELECT id, k, v + 1 FROM {parent} ORDER BY id LIMIT 1")
        else:
            self._run(f"DELETE FROM {parent} WHERE MOD(id, 4) = {self._rng.randint(0, 3)}")

    # Definitions ------------------------------------------------------------------------------

    def _change_type(self) -> None:
        table, number = self._rng.choice(PLAIN), self._rng.randrange(len(CHANGES))
        self._run(f"ALTER TABLE {table} MODIFY c{number} {self._rng.choice(CHANGES[number])}")

    def _columns(self) -> None:
        table = self._rng.choice([*PLAIN, *PARENTS, *CHILDREN, *PARTED])
        name = f"x{self._rng.randint(0, 2)}"
        place = self._rng.choice(["", "FIRST", "AFTER id"])
        kind = self._rng.choice(ADDED)
        if not self._run(f"ALTER TABLE {table} ADD COLUMN {name} {kind} {place}"):
            self._run(f"ALTER TABLE {table} DROP COLUMN {name}")

    def _keys(self) -> None:
        table = self._rng.choice(PLAIN)
        self._run_one_of(
            f"ALTER TABLE {table} DROP PRIMARY KEY",
            f"ALTER TABLE {table} ADD PRIMARY KEY (id)",
            f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (v, id)",
            f"ALTER TABLE {table} ADD KEY (v)",
        )

    def _generated(self) -> None:
        table = self._rng.choice([*PLAIN, *CHILDREN])
        kind = self._rng.choice(["VIRTUAL", "STORED"])
        made = self._rng.choice(["v + 1", "id * v", "CONCAT(v, '-', id)"])
        if not self._run(f"ALTER TABLE {table} ADD COLUMN made VARCHAR(40) AS ({made}) {kind}"):
            self._run(f"ALTER TABLE {table} DROP COLUMN made")

    def _empty_partition(self) -> None:
        table, part = self._rng.choice(list(PARTED)), self._rng.choice("ab")
        if self._rng.random() < 0.7 or table == "h0":
            self._run(f"ALTER TABLE {table} TRUNCATE PARTITION {part}")
        elif (self._run(f"ALTER TABLE {table} DROP PARTITION {part}") and table != "l0") or table == "l0":
            self._run(f"ALTER TABLE {table} PARTITION BY {PARTED[table]}")

    def _exchange(self) -> None:
        table, part = self._rng.choice(list(PARTED)), self._rng.choice("abz")
        other = f"{table}_old"
        if self._run(f"CREATE TABLE {other} LIKE {table}"):
            self._run(f"ALTER TABLE {other} REMOVE PARTITIONING")
        self._run(f"ALTER TABLE {table} EXCHANGE PARTITION {part} WITH TABLE {other}")
        if self._rng.random() < 0.3:
            self._run(f"DROP TABLE {other}")

    def _repartition(self) -> None:
        table = self._rng.choice(list(PARTED))
        self._run_one_of(
            f"ALTER TABLE {table} REMOVE PARTITIONING",
            f"ALTER TABLE {table} PARTITION BY {PARTED[table]}",
            f"ALTER TABLE {table} REBUILD PARTITION a",
            f"ALTER TABLE {table} REORGANIZE PARTITION a INTO (PARTITION a VALUES LESS THAN (30))",
        )

    def _ghost(self) -> None:
        """As gh-ost does it: another table that takes the rows, and then the name."""
        table = self._rng.choice([*PLAIN])
        self._run(f"DROP TABLE IF EXISTS _{table}_del, _{table}_gho")
        self._run(f"CREATE TABLE _{table}_gho LIKE {table}")
        self._run(f"ALTER TABLE _{table}_gho ADD COLUMN x{self._rng.randint(0, 2)} INT NOT NULL DEFAULT 5")
        names = self._shared(table, f"_{table}_gho")
        self._run(f"INSERT IGNORE INTO _{table}_gho ({names}) SELECT {names} FROM {table}")
        self._run(f"DELETE FROM {table} WHERE MOD(id, 9) = 1")
        self._run(f"DELETE FROM _{table}_gho WHERE MOD(id, 9) = 1")
        self._run(f"RENAME TABLE {table} TO _{table}_del, _{table}_gho TO {table}")

    def _toolkit(self) -> None:
        """As pt-online-schema-change does it: triggers that keep another table beside the old one."""
        table = self._rng.choice([*PLAIN])
        self._run(f"DROP TABLE IF EXISTS _{table}_new, _{table}_old")
        self._run(f"CREATE TABLE _{table}_new LIKE {table}")
        self._run(f"ALTER TABLE _{table}_new MODIFY v BIGINT NOT NULL")
        names = self._shared(table, f"_{table}_new")
        new = ", ".join(f"NEW.{name}" for name in names.split(", "))
        gone = f"DELETE IGNORE FROM _{table}_new WHERE id = OLD.id"
        put = f"REPLACE INTO _{table}_new ({names}) VALUES ({new})"
        for when, what in (("DELETE", gone), ("UPDATE", f"BEGIN {gone}; {put}; END"), ("INSERT", put)):
            self._run(f"CREATE TRIGGER {when}_{table} AFTER {when} ON {table} FOR EACH ROW {what}")
        rows = f"SELECT {names} FROM {table} LOCK IN SHARE MODE"
        self._run(f"INSERT LOW_PRIORITY IGNORE INTO _{table}_new ({names}) {rows}")
        self._insert(table)
        self._run(f"UPDATE {table} SET v = v + 1 WHERE MOD(id, 4) = 2")
        self._run(f"RENAME TABLE {table} TO _{table}_old, _{table}_new TO {table}")
        self._run(f"DROP TABLE IF EXISTS _{table}_old")

    def _shared(self, one: str, other: str) -> str:
        """The columns that both have and that take values."""
        found = [
            {str(row[0]) for row in self._asked(f"SHOW COLUMNS FROM {table}") if "GENERATED" not in str(row[5])}
            for table in (one, other)
        ]
        return ", ".join(sorted(found[0] & found[1]))

    def _truncate(self) -> None:
        self._run(f"TRUNCATE TABLE {self._rng.choice([*PLAIN, *PARTED, 'g0', 'c2'])}")

    def _checks(self) -> None:
        """Without checks of foreign keys, a server leaves children as they are."""
        self._run("SET foreign_key_checks = 0")
        self._remove_parent()
        self._change_parent()
        self._run("SET foreign_key_checks = 1")

    def _time_zone(self) -> None:
        self._run(f"SET time_zone = '{self._rng.choice(['+00:00', '+05:30', '-11:00'])}'")

    def _swap(self) -> None:
        one, other = self._rng.sample(PLAIN[:3], 2)
        self._run(f"RENAME TABLE {one} TO swapped, {other} TO {one}, swapped TO {other}")
