"""Functions by name; what is expected was asked of MariaDB 10.11."""

from __future__ import annotations

from decimal import Decimal

import pytest

from ibbmaster.dialogue.functions import FUNCTIONS, TEXT_SIZE_MAX, call_function
from ibbmaster.dialogue.refusal import RefusedError


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("concat", ("a", 1, Decimal("2.50")), "a12.50"),
        ("concat", ("a", None), None),
        ("concat_ws", (",", "a", None, "b"), "a,b"),
        ("concat_ws", (None, "a"), None),
        ("substring", ("abcdef", 2, 3), "bcd"),
        ("substring", ("abcdef", -3), "def"),
        ("substring", ("abcdef", 0), ""),
        ("left", ("abc", 2), "ab"),
        ("left", ("abc", -1), ""),
        ("right", ("abc", 2), "bc"),
        ("replace", ("aXbX", "X", "--"), "a--b--"),
        ("upper", ("aé",), "AÉ"),
        ("length", ("é",), 2),
        ("char_length", ("é",), 1),
        ("round", (Decimal("2.5"),), Decimal(3)),
        ("round", (Decimal("2.456"), 2), Decimal("2.46")),
        ("abs", (-3,), 3),
        ("greatest", (1, 3, 2), 3),
        ("least", (1, None), None),
        ("hex", (255,), "FF"),
        ("hex", ("aé",), "61C3A9"),
        ("find_in_set", ("b", "a,b,c"), 2),
        ("instr", ("foobar", "BAR"), 4),
        ("timediff", ("10:00:00", "09:30:00"), "00:30:00"),
    ],
)
def test_a_function_gives_what_mariadb_gives(name, arguments, result):
    assert call_function(name, name.upper(), arguments) == result


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_wrong_number_of_arguments_is_refused(name):
    _, most, _ = FUNCTIONS[name]
    with pytest.raises(RefusedError) as caught:
        call_function(name, name, [1] * (most + 1))
    assert caught.value.err.code in (1064, 1582)


@pytest.mark.parametrize(
    ("name", "arguments"), [("concat", ("x" * TEXT_SIZE_MAX, "y")), ("replace", ("x" * 5000, "x", "y" * 5000))]
)
def test_a_function_does_not_fill_the_memory(name, arguments):
    with pytest.raises(RefusedError):
        call_function(name, name, arguments)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (("a:b:c", ":", 2), "a:b"),
        (("a:b:c", ":", -2), "b:c"),
        (("a:b", ":", 9), "a:b"),
        (("a:b", ":", 0), ""),
        (("ab", "", 1), ""),
        (("aXbxc", "x", 1), "aXb"),
        ((None, ":", 1), None),
    ],
)
def test_a_part_of_a_text_ends_at_the_nth_separator(arguments, value):
    assert call_function("substring_index", "SUBSTRING_INDEX", arguments) == value
