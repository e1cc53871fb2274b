"""Triggers, routines and events as rows of information_schema, of which SHOW picks columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ibbmaster.dialogue.relation import RowValues
from ibbmaster.dialogue.table_columns import information_columns
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.collations import character_sets
from ibbmaster.schema.column_text import type_text
from ibbmaster.schema.column_type import resolve_type
from ibbmaster.schema.describing import CATALOG, type_sizes
from ibbmaster.schema.event_schedule import EventParts, parts_of_event
from ibbmaster.schema.program_text import RoutineParts, routine_parameters, routine_parts, trigger_parts
from ibbmaster.schema.session import SchemaSession
from ibbmaster.schema.stored_program import EVENT, FUNCTION, PACKAGES, ROUTINES, TRIGGER, StoredProgram
from ibbmaster.sqltext.moment import moment_text
from ibbmaster.sqltext.sql_mode import sql_mode_text

_EVENTS = ("INSERT", "UPDATE", "DELETE")
#: Columns of information_schema that SHOW has, in its order.
SHOWN_COLUMNS = {
    "TRIGGERS": (
        "TRIGGER_NAME EVENT_MANIPULATION EVENT_OBJECT_TABLE ACTION_STATEMENT ACTION_TIMING CREATED SQL_MODE DEFINER "
        "CHARACTER_SET_CLIENT COLLATION_CONNECTION DATABASE_COLLATION"
    ),
    "ROUTINES": (
        "ROUTINE_SCHEMA ROUTINE_NAME ROUTINE_TYPE DEFINER LAST_ALTERED CREATED SECURITY_TYPE ROUTINE_COMMENT "
        "CHARACTER_SET_CLIENT COLLATION_CONNECTION DATABASE_COLLATION"
    ),
    "EVENTS": (
        "EVENT_SCHEMA EVENT_NAME DEFINER TIME_ZONE EVENT_TYPE EXECUTE_AT INTERVAL_VALUE INTERVAL_FIELD STARTS ENDS "
        "STATUS ORIGINATOR CHARACTER_SET_CLIENT COLLATION_CONNECTION DATABASE_COLLATION"
    ),
}


class ProgramReader(NamedTuple):
    """What rows depend on beside the programs.

    `zone_s` are the seconds that the session is before UTC; with `is_uca` a character set that is named alone has
    the collation of a newer server, whenever the program was created.
    """

    zone_s: int
    is_uca: bool

    @property
    def session(self) -> SchemaSession:
        """The meaning of character sets that are named alone."""
        sets = character_sets().values()
        return SchemaSession(collations={each.name: each.default_collation(is_uca=self.is_uca) for each in sets})


def moment(microseconds: int | None, zone_s: int, digits: int = 0) -> str | None:
    """A moment in the time zone of the session."""
    return None if microseconds is None else moment_text(microseconds + zone_s * 10**6, digits)


def _characters(program: StoredProgram) -> RowValues:
    return program.client, program.connection, program.of_database


def trigger_rows(programs: Iterable[StoredProgram], reader: ProgramReader) -> Iterator[RowValues]:
    """The rows of TRIGGERS, in the order in which they run."""
    found = []
    for program in programs:
        if program.kind == TRIGGER:
            try:
                parts = trigger_parts(program.text, program.sql_mode)
                found.append((program, parts.events, parts.timing, parts.body))
            except NotUnderstoodError:
                found.append((program, "", "", program.text))

    def place(one: tuple[StoredProgram, str, str, str]) -> tuple[str, str, int, bool]:
        program, events, timing, _ = one
        first = events.partition(",")[0]
        return program.database, program.table, _EVENTS.index(first) if first in _EVENTS else 9, timing == "AFTER"

    found.sort(key=lambda one: (*place(one), one[0].order))
    for _, group in itertools.groupby(found, key=place):
        for number, (program, events, timing, body) in enumerate(group, 1):
            yield (
                *(CATALOG, program.database, program.name, events),
                *(CATALOG, program.database, program.table, number),
                *(None, body, "ROW", timing, None, None, "OLD", "NEW"),
                moment(program.created, reader.zone_s, 2),
                sql_mode_text(program.sql_mode),
                program.definer or None,
                *_characters(program),
            )


def routine_rows(programs: Iterable[StoredProgram], reader: ProgramReader) -> Iterator[RowValues]:
    """The rows of ROUTINES."""
    for program in programs:
        if program.kind not in ROUTINES:
            continue
        parts = _routine_parts(program)
        returned: RowValues = ("", *(None,) * 8) if program.kind != FUNCTION else (None,) * 9
        if parts is not None and program.kind == FUNCTION:
            returned = next((row[2:] for row in _typed(program, parts, reader)), returned)
        yield (
            *(program.name, CATALOG, program.database, program.name, program.kind),
            *returned,
            "SQL",
            program.text if parts is None else parts.body,
            *(None, None, "SQL"),
            None if parts is None else "YES" if parts.is_deterministic else "NO",
            None if parts is None else parts.access,
            None,
            None if parts is None else parts.security,
            moment(program.created, reader.zone_s),
            moment(program.modified, reader.zone_s),
            sql_mode_text(program.sql_mode),
            program.problem or ("" if parts is None else parts.comment),
            program.definer,
            *_characters(program),
        )


def parameter_rows(programs: Iterable[StoredProgram], reader: ProgramReader) -> Iterator[RowValues]:
    """The rows of PARAMETERS: of a function first what it returns, as number 0."""
    for program in programs:
        if program.kind not in ROUTINES or program.kind in PACKAGES:
            continue
        parts = _routine_parts(program)
        if parts is None:
            continue
        numbers = itertools.count(0 if program.kind == FUNCTION else 1)
        for number, row in zip(numbers, _typed(program, parts, reader), strict=False):
            yield CATALOG, program.database, program.name, number, *row, program.kind


def _routine_parts(program: StoredProgram) -> RoutineParts | None:
    try:
        return routine_parts(program.kind, program.text, program.sql_mode)
    except NotUnderstoodError:
        return None


def _typed(program: StoredProgram, parts: RoutineParts, reader: ProgramReader) -> list[RowValues]:
    """Mode and name of each parameter, and its columns from DATA_TYPE on; none where a type is not known."""
    try:
        found: list[RowValues] = []
        for parameter in routine_parameters(parts, program.sql_mode):
            kind = resolve_type(parameter.type, program.of_database, reader.session)
            sizes = type_sizes(kind)
            found.append((parameter.mode, parameter.name, kind.word, *sizes, type_text(kind)))
        return found
    except (NotUnderstoodError, KeyError):
        return []


def event_rows(programs: Iterable[StoredProgram], reader: ProgramReader) -> Iterator[RowValues]:
    """The rows of EVENTS; one whose schedule is not known says why in its comment."""
    for program in programs:
        if program.kind != EVENT:
            continue
        known = _event_parts(program)
        parts, is_known = known or EventParts(), known is not None
        yield (
            *(CATALOG, program.database, program.name, program.definer, program.time_zone, "SQL"),
            parts.body if is_known else program.text,
            ("ONE TIME" if parts.at is not None else "RECURRING") if is_known else None,
            *(parts.at, parts.value, parts.field, sql_mode_text(program.sql_mode), parts.starts, parts.ends),
            parts.status if is_known else None,
            ("PRESERVE" if parts.preserves else "NOT PRESERVE") if is_known else None,
            moment(program.created, reader.zone_s),
            moment(program.modified, reader.zone_s),
            None,
            program.problem or parts.comment,
            program.originator,
            *_characters(program),
        )


def _event_parts(event: StoredProgram) -> EventParts | None:
    """None where the schedule is not known."""
    try:
        return parts_of_event(event) if event.problem is None else None
    except NotUnderstoodError:
        return None


ROWS: dict[str, Callable[[Iterable[StoredProgram], ProgramReader], Iterator[RowValues]]] = {
    "TRIGGERS": trigger_rows,
    "ROUTINES": routine_rows,
    "EVENTS": event_rows,
    "PARAMETERS": parameter_rows,
}


def shown_rows(table: str, programs: Iterable[StoredProgram], reader: ProgramReader) -> list[RowValues]:
    """What SHOW TRIGGERS, SHOW PROCEDURE STATUS and SHOW EVENTS list of some programs."""
    names = [column.name for column in information_columns(table)]
    places = [names.index(name) for name in SHOWN_COLUMNS[table].split()]
    return [tuple(row[place] for place in places) for row in ROWS[table](programs, reader)]
