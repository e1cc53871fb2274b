"""What applications do to rows at random, in statements that are logged as they are, and the rows after some of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

import pymysql

from ibbmaster.testkit.mariadb_server import RealServer
from lanes.answers import SESSIONS, RawClient

DATABASE = "m"
TABLES = """
CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(20), d DATE,
    t TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, m DECIMAL(8,2) DEFAULT 1.5,
    e ENUM('new','paid') DEFAULT 'new');
CREATE TABLE k (code VARCHAR(10) PRIMARY KEY, n INT NOT NULL DEFAULT 0, b VARBINARY(8));
CREATE TABLE b (code VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, n SMALLINT NOT NULL DEFAULT 0);
CREATE TABLE c (x INT, y INT, s CHAR(6) CHARACTER SET latin1, dt DATETIME(3), PRIMARY KEY (x, y));
CREATE TABLE l (x INT, s TEXT);
CREATE TABLE p (id INT PRIMARY KEY, v INT);
CREATE TABLE ch (id INT PRIMARY KEY, p INT, w INT,
    FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE sn (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE g (id INT PRIMARY KEY, v INT, w INT AS (v * 2) STORED, x VARCHAR(30) AS (CONCAT(id, '/', v)) VIRTUAL);
CREATE TABLE u (id INT PRIMARY KEY, o INT UNIQUE, s VARCHAR(9));
CREATE TABLE z (id INT UNSIGNED PRIMARY KEY, f DOUBLE, i BIGINT UNSIGNED, bits BIT(4), y YEAR, tm TIME,
    st SET('x','y'));
CREATE TABLE q (id INT PRIMARY KEY, n INT);
CREATE TABLE ql (id INT PRIMARY KEY, n INT);
CREATE TABLE my (id INT PRIMARY KEY, n INT) ENGINE=MyISAM;
CREATE TRIGGER q_after AFTER INSERT ON q FOR EACH ROW
    INSERT INTO ql VALUES (NEW.id, NEW.n) ON DUPLICATE KEY UPDATE n = 7;
CREATE VIEW va AS SELECT id, v FROM p WHERE id > 2
"""
NUMBERED = ("a", "p", "ch", "sn", "g", "u", "z", "q", "ql", "my")
PLAIN_TEXTS = ("x", "ab", "AB", "7", "new", "it''s", "some text")
TEXTS = ("x", "X", "x ", "é", "E", "it''s", "", "ab", "AB", "7", "07", "new", "text", r"b\\c", "ß", "ss")
MODES = (
    *("STRICT_TRANS_TABLES", "STRICT_TRANS_TABLES", "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE", ""),
    *("PIPES_AS_CONCAT", "NO_BACKSLASH_ESCAPES", "NO_AUTO_VALUE_ON_ZERO", "SIMULTANEOUS_ASSIGNMENT"),
    *("EMPTY_STRING_IS_NULL", "TIME_ROUND_FRACTIONAL"),
)


class RowsLook(NamedTuple):
    """What a server has at a position: the payloads of the rows that a SELECT gives, in no order."""

    gtid: str
    answers: dict[str, list[bytes]]


class RowStatements:
    """Changes rows at random; what it did last is in `statements`.

    `odd` is the share of values and of forms of statements that few applications write.
    """

    def __init__(self, server: RealServer, rng: random.Random, odd: float = 0.3) -> None:
        self._odd = odd
        self._rng = rng
        self._connection = server.connect()
        self._client = RawClient.of_root(server.socket, SESSIONS[0])
        self.statements: list[str] = []
        self.looks: list[RowsLook] = []
        for statement in (f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *filter(str.strip, TABLES.split(";\n"))):
            assert self._run(statement), self.statements[-1]
        self._run("SET binlog_format = MIXED, time_zone = '+00:00'")

    def close(self) -> None:
        self._connection.close()
        self._client.close()

    def look(self) -> None:
        """Note what the tables hold, and single rows by their keys."""
        self._run("COMMIT")
        tables = [str(row[0]) for row in self._asked("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")]
        ((gtid,),) = self._asked("SELECT @@gtid_binlog_pos")
        asked = [f"SELECT * FROM {DATABASE}.`{name}`" for name in tables]
        for name in set(tables) & set(NUMBERED):
            asked += [f"SELECT * FROM {DATABASE}.`{name}` WHERE id = {self._rng.randint(1, 30)}" for _ in range(3)]
        asked.append(
            f"SELECT * FROM {DATABASE}.c WHERE x = {self._rng.randint(1, 4)} AND y = {self._rng.randint(1, 4)}"
        )
        self.looks.append(RowsLook(str(gtid), {sql: sorted(self._client.text(sql).rows) for sql in asked}))

    def step(self) -> None:
        """One statement, or a transaction."""
        work: list[tuple[float, Callable[[], object]]] = [
            (30, self._insert),
            (25, self._update),
            (15, self._delete),
            (6, self._put),
            (6, self._transaction),
            (10 * self._odd, self._joined),
            (4 * self._odd, self._of_query),
            (4, self._session),
            (3 * self._odd, self._temporary),
            (1, self._empty),
            (1, self._alter),
        ]
        (chosen,) = self._rng.choices([one for _, one in work], [weight for weight, _ in work])
        chosen()

    def _asked(self, sql: str) -> list[tuple[object, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def _run(self, statement: str) -> bool:
        self.statements.append(statement)
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(statement)
            except pymysql.Error as error:
                self.statements.append(f"-- {error}")
                return False
        return True

    # Values -----------------------------------------------------------------------------------

    def _of(self, *choices: object) -> str:
        return str(self._rng.choice(choices))

    def _value(self, plain: tuple[object, ...], *odd: object) -> str:
        return self._of(*(odd if self._rng.random() < self._odd else plain))

    def _id(self) -> int:
        return self._rng.randint(1, 30)

    def _int(self) -> str:
        number = self._rng.randint(-20, 60)
        odd = ("NULL", "'7'", "1.5", f"{number} + 1", "'07'", "DEFAULT", "2.4e0", "b'11'", "0x1f", "TRUE")
        return self._value((number, number, number, number, "NULL", "'7'", "DEFAULT"), *odd)

    def _text(self) -> str:
        text = self._rng.choice(TEXTS)
        plain = f"'{self._rng.choice(PLAIN_TEXTS)}'"
        return self._value(
            (plain, plain, plain, "NULL"),
            *(f"'{text}'", "7", f"CONCAT('{text}', 1)", f"_utf8mb4'{text}'", "'a' 'b'", "x'4142'"),
        )

    def _moment(self) -> str:
        return self._value(
            ("'2024-05-06'", "'2024-02-29'", "NULL", "CURRENT_TIMESTAMP", "'2024-05-06 00:00:00'"),
            *("'2023-02-29'", "'2024-05-06 07:08:09'", "NOW()", "'24-1-2'", "DATE '2024-01-01'"),
            *("'0000-00-00'", "20240506", "'2024-05-06 07:08:09.5'", "'2024-05-06 01:02:03'"),
            *("'2024-05-06 23:59:59.9996'", "'2024-05-06T01:02:03'"),
        )

    def _values(self, table: str) -> dict[str, str]:
        """What a row of a table may get, without what identifies it."""
        match table:
            case "a":
                found = {
                    "n": self._int(),
                    "s": self._text(),
                    "d": self._moment(),
                    "t": self._moment(),
                    "m": self._value(("1", "2.5", "-3.14", "NULL"), "1.005", "'4.5'", "n"),
                    "e": self._value(("'new'", "'paid'", "NULL"), "'PAID'", "1", "'new '", "'other'"),
                }
            case "k":
                found = {"n": self._int(), "b": self._value(("'ab'", "x'00ff'", "NULL"), "'é'", "'0123456789'")}
            case "b":
                found = {"n": self._int()}
            case "c":
                found = {"s": self._text(), "dt": self._moment()}
            case "l":
                found = {"x": self._int(), "s": self._text()}
            case "ch":
                found = {"p": self._of("NULL", *range(1, 9)), "w": self._int()}
            case "sn":
                found = {"p": self._of("NULL", *range(1, 9))}
            case "u":
                found = {"o": self._of("NULL", *range(40)), "s": self._text()}
            case "z":
                found = {
                    "f": self._value(("1", "0.1", "-7", "NULL"), "1e3", "'2.5'", "1/3"),
                    "i": self._value(("1", "18446744073709551615", "NULL"), "9223372036854775808", "'3'", "-1"),
                    "bits": self._value(("b'101'", "3", "NULL"), "15", "16"),
                    "y": self._value(("2024", "NULL", "1901"), "24", "'0'", "0"),
                    "tm": self._value(
                        ("'01:02:03'", "'-10:00:00'", "NULL"), "'838:59:59'", "'1:2'", "010203", "'900:00:00'"
                    ),
                    "st": self._value(("'x'", "'y,x'", "NULL"), "''", "'X'", "3"),
                }
            case "g" | "p":
                found = {"v": self._int()}
            case _:
                found = {"n": self._int()}
        return {name: value for name, value in found.items() if self._rng.random() < 0.75}

    def _key(self, table: str) -> dict[str, str]:
        match table:
            case "l":
                return {}
            case "k" | "b":
                return {"code": self._value((f"'k{self._rng.randint(1, 12)}'",), "'K3'", "'x'", "'é'", "'k3 '")}
            case "c":
                return {"x": self._of(1, 2, 3, 4), "y": self._of(1, 2, 3, 4)}
            case "a" if self._rng.random() < 0.6:
                return {} if self._rng.random() < 0.8 else {"id": self._of("NULL", "DEFAULT", "0")}
        return {"id": self._of(*[self._id()] * 9, f"'{self._id()}'")}

    def _table(self) -> str:
        return self._rng.choice(
            ("a", "a", "a", "k", "k", "b", "c", "c", "l", "p", "p", "ch", "ch", "sn", "g", "g", "u", "z", "q", "my")
        )

    def _condition(self, table: str) -> str:
        if self._rng.random() < 0.12:
            first, other = self._condition(table), self._condition(table)
            return self._of(f"({first}) AND {other}", f"{first} OR {other}", f"NOT ({first})")
        name = {"l": "x", "k": "code", "b": "code", "c": "x"}.get(table, "id")
        if self._rng.random() < 0.55 and table not in ("l",):
            key = self._key(table) or {"id": str(self._id())}
            return (
                " AND ".join(f"{column} = {value}" for column, value in key.items() if value != "DEFAULT") or "id = 1"
            )
        number = self._id()
        found = [
            f"MOD({name}, 3) = 1",
            f"{name} BETWEEN {number} AND {number + 2}",
            f"{name} IN ({number}, {number + 1})",
        ]
        found += [f"{name} > {number + 20}", f"{name} <> {number} AND {name} < 3", f"{name} % 5 = 0 AND {name} > 3"]
        if table in ("k", "b"):
            found = ["code = 'k1'", "code IN ('k2', 'K4')", "code < 'k2'", "code LIKE 'k1%'", "n = 3", "n IS NULL"]
        elif table == "a":
            found += ["s = 'x'", "s = 'AB'", "s IS NULL", "s <> 'é'", "d = '2024-05-06'", "d < '2024-05-06'", "n = '7'"]
            found += [
                "e = 'new'",
                "e = 2",
                "m > 1.5",
                "n IS NOT NULL AND n > 3",
                "t > '2024-01-01'",
                "s = 7",
                "n <=> NULL",
            ]
        elif table == "c":
            found += ["y = 2", "s = 'ab'", "s = 'x'", "dt IS NULL", "dt > '2024-05-06 00:00:00'", "x + y = 4", "x = y"]
        elif table == "l":
            found += ["s = 'x'", "s IS NULL", "x IS NULL", "s = 'é'"]
        elif table == "z":
            found += ["f = 0.1", "i > 5", "st = 'x'", "tm = '01:02:03'", "bits = 3", "y = 2024"]
        elif table == "g":
            found += ["w = 6", "x = '1/3'", "v > 2"]
        elif table == "u":
            found += ["o = 5", "s = 'x'", "o < 20"]
        return self._rng.choice(found)

    # Statements -------------------------------------------------------------------------------

    def _insert(self) -> None:
        table = self._table()
        key, values = self._key(table), self._values(table)
        names = [*key, *values]
        rows = [[*key.values(), *values.values()]]
        for _ in range(self._rng.choice((0, 0, 0, 1, 2))):
            one, other = self._key(table), self._values(table)
            rows.append([*(one.get(name, "NULL") for name in key), *(other.get(name, "NULL") for name in values)])
        head = self._of(*["INSERT INTO"] * 12, "INSERT IGNORE INTO", "INSERT")
        if len(rows) == 1 and names and self._rng.random() < 0.2:
            given = ", ".join(f"{name} = {value}" for name, value in zip(names, rows[0], strict=True))
            self._run(f"{head} {table} SET {given}")
            return
        written = ", ".join(f"({', '.join(row)})" for row in rows)
        self._run(f"{head} {table} ({', '.join(names)}) VALUES {written}")

    def _put(self) -> None:
        table = self._rng.choice(("p", "b", "k", "c", "g", "u", "ch", "my"))
        key, values = self._key(table), self._values(table)
        names, written = ", ".join([*key, *values]), ", ".join([*key.values(), *values.values()])
        if self._rng.random() < 0.5 or not values:
            self._run(f"REPLACE INTO {table} ({names}) VALUES ({written})")
            return
        (name,) = self._rng.sample(list(values), 1)
        change = self._of(f"{name} = VALUES({name})", f"{name} = {values[name]}", f"{name} = {name} + VALUES({name})")
        self._run(f"INSERT INTO {table} ({names}) VALUES ({written}) ON DUPLICATE KEY UPDATE {change}")

    def _update(self) -> None:
        table = self._table()
        values = self._values(table)
        if self._rng.random() < 0.25:
            number = {"a": "n", "k": "n", "b": "n", "c": "y", "l": "x", "ch": "w", "sn": "p", "u": "o", "z": "i"}.get(
                table, "v" if table in "pg" else "n"
            )
            values = {number: self._of(f"{number} + 1", f"{number} * 2", f"IFNULL({number}, 3)", f"{number} - 1", "id")}
        elif self._rng.random() < 0.1:
            values = {
                "id" if table in NUMBERED else "x" if table in "cl" else "code": self._of("id + 40", "x + 10", "'k9'")
            }
        elif self._rng.random() < 0.1 and table == "a":
            values = {"n": "n + 1", "m": "n", "s": "CONCAT(s, 'q')"}
        if not values:
            return
        given = ", ".join(f"{name} = {value}" for name, value in values.items())
        tail = self._value(("",), "", " ORDER BY n LIMIT 2", " LIMIT 100")
        where = f" WHERE {self._condition(table)}" if self._rng.random() < 0.95 else ""
        ignore = self._value(("",), *[""] * 7, "IGNORE ")
        target = "va" if table == "p" and "v" in values and self._rng.random() < 0.1 * self._odd else table
        self._run(f"UPDATE {ignore}{target} SET {given}{where}{tail}")

    def _delete(self) -> None:
        table = self._table()
        tail = self._value(("",), "", " ORDER BY id LIMIT 1")
        where = f" WHERE {self._condition(table)}" if self._rng.random() < 0.93 else ""
        self._run(f"DELETE FROM {table}{where}{tail}")

    def _transaction(self) -> None:
        self._run("BEGIN")
        for _ in range(self._rng.randint(1, 4)):
            self._rng.choice([self._insert, self._update, self._delete])()
            if self._rng.random() < 0.3:
                self._run(self._of("SAVEPOINT a", "ROLLBACK TO a"))
        self._run(self._of("COMMIT", "COMMIT", "ROLLBACK"))

    def _joined(self) -> None:
        self._run(
            self._of(
                *("UPDATE a JOIN p ON a.id = p.id SET a.n = p.v", "UPDATE c, l SET c.s = 'j' WHERE c.x = l.x"),
                *("DELETE l FROM l JOIN p ON l.x = p.id", "DELETE FROM ql USING ql, q WHERE q.id = ql.id AND q.n > 30"),
                *("UPDATE p JOIN ch ON ch.p = p.id SET ch.w = 5, p.v = 6 WHERE p.id < 5",),
            )
        )

    def _of_query(self) -> None:
        number = self._id()
        self._run(
            self._of(
                f"INSERT INTO q SELECT id + 100, n FROM q WHERE id = {number}",
                f"INSERT INTO u (id, o) SELECT {number + 50}, (SELECT MAX(id) + 100 FROM p)",
                f"UPDATE g SET v = (SELECT COUNT(*) FROM p) WHERE id = {number}",
                f"DELETE FROM c WHERE x IN (SELECT id FROM p WHERE id = {number})",
                f"UPDATE a SET n = @v WHERE id = {number}",
            )
        )

    def _session(self) -> None:
        self._run(
            self._of(
                *(f"SET sql_mode = '{self._rng.choice(MODES)}'", f"SET time_zone = '{self._of('+00:00', '+05:30')}'"),
                *(f"SET binlog_format = {self._of('MIXED', 'MIXED', 'MIXED', 'STATEMENT', 'ROW')}", "SET @v = 5"),
                *(f"SET binlog_row_image = {self._of('FULL', 'FULL', 'MINIMAL', 'NOBLOB')}",),
                *(f"SET foreign_key_checks = {self._of(1, 1, 0)}", "SET auto_increment_increment = 1"),
                *(f"SET auto_increment_increment = {self._of(1, 1, 5)}", f"SET NAMES {self._of('utf8mb4', 'latin1')}"),
                f"SET timestamp = {self._of('DEFAULT', 1700000000, '1700000000.123456')}",
            )
        )

    def _temporary(self) -> None:
        """A temporary table that is called as another one."""
        self._run("CREATE TEMPORARY TABLE p (id INT PRIMARY KEY, v INT)")
        self._run("INSERT INTO p VALUES (500, 1), (501, 2)")
        self._run("UPDATE p SET v = 9 WHERE id = 500")
        self._run("DELETE FROM p WHERE id < 100")
        self._run("DROP TEMPORARY TABLE p")

    def _empty(self) -> None:
        table = self._table()
        self._run(self._of(f"TRUNCATE {table}", f"DELETE FROM {table}", f"DELETE FROM {table} WHERE 1"))

    def _alter(self) -> None:
        table = self._rng.choice(("a", "k", "c", "g", "u", "l", "b"))
        if not self._run(f"ALTER TABLE {table} ADD COLUMN xx INT {self._of('', 'DEFAULT 3')}"):
            self._run(f"ALTER TABLE {table} DROP COLUMN xx")
