"""An SQL text in tokens; where MariaDB sees an error, so do we, and at the same place."""

from __future__ import annotations

import random

import pytest

from ibbmaster.dialogue.sql_token import TOKENS_MAX, SqlError, tokenize, unquote


def texts(sql: str, version: int = 101119) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokenize(sql, version=version).tokens]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", [("word", "SELECT"), ("number", "1")]),
        ("a.b", [("word", "a"), ("sign", "."), ("word", "b")]),
        ("1.5e3", [("number", "1.5e3")]),
        (".5", [("number", ".5")]),
        ("1abc", [("word", "1abc")]),  # a name may begin with a digit
        ("x'0aFF' 0x0g", [("hex", "x'0aFF'"), ("word", "0x0g")]),
        ("b'01'", [("bits", "b'01'")]),
        ("@@global.x", [("system", "@@"), ("word", "global"), ("sign", "."), ("word", "x")]),
        ("@`a b` @'c'", [("user", "@`a b`"), ("user", "@'c'")]),
        ("`a``b`", [("quoted", "`a``b`")]),
        ("'it''s' \"a\\\"b\"", [("text", "'it''s'"), ("text", '"a\\"b"')]),
        ("a:=1 <=> 2", [("word", "a"), ("sign", ":="), ("number", "1"), ("sign", "<=>"), ("number", "2")]),
        ("a -- b\n c # d\n/* e */ f", [("word", "a"), ("word", "c"), ("word", "f")]),
        ("1--1", [("number", "1"), ("sign", "-"), ("sign", "-"), ("number", "1")]),  # no blank: no comment
    ],
)
def test_a_text_is_cut_as_mariadb_cuts_it(sql, expected):
    assert texts(sql) == expected


@pytest.mark.parametrize(
    ("sql", "is_executed"),
    [
        ("/*! x */", True),
        ("/*!50001 x */", True),
        ("/*!101119 x */", True),
        ("/*!101120 x */", False),
        ("/*!50701 x */", False),  # meant for MySQL alone
        ("/*M!50701 x */", True),
        ("/*M!100500 x */", True),
    ],
)
def test_a_conditional_comment_is_code_for_the_versions_it_names(sql, is_executed):
    assert texts(sql) == ([("word", "x")] if is_executed else [])


@pytest.mark.parametrize(
    ("sql", "near", "line_no"),
    [("SELECT 'a", "'a", 1), ("a\nb /* c", "/* c", 2), ("a */", "*/", 1), ("/*! a", "", 1), ("\x01", "\x01", 1)],
)
def test_an_error_is_shown_where_it_begins(sql, near, line_no):
    with pytest.raises(SqlError) as caught:
        tokenize(sql)
    assert (caught.value.near, caught.value.line_no) == (near, line_no)


def test_there_is_an_end_of_tokens():
    assert len(tokenize(" 1" * TOKENS_MAX).tokens) == TOKENS_MAX
    with pytest.raises(SqlError):
        tokenize(" 1" * (TOKENS_MAX + 1))


def test_the_text_of_a_part_leaves_out_what_was_not_executed():
    tokens = tokenize("SELECT /*!999999 no */1 /*! + 2*/", version=101119)

    assert tokens.text_between(7, len(tokens.sql)) == "1  + 2"


def test_a_name_may_be_in_double_quotes():
    text = """SELECT "a""b`c", 'd"e', "it's" """
    tokens = tokenize(text, has_ansi_quotes=True).tokens
    assert [(token.kind, unquote(token.text)) for token in tokens[1::2]] == [
        ("quoted", 'a"b`c'),
        ("text", 'd"e'),
        ("quoted", "it's"),
    ]
    assert [token.kind for token in tokenize(text).tokens[1::2]] == ["text"] * 3


@pytest.mark.parametrize(
    ("quoted", "plain"), [("'it''s'", "it's"), (r"'a\nb\Zc\%'", "a\nb\x1ac\\%"), ("`a``b`", "a`b"), ('N"x"', "x")]
)
def test_a_quoted_text_says_its_content(quoted, plain):
    assert unquote(quoted) == plain


def test_any_text_is_cut_or_refused_and_nothing_else():
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    pieces = [
        "'",
        '"',
        "`",
        "/*",
        "*/",
        "/*!",
        "/*M!1",
        "--",
        "#",
        "\n",
        "\\",
        "@",
        "@@",
        "x'",
        "1e",
        ".",
        "é",
        "\0",
        "a ",
    ]
    for _ in range(5000):
        sql = "".join(rng.choices(pieces, k=rng.randrange(9)))
        try:
            found = tokenize(sql).tokens
        except SqlError:
            continue
        assert all(sql[token.start : token.end] == token.text for token in found), (seed, sql)
