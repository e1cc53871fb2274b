"""What a server starts its sessions with."""

from __future__ import annotations

from ibbmaster.dialogue.session_variables import CHOICES, FIXED, SESSION_DEFAULTS, SESSION_ONLY
from ibbmaster.sqltext.sql_mode import MODES


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
