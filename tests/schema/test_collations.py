from ibbmaster.replication.event.rows.charset import charset_of
from ibbmaster.schema.collations import (
    character_sets,
    charset_of_collation,
    collation_name,
    collation_number,
    collations,
    find_charset,
    find_collation,
)


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


def test_numbers_have_the_names_that_servers_give_them():
    numbered = {each.number: each.name for each in collations().values() if each.number is not None}
    assert {number: collation_name(number) for number in numbered} == numbered
    assert collation_name(2304) == "utf8mb4_uca1400_ai_ci"
    assert collation_name(2309) == "utf8mb4_uca1400_nopad_ai_cs"
    assert collation_name(2048 + 256 * 4 + 8) == "utf32_uca1400_icelandic_ai_ci"
    assert collation_name(2304 + 8 * 23) == "utf8mb4_uca1400_vietnamese_ai_ci"
    assert collation_name(2304 + 8 * 24 + 7) == "utf8mb4_uca1400_croatian_nopad_as_cs"
    assert all(collation_number(name) == number for number, name in numbered.items())
    assert all(collation_number(collation_name(number)) == number for number in (2304, 2309, 3080, 2488, 2503))
    assert [collation_number(name) for name in ("latin1_uca1400_ai_ci", "utf8mb4_x", "uca1400_ai_ci")] == [None] * 3
    assert [collation_name(number) for number in (0, 500, 2048 + 255, 2304 + 8 * 21, 65535)] == [None] * 5
