import pytest

from ibbmaster_scorecard.matrix import (
    LOOKS,
    cells_by_place,
    counted,
    families,
    findings,
    is_best,
    look_name,
    plain,
    tally,
)
from ibbmaster_scorecard.results import Grade
from tests import scorecard_results


def lightness(colour: str) -> float:
    """The relative luminance of #rrggbb, from 0 to 1."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((lightness(one), lightness(other)))
    return (high + 0.05) / (low + 0.05)


def test_each_grade_has_a_look_of_its_own_and_a_silent_loss_stands_out_by_lightness_alone():
    assert set(LOOKS) == {*Grade, None}
    for part in ("symbol", "word", "ground", "dark_ground"):
        assert len({getattr(look, part) for look in LOOKS.values()}) == len(LOOKS), part
    assert len({look_name(grade) for grade in LOOKS}) == len(LOOKS)
    silent = LOOKS[Grade.LOSES_SILENTLY]
    others = [look for look in LOOKS.values() if look is not silent]

    assert min(contrast(look.ground, silent.ground) for look in others) > 3
    assert min(contrast(look.dark_ground, silent.dark_ground) for look in others) > 3


@pytest.mark.parametrize("grade", LOOKS)
def test_words_can_be_read_on_the_colour_of_their_grade(grade):
    look = LOOKS[grade]

    assert contrast(look.ground, look.ink) > 4.5
    assert contrast(look.dark_ground, look.dark_ink) > 4.5


def test_families_keep_their_order_and_a_cell_that_is_missing_says_why():
    found = families(scorecard_results.every_kind())

    assert list(found) == ["cuts", "refusals", "damage", "silence", "formats"]
    assert [scenario.name for scenario in found["damage"]] == ["half-event", "bad-crc"]
    cells = cells_by_place(scorecard_results.every_kind())

    assert cells["no-client", "stall"].not_run == "zig is not on PATH"
    assert cells["good-client", "old-format"].not_run == "not asked for"
    assert cells["good-client", "bad-crc"].not_run == "it reads by file and position only"
    assert len(cells) == 3 * 7


def test_a_loud_loss_is_the_best_where_nothing_can_be_had():
    purged = scorecard_results.scenario("purged", best=Grade.LOSES_LOUDLY)

    assert is_best(Grade.LOSES_LOUDLY, purged)
    assert is_best(Grade.EXACT, purged)
    assert not is_best(Grade.HANGS, purged)
    assert not is_best(None, purged)
    assert not is_best(Grade.LOSES_LOUDLY, scorecard_results.scenario("cut"))


def test_grades_are_counted_for_each_consumer_and_one_is_not_many():
    counts = tally(scorecard_results.every_kind(), "good-client")

    assert counts == {Grade.EXACT: 2, Grade.REPEATS_GROUPS: 1, Grade.LOSES_LOUDLY: 2, None: 2}
    assert tally(scorecard_results.every_kind(), "no-client") == {None: 7}
    assert [counted(count, "run") for count in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]


def test_findings_are_what_is_worse_than_can_be_and_the_worst_comes_first():
    found = findings(scorecard_results.every_kind(), "bad-client")

    assert [(scenario.name, cell.grade) for scenario, cell in found] == [
        ("cut-after-gtid", Grade.LOSES_SILENTLY),
        ("stall", Grade.LOSES_SILENTLY),
        ("purged", Grade.HANGS),
        ("half-event", Grade.CRASHES),
        ("cut-between-rows", Grade.REPEATS_PARTS),
    ]
    assert findings(scorecard_results.every_kind(), "no-client") == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\r\n c", "a b c"),
        ("Bern\u202eBern", "Bern\\u202eBern"),
        ("nul\x00 esc\x1b[31m", "nul\\u0000 esc\\u001b[31m"),
        ("half \ud800 letter", "half \\ud800 letter"),
        ("Zürich ✓ 東京", "Zürich ✓ 東京"),
    ],
)
def test_a_plain_text_is_one_line_of_letters(text, shown):
    assert plain(text) == shown
    assert plain(text).encode()
