"""SHOW about triggers, routines and events of a log."""

from __future__ import annotations

import pytest

from ibbmaster.dialogue import privileges
from ibbmaster.dialogue.program_rows import ProgramReader
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.dialogue.show_programs import ProgramShower
from ibbmaster.dialogue.sql import parse

STATEMENTS = (
    "CREATE DATABASE shop",
    "CREATE TABLE t (a INT)",
    "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW SET @a = 1",
    "CREATE PROCEDURE p() SELECT 1",
    "CREATE EVENT e ON SCHEDULE AT '2030-01-01' DO SELECT 1",
    "CREATE EVENT unknown ON SCHEDULE AT f(1) DO SELECT 1",
)


@pytest.fixture
def shower(new_schema, new_facts, new_catalog, shop):
    shop.catalogs = [("", new_catalog(*STATEMENTS))]

    def shower(held=privileges.READING):
        return ProgramShower(new_schema(new_facts(tables=shop), held), ProgramReader(0, is_uca=True))

    return shower


def listed(shower, sql, default=""):
    (show,) = parse(sql)
    return [tuple(row) for row in shower.listed(show, default).rows]


def test_each_kind_is_listed_for_its_database(shower):
    assert listed(shower(), "SHOW TRIGGERS", "shop")[0][:4] == ("g", "INSERT", "t", "SET @a = 1")
    assert listed(shower(), "SHOW PROCEDURE STATUS")[0][:3] == ("shop", "p", "PROCEDURE")
    assert listed(shower(), "SHOW FUNCTION STATUS") == []
    assert [row[1] for row in listed(shower(), "SHOW EVENTS FROM shop")] == ["e", "unknown"]
    assert listed(shower(), "SHOW EVENTS FROM nothing") == []


@pytest.mark.parametrize(("sql", "code"), [("SHOW TRIGGERS", 1046), ("SHOW TRIGGERS FROM nothing", 1049)])
def test_triggers_are_those_of_a_database_that_is_there(shower, sql, code):
    with pytest.raises(RefusedError) as caught:
        listed(shower(), sql)
    assert caught.value.err.code == code


def test_a_statement_is_shown_by_kind_and_name(shower):
    relation = shower().created("PROCEDURE", "shop", "P")
    assert [column.name for column in relation.columns][:3] == ["Procedure", "sql_mode", "Create Procedure"]
    assert relation.rows[0][:3] == ("P", "", "CREATE PROCEDURE `P`()\nSELECT 1")
    assert shower().created("TRIGGER", "shop", "g").rows[0][2].startswith("CREATE TRIGGER g AFTER")
    assert shower().created("TRIGGER", "shop", "G") is None
    assert shower().created("EVENT", "shop", "E").rows[0][2] == "SYSTEM"


def test_an_event_of_an_unknown_schedule_is_refused_with_the_reason(shower):
    with pytest.raises(RefusedError, match="the schedule of event shop") as caught:
        shower().created("EVENT", "shop", "unknown")
    assert caught.value.err.code == 1105


def test_who_may_not_read_tables_sees_none(shower):
    blind = shower(frozenset())
    assert listed(blind, "SHOW PROCEDURE STATUS") == []
    assert blind.created("TRIGGER", "shop", "g") is None
