"""Names of tables as text: what is printed is read as the same name, and as a pattern of no other."""

import fnmatch
import itertools
import random

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.sqltext.table_name import (
    TableName,
    divided,
    parse_name,
    parse_table_name,
    parse_table_pattern,
    printed_name,
)

PRINTED = {
    ("shop", "orders"): "shop.orders",
    ("my-shop", "or ders"): "my-shop.or ders",
    ("shop.eu", "orders"): "`shop.eu`.orders",
    ("shop", "eu.orders"): "shop.`eu.orders`",
    ("a,b", "c*"): "`a,b`.`c*`",
    ("a`b", "`"): "`a``b`.````",
    (" a", "b="): "` a`.`b=`",
    ("%[x]'\"", "日本"): "%[x]'\".日本",
}
LETTERS = "a.`,*?= \t\n'\"%[\\"


@pytest.mark.parametrize(("name", "text"), PRINTED.items(), ids=PRINTED.values())
def test_backquotes_are_printed_where_they_are_needed_alone(name: tuple[str, str], text: str) -> None:
    assert str(TableName(*name)) == text
    assert parse_table_name(text) == name


def test_what_is_printed_is_read_back_alone_in_a_list_and_beside_an_equals_sign() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    short = ["".join(letters) for size in (1, 2) for letters in itertools.product(LETTERS, repeat=size)]
    for _ in range(3000):
        names = [TableName(chance.choice(short), chance.choice(short)) for _ in range(3)]
        texts = list(map(str, names))
        assert list(map(parse_table_name, texts)) == names
        assert list(map(parse_table_name, divided(",".join(texts), ","))) == names
        assert list(map(parse_table_name, divided("=".join(texts), "="))) == names
        patterns = list(map(parse_table_pattern, texts))
        assert not any(pattern.has_wildcard for pattern in patterns)
        for name, pattern in itertools.product(names, patterns):
            assert pattern.takes(name) is (str(name) == str(pattern))


@pytest.mark.parametrize("name", ["shop", "a.b", "`", "a,b", " a"])
def test_one_name_is_read_as_it_is_printed(name: str) -> None:
    assert parse_name(printed_name(name)) == name


@pytest.mark.parametrize(
    "text", ["", "a", "a.", ".a", ".", "a.b.c", "`a.b", "`a`b.c", "a.`b`c", "``.a", "a.``", "`a.b`", "`a`.`b`.`c`"]
)
def test_a_text_that_is_not_two_names_is_refused(text: str) -> None:
    for parse in (parse_table_name, parse_table_pattern):
        with pytest.raises(ConfigurationError, match=r"expected database\.table, .*as `shop\.eu`\.orders"):
            parse(text)


@pytest.mark.parametrize("text", ["", "a.b", "`a", "`a`b"])
def test_a_text_that_is_not_one_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a name"):
        parse_name(text)


def test_many_wildcards_take_no_longer_than_one() -> None:
    name = TableName("a" * 64, "t")
    assert not parse_table_pattern("*a" * 32 + "b.*").takes(name)
    assert parse_table_pattern("*a" * 32 + "*?.*").takes(name)


def test_a_pattern_takes_what_fnmatch_takes() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(2000):
        name, pattern = ("".join(chance.choices(letters, k=chance.randint(1, 8))) for letters in ("ab", "ab*?"))
        assert parse_table_pattern(f"{pattern}.x").takes(TableName(name, "x")) is fnmatch.fnmatchcase(name, pattern)


def test_wildcards_stand_for_letters_outside_of_backquotes_and_pass_no_dot_between_names() -> None:
    assert parse_table_pattern("s*.o?ders").takes(TableName("shop.eu", "orders"))
    assert not parse_table_pattern("s*.orders").takes(TableName("shop", "eu.orders"))
    assert parse_table_pattern("*.eu*").takes(TableName("shop", "eu.\norders"))
    assert parse_table_pattern("`s*`.a").takes(TableName("s*", "a"))
    assert not parse_table_pattern("`s*`.a").takes(TableName("shop", "a"))
    assert not parse_table_pattern("s.[ab]").takes(TableName("s", "a"))
