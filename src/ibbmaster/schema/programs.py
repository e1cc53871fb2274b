"""What CREATE and ALTER make of triggers, routines and events."""

from __future__ import annotations

from dataclasses import replace

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.schema.clause import NameProgram, NotUnderstoodError
from ibbmaster.schema.collations import charset_of_collation, collation_name
from ibbmaster.schema.event_schedule import EventParts, event_text, parts_of_event, read_event
from ibbmaster.schema.program_text import (
    definer_clause,
    routine_parts,
    routine_text,
    take_characteristics,
    take_head,
    trigger_parts,
    trigger_text,
)
from ibbmaster.schema.stored_program import EVENT, TRIGGER, StoredProgram
from ibbmaster.sqltext.cursor import PlacedCursor
from ibbmaster.sqltext.table_name import printed_table


def created_program(
    statement: LoggedStatement, found: NameProgram, of_database: str, moment_us: int | None, gtid: str | None
) -> StoredProgram | None:
    """The program that a statement has made; None of an event that was over when it was created.

    `of_database` is the collation of its database, `moment_us` when the statement began.
    """
    client, connection = _characters(statement)
    program = StoredProgram(
        kind=found.kind,
        database=found.name.database,
        name=found.name.name,
        table="" if found.table is None else found.table.name,
        text=statement.text,
        sql_mode=statement.sql_mode,
        definer=statement.invoker,
        of_database=of_database,
        created=moment_us,
        modified=moment_us,
        originator=_server_of(gtid),
        client=client,
        connection=connection,
    )
    if found.kind == EVENT:
        return _created_event(program, statement)
    try:
        if found.kind == TRIGGER:
            parts = trigger_parts(statement.text, statement.sql_mode, statement.invoker)
            definer = statement.invoker if parts.definer is None else parts.definer
            text = trigger_text(statement.text, parts, definer, statement.sql_mode)
        else:
            routine = routine_parts(found.kind, statement.text, statement.sql_mode, statement.invoker)
            definer = statement.invoker if routine.definer is None else routine.definer
            text = routine_text(found.kind, found.name.name, routine, definer, statement.sql_mode)
    except NotUnderstoodError:
        return _as_written(program, statement)
    return replace(program, definer=definer, text=text)


def _as_written(program: StoredProgram, statement: LoggedStatement) -> StoredProgram:
    """A program of which only the head is understood: its text as it was logged, but for OR REPLACE."""
    try:
        head = take_head(PlacedCursor(statement.text, statement.sql_mode), statement.invoker)
    except NotUnderstoodError:
        return program
    definer = statement.invoker if head.definer is None else head.definer
    aggregate = "AGGREGATE " if head.is_aggregate else ""
    text = f"CREATE {definer_clause(definer, statement.sql_mode)}{aggregate}{statement.text[head.kind_start :]}"
    return replace(program, definer=definer, text=text)


def _created_event(program: StoredProgram, statement: LoggedStatement) -> StoredProgram | None:
    zone = statement.time_zone or program.time_zone
    try:
        change = read_event(
            statement.text, statement.sql_mode, program.created or 0, zone, EventParts(), statement.invoker
        )
        if not (change.has_schedule and change.has_body):
            raise NotUnderstoodError("not written")
    except NotUnderstoodError as error:
        program = _as_written(program, statement)
        return replace(program, time_zone=zone, problem=f"the schedule of event {_name(program)} is {error}")
    if change.is_over:
        return None
    definer = statement.invoker if change.definer is None else change.definer
    text = event_text(program.name, change.parts, definer)
    return replace(program, definer=definer, text=text, time_zone=zone)


def altered_event(event: StoredProgram, statement: LoggedStatement, moment_us: int | None) -> StoredProgram:
    """An event after ALTER EVENT, perhaps with another name."""
    zone = statement.time_zone or event.time_zone
    client, connection = _characters(statement)
    definer = statement.invoker or event.definer
    event = replace(event, modified=moment_us, definer=definer, client=client, connection=connection)
    try:
        old = EventParts() if event.problem is not None else parts_of_event(event)
        change = read_event(statement.text, statement.sql_mode, moment_us or 0, zone, old, statement.invoker)
    except NotUnderstoodError as error:
        return replace(event, problem=f"the schedule of event {_name(event)} is {error}")
    database, name = change.to or ("", event.name)
    sql_mode = statement.sql_mode if change.has_body else event.sql_mode
    event = replace(
        event,
        database=database or (statement.database if change.to else event.database),
        name=name,
        sql_mode=sql_mode,
        definer=event.definer if change.definer is None else change.definer,
        time_zone=zone if change.has_schedule else event.time_zone,
    )
    if event.problem is not None and not (change.has_schedule and change.has_body):
        return event
    return replace(event, text=event_text(name, change.parts, event.definer), problem=None)


def altered_routine(routine: StoredProgram, statement: LoggedStatement, moment_us: int | None) -> StoredProgram:
    """A routine after ALTER PROCEDURE or ALTER FUNCTION."""
    routine = replace(routine, modified=moment_us)
    cursor = PlacedCursor(statement.text, statement.sql_mode)
    try:
        take_head(cursor, statement.invoker)
        parts = routine_parts(routine.kind, routine.text, routine.sql_mode)
        parts = take_characteristics(cursor, parts)
    except NotUnderstoodError as error:
        return replace(routine, problem=f"{routine.kind} {_name(routine)} was altered, and is {error}")
    text = routine_text(routine.kind, routine.name, parts, routine.definer, routine.sql_mode)
    return replace(routine, text=text)


def called(routine: StoredProgram, name: str) -> StoredProgram:
    """A routine by the name that it is asked for by: SHOW CREATE prints that."""
    if name == routine.name:
        return routine
    try:
        parts = routine_parts(routine.kind, routine.text, routine.sql_mode)
    except NotUnderstoodError:
        return routine
    text = routine_text(routine.kind, name, parts, routine.definer, routine.sql_mode)
    return replace(routine, name=name, text=text)


def _characters(statement: LoggedStatement) -> tuple[str, str]:
    """Character set of the client and collation of the connection, where they are given."""
    client, connection = (
        None if number is None else collation_name(number)
        for number in (statement.client_collation, statement.connection_collation)
    )
    return charset_of_collation(client) if client is not None else "", connection or ""


def _server_of(gtid: str | None) -> int:
    return int(gtid.split("-")[1]) if gtid is not None else 0


def _name(program: StoredProgram) -> str:
    return printed_table(program.database, program.name)
