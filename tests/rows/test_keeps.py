from pathlib import Path

import pytest

from ibbmaster.event.rows.charset import character_size
from ibbmaster.rows.keeps import keeps_values
from ibbmaster.schema.collations import character_sets
from ibbmaster.schema.model import SqlType
from tests.schema.conftest import type_of

CASES = [line.split("\t") for line in Path(__file__).with_suffix(".tsv").read_text().splitlines()]


@pytest.mark.parametrize(("old", "new", "is_kept"), CASES)
def test_only_changes_that_keep_every_value_are_trusted(old, new, is_kept) -> None:
    assert keeps_values(type_of(old), type_of(new)) is (is_kept == "yes")
    assert keeps_values(type_of(old), type_of(old))


def test_a_type_that_is_not_known_is_trusted_with_nothing() -> None:
    assert not keeps_values(SqlType(word="unheard"), SqlType(word="of"))


def test_characters_have_the_sizes_of_their_sets() -> None:
    assert {name: character_size(name) for name in character_sets()} == {
        name: known.size_max for name, known in character_sets().items()
    }
