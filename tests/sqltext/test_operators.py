from ibbmaster.sqltext.operators import BY_NAME, CONCAT, SUM, UNARY, binary_operators
from ibbmaster.sqltext.sql_mode import ORACLE, PIPES_AS_CONCAT


def test_two_signs_of_one_operator_have_one_name():
    plain = binary_operators(0)
    assert (plain["<>"], plain["&&"], plain["||"], plain["%"]) == (plain["!="], plain["AND"], plain["OR"], plain["MOD"])
    assert BY_NAME["!="].printed == "<>"


def test_bars_join_texts_where_sql_mode_says_so():
    plain, joining, oracle = (binary_operators(mode) for mode in (ORACLE, PIPES_AS_CONCAT, PIPES_AS_CONCAT | ORACLE))
    assert plain["||"].name == "OR"
    assert (joining["||"].binds, oracle["||"].binds) == (CONCAT, SUM)
    assert plain["^"].binds < joining["||"].binds < UNARY
    assert "%" in joining
    assert "%" not in oracle
