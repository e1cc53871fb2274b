import contextlib
import json
import random
from pathlib import Path

import pytest

from ibbmaster.primary.dialogue import statement as verbs
from ibbmaster.primary.dialogue.sql import handled_table, named_tables, parse
from ibbmaster.primary.dialogue.statement import Nothing, SetStatement, Use
from ibbmaster.sqltext import expression
from ibbmaster.sqltext.token import TOKENS_MAX, SqlError, tokenize


def made(fields):
    """A statement or a part of one, of the class that `is` names."""
    if "is" not in fields:
        return fields
    name = fields.pop("is")
    make = getattr(verbs if hasattr(verbs, name) else expression, name)
    return make(**{field: tuple(value) if isinstance(value, list) else value for field, value in fields.items()})


DATA = json.loads(Path(__file__).with_suffix(".json").read_text(), object_hook=made)
STATEMENTS = DATA["statements"]


def one(sql: str):
    (statement,) = parse(sql)
    return statement


@pytest.mark.parametrize(("sql", "statement"), STATEMENTS.items(), ids=STATEMENTS)
def test_a_statement_is_what_its_words_say(sql, statement):
    assert one(sql) == statement


@pytest.mark.parametrize(
    "sql", [sql for sql in STATEMENTS if sql.partition(" ")[0].isalpha() and "`" not in sql and "'" not in sql]
)
def test_case_comments_and_a_semicolon_do_not_matter(sql):
    shouted = "/* x */ " + sql.replace(" ", "\n# y\n\t") + " ; -- z"
    assert type(one(shouted)) is type(STATEMENTS[sql])


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        ("SELECT 1 FROM a LEFT OUTER JOIN b ON x", "SELECT 1 FROM a LEFT JOIN b ON x"),
        ("SELECT 1 FROM a, b", "SELECT 1 FROM a JOIN b"),
        ("SELECT 1 FROM (SELECT 1) t", "SELECT 1 FROM (SELECT 1) AS t"),
    ],
)
def test_two_forms_of_a_join_are_one_statement(sql, plain):
    assert one(sql) == one(plain)


def test_several_statements_come_in_their_order():
    assert parse("USE a;USE b;") == [Use("a"), Use("b")]


def test_a_conditional_comment_is_run_by_the_versions_it_names():
    assert parse("/*!100000 USE a */", version=101119) == [Use("a")]
    assert parse("/*!120000 USE a */", version=101119) == [Nothing()]


# near '…' in the error of MariaDB 10.11
@pytest.mark.parametrize(("sql", "near"), DATA["near"])
def test_an_error_is_where_mariadb_sees_it(sql, near):
    with pytest.raises(SqlError) as caught:
        parse(sql)
    assert caught.value.near == near


def test_set_statement_nests_only_so_deep():
    assert isinstance(one("SET STATEMENT a=1 FOR " * 8 + "USE x"), SetStatement)
    with pytest.raises(SqlError):
        parse("SET STATEMENT a=1 FOR " * 2000 + "USE x")


PIECES = """SELECT SET SHOW USE KILL BEGIN LOCK TABLES FLUSH DESC ( ) , ; . * a `b` 'c' 1 = @d @@e FROM JOIN ON UNION
    WHERE LIMIT GLOBAL NAMES STATEMENT FOR ROLLBACK TO GRANTS CREATE TABLE LIKE"""


def test_any_words_are_read_or_refused_and_nothing_else():
    read = 0
    for _ in range(4000):
        sql = " ".join(random.choices(PIECES.split(), k=random.randrange(1, 8)))
        with contextlib.suppress(SqlError):
            read += bool(parse(sql))
    assert read


@pytest.mark.parametrize(("sql", "names"), DATA["tables"].items())
def test_every_table_is_found_wherever_it_stands(sql, names):
    found = named_tables(tokenize(sql).tokens)
    assert [f"{table.database}.{table.name}" if table.database else table.name for table in found] == names


def test_work_grows_with_the_text_alone():
    tokens = tokenize("SELECT a FROM t, " + "(" * 4000 + " FROM x" * 1000).tokens
    assert len(tokens) < TOKENS_MAX
    assert named_tables(tokens)[0].name == "t"


def test_a_handler_names_one_table():
    assert handled_table(tokenize("HANDLER d.t OPEN").tokens).database == "d"


@pytest.mark.parametrize(("sql", "show"), DATA["shown"].items(), ids=DATA["shown"])
def test_what_is_shown_is_what_the_words_say(sql, show):
    assert parse(sql) == [show]


@pytest.mark.parametrize("sql", DATA["no show"])
def test_what_cannot_be_shown_is_a_syntax_error(sql):
    with pytest.raises(SqlError):
        parse(sql)
