"""Expressions as a server prints them; the texts are those of SHOW CREATE TABLE of 10.11 and 11.8."""

import pytest

from ibbmaster.schema.expression_text import definition_expression
from ibbmaster.sqltext.expression import Literal, Operation, Star, SystemVariable, UserVariable
from ibbmaster.sqltext.operators import JOINED, JOINED_ORACLE
from ibbmaster.sqltext.printing import UnknownTextError, printed
from tests.case_table import data_beside


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
