"""Which tables a query names."""

import pytest

from ibbmaster.dialogue.sql_tables import handled_table, named_tables
from ibbmaster.sqltext.token import TOKENS_MAX, tokenize

NAMED = {
    "SELECT a FROM t": ["t"],
    "SELECT a FROM `d`.`t`": ["d.t"],
    "SELECT a FROM t, d.u AS x, v w": ["t", "d.u", "v"],
    "SELECT a FROM t JOIN u ON t.a = u.a LEFT JOIN (v, w) USING (a), x": ["t", "u", "v", "w", "x"],
    "SELECT a FROM t STRAIGHT_JOIN u": ["t", "u"],
    "SELECT a, (SELECT b FROM u) FROM t WHERE a IN (SELECT c FROM v)": ["u", "t", "v"],
    "SELECT a FROM (SELECT b FROM u) x JOIN (SELECT c FROM v, w) y": ["u", "v", "w"],
    "SELECT a FROM t UNION SELECT b FROM u": ["t", "u"],
    "(SELECT a FROM t) UNION ALL (SELECT b FROM u)": ["t", "u"],
    "WITH x AS (SELECT a FROM t), y (b) AS (SELECT 1) SELECT * FROM x, y, u": ["t", "u"],
    "SELECT EXTRACT(YEAR FROM a), TRIM(BOTH 'x' FROM b), SUBSTRING(c FROM 2) FROM t": ["t"],
    "SELECT a FROM t GROUP BY b, c ORDER BY d, e": ["t"],
    "SELECT a FROM t, t": ["t"],
    "SELECT 1 FROM DUAL": [],
    "SELECT 1": [],
    "SELECT a FROM": [],
    "SELECT a FROM ((((t))))": ["t"],
    ") FROM t": [],
}


@pytest.mark.parametrize(("sql", "names"), NAMED.items(), ids=list(NAMED))
def test_every_table_is_found_wherever_it_stands(sql, names):
    found = named_tables(tokenize(sql).tokens)
    assert [f"{table.database}.{table.name}" if table.database else table.name for table in found] == names


def test_work_grows_with_the_text_alone():
    tokens = tokenize("SELECT a FROM t, " + "(" * 4000 + " FROM x" * 1000).tokens
    assert len(tokens) < TOKENS_MAX
    assert named_tables(tokens)[0].name == "t"


def test_a_handler_names_one_table():
    assert handled_table(tokenize("HANDLER d.t OPEN").tokens).database == "d"
