"""What applications do to rows at random, logged as statements or as rows, and the rows after some of it."""

import random
from collections.abc import Sequence

from ibbmaster.testkit.mariadb_server import RealServer
from lanes.choosing import Looking
from lanes.sql import sql_beside

DATABASE = "m"
TABLES = sql_beside(__file__)["tables"]
KEYED = ("a", "`b-1`", "p", "ch", "sn", "gc", "g", "u", "q", "ql", "my", "sv")
WRITTEN = (*KEYED, "l", "v", "vv")


class RowStatements(Looking):
    """Changes rows at random, logged in one of these formats at a time."""

    def __init__(
        self, server: RealServer, rng: random.Random, formats: Sequence[str] = ("MIXED", "STATEMENT", *["ROW"] * 3)
    ) -> None:
        super().__init__(server, rng)
        self._formats = formats
        for statement in (f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *TABLES):
            assert self._run(statement), self.statements[-1]

    def look(self) -> None:
        """Note what the tables hold, and single rows by their keys."""
        self._run("COMMIT")
        asked = [f"SELECT * FROM {DATABASE}.{name}" for name in (*KEYED, "l", "qd")]
        asked += [f"SELECT * FROM {DATABASE}.{name} WHERE id = {self._id()}" for name in KEYED for _ in range(3)]
        self._look_at(asked)

    def begin(self) -> None:
        """Let each table have a few rows, all of them logged as rows."""
        self._run(f"SET binlog_format = {self._of('STATEMENT', 'ROW')}, sql_mode = '', foreign_key_checks = 1")
        for table in (*reversed(KEYED), "l", "qd"):
            empties = f"DELETE FROM {table}", f"TRUNCATE {table}"
            if table == "sv":
                empties = ("CREATE OR REPLACE TABLE sv (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING",)
            if not self._run(self._of(*empties)):
                assert self._run(empties[0]), self.statements[-1]
        self._run("SET binlog_format = ROW, binlog_row_image = FULL")
        for table in (*KEYED, "l"):
            rows = ", ".join(f"({number}, {self._of(number, number, 'NULL')})" for number in range(1, 9))
            assert self._run(f"INSERT IGNORE {table} (id, n) VALUES {rows}"), self.statements[-1]

    def go_on(self, count: int) -> None:
        self._run(f"SET binlog_format = {self._of(*self._formats)}")
        for _ in range(count):
            self.step()

    def step(self) -> None:
        self._do_one_of("_change=40 _session=10 _transaction=8 _of_several=10 _empty=4 _temporary=3 _define=3")

    def _of(self, *choices: object) -> str:
        return str(self._rng.choice(choices))

    def _id(self) -> int:
        return self._rng.randint(1, 12)

    def _change(self) -> None:
        table, one, other = self._of(*WRITTEN), self._id(), self._id()
        value = self._of(
            one, other, "NULL", "b'111'", "x'07'", "id", "n + 1", "f(3)" if self._rng.random() < 0.02 else 5
        )
        where = self._of(f"id = {one}", f"id = {one}", f"id < {other}", f"n = {other}", "n IS NULL")
        self._run_one_of(
            *[f"INSERT INTO {table} (id, n) VALUES ({one}, {value}), ({other}, 4)"] * 3,
            f"INSERT IGNORE {table} (id, n) VALUES ({one}, {value}), ({other}, 4)",
            f"INSERT INTO {table} (id, n) VALUES ({one}, 4) ON DUPLICATE KEY UPDATE n = {value}",
            f"REPLACE INTO {table} (id, n) VALUES ({one}, {value})",
            *[f"UPDATE {table} SET n = {value} WHERE {where}"] * 3,
            f"UPDATE {table} SET id = id + 20 WHERE {where}",
            f"UPDATE {table} SET n = {value} ORDER BY id LIMIT 1",
            *[f"DELETE FROM {table} WHERE {where}"] * 2,
            f"DELETE FROM {table} ORDER BY id, n LIMIT 1",
            f"INSERT INTO {table} (id, n) SELECT id + 30, n FROM a WHERE {where}",
        )

    def _session(self) -> None:
        self._run_one_of(
            *[f"SET binlog_format = {self._of(*self._formats)}"] * 3,
            f"SET binlog_row_image = {self._of('FULL', 'FULL', 'MINIMAL', 'NOBLOB')}",
            f"SET foreign_key_checks = {self._of(1, 1, 0)}",
            f"SET sql_mode = '{self._of('', 'ANSI_QUOTES', 'STRICT_TRANS_TABLES', 'ORACLE')}'",
        )

    def _transaction(self) -> None:
        self._run("BEGIN")
        for _ in range(self._rng.randint(1, 4)):
            self._change()
            if self._rng.random() < 0.3:
                self._run(self._of("SAVEPOINT a", "ROLLBACK TO a"))
        self._run(self._of("COMMIT", "COMMIT", "ROLLBACK"))

    def _of_several(self) -> None:
        self._run_one_of(
            *("UPDATE a JOIN p ON a.id = p.id SET a.n = p.n", "UPDATE u, l SET u.n = 77 WHERE u.id = l.id LIMIT 1"),
            *("DELETE l FROM l JOIN p ON l.id = p.id", "DELETE FROM ql USING ql, q WHERE q.id = ql.id"),
            *["DELETE z FROM (SELECT id FROM a WHERE id > 3) y JOIN p z ON z.id = y.id"] * 2,
            "UPDATE p JOIN ch ON ch.n = p.id SET ch.id = ch.id + 50, p.n = 6",
        )

    def _empty(self) -> None:
        table = self._of(*KEYED, "l", "qd")
        self._run(self._of(f"TRUNCATE {table}", *[f"{self._of('DELETE', 'DELETE QUICK')} FROM {table}"] * 3))

    def _temporary(self) -> None:
        """A temporary table that is called as another one."""
        self._run("CREATE TEMPORARY TABLE p (id INT PRIMARY KEY, n INT)")
        self._run("INSERT INTO p VALUES (500, 1), (501, 2)")
        self._run(self._of("UPDATE p SET n = 9 WHERE id = 500", "DELETE FROM p WHERE id < 501", "DELETE FROM p"))
        self._run("DROP TEMPORARY TABLE p")

    def _define(self) -> None:
        table = self._of("a", "l", "u", "g")
        self._run_one_of(
            f"CREATE OR REPLACE VIEW v AS SELECT id, n FROM {self._of('p', 'a', '`b-1`')}",
            "CREATE OR REPLACE TABLE l (id INT, n INT)",
            self._of(f"ALTER TABLE {table} ADD IF NOT EXISTS xx INT", f"ALTER TABLE {table} DROP IF EXISTS xx"),
        )
