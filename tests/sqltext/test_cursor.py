import itertools

from ibbmaster.sqltext.cursor import END, Cursor, outside_brackets, parts_of
from ibbmaster.sqltext.token import tokens


def cursor(sql: str) -> Cursor:
    return Cursor(tokens(sql))


def texts(found) -> list[str]:
    return [token.text for token in found]


def test_a_cursor_looks_ahead_and_takes_one_after_the_other():
    at = cursor("a b")
    assert (at.peek(1).text, at.peek(5), at.take().text, at.take().text) == ("b", END, "a", "b")
    assert at.is_at_end
    assert at.take() is END


def test_words_are_taken_together_or_not_at_all():
    at = cursor("if not x")
    assert not at.takes_words("IF", "EXISTS")
    assert at.takes_words("IF", "NOT")
    assert at.peek().text == "x"
    assert not cursor("`if`").takes_words("IF")


def test_signs_words_and_conditions_are_passed_over():
    at = cursor("low_priority IGNORE low_priority ( x")
    at.pass_words("LOW_PRIORITY", "IGNORE")
    assert (at.takes_sign(")"), at.takes_sign("("), texts(at.rest())) == (False, True, ["x"])
    for sql, is_there in (("IF EXISTS t", True), ("if not exists t", True), ("t", False)):
        at = cursor(sql)
        assert (at.pass_condition(), at.name()) == (is_there, "t")


def test_a_table_is_in_the_database_of_the_session_or_in_its_own():
    found = [cursor(sql).table("d") for sql in ("t", "`a b`.`c.d`", "x . y", "'t'", "a.", "a.'b'")]
    assert found == [("d", "t"), ("a b", "c.d"), ("x", "y"), None, None, None]


def test_brackets_are_taken_with_those_in_them_and_without_their_end_too():
    at = cursor("(a, (b) c) d")
    assert (texts(at.bracketed()), texts(at.rest())) == (["a", ",", "(", "b", ")", "c"], ["d"])
    assert texts(cursor("(a (b").bracketed()) == ["a", "(", "b"]
    assert cursor("a").bracketed() == []


def test_parts_are_cut_at_commas_outside_of_brackets():
    assert [texts(part) for part in parts_of(list(tokens("a b, c(d, e), f")))] == [
        ["a", "b"],
        ["c", "(", "d", ",", "e", ")"],
        ["f"],
    ]
    assert list(parts_of([])) == []


def test_what_is_outside_of_brackets_has_the_opening_one():
    assert texts(outside_brackets(tokens("a (b (c)) d"))) == ["a", "(", "d"]


def test_only_as_much_is_cut_as_is_read():
    endless = Cursor(itertools.chain.from_iterable(tokens("a ,") for _ in itertools.count()))
    assert (endless.name(), endless.peek(2).text) == ("a", ",")
