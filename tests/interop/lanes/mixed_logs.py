"""Logs of servers at random: of each kind of event, metadata and image, with DDL between, and transactions of XA."""

import random
from typing import NamedTuple, Self

from ibbmaster.testkit.mariadb_server import RealPrimary
from lanes.migrations import Migrations
from lanes.random_ddl import DATABASE, IMAGES, WIDER, Campaign
from lanes.row_statements import RowStatements

ROWS_ALONE = ("ROW",)


class LogKind(NamedTuple):
    """What a server writes: metadata of tables, images of rows, formats, in which domains, and zero dates or none."""

    metadata: str = "FULL"
    images: tuple[str, ...] = ("FULL",)
    formats: tuple[str, ...] = ROWS_ALONE
    domains: tuple[int, ...] = (0,)
    zero_dates: str = "text"

    @classmethod
    def drawn(cls, rng: random.Random, number: int) -> Self:
        """Every third one says all that rows can say."""
        if number % 3 == 0:
            return cls()
        return cls(
            rng.choice(("FULL", "MINIMAL", "NO_LOG")),
            rng.choice((("FULL",), ("MINIMAL",), ("NOBLOB",), IMAGES, (*IMAGES, "FULL", "FULL"))),
            rng.choice((ROWS_ALONE, ROWS_ALONE, ("MIXED",), ("ROW", "ROW", "ROW", "MIXED", "STATEMENT"))),
            rng.choice(((0,), (0,), (0, 0, 1, 7))),
            rng.choice(("text", "null")),
        )

    @property
    def is_whole(self) -> bool:
        return self == LogKind()


class Transactions(Campaign):
    """The same, in several domains, with transactions in two phases."""

    def __init__(
        self, server: RealPrimary, rng: random.Random, images: tuple[str, ...], domains: tuple[int, ...] = (0,)
    ) -> None:
        self._prepared: list[str] = []
        self._domains = domains
        super().__init__(server, rng, images)

    def step(self) -> None:
        chance = self._rng.random()
        if chance < 0.05:
            self._run(f"SET gtid_domain_id = {self._rng.choice(self._domains)}")
        elif chance < 0.12:
            self.begin_xa()
        elif chance < 0.18 or len(self._prepared) > 2:
            self.end_xa()
        else:
            super().step()

    def begin_xa(self) -> None:
        """Insert a row in a table of its own, so that nothing waits for it."""
        self._number += 1
        name = f"x{self._number}"
        table = "`xa,1`"
        self._run(f"CREATE TABLE IF NOT EXISTS {table} (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(9))")
        self._run(f"XA START '{name}'")
        self._run(f"INSERT INTO {table} VALUES (NULL, '{name}')")
        self._run(f"XA END '{name}'")
        self._run(f"XA PREPARE '{name}'")
        self._prepared.append(name)
        self._renew()

    def end_xa(self) -> None:
        if self._prepared:
            name = self._prepared.pop(self._rng.randrange(len(self._prepared)))
            self._run(f"XA {self._rng.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} '{name}'")

    def go_on_with(self, server: RealPrimary) -> None:
        """Take another server, which has all that this one had."""
        self._server = server
        self._renew()

    def _renew(self) -> None:
        """A connection with a prepared transaction can do nothing else."""
        self._connection.close()
        self._connection = self._server.connect()
        for statement in (f"USE {DATABASE}", "SET time_zone='+00:00', sql_mode='STRICT_ALL_TABLES'"):
            self._run(statement)


