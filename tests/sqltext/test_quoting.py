import pytest

from ibbmaster.sqltext.quoting import quoted, quoted_in_expression, quoted_name, quoted_text, unescaped, unquoted
from ibbmaster.sqltext.sql_mode import NO_BACKSLASH_ESCAPES


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("'it''s'", "it's"), (r"'a\nb\Zc\%\q'", "a\nb\x1ac\\%q"), (r"'\\'''", "\\'"), ("`a``b`", "a`b")),
        *(('"x""y"', 'x"y'), ("N'x'", "x")),
    ],
)
def test_a_quoted_text_says_its_content(written, meant):
    assert unquoted(written) == meant


def test_a_backslash_is_a_letter_where_sql_mode_says_so():
    assert unquoted(r"'a\n''b'", NO_BACKSLASH_ESCAPES) == r"a\n'b"
    assert unescaped(r"\'", "'") == "'"


@pytest.mark.parametrize("text", ["", "it's", "a\\b\0\n\r\x1a\t%_é", "''", "\\"])
def test_what_is_quoted_is_read_as_it_was(text):
    assert unquoted(quoted(text)) == unquoted(quoted_text(text)) == text
    assert unquoted(quoted_name(text)) == text


def test_a_server_prints_a_control_z_of_a_comment_as_it_is_and_a_quote_in_an_expression_behind_a_backslash():
    assert (quoted("\x1a"), quoted_text("\x1a")) == (r"'\Z'", "'\x1a'")
    assert quoted_in_expression("it's \\ \x1a") == r"'it\'s \\ \Z'"
