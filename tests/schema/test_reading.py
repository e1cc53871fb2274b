from ibbmaster.schema.reading import take_value, with_new_names
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.token import tokens


def test_columns_of_an_expression_get_their_new_names() -> None:
    names = {"a": "b", "b": "a b", "concat": "x"}

    assert with_new_names("a + `B`*t.a", names) == "`b` + `a b`*t.`b`"
    assert with_new_names("concat(a, 'a', a.c)", names) == "concat(`b`, 'a', a.c)"


def test_sequences_of_a_default_have_their_whole_names() -> None:
    found = [
        take_value(Cursor(tokens(text)), "db")
        for text in ("NEXT VALUE FOR s", "(1+PREVIOUS VALUE FOR x.`s`)", "coalesce(nextval(s), LASTVAL (x.s))", "next")
    ]

    assert found == [
        "nextval(`db`.`s`)",
        "(1+lastval(`x`.`s`))",
        "coalesce(nextval(`db`.`s`), lastval(`x`.`s`))",
        "next",
    ]


def test_expressions_follow_a_column_that_is_renamed(folded) -> None:
    folded.run(
        "CREATE TABLE t (a INT, g INT AS (a + 1), d INT DEFAULT (a * 2) CHECK (d > a), CHECK (a < 9))",
        "ALTER TABLE t RENAME COLUMN a TO b",
        "ALTER TABLE t CHANGE b c BIGINT, MODIFY g INT AS (c + 2)",
    )

    _, renamed, changed = folded.versions("d", "t")
    assert [one.expression for one in renamed.columns] == [None, "`b` + 1", None]
    assert (renamed.columns[2].default, renamed.columns[2].check) == ("(`b` * 2)", "d > `b`")
    assert renamed.checks[0].expression == "`b` < 9"
    assert changed.columns[1].expression == "c + 2"
