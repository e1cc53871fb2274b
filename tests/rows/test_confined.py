"""Which columns of which table an UPDATE sets; tests/interop/test_refusals.py asks servers."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.rows.confined import columns_touched, confined_update
from ibbmaster.schema.folding import SchemaFold
from ibbmaster.schema.model import TableVersion


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UPDATE t SET a = 1", ("d.t", ("a",))),
        (
            "UPDATE LOW_PRIORITY IGNORE e.t AS x SET x.A = (SELECT 1 WHERE 2), `b c`=`a`, d := 3 WHERE z = 4",
            ("e.t", ("a", "b c", "d")),
        ),
        ("UPDATE t x SET d.x.a = f(1, 2), b = 'SET c = 1' ORDER BY a LIMIT 3", ("d.t", ("a", "b"))),
        ("UPDATE t, u SET t.a = 1", None),
        ("UPDATE t JOIN u USING (id) SET a = 1", None),
        ("UPDATE t FOR PORTION OF p FROM 1 TO 2 SET a = 1", None),
        ("UPDATE t PARTITION (p) SET a = 1", None),
        ("UPDATE t SET", None),
        ("UPDATE t SET (a) = 1", None),
        ("DELETE FROM t", None),
        ("SET STATEMENT max_statement_time=1 FOR UPDATE t SET a = 1", ("d.t", ("a",))),
    ],
)
def test_columns_are_those_that_are_set(text: str, expected: object) -> None:
    found = confined_update(LoggedStatement(text, "d", 1, 0, True))

    assert (found and (str(found[0]), found[1])) == expected


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
