"""A shop with a column of every type, nulls and several collations, that queries are asked of."""

import random
from collections.abc import Iterator

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
