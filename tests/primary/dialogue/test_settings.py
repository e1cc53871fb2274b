"""The variables of a session; codes and values were asked of MariaDB 10.11."""

import pytest

from ibbmaster.primary.dialogue.settings import (
    CHOICES,
    COUNT_MAX,
    FIXED,
    OF_THE_LOG,
    SESSION_DEFAULTS,
    SESSION_ONLY,
    SETTING_SIZE_MAX,
    SIZE_MAX,
    TOTAL_SIZE_MAX,
    Settings,
    UserVariables,
    has_variable,
    is_uca_default,
    own_position,
    shown,
    variable,
    variable_names,
    version_number,
)
from ibbmaster.primary.dialogue.sql import parse
from ibbmaster.primary.dialogue.statement import CharsetAssignment
from ibbmaster.sqltext.expression import SystemVariable
from ibbmaster.sqltext.sql_mode import MODES
from tests.case_table import data_beside
from tests.primary.dialogue.conftest import refused

DATA = data_beside(__file__)


@pytest.fixture
def settings(new_facts):
    return Settings(new_facts("classic-10.11"))


def target(name: str, scope: str = "") -> SystemVariable:
    return SystemVariable(name.lower(), scope, name)


def test_a_value_is_the_primarys_until_the_session_sets_one(settings):
    assert settings.value("wait_timeout") == 28800
    settings.assign(target("wait_timeout"), 5)
    assert (settings.value("wait_timeout"), settings.value("wait_timeout", "global")) == (5, 28800)
    settings.assign(target("wait_timeout"), None, is_default=True)
    assert settings.value("wait_timeout") == 28800


@pytest.mark.parametrize(("name", "value", "kept"), DATA["kept"])
def test_a_value_is_kept_as_its_variable_has_it(settings, name, value, kept):
    settings.assign(target(name), value)
    assert (type(settings.value(name)), settings.value(name)) == (type(kept), kept)


@pytest.mark.parametrize(("name", "value", "code"), DATA["refused"])
def test_what_may_not_be_set_is_refused_with_the_code_of_mariadb(settings, name, value, code):
    assert refused(settings.assign, target(name), value)[0] == code
    assert settings.values == {}


def test_an_error_names_the_variable_as_it_was_written_also_if_the_text_is_long(settings):
    settings.assign(target("default_master_connection"), "x" * SETTING_SIZE_MAX)
    assert refused(settings.assign, target("default_master_connection"), "x" * (SETTING_SIZE_MAX + 1))[0] == 1235
    assert refused(settings.assign, target("NoThing"), 1)[1] == "Unknown system variable 'NoThing'"
    assert refused(settings.read, target("NoThing"))[1] == "Unknown system variable 'NoThing'"
    text = "Variable 'AutoCommit' can't be set to the value of 'x'"
    assert refused(settings.assign, target("AutoCommit"), "x")[1] == text


def test_a_variable_is_read_in_a_scope_it_has_and_set_for_all_by_administrators_alone(settings):
    assert refused(settings.assign, target("wait_timeout", "global"), 5)[0] == 1227
    assert refused(settings.value, "timestamp", "global")[0] == 1238
    assert refused(settings.value, "max_connections", "session")[0] == 1238
    assert settings.value("timestamp") == 1778384896.5
    assert settings.is_of_sessions("timestamp")
    assert not settings.is_of_sessions("autocommit")


def test_two_names_of_one_variable_have_one_value(settings):
    settings.assign(target("tx_isolation"), "serializable")
    assert settings.value("transaction_isolation") == "SERIALIZABLE"
    settings.assign(target("transaction_isolation"), None, is_default=True)
    assert settings.value("tx_isolation") == "REPEATABLE-READ"


def test_character_set_and_collation_of_a_session_follow_each_other(settings):
    settings.assign(target("character_set_connection"), "latin1")
    assert settings.collation == "latin1_swedish_ci"
    settings.assign(target("collation_connection"), "utf8mb4_bin")
    assert settings.value("character_set_connection") == "utf8mb4"


def names_of(settings):
    charsets = [settings.value(f"character_set_{name}") for name in ("client", "connection", "results")]
    return [*charsets, settings.collation]


def charset_assignment(sql: str) -> CharsetAssignment:
    (found,) = parse(sql)[0].assignments
    return found


def test_set_names_sets_three_variables_and_set_character_set_two(settings):
    settings.assign_charset(charset_assignment("SET NAMES latin1 COLLATE latin1_bin"))
    assert names_of(settings) == ["latin1", "latin1", "latin1", "latin1_bin"]
    settings.assign_charset(charset_assignment("SET CHARACTER SET latin2"))
    assert names_of(settings) == ["latin2", "utf8mb4", "latin2", "utf8mb4_general_ci"]
    settings.assign_charset(charset_assignment("SET NAMES DEFAULT"))
    assert names_of(settings) == ["utf8mb4", "utf8mb4", "utf8mb4", "utf8mb4_general_ci"]


