"""Character sets and collations, as many as the servers list, and the same as rows are decoded with."""

from __future__ import annotations

import pytest

from ibbmaster.schema.collations import (
    character_sets,
    charset_of_collation,
    collations,
    find_charset,
    find_collation,
)
from ibbmaster.event.rows.charset import charset_of


@pytest.mark.parametrize(("profile", "count"), [("classic-10.11", 506), ("classic-11.8", 552)])
def test_as_many_are_listed_as_by_real_servers(new_dialog, profile, count):
    dialog = new_dialog(profile)
    assert len(list(dialog.query(b"SHOW COLLATION")[0].rows)) == count
    assert len(list(dialog.query(b"SELECT * FROM information_schema.collations")[0].rows)) == count
    assert len(list(dialog.query(b"SHOW CHARACTER SET")[0].rows)) == 40


def test_numbers_mean_the_character_sets_that_rows_are_decoded_with():
    numbered = {each.number: each.charset for each in collations().values() if each.number and not each.is_newer}
    assert {number: charset_of(number) for number in numbered} == numbered


def test_every_default_is_a_collation_of_its_character_set():
    for charset in character_sets().values():
        for is_uca in (False, True):
            name = charset.default_collation(is_uca=is_uca)
            assert find_collation(name) == name
            assert charset_of_collation(name) == charset.name


def test_old_names_mean_what_they_mean_today():
    assert find_charset("UTF8") == "utf8mb3"
    assert find_collation("utf8_general_ci") == "utf8mb3_general_ci"
    assert find_collation("uca1400_ai_ci", "utf8mb4") == "utf8mb4_uca1400_ai_ci"
    assert find_collation("uca1400_ai_ci", "latin1") is None
    assert find_charset("nothing") is None
