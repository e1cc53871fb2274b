from pathlib import Path

import pytest

from ibbmaster.primary.dialogue import privileges
from ibbmaster.primary.dialogue.information_tables import ROWS, AboutTables, created_program, listed_programs
from ibbmaster.primary.dialogue.session_schema import information_table
from ibbmaster.primary.dialogue.sql import parse
from ibbmaster.primary.dialogue.table_columns import INFORMATION_SCHEMA, information_columns
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.schema.column_text import type_text
from tests.primary.dialogue.conftest import refused


@pytest.fixture
def about(new_schema, new_facts, shop):
    return AboutTables(new_schema(new_facts(tables=shop)), 110806)


def of_shop(about, table):
    names = [column.name for column in information_columns(table)]
    rows = [dict(zip(names, row, strict=True)) for row in about.rows(table)]
    return [row for row in rows if "shop" in row.values()]


def test_tables_are_told_by_kind_and_the_unknown_one_with_its_reason(about):
    rows = {row["TABLE_NAME"]: (row["TABLE_TYPE"], row["ENGINE"]) for row in of_shop(about, "TABLES")}
    assert rows == {
        "all_items": ("VIEW", None),
        "counted": ("VIEW", None),
        "item": ("BASE TABLE", "InnoDB"),
        "lost": ("BASE TABLE", None),
        "numbers": ("SEQUENCE", "InnoDB"),
        "sold": ("BASE TABLE", "InnoDB"),
    }
    (lost,) = (row for row in of_shop(about, "TABLES") if row["TABLE_NAME"] == "lost")
    assert lost["TABLE_COMMENT"] == "shop.lost: give --schema"


def test_its_own_tables_are_told_as_well(about):
    rows = [row for row in about.rows("TABLES") if row[1] == "information_schema"]
    assert len(rows) == len(INFORMATION_SCHEMA)
    assert {row[3] for row in rows} == {"SYSTEM VIEW"}
    assert type_text(information_table("ENGINES").columns[0].type) == "varchar(64)"
    assert type_text(information_table("COLUMNS").columns[4].type) == "bigint(21) unsigned"


def test_a_foreign_key_finds_its_parent_among_the_tables(about):
    (row,) = of_shop(about, "REFERENTIAL_CONSTRAINTS")
    assert (row["UNIQUE_CONSTRAINT_NAME"], row["REFERENCED_TABLE_NAME"]) == ("PRIMARY", "item")
    assert list(about.rows("PROCESSLIST")) == []


STATEMENTS = Path(__file__).with_suffix(".sql").read_text().splitlines()


@pytest.fixture
def schema(new_schema, new_facts, new_catalog, shop):
    shop.catalogs = [("", new_catalog(*STATEMENTS))]
    return lambda held=privileges.READING: new_schema(new_facts(tables=shop), held)


@pytest.fixture
def rows(schema):
    def rows(table):
        names = [column.name for column in information_columns(table)]
        return [dict(zip(names, row, strict=True)) for row in ROWS[table](schema().programs())]

    return rows


def listed(schema, sql, default=""):
    (show,) = parse(sql)
    relation = listed_programs(schema, show, default)
    assert {len(row) for row in relation.rows} <= {len(relation.columns)}
    return [tuple(row) for row in relation.rows]


def test_triggers_come_in_the_order_in_which_they_were_created(rows):
    found = [(row["TRIGGER_NAME"], row["EVENT_OBJECT_TABLE"], row["ACTION_STATEMENT"]) for row in rows("TRIGGERS")]
    assert found == [("late", "t", None), ("second", "t", None), ("first", "t", None)]


def test_what_only_a_declaration_says_is_null(rows):
    f, p = rows("ROUTINES")
    assert (f["ROUTINE_NAME"], f["DATA_TYPE"], f["IS_DETERMINISTIC"]) == ("f", None, None)
    assert (p["ROUTINE_NAME"], p["DATA_TYPE"], p["ROUTINE_DEFINITION"]) == ("p", "", None)
    e, altered = rows("EVENTS")
    assert (e["TIME_ZONE"], e["SQL_MODE"], e["STATUS"], e["EVENT_DEFINITION"]) == ("SYSTEM", "", None, None)
    assert (altered["TIME_ZONE"], altered["SQL_MODE"]) == (None, None)


def test_parameters_are_refused_where_a_routine_could_have_one(rows):
    with pytest.raises(RefusedError, match="SHOW CREATE has their parameters"):
        rows("PARAMETERS")
    assert list(ROWS["PARAMETERS"]([])) == []


def test_each_kind_is_listed_for_its_database(schema):
    assert listed(schema(), "SHOW TRIGGERS", "shop")[0][:4] == ("late", None, "t", None)
    assert listed(schema(), "SHOW PROCEDURE STATUS")[0][:3] == ("shop", "p", "PROCEDURE")
    assert [row[1] for row in listed(schema(), "SHOW EVENTS FROM shop")] == ["e", "other"]
    assert listed(schema(), "SHOW EVENTS FROM nothing") == []


@pytest.mark.parametrize(("sql", "code"), [("SHOW TRIGGERS", 1046), ("SHOW TRIGGERS FROM nothing", 1049)])
def test_triggers_are_those_of_a_database_that_is_there(schema, sql, code):
    assert refused(listed, schema(), sql)[0] == code


def test_a_statement_is_shown_by_kind_and_name(schema):
    relation = created_program(schema(), "PROCEDURE", "shop", "P")
    assert [column.name for column in relation.columns][:3] == ["Procedure", "sql_mode", "Create Procedure"]
    assert relation.rows[0][:3] == ("p", "", "CREATE PROCEDURE p() SELECT 1")
    for kind, name in (("TRIGGER", "late"), ("EVENT", "e")):
        relation = created_program(schema(), kind, "shop", name)
        assert len(relation.rows[0]) == len(relation.columns)


@pytest.mark.parametrize(("kind", "code"), [("TRIGGER", 1360), ("EVENT", 1539), ("PACKAGE BODY", 1305)])
def test_what_is_not_there_is_refused_as_by_a_server(schema, kind, code):
    assert refused(created_program, schema(), kind, "shop", "LATE")[0] == code


def test_what_was_altered_is_refused_with_where_it_is(schema):
    with pytest.raises(RefusedError, match=r"shop.other after ALTER; the log has both") as caught:
        created_program(schema(), "EVENT", "shop", "other")
    assert caught.value.err.code == 1235


def test_whoever_may_not_read_sees_none(schema):
    blind = schema(frozenset((privileges.SHOW_DATABASES,)))
    assert listed(blind, "SHOW PROCEDURE STATUS") == []
    with pytest.raises(RefusedError, match="PROCEDURE p does not exist"):
        created_program(blind, "PROCEDURE", "shop", "p")