@pytest.mark.parametrize(("sql", "code"), DATA["names that do not go together"])
def test_names_that_do_not_go_together_are_refused(settings, sql, code):
    assert refused(settings.assign_charset, charset_assignment(sql))[0] == code


def test_since_11_5_utf8mb4_means_another_collation(new_facts):
    settings = Settings(new_facts("classic-11.8"))
    settings.assign_charset(charset_assignment("SET NAMES utf8mb4"))
    assert settings.collation == "utf8mb4_uca1400_ai_ci"


def test_every_name_has_a_value(settings):
    assert settings.names() == sorted(settings.names())
    for name in settings.names():
        settings.value(name)


@pytest.mark.parametrize(("name", "value"), [("slave_connect_state", "nonsense"), ("master_heartbeat_period", "-5x")])
def test_what_would_steer_a_dump_must_make_sense(name, value):
    assert f"'@{name}'" in refused(UserVariables().assign, name, value)[1]


def test_a_session_has_so_many_variables_and_no_more():
    variables = UserVariables()
    for number in range(COUNT_MAX):
        variables.assign(f"v{number}", number)
    variables.assign("v0", "again")

    assert "'@more'" in refused(variables.assign, "more", 1)[1]
    assert (len(variables), variables["v0"]) == (COUNT_MAX, "again")


def test_one_value_and_all_together_have_a_largest_size():
    variables = UserVariables()
    assert refused(variables.assign, "a", "x" * (SIZE_MAX + 1))[0] == 1041
    for number in range(TOTAL_SIZE_MAX // SIZE_MAX):
        variables.assign(f"v{number}", "x" * SIZE_MAX)
    assert refused(variables.assign, "one more", "x")[0] == 1041

    variables.assign("v0", None)  # makes room
    variables.assign("one more", "x")


@pytest.mark.parametrize(("version", "number"), [("12.3.2-MariaDB-log", 120302), ("10.11.19", 101119), ("none", 0)])
def test_a_version_counts_as_conditional_comments_count_it(new_facts, version, number):
    facts = new_facts(server_version=version)
    assert version_number(facts) == number
    assert is_uca_default(facts) is (number >= 110500)


def test_a_primarys_own_position_is_what_it_wrote_last_itself(new_facts):
    state = new_facts().binlog_state()
    assert str(own_position(state, 2)) == "0-2-8"
    assert str(own_position(state, 9)) == ""


def test_only_an_engine_binlog_has_the_variables_of_one(new_facts):
    of_engine = {"binlog_storage_engine": "InnoDB", "binlog_directory": "", "innodb_binlog_state_interval": 2097152}
    for name, value in of_engine.items():
        assert variable(new_facts("engine"), name) == value
        assert not has_variable(new_facts("classic-11.8"), name)
    assert {*variable_names(new_facts("engine"))} - {*variable_names(new_facts("classic-11.8"))} == {*of_engine}


@pytest.mark.parametrize(("version", "size"), [("12.3.2-MariaDB-log", 8192), ("13.0.1-MariaDB-log", 65536)])
def test_events_of_rows_are_larger_since_13_0(new_facts, version, size):
    assert variable(new_facts("engine", server_version=version), "binlog_row_event_max_size") == size


@pytest.mark.parametrize(
    ("name", "value"), [("server_id", 1), ("binlog_format", "ROW"), ("alter_algorithm", "DEFAULT")]
)
def test_a_value_follows_from_the_server_is_fixed_or_the_default_of_sessions(new_facts, name, value):
    assert variable(new_facts(), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [("gtid_binlog_pos", "0-2-8,3-1-1"), ("gtid_binlog_state", "0-1-7,0-2-8,3-1-1"), ("gtid_current_pos", "3-1-1")],
)
def test_a_value_of_the_log_follows_from_what_is_seen_of_it(new_facts, name, value):
    assert has_variable(new_facts(), name)
    assert OF_THE_LOG[name](new_facts().binlog_state(), 1) == value


@pytest.mark.parametrize(("value", "text"), [(True, "ON"), (False, "OFF"), (1.5, "1.500000"), (None, ""), (7, "7")])
def test_a_value_is_shown_as_show_variables_has_it(value, text):
    assert shown(value) == text


def test_a_default_is_one_of_the_choices():
    assert {*CHOICES} <= {*SESSION_DEFAULTS}
    assert [name for name, words in CHOICES.items() if SESSION_DEFAULTS[name] not in words] == []


def test_no_name_comes_in_two_cases_and_no_mode_twice():
    assert [name for name in (*SESSION_DEFAULTS, *SESSION_ONLY) if name != name.lower()] == []
    assert {*SESSION_ONLY} <= {*SESSION_DEFAULTS}
    assert {*SESSION_DEFAULTS["sql_mode"].split(",")} <= {*MODES}


def test_what_the_primary_fixes_has_the_type_of_the_default():
    both = {*FIXED} & {*SESSION_DEFAULTS}
    assert len(both) > 20
    kinds = {name: (type(FIXED[name]), type(SESSION_DEFAULTS[name])) for name in both}
    assert {name: pair for name, pair in kinds.items() if pair[0] is not pair[1] and name != "timestamp"} == {}
