"""The effect of a statement on the rows of tables, beyond the row events of its group: by the DDL that `schema` reads.
An unreadable statement may change any table."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ibbmaster.replication.event.statement.logged import DROPS_THE_REST, LoggedStatement, failed
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema import clause as ddl
from ibbmaster.schema.alter_clause import partition_names
from ibbmaster.schema.ddl import WITHOUT_EFFECT, read_ddl, statement_cursor, unsure_after
from ibbmaster.schema.reading import expect_name, expect_table
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.sql_mode import NO_ENGINE_SUBSTITUTION
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import Token, TokenKind, tokens

BLACKHOLE = "BLACKHOLE"
REMEDY = "a MariaDB that replays the log has them (docs/statements.md)"
SHOWN = 60  # characters of a statement in a reason
_DDL = ("CREATE", "DROP", "TRUNCATE", "RENAME", "ALTER")
_BETWEEN_TABLES = (
    *("FROM", "USING", "JOIN", "ON", "AS", "LOW_PRIORITY", "QUICK", "IGNORE", "HISTORY", "ORDER", "BY", "LIMIT"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptied:
    """No older row is left; by TRUNCATE `is_kept`. `is_temporary`: the table is the session's."""

    table: TableName
    is_kept: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseGone:
    """With all its tables."""

    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Older rows belong to another version of their table, with this name."""

    table: TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStep:
    """The rows of some partitions, by names in lower case, () for all, are gone or in another table, perhaps in
    exchange. `is_joined`: that table is now a partition; `is_split`: it is new; `is_dropped`: partitions are gone."""

    table: TableName
    names: tuple[str, ...]
    other: TableName | None = None
    is_dropped: bool = False
    is_joined: bool = False
    is_split: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Rows have changed, unseen; `adds`: also in empty tables. `step`: readers that have the rows can follow it."""

    table: TableName
    reason: str
    adds: bool
    step: PartitionStep | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTables:
    """The statement itself changes these tables; None: any."""

    tables: tuple[TableName, ...] | None
    verb: str
    adds: bool  # also to empty tables
    changes: bool = True  # older rows may be gone, or have other values
    empties: bool = False  # no row is left

    @property
    def reason(self) -> str:
        return in_statement_format(self.verb)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsLost:
    """Any row may have changed, and the log does not show how."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramChanged:
    """From now on statements in statement format may change other tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Substituted:
    """A table got the engine BLACKHOLE, or is LIKE one; unless `is_sure`, a server may have taken another engine."""

    table: TableName
    like: TableName | None = None
    is_sure: bool = False


Effect = Emptied | DatabaseGone | Changed | Unknown | WrittenTables | EventsLost | ProgramChanged | Substituted
#: Events without a statement that say nothing of the rows that they stand for.
LOST: Mapping[int, EventsLost] = {
    EventType.LOAD: EventsLost(reason="LOAD DATA"),
    EventType.NEW_LOAD: EventsLost(reason="LOAD DATA"),
    EventType.INCIDENT: EventsLost(reason="an incident: events are lost"),
}


def effects_of(statement: LoggedStatement, cursor: Cursor | None = None) -> tuple[Effect, ...]:
    """In order; none if no row changes. `cursor` is at the begin of the statement, if it was cut."""
    if not statement.has_effect:
        return ()
    if cursor is None:
        cursor = statement_cursor(statement.text, statement.sql_mode, statement.server_version)
    first = cursor.peek()
    if cursor.is_at_end or first.is_word(*WITHOUT_EFFECT):
        return ()
    try:
        if first.is_word(*_DDL):
            found = read_ddl(cursor, statement.text, statement.database, statement.sql_mode)
            return () if found is None else tuple(_of_ddl(found, statement))
        if first.kind is TokenKind.WORD and (read := _READERS.get(first.text.upper())) is not None:
            cursor.take()
            return read(cursor, statement)
    except ddl.NotUnderstoodError:
        pass
    text = " ".join(statement.text[: 4 * SHOWN].split())
    verb = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
    return (WrittenTables(tables=None, verb=verb, adds=True),)


