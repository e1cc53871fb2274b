TABLE = "CREATE TABLE t (a INT)"
BY = {"client_collation": 8, "connection_collation": 47, "time_zone": "+01:00"}


def programs(folded, kind):
    return {key[2]: program for key, program in folded.at().programs.items() if key[1] == kind}


def trigger(name, more=""):
    return f"CREATE TRIGGER {name} BEFORE INSERT ON t FOR EACH ROW {more} SET @a = 1"


def test_a_program_is_kept_as_it_was_logged_with_what_its_session_had_set(folded):
    logged = "CREATE OR REPLACE DEFINER=staff PROCEDURE IF NOT EXISTS `p`() SELECT 1"
    folded.run("CREATE DATABASE d CHARACTER SET latin2", f"{logged} ;\n", **BY)
    found = programs(folded, "PROCEDURE")["p"]
    assert (found.text, found.client, found.connection) == (logged, "latin1", "latin1_bin")
    assert (found.of_database, found.time_zone) == ("latin2_general_ci", "+01:00")


def test_what_is_there_already_stays_with_if_not_exists_in_any_letters(folded):
    folded.run("CREATE PROCEDURE p() SELECT 1", "CREATE PROCEDURE IF NOT EXISTS P() SELECT 2")
    assert programs(folded, "PROCEDURE")["p"].text.endswith("SELECT 1")
    assert programs(folded.run("DROP PROCEDURE P"), "PROCEDURE") == {}


def test_programs_go_with_what_they_belong_to(folded):
    folded.run(TABLE, trigger("a").replace(" t ", " d . t "), 'RENAME TABLE t TO `u"v`')
    found = programs(folded, "TRIGGER")["a"]
    assert (found.table, found.text) == ('u"v', trigger("a").replace(" t ", ' `u"v` '))
    folded.run('DROP TABLE `u"v`', "CREATE EVENT e ON SCHEDULE AT '2030-01-01' DO SELECT 1", "DROP DATABASE d")
    assert dict(folded.at().programs) == {}


def test_dropping_a_package_drops_its_body(folded):
    folded.run("CREATE PACKAGE k AS END", "CREATE PACKAGE BODY k AS END", "DROP PACKAGE BODY k")
    assert [key[1] for key in folded.at().programs] == ["PACKAGE"]
    folded.run("CREATE PACKAGE BODY k AS END", "DROP PACKAGE k")
    assert dict(folded.at().programs) == {}


def test_what_an_alter_has_changed_is_known_by_its_name(folded):
    folded.run("CREATE PROCEDURE p() NO SQL SELECT 1", "ALTER PROCEDURE p COMMENT 'c' SQL SECURITY INVOKER")
    assert programs(folded, "PROCEDURE")["p"].is_altered
    folded.run("CREATE EVENT e ON SCHEDULE AT '2030-01-01' DO SELECT 1", "ALTER EVENT E RENAME TO x.f COMMENT 'c'")
    assert list(programs(folded, "EVENT")) == ["f"]
    assert folded.at().programs["x", "EVENT", "f"].is_altered
    folded.run("CREATE OR REPLACE EVENT x.f ON SCHEDULE AT '2030-01-01' DO SELECT 2")
    assert not programs(folded, "EVENT")["f"].is_altered


def test_what_is_altered_and_was_there_before_the_log_stays_unknown(folded):
    folded.run("ALTER PROCEDURE p COMMENT 'c'", "ALTER EVENT e ENABLE", TABLE)
    assert (dict(folded.at().programs), folded.known().name) == ({}, "t")
