"""Which columns of which table an UPDATE sets; tests/interop/test_refusals.py asks servers."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.rows.confined import columns_touched
from ibbmaster.schema.folding import SchemaFold
from ibbmaster.schema.model import TableVersion


@pytest.mark.parametrize(
    ("definition", "names", "expected"),
    [
        ("id INT PRIMARY KEY, a INT, b INT AS (a + 1), c INT AS (b * 2)", ("a",), {"a", "b", "c"}),
        ("id INT PRIMARY KEY, a INT, t TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", ("a",), {"a", "t"}),
        ("id INT PRIMARY KEY, a INT", ("id",), None),
        ("id INT, a INT AS (id + 1) STORED NOT NULL, b INT, UNIQUE (a)", ("id",), None),
        ("id INT, a INT", ("a",), None),
        ("id INT PRIMARY KEY, a INT", ("other",), None),
        ("id INT PRIMARY KEY, a INT, WITH SYSTEM VERSIONING", ("a",), None),
    ],
)
def test_what_is_touched_is_what_hangs_on_it_too(definition: str, names: tuple[str, ...], expected: object) -> None:
    definition, _, versioned = definition.partition(", WITH")
    fold = SchemaFold(lambda *_: None)
    text = f"CREATE TABLE d.t ({definition}) {'WITH' + versioned if versioned else ''}"
    fold.apply(LoggedStatement(text, "d", 1, 0, True))
    (table,) = fold.tables.values()
    assert isinstance(table, TableVersion)

    found = columns_touched(table, names)

    assert (found and {column.name for column in table.columns if column.id in found}) == expected
