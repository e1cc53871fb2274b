"""Which tables a change of several may change; tests/interop/test_refusals.py asks servers."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.rows.joined_change import joined_targets


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UPDATE t, u SET t.a = 1, t.B = u.c WHERE u.a = 1", {"d.t": {"a", "b"}}),
        (
            "UPDATE t AS x LEFT JOIN e.u y ON x.id = (y.id) SET y.a = (SELECT 1, 2), x.b = 2",
            {"d.t": {"b"}, "e.u": {"a"}},
        ),
        ("UPDATE t JOIN u USING (id) SET d.u.a = 1", {"d.u": {"a"}}),
        ("UPDATE t JOIN u USING (id) SET a = 1", None),
        ("UPDATE t JOIN (SELECT 1) u SET t.a = 1", None),
        ("UPDATE t JOIN e.t ON 1 SET t.a = 1", None),
        ("DELETE t, y.* FROM t JOIN u AS y WHERE 1", {"d.t": None, "d.u": None}),
        ("DELETE LOW_PRIORITY FROM x USING t x, u", {"d.t": None}),
        ("DELETE z FROM t, u", None),
        ("DELETE FROM t WHERE a = 1", None),
        ("INSERT INTO t VALUES (1)", None),
    ],
)
def test_a_change_of_several_tables_changes_those_that_it_names_as_targets(text: str, expected: object) -> None:
    found = joined_targets(LoggedStatement(text, "d", 1, 0, True))

    assert (None if found is None else {str(table): columns for table, columns in found.items()}) == expected
