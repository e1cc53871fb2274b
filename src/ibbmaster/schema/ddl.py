"""Reads which DDL a statement is, without a catalog. It names what it cannot read."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ibbmaster.facts import rows_of
from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import TokenKind, tokens
from . import clause as ddl
from . import reading
from .alter_clause import parse_clauses, tables_after_head
from .column_type import parse_type
from .definition import parse_definitions, parse_index, parse_options
from .model import IndexKind, TableKind

_WORDS = rows_of(__package__, "statements")
HARMLESS = frozenset(word for word, _ in _WORDS)  # statements that define no table
WITHOUT_EFFECT = tuple(word for word, changes in _WORDS if changes == "nothing")  # that change no rows, either
_PROGRAMS = ("TRIGGER", "FUNCTION", "PROCEDURE", "EVENT", "PACKAGE")
_NO_TABLES = ("USER", "ROLE", "SERVER", "LOGFILE", "TABLESPACE", "CATALOG", "SQL", "INSTANCE")
_KINDS = (*_PROGRAMS, *_NO_TABLES, "TABLE", "DATABASE", "SCHEMA", "VIEW", "INDEX", "SEQUENCE")
_HEAD_MAX = 40  # tokens between CREATE and its object: DEFINER=…, ALGORITHM=…, SQL SECURITY …


def parse_ddl(sql: str, database: str = "", sql_mode: int = 0, version: int | None = None) -> ddl.DdlStatement | None:
    """What a statement does to tables, databases and programs, if anything. `database` is the one it ran in, `version`
    the server's, as 110806. Raises NotUnderstoodError: it is unreadable, so any table may have changed."""
    cursor = statement_cursor(sql, sql_mode, version)
    while cursor.peek().is_sign("("):
        cursor.take()  # (SELECT …)
    if cursor.is_at_end or cursor.peek().is_word(*HARMLESS):
        return None
    return read_ddl(cursor, sql, database, sql_mode)


def statement_cursor(sql: str, sql_mode: int = 0, version: int | None = None) -> Cursor:
    cursor = Cursor(tokens(sql, sql_mode, version))
    if cursor.takes_words("SET", "STATEMENT"):
        while not cursor.is_at_end and not cursor.takes_words("FOR"):
            if cursor.peek().is_sign("("):
                cursor.bracketed()
            else:
                cursor.take()
    return cursor


def read_ddl(cursor: Cursor, sql: str, database: str = "", sql_mode: int = 0) -> ddl.DdlStatement | None:
    """As `parse_ddl`, at a cursor over its tokens. Raises NotUnderstoodError: it is no DDL, or unreadable."""
    first = cursor.peek()
    read = _READERS.get(first.text.upper()) if first.kind is TokenKind.WORD else None
    if read is None:
        raise reading.fail(cursor, "a statement")
    cursor.take()
    return read(cursor, database, sql_mode, sql)


def unsure_after(failed: ddl.DdlStatement) -> tuple[str, Sequence[TableName]]:
    """The verb of a failed statement, and the tables it may have changed; CREATE and programs change none."""
    match failed:
        case ddl.DropTables():
            return "DROP TABLE", failed.tables
        case ddl.TruncateTable():
            return "TRUNCATE TABLE", (failed.table,)
        case ddl.RenameTables():
            return "RENAME TABLE", tuple(name for pair in failed.pairs for name in pair)
        case ddl.AlterTable():
            return "ALTER TABLE", (failed.table,) if failed.to is None else (failed.table, failed.to)
    return "", ()


def _create(cursor: Cursor, database: str, sql_mode: int, sql: str) -> ddl.DdlStatement | None:
    replaces = cursor.takes_words("OR", "REPLACE")
    is_temporary = cursor.takes_words("TEMPORARY")
    index_kind, kind = IndexKind.PLAIN, ""
    for _ in range(_HEAD_MAX):
        token = cursor.take()
        if token.is_word(*_KINDS) and not cursor.peek().is_sign("=") and not token.is_word("SQL"):
            kind = token.text.upper()
            break
        if token.is_word("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"):
            index_kind = IndexKind[token.text.upper()]
        if cursor.is_at_end:
            break
    if kind in _PROGRAMS:
        return _program(cursor, kind, database)
    if kind in _NO_TABLES:
        return None
    if kind in ("DATABASE", "SCHEMA"):
        return _database(cursor, replaces=replaces)
    if kind == "VIEW":
        is_conditional = cursor.pass_condition()
        return ddl.CreateView(table=reading.expect_table(cursor, database), text=sql, is_conditional=is_conditional)
    if kind == "INDEX":
        return _create_index(cursor, index_kind, database)
    if kind == "SEQUENCE":
        return _sequence(cursor, database, sql_mode, sql, is_temporary=is_temporary, replaces=replaces)
    if kind != "TABLE":
        raise ddl.NotUnderstoodError(f"{' '.join(sql[: reading.SHOWN].split())!r}: what it creates is not known")
    found = ddl.CreateTable(
        is_conditional=cursor.pass_condition(),
        table=reading.expect_table(cursor, database),
        is_temporary=is_temporary,
        replaces=replaces,
        options=ddl.TableOptions(),
    )
    try:
        return _create_table(cursor, found, database, sql_mode)
    except ddl.NotUnderstoodError as error:
        return replace(found, problem=str(error))


