"""Which tables triggers and functions may change; tests/interop/test_refusals.py asks servers."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.rows.programs import tables_reached
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.folding import SchemaFold
from ibbmaster.sqltext.table_name import TableName


def catalog_of(*statements: str) -> SchemaCatalog:
    fold = SchemaFold(lambda *_: None)
    for name in "tuvc":
        fold.apply(LoggedStatement(f"CREATE TABLE {name} (id INT PRIMARY KEY, c INT)", "d", 1, 0, True))
    for statement in statements:
        fold.apply(LoggedStatement(statement, "d", 1, 0, True, invoker="root@localhost"))
    return SchemaCatalog(tables=fold.tables, programs=fold.programs)


def reached(catalog: SchemaCatalog, text: str = "INSERT INTO t VALUES (1)") -> object:
    found = tables_reached(catalog, [TableName("d", "t")], text, {text.split()[0]})
    return None if found is None else {table.name for table in found}


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ("AFTER INSERT ON t FOR EACH ROW INSERT INTO u (id, c) VALUES (NEW.id, NEW.c)", {"u"}),
        ("AFTER INSERT ON t FOR EACH ROW BEGIN DELETE FROM u WHERE (id = 1); UPDATE (v) SET v.id = 2; END", {"u", "v"}),
        ("BEFORE UPDATE ON t FOR EACH ROW SET NEW.id = 3", {"t"}),
        ("AFTER INSERT ON u FOR EACH ROW DELETE FROM v", set()),
        ("AFTER INSERT ON t FOR EACH ROW CALL p()", None),
        ("AFTER INSERT ON t FOR EACH ROW DELETE FROM u WHERE id = f()", None),
    ],
)
def test_a_trigger_reaches_the_tables_that_it_names_as_changed(trigger: str, expected: object) -> None:
    catalog = catalog_of("CREATE FUNCTION f() RETURNS INT RETURN 1", f"CREATE TRIGGER r {trigger}")

    text = "UPDATE t SET id = 3" if "UPDATE ON" in trigger else "INSERT INTO t VALUES (1)"
    assert reached(catalog, text) == expected
    assert reached(catalog, "DELETE FROM t") == set()


def test_triggers_of_reached_tables_reach_others() -> None:
    first = "CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (1, 2)"
    second = "CREATE TRIGGER b AFTER INSERT ON u FOR EACH ROW INSERT INTO v VALUES (1, 2)"

    assert reached(catalog_of(first, second)) == {"u", "v"}


def test_a_function_of_the_log_may_do_anything() -> None:
    catalog = catalog_of("CREATE FUNCTION f() RETURNS INT RETURN 1")

    assert reached(catalog, "INSERT INTO t VALUES (F())") is None
    assert reached(catalog) == set()
    assert reached(catalog_of(), "INSERT INTO t VALUES (f())") == set()
