from decimal import Decimal

import pytest

from ibbmaster.schema.expression_text import definition_expression
from ibbmaster.sqltext.expression import Literal, Operation, Star, SystemVariable, UserVariable
from ibbmaster.sqltext.literals import VariableValueError, binary_value, literal_value, number_value
from ibbmaster.sqltext.operators import BY_NAME, CONCAT, JOINED, JOINED_ORACLE, SUM, UNARY, binary_operators
from ibbmaster.sqltext.printing import UnknownTextError, printed
from ibbmaster.sqltext.quoting import quoted, quoted_in_expression, quoted_name, quoted_text, unescaped, unquoted
from ibbmaster.sqltext.sql_mode import (
    ANSI_QUOTES,
    EMPTY_STRING_IS_NULL,
    HIGH_NOT_PRECEDENCE,
    MODES,
    MSSQL,
    NO_BACKSLASH_ESCAPES,
    NO_ENGINE_SUBSTITUTION,
    ORACLE,
    PIPES_AS_CONCAT,
    sql_mode_of,
    sql_mode_text,
)
from ibbmaster.sqltext.token import tokenize
from tests.case_table import data_beside


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


def test_two_signs_of_one_operator_have_one_name():
    plain = binary_operators(0)
    assert (plain["<>"], plain["&&"], plain["||"], plain["%"]) == (plain["!="], plain["AND"], plain["OR"], plain["MOD"])
    assert BY_NAME["!="].printed == "<>"


def test_bars_join_texts_where_sql_mode_says_so():
    plain, joining, oracle = (binary_operators(mode) for mode in (ORACLE, PIPES_AS_CONCAT, PIPES_AS_CONCAT | ORACLE))
    assert plain["||"].name == "OR"
    assert (joining["||"].binds, oracle["||"].binds) == (CONCAT, SUM)
    assert plain["^"].binds < joining["||"].binds < UNARY
    assert "%" in joining
    assert "%" not in oracle


@pytest.mark.parametrize(("written", "shown"), data_beside(__file__)["printed"])
def test_an_expression_is_printed_as_a_server_prints_it(written, shown):
    assert printed(definition_expression(written)).text == shown


def test_texts_that_bars_join_are_an_argument_of_concat():
    texts = (Literal("a"), Literal("b"))
    assert printed(Operation(JOINED, texts)).text == "concat('a','b')"
    assert printed(Operation(JOINED_ORACLE, texts)).text == "concat_operator_oracle('a','b')"


@pytest.mark.parametrize(
    "expression", [Star(), UserVariable("a"), SystemVariable("a", "", "a"), Operation("ROW", (Literal(1),) * 2)]
)
def test_what_is_not_known_as_a_server_prints_it_is_not_printed(expression):
    with pytest.raises(UnknownTextError):
        printed(expression)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("'it''s'", "it's"), (r"'a\nb\Zc\%\q'", "a\nb\x1ac\\%q"), (r"'\\'''", "\\'"), ("`a``b`", "a`b")),
        *(('"x""y"', 'x"y'), ("N'x'", "x")),
    ],
)
def test_a_quoted_text_says_its_content(written, meant):
    assert unquoted(written) == meant


def test_a_backslash_is_a_letter_where_sql_mode_says_so():
    assert unquoted(r"'a\n''b'", NO_BACKSLASH_ESCAPES) == r"a\n'b"
    assert unescaped(r"\'", "'") == "'"


@pytest.mark.parametrize("text", ["", "it's", "a\\b\0\n\r\x1a\t%_é", "''", "\\"])
def test_what_is_quoted_is_read_as_it_was(text):
    assert unquoted(quoted(text)) == unquoted(quoted_text(text)) == text
    assert unquoted(quoted_name(text)) == text


def test_a_server_prints_a_control_z_of_a_comment_as_it_is_and_a_quote_in_an_expression_behind_a_backslash():
    assert (quoted("\x1a"), quoted_text("\x1a")) == (r"'\Z'", "'\x1a'")
    assert quoted_in_expression("it's \\ \x1a") == r"'it\'s \\ \Z'"


def test_the_bits_are_those_that_a_server_logs():
    named = (ANSI_QUOTES, MSSQL, NO_BACKSLASH_ESCAPES, HIGH_NOT_PRECEDENCE, NO_ENGINE_SUBSTITUTION)
    assert named == (4, 1024, 1 << 20, 1 << 29, 1 << 30)
    assert EMPTY_STRING_IS_NULL == 1 << 32
    assert (len(MODES), sql_mode_text((1 << len(MODES)) - 1)) == (35, ",".join(MODES))


def test_names_may_be_in_any_order_and_stand_for_others():
    assert sql_mode_of("no_backslash_escapes,Ansi_Quotes,,") == ANSI_QUOTES | NO_BACKSLASH_ESCAPES
    assert sql_mode_text(sql_mode_of("ANSI")) == "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI"
    assert sql_mode_text(sql_mode_of("MYSQL40")) == "MYSQL40,HIGH_NOT_PRECEDENCE"
    assert sql_mode_of("") == 0


def test_a_name_that_is_none_is_told_as_it_was_written():
    for text, name in (("ANSI,Foo", "Foo"), (" ANSI", " ANSI"), ("ANSI, DB2", " DB2")):
        with pytest.raises(ValueError, match=rf"^{name}$"):
            sql_mode_of(text)
