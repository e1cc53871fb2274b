"""What a change of rows in statement format may run besides: triggers of its tables, and functions that it calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.model import TableKind, TableVersion
from ibbmaster.schema.stored_program import FUNCTION, PACKAGES, TRIGGER, StoredProgram
from ibbmaster.sqltext.cursor import END, Cursor
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import Token, tokens

_BEFORE_TABLES = ("UPDATE", "LOW_PRIORITY", "IGNORE", "QUICK", "FROM", "USING", "JOIN")
_EVENTS = ("INSERT", "UPDATE", "DELETE")
_ROUTINES = (FUNCTION, *PACKAGES)


def tables_reached(
    catalog: SchemaCatalog, tables: Sequence[TableName], text: str, events: Collection[str]
) -> frozenset[TableName] | None:
    """The tables whose rows a statement on these may change by programs, as the catalog calls them; None: any.

    `events` are INSERT, UPDATE and DELETE, as far as the statement is one.
    A table of the statement itself is among them if a trigger may have a say in what its rows get.
    """
    if not catalog.programs:
        return frozenset()
    routines = {program.name.lower() for program in catalog.programs.values() if program.kind in _ROUTINES}
    if routines & _names(text):
        return None
    found: set[TableName] = set()
    waiting = [TableName(*catalog.case.table_key(*table)) for table in tables]
    first, seen = set(waiting), set(waiting)
    while waiting:
        table = waiting.pop()
        for trigger in _triggers_of(catalog, table):
            head, body = _cut(trigger)
            if table in first and not head & set(events):
                continue
            if "BEFORE" in head:
                found.add(table)
            if "call" in body or routines & _names(trigger.text, trigger.sql_mode):
                return None
            for database, name in catalog.tables:
                reached = TableName(database, name)
                if name.lower() in body:
                    found.add(reached)
                    if reached not in seen:
                        seen.add(reached)
                        waiting.append(reached)
    return frozenset(found)


def tables_shown(catalog: SchemaCatalog, view: TableVersion) -> frozenset[TableName] | None:
    """The tables that a view may show, also by other views, as the catalog calls them; None: any."""
    routines = {program.name.lower() for program in catalog.programs.values() if program.kind in _ROUTINES}
    found: set[TableName] = set()
    waiting, seen = [view], {TableName(view.database, view.name)}
    while waiting:
        names = _names(waiting.pop().text or "")
        if routines & names:
            return None
        for key, known in catalog.tables.items():
            table = TableName(*key)
            if key[1].lower() not in names or table in seen:
                continue
            seen.add(table)
            if isinstance(known, TableVersion) and known.kind is TableKind.VIEW:
                waiting.append(known)
            else:
                found.add(table)
    return frozenset(found)


def _triggers_of(catalog: SchemaCatalog, table: TableName) -> Iterable[StoredProgram]:
    for program in catalog.programs.values():
        if program.kind == TRIGGER and TableName(*catalog.case.table_key(program.database, program.table)) == table:
            yield program


def _names(text: str, sql_mode: int = 0) -> set[str]:
    """What may be a name in a text, in lower case."""
    return {token.text.lower() for token in tokens(text, sql_mode) if token.is_name}


def _cut(trigger: StoredProgram) -> tuple[set[str], set[str]]:
    """When a trigger runs, in capitals, and the names of what it may change."""
    cursor = Cursor(tokens(trigger.text, trigger.sql_mode))
    while not (cursor.is_at_end or (cursor.peek().is_word("BEFORE", "AFTER") and cursor.peek(1).is_word(*_EVENTS))):
        cursor.take()
    head = set[str]()
    while not cursor.is_at_end and not cursor.takes_words("FOR", "EACH", "ROW"):
        head.add(cursor.take().word)
    return head, set(_changed_names(cursor.rest()))


def _changed_names(body: Iterable[Token]) -> Iterator[str]:
    """What may be the name of a table that is changed: it stands in no brackets, but for those of a join."""
    depths: list[bool] = []  # whether what is in a bracket counts
    last = END
    for token in body:
        if token.is_sign("("):
            depths.append((not depths or depths[-1]) and last.is_word(*_BEFORE_TABLES))
        elif token.is_sign(")") and depths:
            depths.pop()
        elif token.is_name and (not depths or depths[-1]):
            yield token.text.lower()
        last = token
