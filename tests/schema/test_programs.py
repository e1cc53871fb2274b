"""What statements of a log make of triggers, routines and events."""

import json
from pathlib import Path

import pytest

from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.programs import trigger_parts
from ibbmaster.sqltext.sql_mode import ANSI_QUOTES

CASES = json.loads(Path(__file__).with_suffix(".json").read_text())

BY = {"invoker": "me@home", "client_collation": 8, "connection_collation": 47, "sql_mode": 0}
TABLE = "CREATE TABLE t (a INT)"


def programs(folded, kind):
    found = folded.at().programs
    return {key[2]: program for key, program in found.items() if key[1] == kind}


def trigger(name, more=""):
    return f"CREATE TRIGGER {name} BEFORE INSERT ON t FOR EACH ROW {more} SET @a = 1"


def test_a_program_has_what_its_session_had_set(folded):
    folded.run("CREATE DATABASE d CHARACTER SET latin2", "CREATE PROCEDURE p() SELECT 1;", **BY)
    found = programs(folded, "PROCEDURE")["p"]
    assert (found.text, found.definer) == ("CREATE PROCEDURE `p`() SELECT 1", "me@home")
    assert (found.client, found.connection) == ("latin1", "latin1_bin")
    assert (found.of_database, found.created, found.originator) == ("latin2_general_ci", 1002 * 10**6, 1)


@pytest.mark.parametrize(("logged", "shown", "definer"), CASES)
def test_a_program_is_kept_as_it_was_logged_under_its_name_alone(folded, logged, shown, definer):
    (found,) = folded.run(logged, **BY).at().programs.values()
    assert (found.text, found.definer) == (shown, definer)


def test_where_nobody_tells_the_definer_there_is_none(folded):
    (found,) = folded.run('CREATE FUNCTION "f"() RETURNS INT RETURN 1', sql_mode=ANSI_QUOTES).at().programs.values()
    assert (found.text, found.definer) == ('CREATE FUNCTION "f"() RETURNS INT RETURN 1', "")


def test_a_trigger_is_kept_without_or_replace_and_without_its_place_in_the_order(folded):
    text = "CREATE OR REPLACE DEFINER=`a`@`%` TRIGGER g AFTER UPDATE ON d . t  FOR EACH ROW  FOLLOWS `x y`  SET @a = 1;"
    parts = trigger_parts(text, 0)
    found = (parts.timing, parts.events, parts.ordering, parts.body)
    assert found == ("AFTER", "UPDATE", ("FOLLOWS", "x y"), "SET @a = 1")
    shown = "CREATE DEFINER=`a`@`%` TRIGGER g AFTER UPDATE ON d . t  FOR EACH ROW  SET @a = 1"
    assert programs(folded.run(TABLE, text), "TRIGGER")["g"].text == shown


def test_a_trigger_may_have_several_events_and_columns_and_its_body_a_label():
    parts = trigger_parts("CREATE TRIGGER g BEFORE INSERT OR UPDATE OF a, b ON t FOR EACH ROW follows: BEGIN END", 0)
    assert (parts.events, parts.ordering, parts.body) == ("INSERT,UPDATE", None, "follows: BEGIN END")


@pytest.mark.parametrize("text", ["CREATE TRIGGER g", "CREATE TRIGGER g LATER INSERT ON t FOR EACH ROW x", "CREATE"])
def test_what_is_no_trigger_is_refused(text):
    with pytest.raises(NotUnderstoodError):
        trigger_parts(text, 0)


def test_triggers_run_in_the_order_that_they_were_given(folded):
    folded.run(TABLE, trigger("a"), trigger("b"), trigger("c", "PRECEDES a"), trigger("d", "FOLLOWS a"))
    found = programs(folded, "TRIGGER")
    assert sorted(found, key=lambda name: found[name].order) == ["c", "a", "d", "b"]
    folded.run(trigger("a").replace("CREATE", "CREATE OR REPLACE"))
    found = programs(folded, "TRIGGER")
    assert sorted(found, key=lambda name: found[name].order) == ["c", "d", "b", "a"]


def test_what_is_there_already_stays_with_if_not_exists_in_any_letters(folded):
    folded.run("CREATE PROCEDURE p() SELECT 1", "CREATE PROCEDURE IF NOT EXISTS P() SELECT 2")
    assert programs(folded, "PROCEDURE")["p"].text.endswith("SELECT 1")
    assert programs(folded.run("DROP PROCEDURE P"), "PROCEDURE") == {}


def test_programs_go_with_what_they_belong_to(folded):
    folded.run(TABLE, trigger("a"), 'RENAME TABLE t TO "u""v"', sql_mode=ANSI_QUOTES)
    found = programs(folded, "TRIGGER")["a"]
    assert (found.table, 'ON "u""v" FOR EACH ROW' in found.text) == ('u"v', True)
    folded.run('DROP TABLE `u"v`', "CREATE EVENT e ON SCHEDULE AT '2030-01-01' DO SELECT 1", "DROP DATABASE d")
    assert dict(folded.at().programs) == {}


def test_dropping_a_package_drops_its_body(folded):
    folded.run("CREATE PACKAGE k AS END", "CREATE PACKAGE BODY k AS END", "DROP PACKAGE BODY k")
    assert [key[1] for key in folded.at().programs] == ["PACKAGE"]
    folded.run("CREATE PACKAGE BODY k AS END", "DROP PACKAGE k")
    assert dict(folded.at().programs) == {}


def test_after_alter_the_text_is_not_known_and_the_name_is(folded):
    folded.run("CREATE PROCEDURE p() NO SQL SELECT 1", "ALTER PROCEDURE p COMMENT 'c' SQL SECURITY INVOKER")
    found = programs(folded, "PROCEDURE")["p"]
    assert (found.text, found.created, found.modified) == (None, 1001 * 10**6, 1002 * 10**6)
    folded.run("CREATE EVENT e ON SCHEDULE AT '2030-01-01' DO SELECT 1", "ALTER EVENT E RENAME TO x.f COMMENT 'c'")
    assert list(programs(folded, "EVENT")) == ["f"]
    assert folded.at().programs["x", "EVENT", "f"].text is None
    folded.run("CREATE OR REPLACE EVENT x.f ON SCHEDULE AT '2030-01-01' DO SELECT 2")
    assert programs(folded, "EVENT")["f"].text == "CREATE EVENT `f` ON SCHEDULE AT '2030-01-01' DO SELECT 2"


def test_what_is_altered_and_was_there_before_the_log_stays_unknown(folded):
    folded.run("ALTER PROCEDURE p COMMENT 'c'", "ALTER EVENT e ENABLE", TABLE)
    assert (dict(folded.at().programs), folded.known().name) == ({}, "t")
