"""Columns, indexes and constraints as CREATE TABLE and ALTER TABLE define them."""

from collections.abc import Sequence
from dataclasses import replace

from ibbmaster.event.column_types.integer import BIGINT
from ibbmaster.event.column_types.strings import TEXTS
from ibbmaster.schema.clause import (
    CharsetClause,
    CheckDefinition,
    Definition,
    ForeignDefinition,
    IndexDefinition,
    NewColumn,
    NotUnderstoodError,
    PartDefinition,
    PeriodDefinition,
    TypeClause,
)
from ibbmaster.schema.model import IndexKind, RowPeriod
from ibbmaster.schema.reading import (
    SHOWN,
    expect_brackets,
    expect_column,
    expect_name,
    expect_number,
    expect_option,
    expect_table,
    expect_text,
    fail,
    merged,
    take_value,
    takes_charset,
    takes_collation,
    takes_now,
    written_expression,
)
from ibbmaster.schema.type_clause import parse_type
from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.token import Token, TokenKind

DEFINITION_COUNT_MAX = 1 << 13  # MariaDB has at most 4,096 columns and 128 indexes
_NO_COLUMNS = ("CONSTRAINT", "CHECK", "FOREIGN", "PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "KEY", "INDEX")
_RULES = ("RESTRICT", "CASCADE", "SET NULL", "NO ACTION", "SET DEFAULT")


def parse_definitions(tokens: Sequence[Token], database: str, sql_mode: int = 0) -> tuple[Definition, ...]:
    """What CREATE TABLE has in its brackets. Raises NotUnderstoodError: a part cannot be read."""
    found: list[Definition] = []
    for part in parts_of(tokens):
        if len(found) == DEFINITION_COUNT_MAX:
            raise NotUnderstoodError(f"more than {DEFINITION_COUNT_MAX} columns and indexes")
        cursor = Cursor(part)
        definition = parse_definition(cursor, database, sql_mode)
        if not cursor.is_at_end:
            raise fail(cursor, "',' or ')'")
        found.append(definition)
    return tuple(found)


def begins_column(cursor: Cursor) -> bool:
    """Whether a column comes next, and no index, constraint or period."""
    first, second = cursor.peek(), cursor.peek(1)
    if second.is_sign("."):
        return True  # a table's name, whatever it is
    if first.is_word("VECTOR"):
        return not (second.is_word("INDEX", "KEY") or second.is_sign("("))
    return not (first.is_word(*_NO_COLUMNS) or (first.is_word("PERIOD") and second.is_word("FOR")))


def parse_definition(cursor: Cursor, database: str, sql_mode: int = 0) -> Definition:
    """A column, an index, a constraint or a period."""
    if begins_column(cursor):
        return parse_column(expect_column(cursor), cursor, database, sql_mode)
    constraint = None
    if cursor.takes_words("CONSTRAINT"):
        is_conditional = cursor.pass_condition()
        if not cursor.peek().is_word("FOREIGN", "PRIMARY", "UNIQUE", "CHECK"):
            constraint = expect_name(cursor)
    else:
        is_conditional = False
    if cursor.takes_words("CHECK"):
        expression = written_expression(expect_brackets(cursor), sql_mode)
        return CheckDefinition(name=constraint, expression=expression, is_conditional=is_conditional)
    if cursor.takes_words("FOREIGN", "KEY"):
        is_conditional |= cursor.pass_condition()
        name = None if cursor.peek().is_sign("(") else expect_name(cursor)
        columns = tuple(expect_name(Cursor(part)) for part in parts_of(expect_brackets(cursor)))
        found = parse_reference(cursor, database, columns, constraint or name, name)
        return replace(found, is_conditional=is_conditional)
    if cursor.peek().is_word("PERIOD") and cursor.peek(1).is_word("FOR"):
        return _period(cursor)
    kind = _index_kind(cursor)
    if kind is None:
        raise fail(cursor, "an index or a constraint")
    return parse_index(cursor, kind, constraint, is_conditional=is_conditional)


def _index_kind(cursor: Cursor) -> IndexKind | None:
    if cursor.takes_words("PRIMARY", "KEY"):
        return IndexKind.PRIMARY
    for word, kind in (("UNIQUE", IndexKind.UNIQUE), ("FULLTEXT", IndexKind.FULLTEXT), ("SPATIAL", IndexKind.SPATIAL)):
        if cursor.takes_words(word):
            cursor.takes_words("KEY") or cursor.takes_words("INDEX")
            return kind
    if cursor.peek().is_word("VECTOR") and (cursor.peek(1).is_word("INDEX", "KEY") or cursor.peek(1).is_sign("(")):
        cursor.take()
        cursor.takes_words("KEY") or cursor.takes_words("INDEX")
        return IndexKind.VECTOR
    if cursor.takes_words("KEY") or cursor.takes_words("INDEX"):
        return IndexKind.PLAIN
    return None


def parse_index(cursor: Cursor, kind: IndexKind, name: str | None, *, is_conditional: bool = False) -> IndexDefinition:
    """An index from what stands after its kind; `name` is that of its constraint."""
    is_conditional |= cursor.pass_condition()
    algorithm = _algorithm(cursor)
    if algorithm is None and not cursor.peek().is_sign("("):
        own = expect_name(cursor)
        name = own or name
        algorithm = _algorithm(cursor)
    parts, period = [], None
    for tokens in parts_of(expect_brackets(cursor)):
        part = Cursor(tokens)
        column = expect_name(part)
        if part.takes_words("WITHOUT", "OVERLAPS"):
            period = column
            continue
        length = expect_number(Cursor(part.bracketed())) if part.peek().is_sign("(") else None
        is_descending = part.takes_words("DESC")
        part.takes_words("ASC")
        if not part.is_at_end:
            raise fail(part, "',' or ')' in an index")
        parts.append(PartDefinition(column, length, is_descending))
    found = IndexDefinition(
        kind=kind,
        name="PRIMARY" if kind is IndexKind.PRIMARY else name,
        parts=tuple(parts),
        algorithm=algorithm,
        without_overlaps=period,
        is_conditional=is_conditional,
    )
    return _index_options(cursor, found)


def _algorithm(cursor: Cursor) -> str | None:
    if cursor.peek().is_word("USING", "TYPE") and cursor.peek(1).kind is TokenKind.WORD:
        cursor.take()
        return cursor.take().text.upper()
    return None


def _index_options(cursor: Cursor, found: IndexDefinition) -> IndexDefinition:
    options = []
    while not cursor.is_at_end:
        if (algorithm := _algorithm(cursor)) is not None:
            found = replace(found, algorithm=algorithm)
        elif cursor.takes_words("COMMENT"):
            cursor.takes_sign("=")
            found = replace(found, comment=expect_text(cursor))
        elif cursor.takes_words("IGNORED"):
            found = replace(found, is_ignored=True)
        elif cursor.takes_words("NOT", "IGNORED"):
            found = replace(found, is_ignored=False)
        elif cursor.takes_words("WITH", "PARSER"):
            options.append(("WITH PARSER", expect_name(cursor)))
        elif cursor.takes_words("KEY_BLOCK_SIZE"):
            options.append(("KEY_BLOCK_SIZE", expect_option(cursor)))
        elif cursor.peek(1).is_sign("=") and not cursor.peek().is_word("ALGORITHM", "LOCK"):
            name = cursor.take().text
            options.append((name, expect_option(cursor)))
        else:
            break
    return replace(found, options=tuple(options))


def _period(cursor: Cursor) -> PeriodDefinition:
    cursor.take()
    cursor.take()
    cursor.pass_condition()
    name = expect_name(cursor)
    inside = Cursor(expect_brackets(cursor))
    start = expect_name(inside)
    if not inside.takes_sign(","):
        raise fail(inside, "','")
    return PeriodDefinition(name=name, start=start, end=expect_name(inside))


def parse_reference(
    cursor: Cursor, database: str, columns: tuple[str, ...], constraint: str | None, name: str | None
) -> ForeignDefinition:
    """REFERENCES and what stands after it."""
    if not cursor.takes_words("REFERENCES"):
        raise fail(cursor, "REFERENCES")
    parent = expect_table(cursor, database)
    parent_columns = tuple(expect_name(Cursor(part)) for part in parts_of(cursor.bracketed()))
    rules = {"DELETE": "RESTRICT", "UPDATE": "RESTRICT"}
    while True:
        if cursor.takes_words("MATCH"):
            cursor.take()
            continue
        if not (cursor.peek().is_word("ON") and cursor.peek(1).is_word("DELETE", "UPDATE")):
            break
        cursor.take()
        what = cursor.take().text.upper()
        rule = next((rule for rule in _RULES if cursor.takes_words(*rule.split())), None)
        if rule is None:
            raise fail(cursor, "what a foreign key does")
        rules[what] = rule
    return ForeignDefinition(
        name=constraint,
        index_name=name,
        columns=columns,
        parent=parent,
        parent_columns=parent_columns or columns,
        on_delete=rules["DELETE"],
        on_update=rules["UPDATE"],
    )


def parse_column(name: str, cursor: Cursor, database: str, sql_mode: int = 0) -> NewColumn:
    """A column from what stands after its name, up to FIRST, AFTER or the end. Raises NotUnderstoodError: its type or
    an attribute cannot be read."""
    if cursor.takes_words("SERIAL"):
        type_ = TypeClause(word=BIGINT.word, length=20, is_unsigned=True)
        found = NewColumn(name=name, type=type_, is_nullable=False, is_auto_increment=True, keys=(IndexKind.UNIQUE,))
    else:
        type_ = parse_type(cursor, sql_mode)
        found = NewColumn(name=name, type=type_)
    if type_.word == "json":
        found = replace(
            found,
            type=TypeClause(word=TEXTS[-1].word, charset=CharsetClause(charset="utf8mb4", collation="utf8mb4_bin")),
            check=f"json_valid({quoted_name(name)})",
        )
    while not cursor.is_at_end and not cursor.peek().is_word("FIRST", "AFTER", "PARTITION"):
        found = _with_attribute(found, cursor, database, sql_mode)
    return found


def _with_attribute(found: NewColumn, cursor: Cursor, database: str, sql_mode: int) -> NewColumn:
    """The column with the attribute that comes next."""
    if cursor.takes_words("NOT", "NULL"):
        return replace(found, is_nullable=False)
    if cursor.takes_words("NULL"):
        return replace(found, is_nullable=True)
    if cursor.takes_words("SERIAL", "DEFAULT", "VALUE"):
        keys = (*found.keys, IndexKind.UNIQUE)
        return replace(found, is_nullable=False, is_auto_increment=True, keys=keys)
    if cursor.takes_words("DEFAULT"):
        return replace(found, default=take_value(cursor, database, sql_mode))
    if cursor.takes_words("ON", "UPDATE"):
        now = takes_now(cursor)
        if now is None:
            raise fail(cursor, "CURRENT_TIMESTAMP")
        return replace(found, on_update=now)
    if cursor.takes_words("AUTO_INCREMENT"):
        return replace(found, is_auto_increment=True, is_nullable=False)
    if cursor.takes_words("PRIMARY", "KEY") or cursor.takes_words("PRIMARY") or cursor.takes_words("KEY"):
        return replace(found, keys=(*found.keys, IndexKind.PRIMARY))
    if cursor.takes_words("UNIQUE"):
        cursor.takes_words("KEY")
        return replace(found, keys=(*found.keys, IndexKind.UNIQUE))
    if cursor.takes_words("COMMENT"):
        return replace(found, comment=expect_text(cursor))
    if cursor.takes_words("INVISIBLE"):
        return replace(found, is_invisible=True)
    if cursor.takes_words("COMPRESSED"):
        if cursor.takes_sign("="):
            expect_option(cursor)
        return replace(found, type=replace(found.type, is_compressed=True))
    if cursor.takes_words("CONSTRAINT"):
        if not cursor.peek().is_word("CHECK"):
            expect_name(cursor)
        return found
    if cursor.takes_words("CHECK"):
        return replace(found, check=written_expression(expect_brackets(cursor), sql_mode))
    if cursor.peek().is_word("REFERENCES"):
        reference = parse_reference(cursor, database, (found.name,), None, found.name)
        return replace(found, reference=reference)
    if cursor.takes_words("WITHOUT", "SYSTEM", "VERSIONING"):
        return replace(found, is_unversioned=True)
    if cursor.takes_words("WITH", "SYSTEM", "VERSIONING"):
        return replace(found, is_unversioned=False)
    if cursor.takes_words("GENERATED", "ALWAYS") or cursor.peek().is_word("AS"):
        return _generated(found, cursor, sql_mode)
    charset, collation = takes_charset(cursor), takes_collation(cursor)
    if charset is not None or collation is not None:
        given = CharsetClause(charset=charset, collation=collation)
        return replace(found, type=replace(found.type, charset=merged(found.type.charset, given)))
    if cursor.peek().is_word("COLUMN_FORMAT", "STORAGE"):
        cursor.take()
        expect_option(cursor)
        return found
    if cursor.takes_words("REF_SYSTEM_ID") or cursor.peek(1).is_sign("="):
        if not cursor.peek().is_sign("="):
            cursor.take()
        expect_option(cursor)
        return found
    raise fail(cursor, f"an attribute of column {found.name[:SHOWN]}")


def _generated(found: NewColumn, cursor: Cursor, sql_mode: int) -> NewColumn:
    if not cursor.takes_words("AS"):
        raise fail(cursor, "AS")
    if cursor.takes_words("ROW"):
        period = RowPeriod.START if cursor.takes_words("START") else RowPeriod.END
        if period is RowPeriod.END and not cursor.takes_words("END"):
            raise fail(cursor, "START or END")
        return replace(found, period=period, is_nullable=False)
    expression = written_expression(expect_brackets(cursor), sql_mode)
    is_stored = cursor.takes_words("STORED") or cursor.takes_words("PERSISTENT")
    cursor.takes_words("VIRTUAL")
    return replace(found, expression=expression, is_stored=is_stored)
