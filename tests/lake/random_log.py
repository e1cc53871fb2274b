"""A log of rows of two tables that come and go between statements that change, move and doubt them."""

import random
from pathlib import Path

from ibbmaster.replication.event.rows.encoding import WrittenTable, written_table
from tests.written_log import Item, deleted, inserted, updated, write_log

NAMES = ("t", "u")


def random_log(rng: random.Random, path: Path, *, doubts: bool = True, swaps: bool = True) -> Path:
    return write_log(path, *random_items(rng, doubts=doubts, swaps=swaps))


def random_items(rng: random.Random, *, doubts: bool = True, swaps: bool = True) -> list[Item]:
    steps: list[Item] = [f"CREATE TABLE {name} (id INT PRIMARY KEY, a INT)" for name in NAMES]
    shapes = {name: {"id": "int", "a": "int"} for name in NAMES}
    keys: dict[str, dict[int, int]] = {name: {} for name in NAMES}

    def of(name: str) -> WrittenTable:
        return written_table(f"d.{name}", shapes[name], table_id=NAMES.index(name) + 1, primary_key=["id"])

    for number in range(24):
        name = rng.choice(NAMES)
        rows = keys[name]
        known = [*rows]
        verbs = "insert insert insert update delete type null swap empty doubt again statement"
        match rng.choice(verbs.split()):
            case "update" if known:
                one = rng.choice(known)
                steps.append([updated(of(name), ([one, rows[one]], [one, number]))])
                rows[one] = number
            case "delete" if known:
                one = rng.choice(known)
                steps.append([deleted(of(name), [one, rows.pop(one)])])
            case "type":
                kind = rng.choice(("int", "bigint", "smallint")) if doubts else "bigint"
                shapes[name]["a"] = kind
                steps.append(f"ALTER TABLE {name} MODIFY a {kind}")
            case "null":
                steps.append(f"ALTER TABLE {name} MODIFY a {shapes[name]['a']} NOT NULL")
            case "swap" if swaps:
                steps.append("RENAME TABLE t TO x, u TO t, x TO u")
                for each in (shapes, keys):
                    each["t"], each["u"] = each["u"], each["t"]  # type: ignore[index]
            case "empty":
                rows.clear()
                steps.append(f"TRUNCATE {name}")
            case "doubt" if doubts and rng.random() < 0.3:
                steps.append(f"UPDATE {name} SET a = f(id)")
            case "statement" if doubts:
                steps.append(f"UPDATE {name} SET a = {number} WHERE id % 2 = 1")
                rows.update({one: number for one in rows if one % 2})
            case "again" if doubts and known and rng.random() < 0.2:
                one = rng.choice(known)
                steps.append([inserted(of(name), [one, number])])
            case _:
                rows[number] = number
                steps.append([inserted(of(name), [number, number])])
    return steps
