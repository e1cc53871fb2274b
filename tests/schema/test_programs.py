"""What statements of a log make of triggers, routines and events."""

from __future__ import annotations

BY = {"invoker": "me@home", "client_collation": 8, "connection_collation": 47, "sql_mode": 0}
TABLE = "CREATE TABLE t (a INT)"


def programs(folded, kind):
    found = folded.at().programs
    return {key[2]: program for key, program in found.items() if key[1] == kind}


def trigger(name, more=""):
    return f"CREATE TRIGGER {name} BEFORE INSERT ON t FOR EACH ROW {more} SET @a = 1"


def test_a_program_has_what_its_session_had_set(folded):
    folded.run("CREATE DATABASE d CHARACTER SET latin2", "CREATE PROCEDURE p() SELECT 1", **BY)
    found = programs(folded, "PROCEDURE")["p"]
    assert found.text == "CREATE DEFINER=`me`@`home` PROCEDURE `p`()\nSELECT 1"
    assert (found.definer, found.client, found.connection) == ("me@home", "latin1", "latin1_bin")
    assert (found.of_database, found.created, found.originator) == ("latin2_general_ci", 1002 * 10**6, 1)


def test_where_nobody_tells_the_definer_there_is_none(folded):
    folded.run("CREATE FUNCTION f() RETURNS INT RETURN 1")
    found = programs(folded, "FUNCTION")["f"]
    assert (found.text, found.definer) == ("CREATE FUNCTION `f`() RETURNS INT\nRETURN 1", "")


def test_triggers_run_in_the_order_that_they_were_given(folded):
    folded.run(TABLE, trigger("a"), trigger("b"), trigger("c", "PRECEDES a"), trigger("d", "FOLLOWS a"))
    found = programs(folded, "TRIGGER")
    assert sorted(found, key=lambda name: found[name].order) == ["c", "a", "d", "b"]
    folded.run(trigger("a").replace("CREATE", "CREATE OR REPLACE"))
    found = programs(folded, "TRIGGER")
    assert sorted(found, key=lambda name: found[name].order) == ["c", "d", "b", "a"]


def test_what_is_there_already_stays_with_if_not_exists(folded):
    folded.run("CREATE PROCEDURE p() SELECT 1", "CREATE PROCEDURE IF NOT EXISTS p() SELECT 2")
    assert programs(folded, "PROCEDURE")["p"].text.endswith("SELECT 1")


def test_programs_go_with_what_they_belong_to(folded):
    folded.run(TABLE, trigger("a"), "RENAME TABLE t TO u")
    found = programs(folded, "TRIGGER")["a"]
    assert (found.table, "ON `u` FOR EACH ROW" in found.text) == ("u", True)
    folded.run("DROP TABLE u", "CREATE EVENT e ON SCHEDULE AT '2030-01-01' DO SELECT 1", "DROP DATABASE d")
    assert dict(folded.at().programs) == {}


def test_dropping_a_package_drops_its_body(folded):
    folded.run("CREATE PACKAGE k AS END", "CREATE PACKAGE BODY k AS END", "DROP PACKAGE BODY k")
    assert [key[1] for key in folded.at().programs] == ["PACKAGE"]
    folded.run("CREATE PACKAGE BODY k AS END", "DROP PACKAGE k")
    assert dict(folded.at().programs) == {}


def test_alter_changes_what_it_names(folded):
    folded.run("CREATE PROCEDURE p() NO SQL SELECT 1", "ALTER PROCEDURE p COMMENT 'c' SQL SECURITY INVOKER")
    text = "CREATE PROCEDURE `p`()\n    NO SQL\n    SQL SECURITY INVOKER\n    COMMENT 'c'\nSELECT 1"
    assert programs(folded, "PROCEDURE")["p"].text == text
    folded.run("CREATE EVENT e ON SCHEDULE AT '2030-01-01' DO SELECT 1", "ALTER EVENT e RENAME TO x.f COMMENT 'c'")
    assert ("x", "EVENT", "f") in folded.at().programs
    assert list(programs(folded, "EVENT")) == ["f"]


def test_what_is_altered_and_was_there_before_the_log_stays_unknown(folded):
    folded.run("ALTER PROCEDURE p COMMENT 'c'", "ALTER EVENT e ENABLE", TABLE)
    assert (dict(folded.at().programs), folded.known().name) == ({}, "t")


def test_an_event_whose_schedule_nobody_can_compute_says_so_until_it_has_another(folded):
    folded.run("CREATE EVENT e ON SCHEDULE EVERY f(1) DAY DO SELECT 1", TABLE)
    found = programs(folded, "EVENT")["e"]
    assert found.problem.startswith("the schedule of event d.e is ")
    assert found.text == "CREATE EVENT e ON SCHEDULE EVERY f(1) DAY DO SELECT 1"
    folded.run("ALTER EVENT e COMMENT 'c'")
    assert programs(folded, "EVENT")["e"].problem is not None
    folded.run("ALTER EVENT e ON SCHEDULE AT '2030-01-01' DO SELECT 2")
    assert programs(folded, "EVENT")["e"].problem is None


def test_an_event_that_is_over_when_it_is_created_is_none(folded):
    folded.run("CREATE EVENT e ON SCHEDULE AT '1970-01-01' DO SELECT 1")
    assert dict(folded.at().programs) == {}


def test_a_routine_that_cannot_be_read_is_kept_as_it_was_logged(folded):
    folded.run("CREATE OR REPLACE FUNCTION f() RETURNS TYPE OF t.a RETURN 1", TABLE)
    assert programs(folded, "FUNCTION")["f"].text == "CREATE FUNCTION f() RETURNS TYPE OF t.a RETURN 1"
    folded.run("ALTER FUNCTION f COMMENT 'c'")
    assert programs(folded, "FUNCTION")["f"].problem.startswith("FUNCTION d.f was altered")
