"""Expressions as a server prints them; the texts are those of SHOW CREATE TABLE of 10.11 and 11.8."""

import pytest

from ibbmaster.schema.expression_text import definition_expression
from ibbmaster.sqltext.expression import Literal, Nested, Operation, Star, SystemVariable, UserVariable
from ibbmaster.sqltext.operators import JOINED, JOINED_ORACLE
from ibbmaster.sqltext.printing import UnknownTextError, printed


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (r"a <> 'it''s' AND a NOT LIKE 'a\%b\_c'", r"`a` <> 'it\'s' and `a`  not like 'a\\%b\\_c'"),
        (r"""a <> 'x\ny\\z\tq\Z"w"'""", "`a` <> 'x\\ny\\\\z\tq\\Z\"w\"'"),
        ("b > -1.50 and b <> 1e5", "`b` > -1.50 and `b` <> 1e5"),
        ("b <> x'4a' and b <> 0x4a and b<>b'11'", "`b` <> X'4a' and `b` <> 0x4a and `b` <> 0x03"),
        ("c <> n'abc' and c <> _latin1'abc'", "`c` <> 'abc' and `c` <> _latin1'abc'"),
        ("not a = 'b' and not (b < 1)", "`a` <> 'b' and `b` >= 1"),
        ("not (b<=1 or b > 3)", "`b` > 1 and `b` <= 3"),
        ("a or (b or (c and d))", "`a` <> 0 or `b` <> 0 or `c` <> 0 and `d` <> 0"),
        ("not (a or b and c)", "`a` = 0 and (`b` = 0 or `c` = 0)"),
        ("not b <=> 1 and not (b + 1)", "!(`b` <=> 1) and !(`b` + 1)"),
        ("not (a and 1)", "`a` = 0 or !1"),
        ("- -5 < b", "5 < `b`"),
        ("case when a then 1 else null end", "case when `a` then 1 else NULL end"),
        ("case a when 1 then 2 end", "case `a` when 1 then 2 end"),
        ("a collate utf8mb4_bin = 'x'", "`a` collate utf8mb4_bin = 'x'"),
    ],
)
def test_an_expression_is_printed_as_a_server_prints_it(written, shown):
    assert printed(definition_expression(written)).text == shown


def test_texts_that_bars_join_are_an_argument_of_concat():
    texts = (Literal("a"), Literal("b"))
    assert printed(Operation(JOINED, texts)).text == "concat('a','b')"
    assert printed(Operation(JOINED_ORACLE, texts)).text == "concat_operator_oracle('a','b')"


@pytest.mark.parametrize(
    "expression",
    [Star(), UserVariable("a"), SystemVariable("a", "", "a"), Nested(None), Operation("ROW", (Literal(1),) * 2)],
)
def test_what_is_not_known_as_a_server_prints_it_is_not_printed(expression):
    with pytest.raises(UnknownTextError):
        printed(expression)
