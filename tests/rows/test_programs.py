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


def reached(catalog: SchemaCatalog, text: str | None = "INSERT INTO t VALUES (1)") -> object:
    found = tables_reached(catalog, [TableName("d", "t")], text)
    return None if found is None else {table.name for table in found}


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ("AFTER INSERT ON t FOR EACH ROW INSERT INTO u (id, c) VALUES (NEW.id, 1)", {"u", "c"}),
        ("AFTER INSERT ON t FOR /* x */ EACH ROW DELETE FROM u", {"t", "u"}),
        ("BEFORE UPDATE ON t FOR EACH ROW SET NEW.id = 3", set()),
        ("AFTER INSERT ON u FOR EACH ROW DELETE FROM v", set()),
        ("AFTER INSERT ON t FOR EACH ROW CALL p()", None),
        ("AFTER INSERT ON t FOR EACH ROW DELETE FROM u WHERE id = f()", None),
    ],
)
def test_a_trigger_reaches_the_tables_that_it_names(trigger: str, expected: object) -> None:
    assert reached(catalog_of("CREATE FUNCTION f() RETURNS INT RETURN 1", f"CREATE TRIGGER r {trigger}")) == expected


def test_triggers_of_reached_tables_reach_others() -> None:
    first = "CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (1, 2)"
    second = "CREATE TRIGGER b AFTER INSERT ON u FOR EACH ROW INSERT INTO v VALUES (1, 2)"

    assert reached(catalog_of(first, second)) == {"u", "v"}


def test_a_name_in_quotes_is_one_by_its_words() -> None:
    odd = "CREATE TABLE `my-log` (id INT)"
    trigger = "CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW INSERT INTO `my-log` VALUES (1)"

    assert reached(catalog_of(odd, trigger)) == {"my-log"}


def test_a_function_of_the_log_may_do_anything() -> None:
    catalog = catalog_of("CREATE FUNCTION `f` () RETURNS INT RETURN 1")

    assert reached(catalog, "INSERT INTO t VALUES (F())") is None
    assert reached(catalog, 'INSERT INTO t VALUES ("f"())') is None
    assert reached(catalog, None) is None
    assert reached(catalog) == set()
    assert reached(catalog_of(), "INSERT INTO t VALUES (f())") == set()
