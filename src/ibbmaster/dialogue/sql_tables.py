"""Which tables a query names, wherever they stand in it: found in its tokens, whatever else is understood."""

from __future__ import annotations

from collections.abc import Sequence

from ibbmaster.sqltext.query_tree import GivenTable
from ibbmaster.sqltext.token import Token, words

_ENDS_FROM = words("WHERE GROUP HAVING ORDER LIMIT UNION EXCEPT INTERSECT SELECT INTO FOR LOCK PROCEDURE WINDOW")
_BEGINS_QUERY = words("SELECT WITH VALUES TABLE")
_NO_TABLE = _ENDS_FROM | words("ON USING SET LATERAL")


def named_tables(tokens: Sequence[Token]) -> tuple[GivenTable, ...]:
    """The tables after FROM and JOIN, each once, in their order; names that WITH defines are none."""
    defined = _defined_names(tokens)
    found: dict[GivenTable, None] = {}
    is_after_from = False  # in the list of tables of the query that is read
    is_due = False  # a table comes next
    has_select = False  # in these brackets: else FROM belongs to a call, as in EXTRACT(YEAR FROM x)
    outer: list[tuple[bool, bool]] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        word = token.word
        index += 1
        if word == "(":
            outer.append((is_after_from, has_select))
            is_query = index < len(tokens) and tokens[index].word in _BEGINS_QUERY
            is_after_from = is_due = is_due and not is_query
            has_select = False
        elif word == ")":
            is_after_from, has_select = outer.pop() if outer else (False, False)
            is_due = False
        elif (word == "FROM" and has_select) or word == "JOIN" or (word == "STRAIGHT_JOIN" and is_after_from):
            is_after_from = is_due = True
        elif word == "," and is_after_from:
            is_due = True
        elif word == "JSON_TABLE":
            is_due = False  # its brackets name no table
        elif word in _ENDS_FROM:
            is_after_from = is_due = False
            has_select |= word == "SELECT"
        elif is_due and token.is_name and word not in _NO_TABLE:
            is_due = False
            name, index = _name(tokens, index - 1)
            is_dual = name.database is None and name.name.upper() == "DUAL"
            if not is_dual and not (name.database is None and name.name.lower() in defined):
                found[name] = None
    return tuple(found)


def handled_table(tokens: Sequence[Token]) -> GivenTable:
    """The table after HANDLER."""
    return _name(tokens, 1)[0]


def _defined_names(tokens: Sequence[Token]) -> set[str]:
    if not any(token.is_word("WITH") for token in tokens):
        return set()
    found = set()
    name = None  # what stands before brackets that have just ended
    opened: list[Token | None] = []
    for before, token, after, behind in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if token.is_sign("("):
            opened.append(before)
        elif token.is_sign(")"):
            name = opened.pop() if opened else None
        elif token.is_word("AS") and after.is_sign("(") and behind.word in _BEGINS_QUERY | {"("}:
            defined = name if before.is_sign(")") else before
            found.update([defined.text.lower()] if defined is not None else [])
    return found


def _name(tokens: Sequence[Token], index: int) -> tuple[GivenTable, int]:
    first = tokens[index].text
    index += 1
    if index + 1 < len(tokens) and tokens[index].is_sign("."):
        return GivenTable(tokens[index + 1].text, first), index + 2
    return GivenTable(first), index
