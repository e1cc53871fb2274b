import pytest

from ibbmaster.sqltext.sql_mode import (
    ANSI_QUOTES,
    EMPTY_STRING_IS_NULL,
    HIGH_NOT_PRECEDENCE,
    MODES,
    MSSQL,
    NO_BACKSLASH_ESCAPES,
    NO_ENGINE_SUBSTITUTION,
    sql_mode_of,
    sql_mode_text,
)


def test_the_bits_are_those_that_a_server_logs():
    named = (ANSI_QUOTES, MSSQL, NO_BACKSLASH_ESCAPES, HIGH_NOT_PRECEDENCE, NO_ENGINE_SUBSTITUTION)
    assert named == (4, 1024, 1 << 20, 1 << 29, 1 << 30)
    assert EMPTY_STRING_IS_NULL == 1 << 32
    assert (len(MODES), sql_mode_text((1 << len(MODES)) - 1)) == (35, ",".join(MODES))


def test_names_may_be_in_any_order_and_stand_for_others():
    assert sql_mode_of("no_backslash_escapes,Ansi_Quotes,,") == ANSI_QUOTES | NO_BACKSLASH_ESCAPES
    assert sql_mode_text(sql_mode_of("ANSI")) == "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI"
    assert sql_mode_text(sql_mode_of("MYSQL40")) == "MYSQL40,HIGH_NOT_PRECEDENCE"
    assert sql_mode_of("") == 0


def test_a_name_that_is_none_is_told_as_it_was_written():
    for text, name in (("ANSI,Foo", "Foo"), (" ANSI", " ANSI"), ("ANSI, DB2", " DB2")):
        with pytest.raises(ValueError, match=rf"^{name}$"):
            sql_mode_of(text)
