"""Tables of one column that ALTER TABLE adds or changes: of every type, NULL or not, in every mode of the session."""

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lanes.random_ddl import DATABASE
from lanes.type_changes import TYPES

STRICT, LENIENT = "STRICT_TRANS_TABLES", ""
_DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
ROUNDED = _DATA["rounded"]  # what a column of the type stores otherwise than it is written
KINDS = {kind.removesuffix(" NULL"): values for kind, values in TYPES.items()}
TIMESTAMP_FORM = (
    ("TIMESTAMP{digits}",),
    ("", "NULL", "NOT NULL"),
    ("", "DEFAULT NULL", "DEFAULT 0", "DEFAULT CURRENT_TIMESTAMP{digits}", "DEFAULT '2020-01-01 00:00:00{fraction}'"),
    ("", "ON UPDATE CURRENT_TIMESTAMP{digits}"),
)
SAYINGS = ("", "NULL", "NOT NULL")

EXPLICIT = "explicit_defaults_for_timestamp"
#: What makes a TIMESTAMP of some form: created, added, changed, and there when `{other}` is set for other statements.
WITH_A_TIMESTAMP = (
    "CREATE TABLE {t} (id INT, a {f})",
    "CREATE TABLE {t} (id INT, z TIMESTAMP NULL, a {f})",
    "CREATE TABLE {t} (id INT, a {f}, z TIMESTAMP)",
    "CREATE TABLE {t} (id INT, a {f}, PRIMARY KEY (a))",
    "CREATE TABLE {t} (id INT, a {f} PRIMARY KEY)",
    "CREATE TABLE {t} (id INT); INSERT INTO {t} VALUES (1); ALTER TABLE {t} ADD a {f}",
    "CREATE TABLE {t} (id INT); INSERT INTO {t} VALUES (1); ALTER TABLE {t} ADD a {f}, ADD b {f} FIRST",
    "CREATE TABLE {t} (id INT, z TIMESTAMP NULL); INSERT INTO {t} (id) VALUES (1); ALTER TABLE {t} ADD a {f}",
    "CREATE TABLE {t} (id INT, z TIMESTAMP NULL); INSERT INTO {t} (id) VALUES (1); ALTER TABLE {t} ADD a {f} FIRST",
    "CREATE TABLE {t} (id INT, a TIMESTAMP NULL); INSERT INTO {t} (id) VALUES (1); ALTER TABLE {t} MODIFY a {f}",
    *(
        f"CREATE TABLE {{t}} (id INT PRIMARY KEY, a {{f}}); SET {EXPLICIT} = {{other}}; {later}"
        for later in (
            "ALTER TABLE {t} ADD b INT",
            "ALTER TABLE {t} ADD z TIMESTAMP FIRST",
            "ALTER TABLE {t} CHANGE a c {f}, ADD PRIMARY KEY (id, c), DROP PRIMARY KEY",
            "ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)",
            "ALTER TABLE {t} ALTER a DROP DEFAULT",
            "ALTER TABLE {t} ALTER a SET DEFAULT 0",
            "CREATE TABLE {t}l LIKE {t}",
        )
    ),
)


def timestamps() -> Iterator[list[str]]:
    """TIMESTAMP columns in every form and place: the statements of a table."""
    number = 0
    for explicit, form in itertools.product((0, 1), itertools.product(*TIMESTAMP_FORM)):
        digits = "(3)" if number % 2 else ""
        column = " ".join(part for part in form if part).format(digits=digits, fraction=".000" if digits else "")
        for make in WITH_A_TIMESTAMP:
            if explicit and "{other}" in make and column.startswith(("TIMESTAMP NOT", "TIMESTAMP(3) NOT")):
                continue  # a server promotes a column of before to one that follows changes, or not
            number += 1
            text = make.format(t=f"{DATABASE}.ts{number}", f=column, other=1 - explicit)
            yield [f"SET {EXPLICIT} = {explicit}", *text.split("; ")]


class ColumnChange(NamedTuple):
    """What becomes of one table: its statements in two parts, between which a program may look at it."""

    first: list[str]
    second: list[str]


Kind = tuple[str, str, str, str, str]
"""Two types, how one becomes the other, and what is said of NULL before and after."""


def of_every_kind() -> Iterator[Kind]:
    return itertools.product(KINDS, KINDS, ("ADD", "MODIFY", "CHANGE"), SAYINGS, SAYINGS)


def change_of(table: str, kind: Kind, rng: random.Random) -> ColumnChange:
    """A table with a row from before the column came, unless its CREATE has the column, and rows from behind."""
    old, new, verb, before, after = kind
    if rng.random() < 0.4:
        new = old
    values = KINDS[old]
    session = _session(rng)
    column = f"c {old} {before}{_default(old, rng)}"
    first = [session, f"CREATE TABLE {table} (id INT PRIMARY KEY, d INT)"]
    if rng.random() < 0.3:
        first = [session, f"CREATE TABLE {table} (id INT PRIMARY KEY, d INT, {column})"]
        first += [f"INSERT INTO {table} (id) VALUES (1)"]
    else:
        first += [f"INSERT INTO {table} (id) VALUES (1)", f"ALTER TABLE {table} ADD {column}"]
    if rng.random() < 0.5:
        first += [
            f"INSERT INTO {table} (id) VALUES (2)",
            f"INSERT INTO {table} (id, c) VALUES (3, {rng.choice(values)})",
        ]
        first += [f"INSERT INTO {table} (id, c) VALUES (4, NULL)"]
    changed = f"{new} {after}{_default(new, rng)}"
    ignored = " IGNORE" if rng.random() < 0.03 else ""
    match verb:
        case "ADD":
            second = [f"ALTER TABLE {table} ADD e {changed}"]
        case "MODIFY":
            second = [f"ALTER{ignored} TABLE {table} MODIFY c {changed}"]
        case _:
            second = [f"ALTER{ignored} TABLE {table} CHANGE c c2 {changed}"]
    second.insert(0, _session(rng) if rng.random() < 0.5 else session)
    if verb != "ADD" and rng.random() < 0.3:
        name = "c" if verb == "MODIFY" else "c2"
        said = rng.choice(SAYINGS)
        second += [f"ALTER TABLE {table} MODIFY {name} {new} {said}{_default(new, rng)}"]
        second += [f"ALTER TABLE {table} MODIFY {name} {new} NOT NULL"] if rng.random() < 0.5 else []
    if rng.random() < 0.1:
        second += [f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (id, {'c2' if verb == 'CHANGE' else 'c'})"]
    if rng.random() < 0.3:
        second += [f"INSERT INTO {table} (id) VALUES (9)"]
    return ColumnChange(first, second)


def _session(rng: random.Random) -> str:
    mode, explicit = rng.choice([STRICT, LENIENT]), rng.choice("01")
    image, zone = rng.choice(["FULL", "MINIMAL"]), rng.choice(["+00:00", "+00:00", "-05:30", "SYSTEM"])
    return f"SET sql_mode = '{mode}', {EXPLICIT} = {explicit}, binlog_row_image = {image}, time_zone = '{zone}'"


def _default(kind: str, rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.5:
        return ""
    value = ROUNDED[kind] if kind in ROUNDED and chance < 0.75 else rng.choice(KINDS[kind])
    return " DEFAULT NULL" if chance > 0.95 else f" DEFAULT {value}"


def named(number: int) -> str:
    return f"{DATABASE}.t{number}"
