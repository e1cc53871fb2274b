"""Columns and foreign keys as CREATE TABLE and ALTER TABLE define them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ibbmaster.sqltext.cursor import Cursor, outside_brackets, parts_of
from ibbmaster.sqltext.token import Token, TokenKind

NO_COLUMN = (  # what a part of CREATE TABLE begins with that is no column
    *("PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FOREIGN", "CHECK", "FULLTEXT", "SPATIAL", "LIKE"),
)
CASCADING = ("CASCADE", "SET NULL", "SET DEFAULT")
NO_VALUE = (  # attributes behind a type that change no value
    *("COMMENT", "DEFAULT", "FIRST", "AFTER", "INVISIBLE", "ON", "NOT", "NULL", "UNIQUE", "KEY", "CHECK", "PRIMARY"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnClause:
    """What a definition says of the values of a column.

    Attributes:
        type: the type and what follows it up to an attribute that changes no value.
        is_null_at_first: rows that give it no value have NULL there.
        made_of: the names in the expression of a generated column; None for others.
    """

    type: tuple[Token, ...]
    is_null_at_first: bool
    is_nullable: bool
    made_of: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A key whose parent's changes may change rows of the table without an event of their own."""

    name: str | None
    parent: str  # database.table
    parent_columns: tuple[str, ...]
    cascades_deletes: bool
    cascades_updates: bool


def parse_column(tokens: Sequence[Token]) -> ColumnClause:
    """A column from what follows its name."""
    plain = list(outside_brackets(tokens))
    words = " ".join(token.text.upper() if token.kind is TokenKind.WORD else "'" for token in plain)
    padded = f" {words} "
    made_of = None
    for number, token in enumerate(tokens[:-1]):
        if token.is_word("AS") and tokens[number + 1].is_sign("("):
            inside = Cursor(tokens[number + 1 :]).bracketed()
            made_of = frozenset(one.text.lower() for one in inside if one.is_name)
            break
    first = plain[0].text.upper() if plain else ""
    is_key = " KEY " in padded.replace(" UNIQUE KEY ", " ")  # PRIMARY may be left out
    is_nullable = not (" NOT NULL " in padded or is_key or first == "SERIAL")
    has_default = " DEFAULT " in padded and " DEFAULT NULL " not in padded
    gives_itself = " AUTO_INCREMENT " in padded or " AS ROW " in padded or first in ("SERIAL", "TIMESTAMP")
    if first == "TIMESTAMP" and is_nullable and " NULL " in padded:
        gives_itself = False
    return ColumnClause(
        type=_type_of(tokens),
        is_null_at_first=is_nullable and not has_default and not gives_itself and made_of is None,
        is_nullable=is_nullable,
        made_of=made_of,
    )


def _type_of(tokens: Sequence[Token]) -> tuple[Token, ...]:
    found = []
    depth = 0
    for token in tokens:
        if not depth and token.is_word(*NO_VALUE):
            break
        depth += token.is_sign("(") - token.is_sign(")")
        text = token.text.upper() if token.kind is TokenKind.WORD else token.text
        found.append(Token(token.kind, text))
    return tuple(found)


def is_column(part: Sequence[Token]) -> bool:
    """Whether a part of CREATE TABLE, or of ALTER TABLE … ADD, is a column, and no key or its like."""
    second = part[1] if len(part) > 1 else part[0]
    if part[0].is_word("PERIOD"):  # which is a name, too
        return not second.is_word("FOR")
    if part[0].is_word("VECTOR"):
        return not second.is_word("INDEX", "KEY")
    return not part[0].is_word(*NO_COLUMN)


def parse_definitions(tokens: Sequence[Token], database: str) -> tuple[dict[str, ColumnClause], list[ForeignKey]]:
    """The columns and foreign keys in the brackets of CREATE TABLE; parents without one are in the table's database."""
    columns: dict[str, ColumnClause] = {}
    keys: list[ForeignKey] = []
    for part in parts_of(tokens):
        if not is_column(part):
            keys += parse_constraint(part, database)
        elif part[0].is_name:
            columns[part[0].text] = parse_column(part[1:])
            keys += _references(Cursor(part[1:]), None, database)
    return columns, keys


def parse_constraint(tokens: Sequence[Token], database: str) -> list[ForeignKey]:
    """The foreign key that a part of CREATE TABLE or ALTER TABLE … ADD defines, if it does."""
    cursor = Cursor(tokens)
    name = None
    if cursor.takes_words("CONSTRAINT") and not cursor.peek().is_word("FOREIGN", "PRIMARY", "UNIQUE", "CHECK"):
        cursor.pass_condition()
        name = cursor.name()
    if not cursor.takes_words("FOREIGN", "KEY"):
        return []
    cursor.pass_condition()
    name = name or cursor.name()
    return _references(cursor, name, database)


def _references(cursor: Cursor, name: str | None, database: str) -> list[ForeignKey]:
    while not cursor.is_at_end and not cursor.peek().is_word("REFERENCES"):
        if cursor.peek().is_sign("("):
            cursor.bracketed()
        else:
            cursor.take()
    if not cursor.takes_words("REFERENCES"):
        return []
    parent = cursor.table(database)
    columns = tuple(part[0].text for part in parts_of(cursor.bracketed()))
    words = " ".join(token.text.upper() for token in cursor.rest())
    cascades = {what: any(f"ON {what} {action}" in words for action in CASCADING) for what in ("DELETE", "UPDATE")}
    if parent is None or not any(cascades.values()):
        return []
    return [
        ForeignKey(
            name=name,
            parent=parent,
            parent_columns=columns,
            cascades_deletes=cascades["DELETE"],
            cascades_updates=cascades["UPDATE"],
        )
    ]
