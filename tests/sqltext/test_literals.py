from decimal import Decimal

import pytest

from ibbmaster.sqltext.literals import VariableValueError, binary_value, literal_value, number_value
from ibbmaster.sqltext.token import tokenize


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("((5))", 5), ("- 1.50", Decimal("-1.50")), ("+1e3", 1000.0), ("18446744073709551616", Decimal(2**64))),
        *(("x'4a'", b"J"), ("0x14a", b"\x01J"), ("b'101'", b"\5"), ("_utf8mb4 'a' 'b'", "ab"), (r"'a\n'", "a\n")),
        (f"-{'9' * 64}.5", Decimal(f"-{'9' * 64}.5")),
        *(("null", None), ("TRUE", 1), ("false", 0), ("(NULL)", None), ("x''", b"")),
    ],
)
def test_a_literal_has_a_value(text, value):
    found = literal_value(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "text", ["", "a", "()", "- null", "-x'41'", "1 2", "now()", "?", "concat(`a`)", "(1) + (2)", "`5`"]
)
def test_what_is_computed_is_no_literal(text):
    with pytest.raises(VariableValueError):
        literal_value(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1", 1), ("007", 7), ("18446744073709551615", 2**64 - 1), ("18446744073709551616", Decimal(2**64))),
        *(("1.0", Decimal("1.0")), ("1.50", Decimal("1.50")), (".5", Decimal("0.5")), ("9" * 1000, Decimal("9" * 400))),
        *(("1e1", 10.0), ("1e2", 100.0)),
    ],
)
def test_a_number_is_exact_but_with_an_exponent(text, value):
    found = number_value(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "value"), [("0x4", b"\x04"), ("x'4142'", b"AB"), ("b''", b""), ("0b100000000", b"\1\0")]
)
def test_digits_are_filled_up_to_bytes(text, value):
    (token,) = tokenize(text).tokens
    assert binary_value(token) == value