def _create_table(cursor: Cursor, found: ddl.CreateTable, database: str, sql_mode: int) -> ddl.CreateTable:
    definitions: tuple[ddl.Definition, ...] = ()
    like = None
    if cursor.takes_words("LIKE"):
        like = reading.expect_table(cursor, database)
    elif cursor.peek().is_sign("(") and not cursor.peek(1).is_word("SELECT", "WITH", "VALUES"):
        inside = reading.expect_brackets(cursor)
        own = Cursor(inside)
        if own.takes_words("LIKE"):
            like = reading.expect_table(own, database)
        else:
            definitions = parse_definitions(inside, found.table.database, sql_mode)
    options = parse_options(cursor, database)
    return replace(found, definitions=definitions, like=like, options=options, selects=not cursor.is_at_end)


def _create_index(cursor: Cursor, kind: IndexKind, database: str) -> ddl.AlterTable:
    is_conditional = cursor.pass_condition()
    name = reading.expect_name(cursor)
    algorithm = cursor.take().text.upper() if cursor.takes_words("USING") else None
    reading.expect_words(cursor, "ON")
    table = reading.expect_table(cursor, database)
    try:
        index = parse_index(cursor, kind, name, is_conditional=is_conditional)
    except ddl.NotUnderstoodError as error:
        return ddl.AlterTable(table=table, problem=str(error))
    if algorithm is not None and index.algorithm is None:
        index = replace(index, algorithm=algorithm)
    while cursor.peek().is_word("ALGORITHM", "LOCK"):  # how it was made
        cursor.take()
        reading.expect_option(cursor)
    if not cursor.is_at_end:
        return ddl.AlterTable(table=table, problem=str(reading.fail(cursor, "the end of CREATE INDEX")))
    return ddl.AlterTable(table=table, clauses=(ddl.AddDefinition(definition=index, is_conditional=is_conditional),))


def _sequence(
    cursor: Cursor, database: str, sql_mode: int, sql: str, *, is_temporary: bool, replaces: bool
) -> ddl.CreateSequence:
    found = ddl.CreateSequence(
        is_conditional=cursor.pass_condition(),
        table=reading.expect_table(cursor, database),
        text=sql,
        is_temporary=is_temporary,
        replaces=replaces,
    )
    named = {}
    try:
        while not cursor.is_at_end:
            if cursor.takes_words("AS"):
                type_ = parse_type(cursor, sql_mode)
                if not BY_NAME[type_.word].is_integer:
                    raise ddl.NotUnderstoodError(f"a sequence of {type_.word}")
                found = replace(found, word=type_.word, is_unsigned=type_.is_unsigned)
            elif cursor.peek().is_word("ENGINE", "COMMENT"):
                word = cursor.take().word
                named[word] = reading.expect_option(cursor)
            else:
                cursor.take()
    except ddl.NotUnderstoodError as error:
        return replace(found, problem=str(error))
    return replace(found, options=ddl.TableOptions(named=named))


def _database(cursor: Cursor, *, replaces: bool = False, alters: bool = False) -> ddl.CreateDatabase:
    is_conditional = cursor.pass_condition()
    name = reading.expect_name(cursor)
    charset, comment = ddl.NO_CHARSET, None
    while not cursor.is_at_end:
        if (found := reading.takes_database_charset(cursor)) is not None:
            charset = reading.merged(charset, found)
        elif cursor.takes_words("COMMENT"):
            cursor.takes_sign("=")
            comment = reading.expect_text(cursor)
        else:
            raise reading.fail(cursor, "an option of the database")
    return ddl.CreateDatabase(
        name=name, charset=charset, comment=comment, replaces=replaces, is_conditional=is_conditional, alters=alters
    )


def _program(
    cursor: Cursor, kind: str, database: str, *, is_dropped: bool = False, alters: bool = False
) -> ddl.NameProgram:
    if kind == "PACKAGE" and cursor.takes_words("BODY"):
        kind = "PACKAGE BODY"
    is_conditional = cursor.pass_condition()
    name = reading.expect_table(cursor, database)
    table = to = None
    if kind == "TRIGGER" and not is_dropped and not alters:
        while not cursor.is_at_end and not cursor.takes_words("ON"):
            cursor.take()
        table = reading.expect_table(cursor, name.database)
    elif kind == "EVENT" and alters:
        to = name
        while not (cursor.is_at_end or cursor.peek().is_word("DO")):
            if cursor.takes_words("RENAME", "TO"):
                to = reading.expect_table(cursor, database)
            else:
                cursor.take()
    return ddl.NameProgram(
        kind=kind, name=name, table=table, to=to, is_conditional=is_conditional, is_dropped=is_dropped, alters=alters
    )


