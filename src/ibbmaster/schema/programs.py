"""Triggers, routines and events: where they are, and the statements that made them, as the log has them.

A server logs a routine as SHOW CREATE prints it, and a trigger or an event as it was written, each with its definer.
Nothing is read of parameters, characteristics, schedules and bodies.
"""

import contextlib
from dataclasses import dataclass, replace

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.schema.clause import NameProgram, NotUnderstoodError
from ibbmaster.schema.collations import charset_of_collation, collation_name
from ibbmaster.schema.name_case import lower_name
from ibbmaster.schema.reading import expect_name, expect_table, fail
from ibbmaster.sqltext.cursor import PlacedCursor
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.sql_mode import ANSI_QUOTES

TRIGGER, EVENT, PROCEDURE, FUNCTION = "TRIGGER", "EVENT", "PROCEDURE", "FUNCTION"
PACKAGES = ("PACKAGE", "PACKAGE BODY")
ROUTINES = (PROCEDURE, FUNCTION, *PACKAGES)
_END = " \t\r\n;"  # what a server cuts off at the end of a statement


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProgram:
    """A program at one place of a log.

    Attributes:
        kind: TRIGGER, FUNCTION, PROCEDURE, PACKAGE, PACKAGE BODY or EVENT.
        table: of a trigger, in its database.
        order: of a trigger: a smaller one runs before a larger one of the same table, time and event.
        text: the statement that made it, without OR REPLACE; None after an ALTER, which changes what that says.
        sql_mode: under which it was created, as a QUERY event has it.
        definer: `user@host`; nothing where neither the statement nor its event names it.
        client, connection, of_database: character set of the client, collations of the connection and of the
            database, when it was created; nothing where the event does not have them.
        time_zone: in which an event counted when it was created.
        created, modified: microseconds since 1970; None where that is not known.
        originator: the server where an event was created.
    """

    kind: str
    database: str
    name: str
    table: str = ""
    order: int = 0
    text: str | None
    sql_mode: int = 0
    definer: str = ""
    client: str = ""
    connection: str = ""
    of_database: str = ""
    time_zone: str = "SYSTEM"
    created: int | None = None
    modified: int | None = None
    originator: int = 0


def program_key(database: str, kind: str, name: str) -> tuple[str, str, str]:
    """What a program is found by: the letters of a trigger's name matter, those of others do not."""
    return database, kind, name if kind == TRIGGER else lower_name(name)


def created_program(
    statement: LoggedStatement, found: NameProgram, of_database: str, moment_us: int | None, gtid: str | None
) -> StoredProgram:
    """The program that a statement has made.

    `of_database` is the collation of its database, `moment_us` when the statement began.
    """
    client, connection = _characters(statement)
    text, definer = statement.text.rstrip(_END), statement.invoker
    with contextlib.suppress(NotUnderstoodError):
        text, definer = _shown(text, found, statement)
    return StoredProgram(
        kind=found.kind,
        database=found.name.database,
        name=found.name.name,
        table="" if found.table is None else found.table.name,
        text=text,
        sql_mode=statement.sql_mode,
        definer=definer,
        client=client,
        connection=connection,
        of_database=of_database,
        time_zone=statement.time_zone or "SYSTEM",
        created=moment_us,
        modified=moment_us,
        originator=int(gtid.split("-")[1]) if gtid is not None else 0,
    )


def altered_program(
    program: StoredProgram, found: NameProgram, statement: LoggedStatement, moment_us: int | None
) -> StoredProgram:
    """A routine or an event after ALTER; the latter by the name that this gives it, if only in other letters."""
    program = replace(program, text=None, modified=moment_us)
    if program.kind != EVENT:
        return program
    client, connection = _characters(statement)
    definer = statement.invoker or program.definer
    program = replace(program, name=found.name.name, definer=definer, client=client, connection=connection)
    cursor = PlacedCursor(statement.text, statement.sql_mode)
    while not (cursor.is_at_end or cursor.peek().is_word("DO")):
        if cursor.takes_words("RENAME", "TO"):
            name = expect_table(cursor, statement.database)
            return replace(program, database=name.database, name=name.name)
        cursor.take()
    return program


def _characters(statement: LoggedStatement) -> tuple[str, str]:
    """Character set of the client and collation of the connection, where they are given."""
    client, connection = (
        None if number is None else collation_name(number)
        for number in (statement.client_collation, statement.connection_collation)
    )
    return charset_of_collation(client) if client is not None else "", connection or ""


