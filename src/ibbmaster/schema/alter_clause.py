"""The clauses of ALTER TABLE."""

from collections.abc import Iterator, Sequence

from ibbmaster.sqltext.cursor import Cursor, outside_brackets, parts_of
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import Token, TokenKind
from . import clause as ddl
from . import reading
from .definition import parse_column, parse_definition, parse_options

CLAUSE_COUNT_MAX = 1 << 13  # MariaDB has at most 4,096 columns and 128 indexes
_PARTITIONS = (  # and names with commas between them
    *("COALESCE", "REORGANIZE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK", "REPAIR", "REMOVE"),
    *("TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT"),
)
_TOUCHES = ("TRUNCATE", "DISCARD", "IMPORT")
_VERBS = ("ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "RENAME", "CONVERT", *_PARTITIONS, "ORDER", "FORCE")


def parse_clauses(
    tokens: Sequence[Token], table: TableName, sql_mode: int = 0, database: str = ""
) -> tuple[list[ddl.AlterClause], TableName | None]:
    """The clauses after a table's name, and its new name. Raises NotUnderstoodError: a clause is unreadable."""
    found: list[ddl.AlterClause] = []
    to = None
    for part in _clause_parts(tokens):
        cursor = Cursor(part)
        if _renames_table(part):
            cursor.take()
            if not cursor.takes_sign("="):
                cursor.takes_words("TO") or cursor.takes_words("AS")
            to = reading.expect_table(cursor, database or table.database)
        else:
            found += _clause(cursor, table, sql_mode, database or table.database)
        if cursor.takes_words("PARTITION", "BY"):  # stands after the last clause without a comma
            found.append(ddl.AlterPartitions(verb="PARTITION BY", text=reading.written(cursor.rest()).strip()))
        if not cursor.is_at_end:
            raise reading.fail(cursor, "','")
        if len(found) > CLAUSE_COUNT_MAX:
            raise ddl.NotUnderstoodError(f"more than {CLAUSE_COUNT_MAX} clauses")
    return found, to


def tables_after_head(tokens: Sequence[Token], database: str) -> Iterator[TableName]:
    """The tables that clauses may name, readable or not: the names after RENAME and TABLE."""
    cursor = Cursor(outside_brackets(tokens))
    while not cursor.is_at_end:
        word = cursor.take()
        if word.is_word("RENAME") and not cursor.peek().is_word("COLUMN", "INDEX", "KEY"):
            cursor.takes_sign("=") or cursor.takes_words("TO") or cursor.takes_words("AS")
        elif not word.is_word("TABLE"):
            continue
        if cursor.peek().is_name:
            yield reading.expect_table(cursor, database)


def _clause_parts(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    waiting: list[Token] = []
    for part in parts_of(tokens):
        if not part:
            continue
        if waiting and not _begins_clause(part):
            waiting += [Token(TokenKind.SIGN, ","), *part]
            continue
        if waiting:
            yield waiting
            waiting = []
        if part[0].is_word("ORDER", *_PARTITIONS) or (len(part) > 1 and part[1].is_word("PARTITION")):  # a list
            waiting = list(part)
        else:
            yield part
    if waiting:
        yield waiting


def _begins_clause(part: Sequence[Token]) -> bool:
    return len(part) > 1 and part[0].is_word(*_VERBS, "ALGORITHM", "LOCK", "ENGINE", "COMMENT", "DEFAULT", "ENABLE")


def _renames_table(part: Sequence[Token]) -> bool:
    names_part = len(part) > 2 and part[1].is_word("COLUMN", "INDEX", "KEY") and not part[2].is_sign(".")
    return part[0].is_word("RENAME") and not names_part


def _clause(cursor: Cursor, table: TableName, sql_mode: int, database: str) -> list[ddl.AlterClause]:
    if cursor.takes_words("ADD"):
        return _add(cursor, table, sql_mode)
    if cursor.takes_words("DROP"):
        return [_drop(cursor)]
    if cursor.peek().is_word("MODIFY", "CHANGE"):
        changes = cursor.take().is_word("CHANGE")
        cursor.takes_words("COLUMN")
        is_conditional = cursor.pass_condition()
        name = reading.expect_column(cursor)
        definition = parse_column(reading.expect_column(cursor) if changes else name, cursor, table.database, sql_mode)
        return [
            ddl.RedefineColumn(name=name, definition=definition, after=_place(cursor), is_conditional=is_conditional)
        ]
    if cursor.takes_words("ALTER"):
        return [_alter(cursor, database)]
    if cursor.takes_words("RENAME"):
        is_column = cursor.takes_words("COLUMN")
        if not is_column:
            cursor.take()
        is_conditional = cursor.pass_condition()
        name = reading.expect_name(cursor)
        reading.expect_words(cursor, "TO")
        return [
            ddl.RenamePart(
                is_column=is_column, name=name, to=reading.expect_name(cursor), is_conditional=is_conditional
            )
        ]
    if cursor.takes_words("CONVERT"):
        return _convert(cursor, database)
    return _others(cursor, database)


def _others(cursor: Cursor, database: str) -> list[ddl.AlterClause]:
    if cursor.takes_words("ORDER", "BY") or cursor.takes_words("FORCE"):
        cursor.rest()
        return []
    if any(cursor.takes_words(word, "KEYS") for word in ("ENABLE", "DISABLE")):
        return []
    if cursor.takes_words("ALGORITHM") or cursor.takes_words("LOCK"):
        reading.expect_option(cursor)
        return []
    if cursor.takes_words("REMOVE", "PARTITIONING"):
        return [ddl.AlterPartitions(verb="REMOVE", text="")]
    if cursor.takes_words("EXCHANGE", "PARTITION"):
        name = reading.expect_name(cursor).lower()
        while not cursor.is_at_end and not cursor.takes_words("TABLE"):
            cursor.take()
        other = reading.expect_table(cursor, database)
        cursor.rest()
        return [ddl.AlterRows(what="EXCHANGE PARTITION", other=other, partitions=(name,))]
    if cursor.peek().is_word("REORGANIZE", "COALESCE"):
        verb = cursor.take().text.upper()
        cursor.takes_words("PARTITION")
        return [ddl.AlterPartitions(verb=verb, text=reading.written(cursor.rest()).strip())]
    if cursor.peek().is_word(*_PARTITIONS) and cursor.peek(1).is_word("PARTITION", "TABLESPACE", "PARTITIONING"):
        verb, what = cursor.take().text.upper(), cursor.take().text.upper()
        named = partition_names(cursor) if verb == "TRUNCATE" and what == "PARTITION" else None
        cursor.rest()
        return [ddl.AlterRows(what=f"{verb} {what}", partitions=named)] if verb in _TOUCHES else []
    options = parse_options(cursor, database)
    found: list[ddl.AlterClause] = [ddl.SetOptions(options=options)]
    return [*found, ddl.AlterVersioning(is_versioned=True)] if options.is_versioned else found


def partition_names(cursor: Cursor) -> tuple[str, ...]:
    """In lower case; none for ALL."""
    if cursor.takes_words("ALL"):
        return ()
    found = [reading.expect_name(cursor).lower()]
    while cursor.takes_sign(","):
        found.append(reading.expect_name(cursor).lower())
    return tuple(found)


def _place(cursor: Cursor) -> str | None:
    if cursor.takes_words("FIRST"):
        return ""
    return reading.expect_name(cursor) if cursor.takes_words("AFTER") else None


def _add(cursor: Cursor, table: TableName, sql_mode: int) -> list[ddl.AlterClause]:
    if cursor.takes_words("SYSTEM", "VERSIONING"):
        return [ddl.AlterVersioning(is_versioned=True)]
    if cursor.takes_words("PARTITION"):
        return [ddl.AlterPartitions(verb="ADD", text=reading.written(cursor.rest()).strip())]
    is_column = cursor.takes_words("COLUMN")
    if cursor.peek().is_word("IF") and cursor.peek(1).is_word("NOT"):
        is_conditional = is_column = cursor.pass_condition()
    else:
        is_conditional = False
    if cursor.peek().is_sign("("):
        return [
            ddl.AddDefinition(definition=parse_definition(one, table.database, sql_mode), is_conditional=is_conditional)
            for one in map(Cursor, parts_of(reading.expect_brackets(cursor)))
        ]
    if is_column:
        definition = parse_column(reading.expect_column(cursor), cursor, table.database, sql_mode)
        return [ddl.AddDefinition(definition=definition, after=_place(cursor), is_conditional=is_conditional)]
    part = parse_definition(cursor, table.database, sql_mode)
    is_conditional = getattr(part, "is_conditional", False)
    return [ddl.AddDefinition(definition=part, after=_place(cursor), is_conditional=is_conditional)]


def _drop(cursor: Cursor) -> ddl.AlterClause:
    if cursor.takes_words("SYSTEM", "VERSIONING"):
        return ddl.AlterVersioning(is_versioned=False)
    if cursor.takes_words("PARTITION"):
        cursor.pass_condition()
        return ddl.AlterPartitions(verb="DROP", text=reading.written(cursor.rest()).strip())
    if cursor.takes_words("PRIMARY", "KEY"):
        return ddl.RemovePart(what="index", name="PRIMARY")
    what = "column"
    if cursor.takes_words("INDEX") or cursor.takes_words("KEY"):
        what = "index"
    elif cursor.takes_words("FOREIGN", "KEY"):
        what = "foreign key"
    elif cursor.takes_words("CONSTRAINT") or cursor.takes_words("CHECK"):
        what = "constraint"
    elif cursor.takes_words("PERIOD", "FOR"):
        what = "period"
    else:
        cursor.takes_words("COLUMN")
    is_conditional = cursor.pass_condition()
    if what == "index" and cursor.takes_words("PRIMARY"):
        return ddl.RemovePart(what=what, name="PRIMARY")
    name = reading.expect_column(cursor) if what == "column" else reading.expect_name(cursor)
    cursor.takes_words("RESTRICT") or cursor.takes_words("CASCADE")
    return ddl.RemovePart(what=what, name=name, is_conditional=is_conditional)


def _alter(cursor: Cursor, database: str) -> ddl.AlterClause:
    if cursor.takes_words("INDEX") or cursor.takes_words("KEY"):
        is_conditional = cursor.pass_condition()
        name = reading.expect_name(cursor)
        is_ignored = not cursor.takes_words("NOT")
        reading.expect_words(cursor, "IGNORED")
        return ddl.IgnoreIndex(name=name, is_ignored=is_ignored, is_conditional=is_conditional)
    cursor.takes_words("COLUMN")
    is_conditional = cursor.pass_condition()
    name = reading.expect_column(cursor)
    if cursor.takes_words("DROP", "DEFAULT"):
        return ddl.SetColumnDefault(name=name, default=None, is_conditional=is_conditional)
    if not cursor.takes_words("SET", "DEFAULT"):
        raise reading.fail(cursor, "SET DEFAULT or DROP DEFAULT")
    return ddl.SetColumnDefault(name=name, default=reading.take_value(cursor, database), is_conditional=is_conditional)


def _convert(cursor: Cursor, database: str) -> list[ddl.AlterClause]:
    if cursor.takes_words("PARTITION"):
        name = reading.expect_name(cursor)
        reading.expect_words(cursor, "TO", "TABLE")
        other = reading.expect_table(cursor, database)
        cursor.rest()
        return [ddl.SplitTable(other=other, is_gone=False), ddl.AlterPartitions(verb="DROP", text=name)]
    if cursor.takes_words("TABLE"):
        other = reading.expect_table(cursor, database)
        cursor.takes_words("TO", "PARTITION")
        text = reading.written(cursor.rest()).strip()
        for end in ("WITH VALIDATION", "WITHOUT VALIDATION"):
            text = text.removesuffix(end).rstrip()
        return [ddl.SplitTable(other=other, is_gone=True), ddl.AlterPartitions(verb="ADD", text=f"(PARTITION {text})")]
    reading.expect_words(cursor, "TO")
    charset, collation = reading.takes_charset(cursor), reading.takes_collation(cursor)
    if charset is None and collation is None:
        raise ddl.NotUnderstoodError("CONVERT TO without a character set")
    return [ddl.ConvertCharset(charset=ddl.CharsetClause(charset=charset, collation=collation))]
