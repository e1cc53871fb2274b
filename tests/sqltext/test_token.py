"""SQL in tokens: what a client sends, as MariaDB cuts it, and what a server has logged, as it has read it."""

import itertools
import random
import time

import pytest

from ibbmaster.sqltext.quoting import unquoted
from ibbmaster.sqltext.sql_mode import ANSI_QUOTES, MSSQL, NO_BACKSLASH_ESCAPES
from ibbmaster.sqltext.token import TOKENS_MAX, SqlError, TokenKind, tokenize, tokens
from tests.case_table import data_beside

CASES = data_beside(__file__)
LETTERS = {TokenKind.WORD: "w", TokenKind.NAME: "n", TokenKind.TEXT: "t", TokenKind.SIGN: "s", TokenKind.NUMBER: "1"}


def cut(sql, sql_mode=0, version=None):
    return " ".join(f"{LETTERS.get(token.kind, token.kind)}:{token.text}" for token in tokens(sql, sql_mode, version))


def texts(sql: str, version: int = 101119, sql_mode: int = 0) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokenize(sql, version=version, sql_mode=sql_mode).tokens]


@pytest.mark.parametrize(("sql", "expected"), CASES["logged"])
def test_a_logged_statement_is_cut_whatever_it_is(sql, expected):
    assert cut(sql) == expected


@pytest.mark.parametrize(("sql", "expected"), CASES["typed"])
def test_a_text_is_cut_as_mariadb_cuts_it(sql, expected):
    assert list(map(list, texts(sql))) == expected


@pytest.mark.parametrize(("sql", "is_executed"), CASES["conditional"])
def test_a_conditional_comment_is_code_for_the_versions_it_names(sql, is_executed):
    assert texts(sql) == ([("word", "x")] if is_executed else [])


def test_a_comment_for_older_servers_is_known_by_newer_ones():
    for version, seen in ((130000, []), (130100, []), (120300, [("sign", "!"), ("number", "130000"), ("word", "x")])):
        assert texts("/*!!130000 x */", version) == seen
    assert texts("/*!!130200 x */", 130100) == [("word", "x")]
    assert [cut("/*!!130200 x */", version=version) for version in (None, 130100, 130200)] == ["w:x", "w:x", ""]


@pytest.mark.parametrize(("sql", "near", "line_no"), CASES["errors"])
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


def test_one_statement_of_several_is_cut_as_the_one_before_wants_it():
    sql = 'SELECT 1;; SELECT "a";\'never'
    first = tokenize(sql, is_one=True)
    second = tokenize(sql, is_one=True, start=first.end, sql_mode=ANSI_QUOTES)

    assert [token.text for token in first.tokens] == ["SELECT", "1"]
    assert [(token.kind, token.text) for token in second.tokens] == [("word", "SELECT"), ("quoted", "a")]
    with pytest.raises(SqlError):
        tokenize(sql, is_one=True, start=second.end)


def test_sql_mode_says_what_quotes_and_backslashes_mean():
    text = """SELECT "a""b`c", 'd"e', "it's" """
    seen = [("quoted", 'a"b`c'), ("text", 'd"e'), ("quoted", "it's")]
    assert texts(text, sql_mode=ANSI_QUOTES)[1::2] == seen
    assert texts(text)[1::2] == [("text", part) for _, part in seen]
    assert cut('"a""b"', ANSI_QUOTES) == 'n:a"b'
    assert cut("'a\\' b", NO_BACKSLASH_ESCAPES) == "t:a\\ w:b"
    assert cut("'a\\' b") == "t:a' b"
    assert cut("'a''\\nb'", NO_BACKSLASH_ESCAPES) == "t:a'\\nb"
    assert cut("[a]]b].[c") == "s:[ w:a s:] s:] w:b s:] s:. s:[ w:c"
    assert cut("[a]]b].[c", MSSQL) == "n:a]b s:. n:c"


@pytest.mark.parametrize("sql_mode", [0, ANSI_QUOTES | MSSQL, NO_BACKSLASH_ESCAPES])
@pytest.mark.parametrize("opening", [*"'\"`(\\[", "/*", "/*!", "/*!999999 ", "''", "--", "@`", "x'", "'\\"])
def test_a_long_text_is_cut_in_linear_time_and_only_as_far_as_it_is_read(opening, sql_mode):
    text = "x " + opening * 100_000
    begun = time.process_time()
    for _ in tokens(text, sql_mode):
        pass
    assert time.process_time() - begun < 20  # quadratic work takes hours
    assert [token.text for token in itertools.islice(tokens(text), 1)] == ["x"]


def test_what_is_cut_is_written_so_that_it_is_cut_the_same():
    found = list(tokens("a `b``c` 'd\\'\\n\\\\e' @f @`g h` 1.5 x'41' b'1' <=> @@"))
    again = list(tokens(" ".join(token.written for token in found)))
    assert [(token.kind, token.text) for token in again] == [(token.kind, token.text) for token in found]


def test_any_text_is_cut_or_refused_and_nothing_else():
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    pieces = [
        *("'", '"', "`", "/*", "*/", "/*!", "/*M!1", "/*!!130000", "--", "#", "\n", "\\", "@", "@@", "x'", "1e", "."),
        *("é", "\0", "a ", "[", "]", "N'"),
    ]
    written = (TokenKind.WORD, TokenKind.NUMBER, TokenKind.SIGN, TokenKind.HEX, TokenKind.BITS, TokenKind.SYSTEM)
    for _ in range(5000):
        sql = "".join(rng.choices(pieces, k=rng.randrange(9)))
        sql_mode = rng.choice((0, ANSI_QUOTES, NO_BACKSLASH_ESCAPES, MSSQL))
        logged = list(tokens(sql, sql_mode))
        try:
            found = tokenize(sql, sql_mode=sql_mode).tokens
        except SqlError:
            found = []
        for token in (*found, *logged):
            part = sql[token.start : token.end]
            if token.kind in written:
                assert part == token.text, (seed, sql)
            elif token.kind is TokenKind.TEXT and part[-1] == part[part[0] in "nN"] and token in found:
                assert unquoted(part, sql_mode) == token.text, (seed, sql)
