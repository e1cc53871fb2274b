"""Work for a real primary: groups of every size in several domains, each of which needs the ones before it."""

import contextlib
import random

from ibbmaster.testkit.mariadb_server import RealServer

DOMAIN_COUNT = 3
ROWS_MAX = 300  # of a transaction
NOTE_COUNT = 200
PAD_SIZES = (5, 40, 400, 900)
DATABASES = [f"shop{domain_id}" for domain_id in range(DOMAIN_COUNT)]  # a domain does not need another one
ORDERS = [f"{database}.orders" for database in DATABASES]
NOTES = [f"{database}.notes" for database in DATABASES]
TABLES = ORDERS + NOTES


def work(server: RealServer, rng: random.Random, *, transactions: int) -> None:
    """Run seeded transactions.

    Rows are inserted, changed and deleted one statement each, so that large groups have many
    events; and since later changes meet rows that earlier ones left, a replica that misses a
    group stops with an error, or ends with other rows. Notes are kept by an engine without
    transactions: a replica that gives a group up keeps the rows it had of it, and fails when
    it applies them again.
    """
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        rows: list[dict[int, int]] = [{} for _ in ORDERS]
        for domain_id, database in enumerate(DATABASES):
            cursor.execute(f"SET SESSION gtid_domain_id = {domain_id}")
            cursor.execute(f"CREATE DATABASE {database}")
            for table, engine in ((ORDERS[domain_id], "InnoDB"), (NOTES[domain_id], "MyISAM")):
                cursor.execute(
                    f"CREATE TABLE {table} (id INT PRIMARY KEY, version INT NOT NULL, pad TEXT) ENGINE={engine}"
                )
        for _ in range(transactions):
            domain_id = rng.randrange(DOMAIN_COUNT)
            cursor.execute(f"SET SESSION gtid_domain_id = {domain_id}")
            if rng.random() < 0.05:
                cursor.execute(f"ALTER TABLE {ORDERS[domain_id]} COMMENT = '{rng.randrange(1000)}'")
                continue
            if rng.random() < 0.2:
                cursor.execute(_replace_notes(rng, NOTES[domain_id]))
                cursor.execute(f"DELETE FROM {NOTES[domain_id]} WHERE id % 3 = {rng.randrange(3)}")
                continue
            cursor.execute("START TRANSACTION")
            for _ in range(rng.choice((1, 1, 2, 5, 40, ROWS_MAX))):
                cursor.execute(_change(rng, ORDERS[domain_id], rows[domain_id]))
            cursor.execute("COMMIT")


def _change(rng: random.Random, table: str, rows: dict[int, int]) -> str:
    """A statement that changes one row; `rows` are the versions of those there are."""
    pad = "x" * rng.choice(PAD_SIZES)
    if not rows or rng.random() < 0.4:
        row_id = max(rows, default=0) + 1
        rows[row_id] = 0
        return f"INSERT INTO {table} VALUES ({row_id}, 0, '{pad}')"
    row_id = rng.choice(sorted(rows))
    if rng.random() < 0.2:
        del rows[row_id]
        return f"DELETE FROM {table} WHERE id = {row_id}"
    rows[row_id] += 1
    return f"UPDATE {table} SET version = {rows[row_id]}, pad = '{pad}' WHERE id = {row_id}"


def _replace_notes(rng: random.Random, table: str) -> str:
    """One statement of many rows, which takes several row events."""
    version, pad = rng.randrange(1000), "x" * rng.choice(PAD_SIZES)
    rows = ", ".join(f"({row_id}, {version}, '{pad}')" for row_id in range(NOTE_COUNT))
    return f"REPLACE INTO {table} VALUES {rows}"
