"""Queries in MariaDB's SQL, rewritten for SQLite."""

from __future__ import annotations

import pytest

from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.sql.sqlite_text import NESTING_MAX, SelectedItem, selected_items, sqlite_text
from ibbmaster.sqltext.token import tokenize


def rewritten(evaluator, sql):
    found = sqlite_text(tokenize(sql).tokens, evaluator, Evaluator.is_function)
    return found.sql, found.values


REWRITTEN = {
    "SELECT a FROM information_schema.tables": ("SELECT `a` FROM `information_schema` . `tables`", ()),
    "SELECT 'it''s', \"x\", 'a' 'b', 0x41, 1, 1.5": ("SELECT ? , ? , ? , ? , 1 , 1.5", ("it's", "x", "ab", "A")),
    "SELECT a AS 'b', c 'd'": ("SELECT `a` AS `b` , `c` `d`", ()),
    "SELECT `a``b`": ("SELECT `a``b`", ()),
    "SELECT @@server_id, @@global.binlog_format, @x": ("SELECT ? , ? , ?", (1, "ROW", None)),
    "SELECT a || b && ! c <=> d": ("SELECT `a` OR `b` AND NOT `c` IS `d`", ()),
    "SELECT 7/2, 7 DIV 2, 7 MOD 2, TRUE": ("SELECT 7 * 1.0 / 2 , 7 / 2 , 7 % 2 , 1", ()),
    "SELECT IF(a, b, c), LEFT(a, 1)": ("SELECT iif ( `a` , `b` , `c` ) , `left` ( `a` , 1 )", ()),
    "SELECT COUNT(*)": ("SELECT count ( * )", ()),
    "SELECT CURRENT_USER, NOW()": ("SELECT `current_user`() , `now` ( )", ()),
    "SELECT CAST(a AS UNSIGNED INTEGER), CONVERT(a, CHAR(5)), CONVERT(a USING utf8)": (
        "SELECT CAST ( `a` AS INTEGER ) , CAST ( `a` AS TEXT ) , CAST ( `a` AS TEXT )",
        (),
    ),
    "SELECT SQL_NO_CACHE DISTINCT a FROM t STRAIGHT_JOIN u": ("SELECT DISTINCT `a` FROM `t` JOIN `u`", ()),
    "SELECT a COLLATE utf8_bin, BINARY a, _utf8'x'": ("SELECT `a` COLLATE BINARY , `a` , ?", ("x",)),
    "SELECT 1 FROM DUAL": ("SELECT 1", ()),
    "SELECT a FROM t FOR UPDATE": ("SELECT `a` FROM `t`", ()),
    "(SELECT 1) UNION DISTINCT (SELECT 2)": ("SELECT * FROM ( SELECT 1 ) UNION SELECT * FROM ( SELECT 2 )", ()),
    "SELECT GROUP_CONCAT(DISTINCT a, b ORDER BY c DESC, d SEPARATOR ';')": (
        "SELECT mariadb_group_concat ( ? , ? , `a` , `b` , `c` , `d` )",
        ("1 2 -+", ";"),
    ),
    "WITH x (a) AS (SELECT 1) SELECT a FROM x": ("WITH `x` ( `a` ) AS ( SELECT 1 ) SELECT `a` FROM `x`", ()),
}
REFUSED = {
    "SELECT nothing(1)": 1305,
    "SELECT @a := 1": 1235,
    "SELECT a XOR b": 1235,
    "SELECT a REGEXP 'x'": 1235,
    "SELECT a ^ b": 1235,
    "SELECT @@nothing": 1193,
    "SELECT load_extension('x')": 1305,
    "SELECT randomblob(1000000000)": 1305,
    "SELECT GROUP_CONCAT(a ORDER BY)": 1235,
    "SELECT " + "GROUP_CONCAT(" * (NESTING_MAX + 2) + "a" + ")" * (NESTING_MAX + 2): 1235,
}
ITEMS = {
    "SELECT a, t.b AS c, d 'e', `f` FROM t": [
        SelectedItem("a", ("a",)),
        SelectedItem("c", ("t", "b")),
        SelectedItem("e", ("d",)),
        SelectedItem("f", ("f",)),
    ],
    "SELECT *, t.* FROM t": [SelectedItem("*", None, is_star=True), SelectedItem("t.*", None, is_star=True)],
    "SELECT 1+1, 'x', COUNT(*), max(a) m": [
        SelectedItem("1+1", None),
        SelectedItem("x", None),
        SelectedItem("COUNT(*)", None, function="count"),
        SelectedItem("m", ("a",), function="max"),
    ],
    "WITH x AS (SELECT 1 AS a) SELECT b FROM x": [SelectedItem("b", ("b",))],
    "SELECT DISTINCT (SELECT 1 FROM t), CURRENT_USER": [
        SelectedItem("(SELECT 1 FROM t)", None),
        SelectedItem("CURRENT_USER", None),
    ],
}


@pytest.mark.parametrize(("sql", "expected"), REWRITTEN.items(), ids=list(REWRITTEN))
def test_what_is_called_otherwise_there_is_replaced(evaluator, sql, expected):
    assert rewritten(evaluator, sql) == expected


@pytest.mark.parametrize(("sql", "code"), REFUSED.items(), ids=lambda text: str(text)[:30])
def test_what_has_no_meaning_there_is_refused(evaluator, sql, code):
    with pytest.raises(RefusedError) as caught:
        rewritten(evaluator, sql)
    assert caught.value.err.code == code


@pytest.mark.parametrize(("sql", "items"), ITEMS.items(), ids=list(ITEMS))
def test_items_have_the_names_of_their_columns(sql, items):
    tokens = tokenize(sql)
    found = selected_items(tokens.tokens, tokens.text_between)
    if "*" in sql.split("FROM")[0] and "(" not in sql:
        found = [SelectedItem(item.name, None, item.is_star, item.function) for item in found]
    assert found == items
