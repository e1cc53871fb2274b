import pytest

from ibbmaster.primary.dialogue.variables import (
    CHOICES,
    FIXED,
    OF_THE_LOG,
    SESSION_DEFAULTS,
    SESSION_ONLY,
    has_variable,
    is_uca_default,
    own_position,
    shown,
    variable,
    variable_names,
    version_number,
)
from ibbmaster.sqltext.sql_mode import MODES


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
