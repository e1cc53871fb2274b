"""Answers to SHOW about triggers, routines and events. Loaded when one is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ibbmaster.dialogue.program_rows import ProgramReader, moment, shown_rows
from ibbmaster.dialogue.refusal import RefusedError, no_database
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.session_schema import UNKNOWN_SCHEMA, SessionSchema
from ibbmaster.dialogue.statement import Show
from ibbmaster.dialogue.table_columns import SHOWN, read_columns
from ibbmaster.schema.programs import called
from ibbmaster.schema.stored_program import EVENT, TRIGGER, StoredProgram
from ibbmaster.sqltext.sql_mode import sql_mode_text

_STATUS = " STATUS"


@dataclass(frozen=True, slots=True)
class ProgramShower:
    """Answers for one statement."""

    schema: SessionSchema
    reader: ProgramReader

    def listed(self, show: Show, default: str) -> Relation:
        """SHOW TRIGGERS, SHOW EVENTS, and SHOW PROCEDURE STATUS with its like; `default` is the session's database.

        Raises:
            RefusedError: there is no such database.
        """
        if show.what.endswith(_STATUS):
            kind = show.what.removesuffix(_STATUS)
            programs = [program for program in self.schema.programs() if program.kind == kind]
            return Relation(read_columns(SHOWN["PROCEDURE STATUS"]), shown_rows("ROUTINES", programs, self.reader))
        name = show.database or default
        if not name:
            raise no_database()
        if show.what == "TRIGGERS":
            name = self.schema.database(name).name
        rows = shown_rows(show.what, self.schema.programs(name), self.reader)
        return Relation(read_columns(SHOWN[show.what]), rows)

    def created(self, kind: str, database: str, name: str) -> Relation | None:
        """SHOW CREATE of a program; None if there is none.

        Raises:
            RefusedError: there is one, and it is not known what it is.
        """
        program = self.schema.program(database, kind, name)
        if program is None:
            return None
        if program.problem is not None:
            raise RefusedError(UNKNOWN_SCHEMA, "HY000", program.problem)
        columns = read_columns(SHOWN[f"CREATE {kind}" if kind in (EVENT, TRIGGER) else "CREATE PROCEDURE"])
        if kind not in (EVENT, TRIGGER):
            title = kind.capitalize()
            named = replace(columns[2], name=f"Create {kind.title()}")
            columns = (replace(columns[0], name=title), columns[1], named, *columns[3:])
            program = called(program, name)
        return Relation(columns, [self._row(program)])

    def _row(self, program: StoredProgram) -> tuple[str | None, ...]:
        first = (program.name, sql_mode_text(program.sql_mode))
        characters = (program.client, program.connection, program.of_database)
        match program.kind:
            case "EVENT":
                return (*first, program.time_zone, program.text, *characters)
            case "TRIGGER":
                return (*first, program.text, *characters, moment(program.created, self.reader.zone_s, 2))
            case _:
                return (*first, program.text, *characters)