def _shown(text: str, found: NameProgram, statement: LoggedStatement) -> tuple[str, str]:
    """What SHOW CREATE has of a statement, and its definer.

    A trigger has lost its place in the order, another program its condition and its database: then a dump can be read
    anywhere.
    """
    cursor = PlacedCursor(text, statement.sql_mode)
    begin, definer = _take_definer(cursor, statement.invoker)
    if found.kind == TRIGGER:
        parts = trigger_parts(text, statement.sql_mode)
        return f"CREATE {text[begin : parts.row_end]}{text[parts.body_start :]}", definer
    _take_kind(cursor)
    kind_end = cursor.end
    cursor.pass_condition()
    expect_table(cursor, "")
    name = _identifier(found.name.name, statement.sql_mode)
    return f"CREATE {text[begin:kind_end]} {name}{text[cursor.end :]}", definer


def _take_definer(cursor: PlacedCursor, invoker: str) -> tuple[int, str]:
    """Take `CREATE [OR REPLACE] [DEFINER = …]`: where DEFINER or what follows it begins, and who that is."""
    if not cursor.takes_words("CREATE"):
        raise fail(cursor, "CREATE")
    cursor.takes_words("OR", "REPLACE")
    begin = cursor.start
    if not cursor.takes_words("DEFINER"):
        return begin, invoker
    cursor.takes_sign("=")
    is_invoker = cursor.peek().is_word("CURRENT_USER", "CURRENT_ROLE")
    user = cursor.take().text
    if is_invoker:
        cursor.bracketed()
        return begin, invoker
    host = cursor.host()
    return begin, user if host is None else f"{user}@{host}"  # a role has no host


def _take_kind(cursor: PlacedCursor) -> None:
    cursor.takes_words("AGGREGATE")
    if cursor.takes_words("PACKAGE"):
        cursor.takes_words("BODY")
    else:
        cursor.take()


def _identifier(name: str, sql_mode: int) -> str:
    """A name in the quotes of this sql_mode."""
    return '"' + name.replace('"', '""') + '"' if sql_mode & ANSI_QUOTES else quoted_name(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerParts:
    """A trigger in the words of information_schema.

    `on` is where ON and the name of the table stand in the text. `ordering` are FOLLOWS or PRECEDES and the trigger
    that it is about; `row_end` is the place before them, `body_start` the one after them.
    """

    timing: str
    events: str
    on: tuple[int, int]
    row_end: int
    ordering: tuple[str, str] | None
    body_start: int
    body: str


def trigger_parts(text: str, sql_mode: int) -> TriggerParts:
    """Read CREATE TRIGGER.

    Raises:
        NotUnderstoodError: it is no such statement.
    """
    cursor = PlacedCursor(text, sql_mode)
    _take_definer(cursor, "")
    _take_kind(cursor)
    cursor.pass_condition()
    expect_table(cursor, "")
    timing = cursor.take().text.upper()
    events = [cursor.take().text.upper()]
    while cursor.takes_words("OR"):
        events.append(cursor.take().text.upper())
    while not cursor.is_at_end and not cursor.peek().is_word("ON"):
        cursor.take()  # OF columns
    on = cursor.start
    cursor.take()
    expect_table(cursor, "")
    behind = cursor.start
    if not (cursor.takes_words("FOR", "EACH", "ROW") and timing in ("BEFORE", "AFTER")):
        raise fail(cursor, "FOR EACH ROW")
    row_end, ordering = cursor.end, None
    if cursor.peek().is_word("FOLLOWS", "PRECEDES") and not cursor.peek(1).is_sign(":"):
        ordering = (cursor.take().text.upper(), expect_name(cursor))
    return TriggerParts(
        timing=timing,
        events=",".join(events),
        on=(on, behind),
        row_end=row_end,
        ordering=ordering,
        body_start=cursor.end,
        body=text[cursor.start :].rstrip(_END),
    )


def moved_trigger(trigger: StoredProgram, table: str) -> StoredProgram:
    """A trigger whose table has another name now."""
    assert trigger.text is not None  # there is no ALTER TRIGGER
    text = trigger.text
    with contextlib.suppress(NotUnderstoodError):
        start, end = trigger_parts(text, trigger.sql_mode).on
        text = f"{text[:start]}ON {_identifier(table, trigger.sql_mode)} {text[end:]}"
    return replace(trigger, table=table, text=text)
