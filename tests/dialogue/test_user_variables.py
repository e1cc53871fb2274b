"""What a session keeps under names with @, and how much of it."""

import pytest

from ibbmaster.dialogue.user_variables import COUNT_MAX, SIZE_MAX, TOTAL_SIZE_MAX, UserVariables
from ibbmaster.wire.refusal import RefusedError


def test_a_variable_has_the_value_it_was_set_to_last():
    variables = UserVariables()
    variables.assign("a", 1)
    variables.assign("a", "two")

    assert variables == {"a": "two"}


@pytest.mark.parametrize(("name", "value"), [("slave_connect_state", "nonsense"), ("master_heartbeat_period", "-5x")])
def test_what_would_steer_a_dump_must_make_sense(name, value):
    with pytest.raises(RefusedError, match=f"'@{name}'"):
        UserVariables().assign(name, value)


def test_a_session_has_so_many_variables_and_no_more():
    variables = UserVariables()
    for number in range(COUNT_MAX):
        variables.assign(f"v{number}", number)
    variables.assign("v0", "again")

    with pytest.raises(RefusedError, match="'@more'"):
        variables.assign("more", 1)
    assert len(variables) == COUNT_MAX


def test_one_value_and_all_together_have_a_largest_size():
    variables = UserVariables()
    with pytest.raises(RefusedError):
        variables.assign("a", "x" * (SIZE_MAX + 1))
    for number in range(TOTAL_SIZE_MAX // SIZE_MAX):
        variables.assign(f"v{number}", "x" * SIZE_MAX)
    with pytest.raises(RefusedError):
        variables.assign("one more", "x")

    variables.assign("v0", None)  # makes room
    variables.assign("one more", "x")