def _drop(cursor: Cursor, database: str, sql_mode: int, sql: str) -> ddl.DdlStatement | None:
    is_temporary = cursor.takes_words("TEMPORARY")
    kind = cursor.take().text.upper()
    if kind in _PROGRAMS:
        return _program(cursor, kind, database, is_dropped=True)
    if kind in _NO_TABLES or kind == "PREPARE":
        return None
    if kind not in ("DATABASE", "SCHEMA", "INDEX", "TABLE", "TABLES", "VIEW", "SEQUENCE"):
        raise ddl.NotUnderstoodError(f"DROP {kind[: reading.SHOWN]} is not known")
    is_conditional = cursor.pass_condition()
    if kind in ("DATABASE", "SCHEMA"):
        return ddl.RemoveDatabase(name=reading.expect_name(cursor))
    if kind == "INDEX":
        name = cursor.take().text if cursor.peek().is_word("PRIMARY") else reading.expect_name(cursor)
        reading.expect_words(cursor, "ON")
        removed = ddl.RemovePart(what="index", name=name, is_conditional=is_conditional)
        return ddl.AlterTable(table=reading.expect_table(cursor, database), clauses=(removed,))
    tables = [reading.expect_table(cursor, database)]
    while cursor.takes_sign(","):
        tables.append(reading.expect_table(cursor, database))
    of_kind = TableKind[kind] if kind in ("VIEW", "SEQUENCE") else TableKind.BASE
    return ddl.DropTables(tables=tuple(tables), kind=of_kind, is_temporary=is_temporary)


def _truncate(cursor: Cursor, database: str, sql_mode: int, sql: str) -> ddl.TruncateTable:
    cursor.takes_words("TABLE")
    return ddl.TruncateTable(table=reading.expect_table(cursor, database))


def _rename(cursor: Cursor, database: str, sql_mode: int, sql: str) -> ddl.RenameTables | None:
    if cursor.takes_words("USER"):
        return None
    if not (cursor.takes_words("TABLE") or cursor.takes_words("TABLES")):
        raise reading.fail(cursor, "TABLE")
    is_conditional = cursor.pass_condition()
    pairs: list[tuple[TableName, TableName]] = []
    while not pairs or cursor.takes_sign(","):
        table = reading.expect_table(cursor, database)
        _pass_wait(cursor)
        reading.expect_words(cursor, "TO")
        pairs.append((table, reading.expect_table(cursor, database)))
    return ddl.RenameTables(pairs=tuple(pairs), is_conditional=is_conditional)


def _alter(cursor: Cursor, database: str, sql_mode: int, sql: str) -> ddl.DdlStatement | None:
    cursor.takes_words("ONLINE")
    ignores = cursor.takes_words("IGNORE")
    if cursor.takes_words("TABLE"):
        return _alter_table(cursor, database, sql_mode, ignores=ignores)
    if cursor.takes_words("DATABASE") or cursor.takes_words("SCHEMA"):
        if cursor.peek().is_word("DEFAULT", "CHARACTER", "CHARSET", "CHAR", "COLLATE", "COMMENT"):
            cursor = Cursor([*tokens(f"`{database.replace('`', '``')}`"), *cursor.rest()])
        if cursor.peek(1).is_word("UPGRADE"):
            return None
        return _database(cursor, alters=True)
    if cursor.takes_words("SEQUENCE"):
        cursor.pass_condition()
        return ddl.AlterSequence(table=reading.expect_table(cursor, database))
    for _ in range(_HEAD_MAX):
        token = cursor.take()
        if token.is_word("VIEW"):
            return ddl.CreateView(table=reading.expect_table(cursor, database), text=sql)
        if token.is_word(*_PROGRAMS):
            return _program(cursor, token.text.upper(), database, alters=True)
        if token.is_word(*_NO_TABLES) and not token.is_word("SQL"):
            return None
        if cursor.is_at_end:
            break
    raise ddl.NotUnderstoodError(f"{' '.join(sql[: reading.SHOWN].split())!r}: what it alters is not known")


def _alter_table(cursor: Cursor, database: str, sql_mode: int, *, ignores: bool) -> ddl.AlterTable:
    is_conditional = cursor.pass_condition()
    table = reading.expect_table(cursor, database)
    _pass_wait(cursor)
    rest = cursor.rest()
    try:
        clauses, to = parse_clauses(rest, table, sql_mode, database)
    except ddl.NotUnderstoodError as error:
        return ddl.AlterTable(table=table, problem=str(error), others=tuple(tables_after_head(rest, database)))
    if ignores:
        clauses.insert(0, ddl.AlterRows(what="ALTER IGNORE TABLE"))
    return ddl.AlterTable(table=table, clauses=tuple(clauses), to=to, is_conditional=is_conditional)


def _pass_wait(cursor: Cursor) -> None:
    if cursor.takes_words("WAIT"):
        cursor.take()
    cursor.takes_words("NOWAIT")


_READERS: dict[str, Callable[[Cursor, str, int, str], ddl.DdlStatement | None]] = {
    "CREATE": _create,
    "DROP": _drop,
    "TRUNCATE": _truncate,
    "RENAME": _rename,
    "ALTER": _alter,
}
