"""Expressions as a server prints them; the expected texts were printed by MariaDB 10.11 and 11.8."""

import pytest

from ibbmaster.schema.expression_text import EXPRESSION_SIZE_MAX, default_expression_text, expression_text
from tests.case_table import data_beside

DATA = data_beside(__file__)

PRINTED = DATA["printed"]
#: Whose printed form is not known.
AS_WRITTEN = [*DATA["as_written"], "a" + " + a" * EXPRESSION_SIZE_MAX, "(" * 5000 + "a" + ")" * 5000]
DEFAULTS = DATA["defaults"]


@pytest.mark.parametrize(("written", "printed"), PRINTED.items(), ids=list(PRINTED))
def test_what_is_known_is_printed_as_a_server_prints_it(written, printed):
    assert expression_text(written) == printed
    assert expression_text(printed) == printed  # and it means the same


@pytest.mark.parametrize("written", AS_WRITTEN, ids=lambda text: text[:20])
def test_what_is_not_known_stays_as_it_was_written(written):
    assert expression_text(written) == written


@pytest.mark.parametrize(("written", "printed"), DEFAULTS.items(), ids=list(DEFAULTS))
def test_a_default_has_brackets_but_around_a_call(written, printed):
    assert default_expression_text(written) == printed