def _of_ddl(found: ddl.DdlStatement, statement: LoggedStatement) -> Iterator[Effect]:
    if statement.error_code:
        yield from _left(found, statement.error_code)
        return
    match found:
        case ddl.CreateTable():
            yield from _created(found, statement)
        case ddl.CreateSequence():
            yield Emptied(table=found.table)
        case ddl.DropTables():
            yield from (Emptied(table=table, is_temporary=found.is_temporary) for table in found.tables)
        case ddl.TruncateTable():
            yield Emptied(table=found.table, is_kept=True)
        case ddl.CreateDatabase(replaces=True) | ddl.RemoveDatabase():
            yield DatabaseGone(database=found.name)
        case ddl.RenameTables():
            yield from (Changed(table=to) for _, to in found.pairs)
        case ddl.AlterTable():
            yield from _altered(found, statement)
        case ddl.AlterSequence():
            reason = "ALTER SEQUENCE, and no value was taken since"
            yield Unknown(table=found.table, reason=reason, adds=True)
        case ddl.NameProgram() | ddl.CreateView():
            yield ProgramChanged()


def _created(made: ddl.CreateTable, statement: LoggedStatement) -> Iterator[Effect]:
    yield Emptied(table=made.table, is_temporary=made.is_temporary)
    if made.like is not None:
        yield Substituted(table=made.table, like=made.like)
    elif _is_blackhole(made.options.named.get("ENGINE")):
        yield _substituted(made.table, statement)
    if made.selects:
        yield Unknown(table=made.table, reason=in_statement_format("CREATE TABLE … SELECT"), adds=True)


def _altered(altered: ddl.AlterTable, statement: LoggedStatement) -> Iterator[Effect]:
    table = altered.table
    engines = [one.options.named.get("ENGINE") for one in altered.clauses if isinstance(one, ddl.SetOptions)]
    if any(map(_is_blackhole, engines)):
        yield _substituted(table, statement)
    yield Changed(table=table)
    if altered.problem is not None:
        yield from (_touched(one, f"ALTER TABLE … {altered.problem}") for one in (table, *altered.others))
    is_split = any(isinstance(one, ddl.SplitTable) for one in altered.clauses)
    for clause in altered.clauses:
        match clause:
            case ddl.SplitTable(other=other, is_gone=is_gone):
                step = PartitionStep(
                    table=table, names=_split_names(altered), other=other, is_joined=is_gone, is_split=not is_gone
                )
                yield from _moved("CONVERT TABLE" if is_gone else "CONVERT PARTITION", step)
            case ddl.AlterRows(other=TableName() as other):
                yield from _moved(clause.what, PartitionStep(table=table, names=clause.partitions or (), other=other))
            case ddl.AlterRows(partitions=tuple() as names):
                yield _touched(table, clause.what, PartitionStep(table=table, names=names))
            case ddl.AlterRows():
                yield _touched(table, clause.what)
            case ddl.AlterPartitions(verb="DROP") if not is_split:
                names = partition_names(Cursor(tokens(clause.text)))
                yield _touched(table, "DROP PARTITION", PartitionStep(table=table, names=names, is_dropped=True))
    if altered.to is not None:
        yield Changed(table=altered.to)


def _split_names(altered: ddl.AlterTable) -> tuple[str, ...]:
    for clause in altered.clauses:
        if isinstance(clause, ddl.AlterPartitions):
            cursor = Cursor(tokens(clause.text))
            cursor = Cursor(cursor.bracketed()) if cursor.peek().is_sign("(") else cursor
            cursor.takes_words("PARTITION")
            return (expect_name(cursor).lower(),)
    return ()


def _touched(table: TableName, what: str, step: PartitionStep | None = None) -> Unknown:
    reason = f"{what} changes or removes rows"
    return Unknown(table=table, reason=reason, adds=what.startswith("IMPORT"), step=step)


def _moved(what: str, step: PartitionStep) -> Iterator[Effect]:
    assert step.other is not None
    reason = f"{what} moves rows between {step.table} and {step.other}"
    yield from (Unknown(table=one, reason=reason, adds=True, step=step) for one in (step.table, step.other))


def _is_blackhole(engine: str | None) -> bool:
    return engine is not None and engine.upper() == BLACKHOLE


def _substituted(table: TableName, statement: LoggedStatement) -> Substituted:
    return Substituted(table=table, is_sure=bool(statement.sql_mode & NO_ENGINE_SUBSTITUTION))


