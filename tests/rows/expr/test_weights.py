"""Keys compare as the texts do in a server; the pairs are what MariaDB 11.8 says of them."""

import pytest

from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.rows.expr.weights import key_of, letters_of
from tests.case_table import data_beside

CASES = data_beside(__file__)
GENERAL, UNICODE, UCA = "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_uca1400_ai_ci"


@pytest.mark.parametrize(("collation", "one", "other"), CASES["equal"])
def test_these_are_equal(collation: str, one: str, other: str) -> None:
    assert key_of(collation)(one) == key_of(collation)(other)


@pytest.mark.parametrize(("collation", "less", "more"), CASES["less"])
def test_this_one_is_less(collation: str, less: str, more: str) -> None:
    assert key_of(collation)(less) < key_of(collation)(more)


def test_a_collation_or_letter_without_weights_is_refused() -> None:
    with pytest.raises(RefusedError, match="utf8mb4_czech_ci"):
        key_of("utf8mb4_czech_ci")
    with pytest.raises(RefusedError, match=r"U\+0301"):
        key_of(UCA)("e\u0301")


def test_a_pattern_compares_letter_by_letter() -> None:
    assert letters_of(UNICODE)("Æ") != letters_of(UNICODE)("ae")
    assert letters_of(GENERAL)("É") == letters_of(GENERAL)("e")