class MixedLog(Transactions):
    """Of one kind, with more DDL; `family` and `versioned` are tables of their own, which few statements fit."""

    def __init__(self, server: RealPrimary, rng: random.Random, kind: LogKind) -> None:
        self._formats = kind.formats
        self._has_zero_dates = kind.zero_dates == "text"
        super().__init__(server, rng, kind.images, kind.domains)
        self._set_session()

    def step(self) -> None:
        if self._rng.random() < 0.7:
            super().step()
            return
        self._do_one_of("set_format=4 change_column=3 set_nullable=3 copy_table=3 change_family=5 change_versioned=2")

    def _renew(self) -> None:
        super()._renew()
        self._set_session()

    def _set_session(self) -> None:
        self.set_image()
        self.set_format()

    def set_format(self) -> None:
        self._run(f"SET binlog_format = {self._rng.choice(self._formats)}")

    def change_column(self) -> None:
        table = self._table()
        old, name = self._rng.choice(list(self.tables[table])), self._new_name("c")
        kind = self.tables[table].pop(old)
        self.tables[table][name] = WIDER.get(kind, kind)
        self._run(f"ALTER TABLE {table} CHANGE {old} {name} {self.tables[table][name]}")

    def set_nullable(self) -> None:
        """Fails where there are NULLs; INSERT IGNORE of one then leaves what is zero."""
        table = self._table()
        name = self._rng.choice(list(self.tables[table]))
        kind = self.tables[table][name].removesuffix(" NULL")
        if kind.startswith(("DATE", "TIMESTAMP")) and not self._has_zero_dates:
            return
        self._run(f"ALTER TABLE {table} MODIFY {name} {kind} {self._rng.choice(['NOT NULL', 'NULL', 'NULL'])}")

    def copy_table(self) -> None:
        table, other = self._table(), self._new_name("t")
        columns = ", ".join(["id", *self.tables[table]])
        if self._rng.random() < 0.5:
            self._run(f"CREATE TABLE {other} LIKE {table}")
            self._run(f"INSERT INTO {other} ({columns}) SELECT {columns} FROM {table} ORDER BY id")
        else:
            keys = "(id INT PRIMARY KEY AUTO_INCREMENT)"
            self._run(f"CREATE TABLE {other} {keys} SELECT {columns} FROM {table}")
        self.tables[other] = dict(self.tables[table])
        if len(self.tables) > 4:
            gone = self._rng.choice([name for name in self.tables if name != other])
            del self.tables[gone]
            self._run(f"DROP TABLE {gone}")

    def change_family(self) -> None:
        self._run("CREATE TABLE IF NOT EXISTS parent (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(9))")
        self._run(
            "CREATE TABLE IF NOT EXISTS child (id INT PRIMARY KEY AUTO_INCREMENT, p INT, "
            "FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)"
        )
        self._run_one_of(
            *["INSERT INTO parent VALUES (NULL, 'a'), (NULL, 'b')"] * 3,
            *["INSERT INTO child SELECT NULL, id FROM parent ORDER BY id DESC LIMIT 3"] * 3,
            "UPDATE parent SET word = 'c' WHERE MOD(id, 3) = 1",
            "UPDATE parent SET id = id + 1000 WHERE MOD(id, 3) = 1 ORDER BY id DESC",
            "DELETE FROM parent WHERE MOD(id, 4) = 2",
            "DELETE FROM child WHERE MOD(id, 4) = 2",
            "TRUNCATE child",
        )

    def change_versioned(self) -> None:
        self._run("CREATE TABLE IF NOT EXISTS versioned (id INT PRIMARY KEY AUTO_INCREMENT, n INT)")
        self._run_one_of(
            *["INSERT INTO versioned VALUES (NULL, 1), (NULL, 2)"] * 2,
            "UPDATE versioned SET n = n + 1",
            "DELETE FROM versioned WHERE MOD(id, 3) = 1",
            "ALTER TABLE versioned ADD SYSTEM VERSIONING",
            "ALTER TABLE versioned DROP SYSTEM VERSIONING",
            "DROP TABLE versioned",
        )


def any_campaign(
    server: RealPrimary, rng: random.Random, kind: LogKind, number: int
) -> MixedLog | Migrations | RowStatements:
    """What writes the log of a number: each third one is of applications, with tables of their own."""
    server.sql(f"SET GLOBAL binlog_row_metadata = {kind.metadata}")
    if number % 3 < 2:
        return MixedLog(server, rng, kind)
    if rng.random() < 0.5:
        campaign = RowStatements(server, rng, kind.formats)
        campaign.begin()
        campaign.go_on(0)  # in one of its formats
        return campaign
    return Migrations(server, rng, binlog_format=rng.choice(kind.formats))
