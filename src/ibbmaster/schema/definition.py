"""Columns, indexes, constraints and table options of CREATE TABLE and ALTER TABLE."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ibbmaster.facts import rows_of
from ibbmaster.replication.event.column_types.integer import BIGINT
from ibbmaster.replication.event.column_types.strings import TEXTS
from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.token import Token, TokenKind
from . import clause as ddl
from . import reading
from .column_type import parse_type
from .model import IndexKind, RowPeriod

DEFINITION_COUNT_MAX = 1 << 13  # MariaDB has at most 4,096 columns and 128 indexes
_NO_COLUMNS = ("CONSTRAINT", "CHECK", "FOREIGN", "PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "KEY", "INDEX")
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "NOT NULL": {"is_nullable": False},
    "NULL": {"is_nullable": True},
    "AUTO_INCREMENT": {"is_auto_increment": True, "is_nullable": False},
    "INVISIBLE": {"is_invisible": True},
    "WITHOUT SYSTEM VERSIONING": {"is_unversioned": True},
    "WITH SYSTEM VERSIONING": {"is_unversioned": False},
}
_RULES = ("RESTRICT", "CASCADE", "SET NULL", "NO ACTION", "SET DEFAULT")


def parse_definitions(tokens: Sequence[Token], database: str, sql_mode: int = 0) -> tuple[ddl.Definition, ...]:
    """The brackets of CREATE TABLE. Raises NotUnderstoodError: a part is unreadable."""
    found: list[ddl.Definition] = []
    for part in parts_of(tokens):
        if len(found) == DEFINITION_COUNT_MAX:
            raise ddl.NotUnderstoodError(f"more than {DEFINITION_COUNT_MAX} columns and indexes")
        cursor = Cursor(part)
        definition = parse_definition(cursor, database, sql_mode)
        if not cursor.is_at_end:
            raise reading.fail(cursor, "',' or ')'")
        found.append(definition)
    return tuple(found)


def begins_column(cursor: Cursor) -> bool:
    first, second = cursor.peek(), cursor.peek(1)
    if second.is_sign("."):
        return True
    if first.is_word("VECTOR"):
        return not (second.is_word("INDEX", "KEY") or second.is_sign("("))
    return not (first.is_word(*_NO_COLUMNS) or (first.is_word("PERIOD") and second.is_word("FOR")))


def parse_definition(cursor: Cursor, database: str, sql_mode: int = 0) -> ddl.Definition:
    if begins_column(cursor):
        return parse_column(reading.expect_column(cursor), cursor, database, sql_mode)
    constraint, is_conditional = None, False
    if cursor.takes_words("CONSTRAINT"):
        is_conditional = cursor.pass_condition()
        if not cursor.peek().is_word("FOREIGN", "PRIMARY", "UNIQUE", "CHECK"):
            constraint = reading.expect_name(cursor)
    if cursor.takes_words("CHECK"):
        expression = reading.written_expression(reading.expect_brackets(cursor), sql_mode)
        return ddl.CheckDefinition(name=constraint, expression=expression, is_conditional=is_conditional)
    if cursor.takes_words("FOREIGN", "KEY"):
        is_conditional |= cursor.pass_condition()
        name = None if cursor.peek().is_sign("(") else reading.expect_name(cursor)
        columns = tuple(reading.expect_name(Cursor(part)) for part in parts_of(reading.expect_brackets(cursor)))
        found = parse_reference(cursor, database, columns, constraint or name, name)
        return replace(found, is_conditional=is_conditional)
    if cursor.peek().is_word("PERIOD") and cursor.peek(1).is_word("FOR"):
        return _period(cursor)
    kind = _index_kind(cursor)
    if kind is None:
        raise reading.fail(cursor, "an index or a constraint")
    return parse_index(cursor, kind, constraint, is_conditional=is_conditional)


def _index_kind(cursor: Cursor) -> IndexKind | None:
    if cursor.takes_words("PRIMARY", "KEY"):
        return IndexKind.PRIMARY
    second = cursor.peek(1)
    if cursor.peek().is_word("UNIQUE", "FULLTEXT", "SPATIAL") or (
        cursor.peek().is_word("VECTOR") and (second.is_word("INDEX", "KEY") or second.is_sign("("))
    ):
        kind = IndexKind[cursor.take().word]
        cursor.takes_words("KEY") or cursor.takes_words("INDEX")
        return kind
    return IndexKind.PLAIN if cursor.takes_words("KEY") or cursor.takes_words("INDEX") else None


def parse_index(
    cursor: Cursor, kind: IndexKind, name: str | None, *, is_conditional: bool = False
) -> ddl.IndexDefinition:
    """From the words after its kind; `name` is its constraint's."""
    is_conditional |= cursor.pass_condition()
    algorithm = _algorithm(cursor)
    if algorithm is None and not cursor.peek().is_sign("("):
        name = reading.expect_name(cursor) or name
        algorithm = _algorithm(cursor)
    parts, period = [], None
    for tokens in parts_of(reading.expect_brackets(cursor)):
        part = Cursor(tokens)
        column = reading.expect_name(part)
        if part.takes_words("WITHOUT", "OVERLAPS"):
            period = column
            continue
        length = reading.expect_number(Cursor(part.bracketed())) if part.peek().is_sign("(") else None
        is_descending = part.takes_words("DESC")
        part.takes_words("ASC")
        if not part.is_at_end:
            raise reading.fail(part, "',' or ')' in an index")
        parts.append(ddl.PartDefinition(column, length, is_descending))
    found = ddl.IndexDefinition(
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


def _index_options(cursor: Cursor, found: ddl.IndexDefinition) -> ddl.IndexDefinition:
    options = []
    while not cursor.is_at_end:
        if (algorithm := _algorithm(cursor)) is not None:
            found = replace(found, algorithm=algorithm)
        elif cursor.takes_words("COMMENT"):
            cursor.takes_sign("=")
            found = replace(found, comment=reading.expect_text(cursor))
        elif cursor.takes_words("IGNORED"):
            found = replace(found, is_ignored=True)
        elif cursor.takes_words("NOT", "IGNORED"):
            found = replace(found, is_ignored=False)
        elif cursor.takes_words("WITH", "PARSER"):
            options.append(("WITH PARSER", reading.expect_name(cursor)))
        elif cursor.takes_words("KEY_BLOCK_SIZE"):
            options.append(("KEY_BLOCK_SIZE", reading.expect_option(cursor)))
        elif cursor.peek(1).is_sign("=") and not cursor.peek().is_word("ALGORITHM", "LOCK"):
            options.append((cursor.take().text, reading.expect_option(cursor)))
        else:
            break
    return replace(found, options=tuple(options))


def _period(cursor: Cursor) -> ddl.PeriodDefinition:
    cursor.takes_words("PERIOD", "FOR")
    cursor.pass_condition()
    name = reading.expect_name(cursor)
    inside = Cursor(reading.expect_brackets(cursor))
    start = reading.expect_name(inside)
    if not inside.takes_sign(","):
        raise reading.fail(inside, "','")
    return ddl.PeriodDefinition(name=name, start=start, end=reading.expect_name(inside))


def parse_reference(
    cursor: Cursor, database: str, columns: tuple[str, ...], constraint: str | None, name: str | None
) -> ddl.ForeignDefinition:
    reading.expect_words(cursor, "REFERENCES")
    parent = reading.expect_table(cursor, database)
    parent_columns = tuple(reading.expect_name(Cursor(part)) for part in parts_of(cursor.bracketed()))
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
            raise reading.fail(cursor, "what a foreign key does")
        rules[what] = rule
    return ddl.ForeignDefinition(
        name=constraint,
        index_name=name,
        columns=columns,
        parent=parent,
        parent_columns=parent_columns or columns,
        on_delete=rules["DELETE"],
        on_update=rules["UPDATE"],
    )


def parse_column(name: str, cursor: Cursor, database: str, sql_mode: int = 0) -> ddl.NewColumn:
    """From the words after its name up to FIRST, AFTER or the end. Raises NotUnderstoodError: they are unreadable."""
    if cursor.takes_words("SERIAL"):
        type_ = ddl.TypeClause(word=BIGINT.word, length=20, is_unsigned=True)
        found = ddl.NewColumn(
            name=name, type=type_, is_nullable=False, is_auto_increment=True, keys=(IndexKind.UNIQUE,)
        )
    else:
        type_ = parse_type(cursor, sql_mode)
        found = ddl.NewColumn(name=name, type=type_)
    if type_.word == "json":
        found = replace(
            found,
            type=ddl.TypeClause(
                word=TEXTS[-1].word, charset=ddl.CharsetClause(charset="utf8mb4", collation="utf8mb4_bin")
            ),
            check=f"json_valid({quoted_name(name)})",
        )
    while not cursor.is_at_end and not cursor.peek().is_word("FIRST", "AFTER", "PARTITION"):
        found = _with_attribute(found, cursor, database, sql_mode)
    return found


def _with_attribute(found: ddl.NewColumn, cursor: Cursor, database: str, sql_mode: int) -> ddl.NewColumn:
    for words, changes in _ATTRIBUTES.items():
        if cursor.takes_words(*words.split()):
            return replace(found, **changes)
    if cursor.takes_words("SERIAL", "DEFAULT", "VALUE"):
        return replace(found, is_nullable=False, is_auto_increment=True, keys=(*found.keys, IndexKind.UNIQUE))
    if cursor.takes_words("DEFAULT"):
        return replace(found, default=reading.take_value(cursor, database, sql_mode))
    if cursor.takes_words("ON", "UPDATE"):
        if (now := reading.takes_now(cursor)) is None:
            raise reading.fail(cursor, "CURRENT_TIMESTAMP")
        return replace(found, on_update=now)
    if cursor.takes_words("PRIMARY", "KEY") or cursor.takes_words("PRIMARY") or cursor.takes_words("KEY"):
        return replace(found, keys=(*found.keys, IndexKind.PRIMARY))
    if cursor.takes_words("UNIQUE"):
        cursor.takes_words("KEY")
        return replace(found, keys=(*found.keys, IndexKind.UNIQUE))
    if cursor.takes_words("COMMENT"):
        return replace(found, comment=reading.expect_text(cursor))
    if cursor.takes_words("COMPRESSED"):
        if cursor.takes_sign("="):
            reading.expect_option(cursor)
        return replace(found, type=replace(found.type, is_compressed=True))
    if cursor.takes_words("CONSTRAINT"):
        if not cursor.peek().is_word("CHECK"):
            reading.expect_name(cursor)
        return found
    if cursor.takes_words("CHECK"):
        return replace(found, check=reading.written_expression(reading.expect_brackets(cursor), sql_mode))
    if cursor.peek().is_word("REFERENCES"):
        return replace(found, reference=parse_reference(cursor, database, (found.name,), None, found.name))
    if cursor.takes_words("GENERATED", "ALWAYS") or cursor.peek().is_word("AS"):
        return _generated(found, cursor, sql_mode)
    charset, collation = reading.takes_charset(cursor), reading.takes_collation(cursor)
    if charset is not None or collation is not None:
        given = ddl.CharsetClause(charset=charset, collation=collation)
        return replace(found, type=replace(found.type, charset=reading.merged(found.type.charset, given)))
    if cursor.peek().is_word("COLUMN_FORMAT", "STORAGE"):
        cursor.take()
        reading.expect_option(cursor)
        return found
    if cursor.takes_words("REF_SYSTEM_ID") or cursor.peek(1).is_sign("="):
        if not cursor.peek().is_sign("="):
            cursor.take()
        reading.expect_option(cursor)
        return found
    raise reading.fail(cursor, f"an attribute of column {found.name[: reading.SHOWN]}")


def _generated(found: ddl.NewColumn, cursor: Cursor, sql_mode: int) -> ddl.NewColumn:
    reading.expect_words(cursor, "AS")
    if cursor.takes_words("ROW"):
        period = RowPeriod.START if cursor.takes_words("START") else RowPeriod.END
        if period is RowPeriod.END and not cursor.takes_words("END"):
            raise reading.fail(cursor, "START or END")
        return replace(found, period=period, is_nullable=False)
    expression = reading.written_expression(reading.expect_brackets(cursor), sql_mode)
    is_stored = cursor.takes_words("STORED") or cursor.takes_words("PERSISTENT")
    cursor.takes_words("VIRTUAL")
    return replace(found, expression=expression, is_stored=is_stored)


_TWO_WORDS = {"DATA": "DIRECTORY", "INDEX": "DIRECTORY"}
_SYNONYMS = {"TYPE": "ENGINE", "TABLE_CHECKSUM": "CHECKSUM"}
_QUERY = ("AS", "SELECT", "WITH", "VALUES", "TABLE", "IGNORE", "REPLACE", "LIKE")
_ENGINES = dict(rows_of(__package__, "engines"))
_BARE = {name for name, _, _, bare in rows_of(__package__, "table_options") if bare == "yes"}  # without equals sign


def parse_options(cursor: Cursor, database: str = "") -> ddl.TableOptions:
    """With or without commas, up to a query or the end; partitions last. Raises NotUnderstoodError."""
    charset, named = ddl.NO_CHARSET, dict[str, str]()
    is_versioned = False
    partitioning = None
    while not cursor.is_at_end:
        if cursor.takes_sign(","):
            continue
        if (found := reading.takes_database_charset(cursor)) is not None:
            charset = reading.merged(charset, found)
        elif cursor.takes_words("WITH", "SYSTEM", "VERSIONING"):
            is_versioned = True
        elif cursor.takes_words("PARTITION", "BY"):
            partitioning = _partitioning(cursor)
        elif cursor.peek().is_word(*_QUERY) or cursor.peek().is_sign("("):
            break
        elif cursor.takes_words("UNION"):
            cursor.takes_sign("=")
            named["UNION"] = _union(Cursor(reading.expect_brackets(cursor)), database)
        else:
            named.update((_option(cursor),))
    return ddl.TableOptions(charset=charset, named=named, is_versioned=is_versioned, partitioning=partitioning)


def _union(cursor: Cursor, database: str) -> str:
    """The tables of a MERGE table, with other databases' names."""
    tables = []
    while not cursor.is_at_end:
        table = reading.expect_table(cursor, database)
        tables.append(quoted_name(table.name) if table.database == database else table.sql)
        cursor.takes_sign(",")
    return f"({','.join(tables)})"


def _partitioning(cursor: Cursor) -> str:
    found: list[Token] = []
    while not (cursor.is_at_end or cursor.peek().is_word("AS", "SELECT", "IGNORE", "REPLACE", "WITH")):
        opening = cursor.peek()
        if opening.is_sign("("):
            found += [opening, *cursor.bracketed(), Token(TokenKind.SIGN, ")")]
        else:
            found.append(cursor.take())
    return reading.written(found).strip()


def _option(cursor: Cursor) -> tuple[str, str]:
    first = cursor.take()
    name = first.text.upper() if first.kind is TokenKind.WORD else first.text
    wrong = not first.is_name or name in ("DEFAULT", "STORAGE", "WITHOUT", "ADD", "DROP")
    if not wrong and name in _TWO_WORDS and cursor.takes_words(_TWO_WORDS[name]):
        name = f"{name} {_TWO_WORDS[name]}"
    name = _SYNONYMS.get(name, name)
    if wrong or (name != "COMMENT" and name not in _BARE and not cursor.peek().is_sign("=")):
        raise reading.fail(Cursor([first, *cursor.rest()]), "an option of the table")
    if name == "COMMENT":
        cursor.takes_sign("=")
        return name, reading.expect_text(cursor)
    value = reading.expect_option(cursor)
    return name, _ENGINES.get(value.lower(), value) if name == "ENGINE" else value
