"""Statements cut into tokens, as the server that has logged them read them."""

from __future__ import annotations

import itertools
import time

import pytest

from ibbmaster.event.statement.token import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, TokenKind, tokens

LETTERS = {TokenKind.WORD: "w", TokenKind.NAME: "n", TokenKind.TEXT: "t", TokenKind.SIGN: "s"}


def cut(sql, sql_mode=0):
    return " ".join(LETTERS[token.kind] + ":" + token.text for token in tokens(sql, sql_mode))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DROP TABLE `a``b`.`c,d`", "w:DROP w:TABLE n:a`b s:. n:c,d"),
        ("SELECT 'it''s', \"a\"\"b\", 'x\\'y', '\\n\\0\\%'", "w:SELECT t:it's s:, t:a\"b s:, t:x'y s:, t:\n\0%"),
        ("a/* DROP ' TABLE */b -- c '\nd # e `\nf--g", "w:a w:b w:d w:f s:- s:- w:g"),
        ("/*!50000 TRUNCATE */ TABLE /*M!100100 t*/", "w:TRUNCATE w:TABLE w:t"),
        ("/*! DROP /* x */ TABLE t */ u", "w:DROP w:TABLE w:t w:u"),
        ("a /*!99 b */ * /c", "w:a w:99 w:b s:* s:/ w:c"),
        ("2*/* it's */3", "w:2 s:* w:3"),
        ("größe.$x_1 = N'ü'", "w:größe s:. w:$x_1 s:= w:N t:ü"),
        ("'never ends", "t:never ends"),
        ("`never ends", "n:never ends"),
        ("/* never ends", ""),
        ("", ""),
    ],
)
def test_tokens(sql, expected):
    assert cut(sql) == expected


def test_sql_mode_says_what_quotes_and_backslashes_mean():
    assert cut('"a""b"', ANSI_QUOTES) == 'n:a"b'
    assert cut("'a\\' b", NO_BACKSLASH_ESCAPES) == "t:a\\ w:b"
    assert cut("'a\\' b") == "t:a' b"


@pytest.mark.parametrize("opening", ["'", '"', "`", "/*", "/*!", "(", "\\", "''", "--"])
def test_a_long_text_is_cut_in_linear_time_and_only_as_far_as_it_is_read(opening):
    text = "x " + opening * 200_000
    begun = time.process_time()
    for _ in tokens(text):
        pass
    assert time.process_time() - begun < 20  # quadratic work takes hours
    assert [token.text for token in itertools.islice(tokens(text), 1)] == ["x"]
