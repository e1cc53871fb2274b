"""LIKE against a second opinion, the regular expressions of Python, and in time that no pattern can stretch."""

import random
import re

import pytest

from ibbmaster.dialogue.matching import matcher


def expected(pattern: str, text: str) -> bool:
    signs = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    plain = "".join(re.escape(part[1]) if len(part) == 2 else signs.get(part, re.escape(part)) for part in parts)
    return re.fullmatch(plain, text, re.DOTALL | re.IGNORECASE) is not None


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        *(("binlog%", "BINLOG_FORMAT", True), ("%checksum", "binlog_checksum", True), ("a_c", "abc", True)),
        *((r"a\_c", "a_c", True), ("", "", True), ("%", "", True), ("%%%", "anything\nat all", True)),
        *(("a_c", "ac", False), (r"a\_c", "abc", False), ("", "a", False)),
        ("\\", "\\", True),  # an escape at the end stands for itself
    ],
)
def test_like_matches_as_sql_says(pattern, text, matches):
    assert matcher(pattern)(text) is matches


def test_another_escape_takes_the_place_of_the_backslash():
    assert matcher("50|%", escape="|")("50%")
    assert not matcher("50|%", escape="|")("500")


def test_random_patterns_match_what_regular_expressions_match():
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(3000):
        pattern = "".join(rng.choices(["a", "B", "%", "_", "\\%", "\\_", "\\a"], k=rng.randrange(7)))
        text = "".join(rng.choices("aAbB%_", k=rng.randrange(7)))
        assert matcher(pattern)(text) == expected(pattern, text), (seed, pattern, text)


def test_a_cunning_pattern_takes_no_longer_than_a_plain_one():
    assert not matcher("%a" * 200 + "%b")("a" * 5000)  # doubling, it would outlive the universe
