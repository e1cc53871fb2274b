"""Triggers, routines and events as DDL leaves them: their text, and what gives it its meaning."""

from __future__ import annotations

from dataclasses import dataclass

TRIGGER, EVENT, PROCEDURE, FUNCTION = "TRIGGER", "EVENT", "PROCEDURE", "FUNCTION"
PACKAGES = ("PACKAGE", "PACKAGE BODY")
ROUTINES = (PROCEDURE, FUNCTION, *PACKAGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProgram:
    """A program at one place of a log.

    Attributes:
        kind: TRIGGER, FUNCTION, PROCEDURE, PACKAGE, PACKAGE BODY or EVENT.
        table: of a trigger, in its database.
        order: of a trigger: a smaller one runs before a larger one of the same table, time and event.
        text: what SHOW CREATE gives; of an event whose schedule is not known, the statement.
        problem: why the schedule of an event is not known.
        sql_mode: under which it runs, as a QUERY event has it.
        definer: `user@host`; nothing where neither the statement nor its event names it.
        client, connection, of_database: character set of the client, collations of the connection and of the
            database, when it was created; nothing where the event does not have them.
        time_zone: in which an event counts.
        created, modified: microseconds since 1970; None where that is not known.
        originator: the server where an event was created.
    """

    kind: str
    database: str
    name: str
    table: str = ""
    order: int = 0
    text: str
    problem: str | None = None
    sql_mode: int = 0
    definer: str = ""
    client: str = ""
    connection: str = ""
    of_database: str = ""
    time_zone: str = "SYSTEM"
    created: int | None = None
    modified: int | None = None
    originator: int = 0