def _left(found: ddl.DdlStatement, error_code: int) -> Iterator[Effect]:
    """What a failed statement left: CREATE OR REPLACE has dropped the older table."""
    match found:
        case ddl.CreateTable() | ddl.CreateSequence() if found.replaces:
            yield Emptied(table=found.table)
        case ddl.DropTables() if error_code in DROPS_THE_REST:
            yield from (Emptied(table=table) for table in found.tables)
        case ddl.RemoveDatabase():
            yield DatabaseGone(database=found.name)
        case ddl.NameProgram() | ddl.CreateView():
            yield ProgramChanged()
        case _:
            verb, tables = unsure_after(found)
            for table in tables:
                yield Changed(table=table)
                yield _touched(table, failed(verb, error_code))


Effects = tuple[Effect, ...]


def in_statement_format(verb: str) -> str:
    return f"{verb} in statement format may have changed rows: {REMEDY}"


def _begin(cursor: Cursor, statement: LoggedStatement) -> Effects:
    if cursor.peek().is_word("NOT"):
        raise ddl.NotUnderstoodError("BEGIN NOT ATOMIC runs statements")
    return ()


def _analyze(cursor: Cursor, statement: LoggedStatement) -> Effects:
    cursor.pass_words("NO_WRITE_TO_BINLOG", "LOCAL")
    if not cursor.peek().is_word("TABLE", "TABLES"):
        raise ddl.NotUnderstoodError("ANALYZE runs a statement")
    return ()


def _insert(verb: str) -> Callable[[Cursor, LoggedStatement], Effects]:
    def read(cursor: Cursor, statement: LoggedStatement) -> Effects:
        cursor.pass_words("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO")
        table = expect_table(cursor, statement.database)
        changes = verb == "REPLACE" or "DUPLICATE" in statement.text.upper()
        return (WrittenTables(tables=(table,), verb=verb, adds=True, changes=changes),)

    return read


def _load(cursor: Cursor, statement: LoggedStatement) -> Effects:
    while not cursor.is_at_end and not cursor.takes_words("INTO", "TABLE"):
        cursor.take()
    table = expect_table(cursor, statement.database)
    return (WrittenTables(tables=(table,), verb="LOAD DATA", adds=True, changes="REPLACE" in statement.text.upper()),)


def _update(cursor: Cursor, statement: LoggedStatement) -> Effects:
    tables = _named(_before(cursor, "SET"), statement.database)
    return (WrittenTables(tables=tables, verb="UPDATE", adds=False),)


def _delete(cursor: Cursor, statement: LoggedStatement) -> Effects:
    head = _before(cursor, "WHERE")
    plain = Cursor(head)
    plain.pass_words("LOW_PRIORITY", "QUICK")
    is_plain = plain.takes_words("FROM") and plain.table(statement.database) is not None
    plain.takes_sign(";")
    empties = is_plain and plain.is_at_end and cursor.is_at_end and not statement.error_code
    return (WrittenTables(tables=_named(head, statement.database), verb="DELETE", adds=False, empties=empties),)


def _before(cursor: Cursor, end: str) -> list[Token]:
    found: list[Token] = []
    depth = 0
    while not cursor.is_at_end and (depth or not cursor.peek().is_word(end)):
        token = cursor.take()
        depth += token.is_sign("(") - token.is_sign(")")
        found.append(token)
    return found


def _named(head: Iterable[Token], database: str) -> tuple[TableName, ...]:
    """Possible tables in the head of an UPDATE or DELETE. Raises NotUnderstoodError: none."""
    cursor, tables = Cursor(head), dict[TableName, None]()
    while not cursor.is_at_end:
        if cursor.peek().is_word(*_BETWEEN_TABLES) or not cursor.peek().is_name:
            cursor.take()
            continue
        name = TableName(database, cursor.take().text)
        if cursor.takes_sign("."):
            second = cursor.name()  # DELETE t.* names t
            name = name if second is None else TableName(name.name, second)
        tables[name] = None
    if not tables:
        raise ddl.NotUnderstoodError("a change of no table")
    return tuple(tables)


_READERS: dict[str, Callable[[Cursor, LoggedStatement], Effects]] = {
    "BEGIN": _begin,
    "ANALYZE": _analyze,
    "INSERT": _insert("INSERT"),
    "REPLACE": _insert("REPLACE"),
    "LOAD": _load,
    "UPDATE": _update,
    "DELETE": _delete,
}
