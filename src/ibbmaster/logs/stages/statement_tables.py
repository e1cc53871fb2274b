"""The tables that a logged statement concerns."""

from dataclasses import dataclass
from enum import StrEnum

from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.rows.effects import WrittenTables, effects_of
from ibbmaster.schema import clause as clauses
from ibbmaster.schema.ddl import read_ddl, statement_cursor
from ibbmaster.schema.reading import expect_table
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.table_name import TableName

#: Statements that end or divide a transaction.
_CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA", "START")
_DDL = ("CREATE", "DROP", "TRUNCATE", "RENAME", "ALTER")
_MAINTENANCE = ("OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM", "ANALYZE")  # of tables: no value changes
_OF_SERVER = ("FLUSH", "RESET", "PURGE", "CHANGE", "KILL", "BACKUP", "SHOW", "USE", "LOCK", "UNLOCK", "COMMENT")
_ACCOUNTS = ("GRANT", "REVOKE", "SET", "INSTALL", "UNINSTALL")  # SET PASSWORD, SET DEFAULT ROLE
ACCOUNTS = TableName("mysql", "global_priv")  # changed by statements about accounts


class StatementKind(StrEnum):
    CONTROL = "control"  # of transactions
    DDL = "ddl"  # definitions, accounts, maintenance
    CHANGE = "statements"  # of rows, in statement format


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """The tables that a statement changes, makes or removes, and whole databases. `is_tolerant`: some may be missing.
    `trigger`: it drops this one, of an unnamed table of its database."""

    kind: StatementKind
    tables: tuple[TableName, ...] = ()
    databases: tuple[str, ...] = ()
    is_tolerant: bool = False
    trigger: TableName | None = None


def touched_by(statement: LoggedStatement) -> Touched:
    """Without tables that a statement only reads. Raises NotUnderstoodError: what it concerns is not known."""
    cursor = statement_cursor(statement.text, statement.sql_mode, statement.server_version)
    first = cursor.peek()
    if first.is_word("BEGIN") and cursor.peek(1).is_word("NOT"):
        raise clauses.NotUnderstoodError("BEGIN NOT ATOMIC runs statements")
    if cursor.is_at_end or first.is_word(*_CONTROL):
        return Touched(kind=StatementKind.CONTROL)
    if first.is_word(*_MAINTENANCE):
        return Touched(kind=StatementKind.DDL, tables=_listed(cursor, statement.database), is_tolerant=True)
    if first.is_word(*_OF_SERVER):
        return Touched(kind=StatementKind.DDL)
    if first.is_word(*_ACCOUNTS):
        return Touched(kind=StatementKind.DDL, tables=(ACCOUNTS,))
    if first.is_word(*_DDL):
        found = read_ddl(cursor, statement.text, statement.database, statement.sql_mode)
        return Touched(kind=StatementKind.DDL, tables=(ACCOUNTS,)) if found is None else _of_ddl(found, statement)
    return _of_change(statement)


def _of_change(statement: LoggedStatement) -> Touched:
    tables: dict[TableName, None] = {}
    for effect in effects_of(statement):
        if not isinstance(effect, WrittenTables) or effect.tables is None:
            raise clauses.NotUnderstoodError(f"{_shown(statement.text)!r} may change rows of any table")
        tables |= dict.fromkeys(effect.tables)
    return Touched(kind=StatementKind.CHANGE, tables=tuple(tables))


def _of_ddl(found: clauses.DdlStatement, statement: LoggedStatement) -> Touched:
    match found:
        case clauses.CreateDatabase() | clauses.RemoveDatabase():
            return Touched(kind=StatementKind.DDL, databases=(found.name,))
        case clauses.NameProgram(table=TableName() as table):
            return Touched(kind=StatementKind.DDL, tables=(table,))
        case clauses.NameProgram():
            return Touched(
                kind=StatementKind.DDL,
                databases=(found.name.database or statement.database,),
                is_tolerant=found.is_conditional,
                trigger=found.name if found.kind == "TRIGGER" else None,
            )
        case clauses.DropTables():
            return Touched(kind=StatementKind.DDL, tables=found.tables, is_tolerant=_drops_if_there(statement))
        case clauses.RenameTables():
            return Touched(kind=StatementKind.DDL, tables=tuple(name for pair in found.pairs for name in pair))
        case clauses.AlterTable():
            return Touched(kind=StatementKind.DDL, tables=tuple(_altered(found)))
        case (
            clauses.CreateTable()
            | clauses.CreateView()
            | clauses.CreateSequence()
            | clauses.AlterSequence()
            | clauses.TruncateTable()
        ):
            return Touched(kind=StatementKind.DDL, tables=(found.table,))


def _drops_if_there(statement: LoggedStatement) -> bool:
    cursor = statement_cursor(statement.text, statement.sql_mode, statement.server_version)
    cursor.take()
    cursor.takes_words("TEMPORARY")
    cursor.take()
    return cursor.pass_condition()


def _altered(found: clauses.AlterTable) -> dict[TableName, None]:
    tables = dict.fromkeys((found.table, *found.others))
    if found.to is not None:
        tables[found.to] = None
    for clause in found.clauses:
        if isinstance(clause, clauses.SplitTable | clauses.AlterRows) and clause.other is not None:
            tables[clause.other] = None
    return tables


def _listed(cursor: Cursor, database: str) -> tuple[TableName, ...]:
    cursor.take()
    cursor.pass_words("NO_WRITE_TO_BINLOG", "LOCAL")
    if not cursor.peek().is_word("TABLE", "TABLES", "VIEW"):
        raise clauses.NotUnderstoodError("maintenance of no table")
    cursor.take()
    found = [expect_table(cursor, database)]
    while cursor.takes_sign(","):
        found.append(expect_table(cursor, database))
    return tuple(found)


def _shown(text: str) -> str:
    line = " ".join(text[:240].split())
    return line if len(line) <= 60 else line[:59] + "…"
