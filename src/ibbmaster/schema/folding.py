"""The effect of DDL on a catalog: one statement after the other, in the order of a log."""

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from ibbmaster.replication.event.statement.logged import DROPS_THE_REST, LoggedStatement, failed
from ibbmaster.sqltext.cursor import PlacedCursor
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.sql_mode import ANSI_QUOTES
from ibbmaster.sqltext.table_name import TableName
from . import clause as ddl
from .altering import altered
from .building import copied_table, create_table, sequence_table, table_options, without_counter
from .catalog import KnownTable, StoredProgram, program_key
from .collations import charset_of_collation
from .ddl import parse_ddl, unsure_after
from .model import DatabaseVersion, ForeignConstraint, SchemaPlace, TableKind, TableVersion, UnknownTable
from .name_case import CaseFinder, NameCase, ambiguous
from .session import SchemaSession

GIVE_SCHEMA = "give its CREATE TABLE with --schema"

# Hears changed objects, None once gone; first whether it is a table, a database or a program.
OnChange = Callable[[str, Hashable, Any], object]
TABLE, DATABASE, PROGRAM = "table", "database", "program"
Program = tuple[str, str, str]  # database, kind, name


class SchemaFold:
    """The current catalog. Without `case` names are exact, and `finder` looks for statements that contradict that."""

    def __init__(self, on_change: OnChange, case: NameCase | None = None, *, is_whole: bool = True) -> None:
        self._on_change = on_change
        self.case = case or NameCase.EXACT
        self.finder = CaseFinder(is_whole=is_whole) if case is None else None
        self._written: dict[TableName, TableName] = {}  # as spelled in the statement that makes them
        self.databases: dict[str, DatabaseVersion] = {}
        self.tables: dict[TableName, KnownTable] = {}
        self.programs: dict[Program, StoredProgram] = {}
        self.temporary: dict[int, dict[TableName, KnownTable]] = {}  # by thread
        self._tables_of: dict[str, set[TableName]] = {}  # by database
        self._programs_of: dict[str, set[Program]] = {}
        self._triggers_of: dict[TableName, set[Program]] = {}
        self._children_of: dict[TableName, set[TableName]] = {}  # tables with foreign keys, by their parents
        self._known: set[TableName] = set()
        self.last_id = 0
        self.last_generation = 0
        self._place: SchemaPlace | None = None
        self._gtid: str | None = None
        self._thread = 0

    def apply(
        self,
        statement: LoggedStatement,
        place: SchemaPlace | None = None,
        gtid: str | None = None,
        timestamp: int | None = None,
    ) -> str | None:
        """Returns the reason if a statement is unreadable, which makes every table unknown."""
        if not statement.has_effect:
            return None
        self._place, self._gtid, self._thread = place, gtid, statement.thread_id
        try:
            found = parse_ddl(statement.text, statement.database, statement.sql_mode, statement.server_version)
        except ddl.NotUnderstoodError as error:
            reason = f"DDL that is not understood: {error}"
            for name in list(self._known):
                self._set(name, self._unknown(name, reason, self.tables[name].generation))
            return reason
        if found is None:
            return None
        session = SchemaSession.of(statement, timestamp)
        if self.case is NameCase.KEPT:
            self._written = {self.case.table_key(*name): name for name in _names_made(found)}
        database = found.name if isinstance(found, ddl.CreateDatabase) and self.case is NameCase.KEPT else None
        found = self.case.keys_of(found)
        if statement.error_code:
            self._fail(found, statement.error_code)
            return None
        match found:
            case ddl.CreateTable():
                self._create(found, session)
            case ddl.AlterTable():
                self._alter(found, session)
            case ddl.DropTables():
                self._drop(found)
            case ddl.TruncateTable():
                self._truncate(found.table)
            case ddl.RenameTables():
                for old, new in found.pairs:
                    if not found.is_conditional or self._find(old)[0] is not None:
                        self._rename(old, new)
            case ddl.CreateView() if not (found.is_conditional and found.table in self.tables):
                view = TableVersion(
                    database=found.table.database,
                    name=found.table.name,
                    kind=TableKind.VIEW,
                    text=found.text,
                    charset=session.client_charset,
                    collation=session.connection_collation,
                )
                self._put(found.table, view, is_new=True)
            case ddl.CreateSequence() if not (found.is_conditional and found.table in self.tables):
                self._put_own(found.table, self._sequence(found, session), is_temporary=found.is_temporary)
            case ddl.CreateDatabase():
                self._create_database(found, session, shown=database)
            case ddl.RemoveDatabase():
                self._drop_database(found.name)
            case ddl.NameProgram():
                self._program(found, statement, session)
        return None

    def _fail(self, statement: ddl.DdlStatement, error_code: int) -> None:
        verb, lost = unsure_after(statement)
        match statement:
            case ddl.CreateTable() | ddl.CreateSequence() if statement.replaces:
                self._drop(ddl.DropTables(tables=(statement.table,), is_temporary=statement.is_temporary))
            case ddl.DropTables() if error_code in DROPS_THE_REST:
                self._drop(statement)
                return
            case ddl.DropTables():
                lost = [name for name in lost if self._find(name)[0]]
            case ddl.RemoveDatabase():
                verb, lost = "DROP DATABASE", list(self._tables_of.get(statement.name, ()))
        for name in lost:
            self._lose(name, f"{failed(verb, error_code)}, and may have been done in part")

    def learn(self, table: KnownTable) -> None:
        """Add a table known from elsewhere: a base, or a TABLE_MAP event."""
        name = self.case.table_key(table.database, table.name)
        if self.case is NameCase.LOWER:
            table = replace(table, database=name.database, name=name.name)
        self._set(name, table)

    def take(self, part: str, key: Any, value: Any) -> None:
        if part == TABLE:
            self._set(key, value)
        elif value is None:
            return
        elif part == DATABASE:
            self.set_database(value)
        else:
            self._set_program(key, value)

    def restart(self) -> None:
        self.temporary.clear()

    def new_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def _collation_of(self, database: str, session: SchemaSession) -> str:
        found = self.databases.get(database)
        return session.collation if found is None else found.collation

    def _find(self, name: TableName) -> tuple[KnownTable | None, bool]:
        own = self.temporary.get(self._thread, {})
        if name in own:
            return own[name], True
        return self.tables.get(name), False

    def _find_used(self, name: TableName) -> tuple[KnownTable | None, bool]:
        """The same for a table that a statement changed or copied, which therefore exists."""
        found = self._find(name)
        if found[0] is None and self.finder is not None:
            others = self.finder.see_missing(name)
            for other in others:
                self._lose(other, ambiguous({name}))
            if others:
                self._lose(name, ambiguous(others))
                return self.tables[name], False
        return found

    def _set(self, name: TableName, table: KnownTable | None) -> None:
        old = self.tables.get(name)
        for key in old.foreign_keys if isinstance(old, TableVersion) else ():
            self._children_of.get(TableName(key.parent_database, key.parent_table), set()).discard(name)
        for key in table.foreign_keys if isinstance(table, TableVersion) else ():
            self._children_of.setdefault(TableName(key.parent_database, key.parent_table), set()).add(name)
        self._known.discard(name)
        if isinstance(table, TableVersion):
            self._known.add(name)
        if self.finder is not None:
            self.finder.note(name, is_there=table is not None)
        if table is not None and (written := self._written.get(name)) is not None:
            database = self.databases.get(name.database)
            shown = written.database if database is None else database.name
            table = replace(table, database=shown, name=written.name)
        if table is None:
            self.tables.pop(name, None)
            self._tables_of.get(name.database, set()).discard(name)
        else:
            self.tables[name] = table
            self._tables_of.setdefault(name.database, set()).add(name)
        self._on_change(TABLE, name, table)

    def _put(self, name: TableName, table: TableVersion, *, is_new: bool) -> None:
        generation, is_created = table.generation, table.is_created_in_log
        if is_new:
            generation, is_created = self._new_generation(), self._place is not None
        self._set(
            name,
            replace(table, since=self._place, gtid=self._gtid, generation=generation, is_created_in_log=is_created),
        )

    def _put_own(self, name: TableName, table: KnownTable, *, is_temporary: bool) -> None:
        if is_temporary:
            self.temporary.setdefault(self._thread, {})[name] = table
        elif isinstance(table, UnknownTable):
            self._set(name, table)
        else:
            self._put(name, table, is_new=True)

    def _new_generation(self) -> int:
        self.last_generation += 1
        return self.last_generation

    def _unknown(
        self, name: TableName, reason: str, generation: int | None = None, was: TableName | None = None
    ) -> UnknownTable:
        return UnknownTable(
            database=name.database,
            name=name.name,
            since=self._place,
            gtid=self._gtid,
            reason=f"{reason}; {GIVE_SCHEMA}",
            generation=self._new_generation() if generation is None else generation,
            was=was,
        )

    def _lose(self, name: TableName, reason: str, was: TableName | None = None) -> None:
        """The table is unknown from here on; `was` is the former name of one that no statement had named."""
        own = self.temporary.get(self._thread, {})
        table = own.get(name) or self.tables.get(name)
        generation = 0 if table is None or was is not None else table.generation
        if isinstance(table, UnknownTable) and was is None and table.was is not None:
            was = TableName(*table.was)
        unknown = self._unknown(name, reason, generation, was)
        if name in own:
            own[name] = unknown
        else:
            self._set(name, unknown)

    def _create(self, statement: ddl.CreateTable, session: SchemaSession) -> None:
        name = statement.table
        own = self.temporary.get(self._thread, {})
        existing = (own if statement.is_temporary else self.tables).get(name)
        if statement.is_conditional and isinstance(existing, TableVersion):
            return  # a server of today logs only one that made a table
        if self.finder is not None and not (statement.is_temporary or statement.is_conditional or statement.replaces):
            self.finder.see_new(name)
        self._put_own(name, self._created(statement, session), is_temporary=statement.is_temporary)

    def _sequence(self, statement: ddl.CreateSequence, session: SchemaSession) -> KnownTable:
        if statement.problem is not None:
            return self._unknown(statement.table, f"a CREATE SEQUENCE that is not understood: {statement.problem}")
        return sequence_table(statement, self._collation_of(statement.table.database, session), self.new_id)

    def _created(self, statement: ddl.CreateTable, session: SchemaSession) -> KnownTable:
        name, problem = statement.table, statement.problem
        if problem is None and statement.like is not None:
            like, _ = self._find_used(statement.like)
            if isinstance(like, TableVersion):
                return copied_table(like, name, self.new_id)
            return self._unknown(name, f"it was created LIKE {statement.like}, whose columns are not known")
        if problem is None and statement.selects:
            return self._unknown(name, "its columns are those of a query in CREATE TABLE … SELECT")
        try:
            if problem is None:
                return create_table(statement, self._collation_of(name.database, session), session, self.new_id)
        except ddl.NotUnderstoodError as error:
            problem = str(error)
        return self._unknown(name, f"a CREATE TABLE that is not understood: {problem}")

    def _alter(self, statement: ddl.AlterTable, session: SchemaSession) -> None:
        name = statement.table
        table, is_temporary = self._find(name) if statement.is_conditional else self._find_used(name)
        if table is None and statement.is_conditional:
            return
        if statement.problem is not None:
            for lost in (name, *statement.others):
                self._lose(lost, f"an ALTER TABLE that is not understood: {statement.problem}")
        elif table is None:
            self._lose(name, "its CREATE TABLE is not in the log, which has an ALTER TABLE of it")
        elif isinstance(table, UnknownTable):
            self._split(statement, None)
        elif table.kind is not TableKind.BASE:
            self._comment(table, statement)
        else:
            self._alter_known(table, statement, session, is_temporary=is_temporary)
        if statement.to is not None and statement.to != name:
            self._rename(name, statement.to)

    def _comment(self, table: TableVersion, statement: ddl.AlterTable) -> None:
        named = [one.options.named for one in statement.clauses if isinstance(one, ddl.SetOptions)]
        comments = [options["COMMENT"] for options in named if "COMMENT" in options]
        if comments and statement.table in self.tables:
            options = table_options({"COMMENT": comments[-1]}, table.options)
            self._put(statement.table, replace(table, options=options), is_new=False)

    def _alter_known(
        self, table: TableVersion, statement: ddl.AlterTable, session: SchemaSession, *, is_temporary: bool
    ) -> None:
        name = statement.table
        self._split(statement, table)
        try:
            collation = self._collation_of(name.database, session)
            new = altered(table, statement.clauses, collation, session, self.new_id)
        except ddl.NotUnderstoodError as error:
            self._lose(name, f"an ALTER TABLE that does not fit it: {error}")
            return
        if new == table:
            return
        if is_temporary:
            self.temporary[self._thread][name] = new
            return
        self._put(name, new, is_new=False)
        self._rename_in_children(name, table, new)

    def _split(self, statement: ddl.AlterTable, table: TableVersion | None) -> None:
        """Partitions become tables, or the reverse; None: a table with unknown columns."""
        for clause in statement.clauses:
            if not isinstance(clause, ddl.SplitTable):
                continue
            if clause.is_gone:
                self._set(clause.other, None)
            elif table is None:
                self._lose(clause.other, f"it was a partition of {statement.table}, whose columns are not known")
            else:
                own = copied_table(table, clause.other, self.new_id)
                self._put(clause.other, replace(own, partitioning=None), is_new=True)

    def _rename_in_children(self, name: TableName, old: TableVersion, new: TableVersion) -> None:
        names = {column.id: column.name for column in new.columns}
        changed = {one.name.lower(): names.get(one.id, one.name) for one in old.columns}
        changed = {key: to for key, to in changed.items() if key != to.lower()}
        if not changed:
            return
        for child in sorted(self._children_of.get(name, ())):
            table = self.tables.get(child)
            if isinstance(table, TableVersion):
                keys = tuple(
                    replace(key, parent_columns=tuple(changed.get(one.lower(), one) for one in key.parent_columns))
                    if (key.parent_database, key.parent_table) == name
                    else key
                    for key in table.foreign_keys
                )
                self._put(child, replace(table, foreign_keys=keys), is_new=False)

    def _drop(self, statement: ddl.DropTables) -> None:
        own = self.temporary.get(self._thread, {})
        for name in statement.tables:
            if name in own and _drops(statement, own[name]):
                del own[name]
            elif not statement.is_temporary and name in self.tables and _drops(statement, self.tables[name]):
                self._end(name)
            elif self.finder is not None:
                self.finder.see_maybe_gone(name)

    def _end(self, name: TableName) -> None:
        self._set(name, None)
        for trigger in self._triggers_of.pop(name, set()):
            self._forget_program(trigger)

    def _truncate(self, name: TableName) -> None:
        table, is_temporary = self._find_used(name)
        if isinstance(table, TableVersion) and not is_temporary:
            self._put(name, without_counter(table), is_new=True)

    def _rename(self, old: TableName, new: TableName) -> None:
        table, is_temporary = self._find_used(old)
        if is_temporary:
            own = self.temporary[self._thread]
            own[new] = replace(own.pop(old), database=new.database, name=new.name)
            return
        if table is None:
            self._lose(new, f"it was {old} before, whose CREATE TABLE is not in the log", was=old)
            return
        self._set(old, None)
        if isinstance(table, UnknownTable):
            was = table.was if table.generation else table.was or old
            unknown = replace(table, database=new.database, name=new.name, was=was)
            self._set(new, replace(unknown, since=self._place, gtid=self._gtid))
        else:
            head, to = f"{old.name}_ibfk_", f"{new.name}_ibfk_"
            keys = [
                replace(key, name=to + key.name.removeprefix(head) if key.name.startswith(head) else key.name)
                for key in _following(table.foreign_keys, old, new)
            ]
            moved = replace(table, database=new.database, name=new.name, foreign_keys=tuple(keys))
            self._put(new, moved, is_new=False)
        for child in sorted(self._children_of.get(old, ())):
            other = self.tables.get(child)
            if isinstance(other, TableVersion):
                keys = _following(other.foreign_keys, old, new)
                self._put(child, replace(other, foreign_keys=tuple(keys)), is_new=False)
        for trigger in sorted(self._triggers_of.pop(old, set())):
            self._set_program(trigger, _moved(self.programs[trigger], new.name))

    def _create_database(self, statement: ddl.CreateDatabase, session: SchemaSession, *, shown: str | None) -> None:
        old = self.databases.get(statement.name)
        if statement.is_conditional and old is not None and not statement.alters:
            return
        if statement.replaces:
            self._drop_database(statement.name)
        base = old if old is not None and statement.alters else None
        collation = session.collation if base is None else base.collation
        if statement.charset != ddl.NO_CHARSET:
            with contextlib.suppress(ddl.NotUnderstoodError):
                inherited = session.collation if statement.charset.charset else collation
                collation = session.resolve(statement.charset, inherited)
        comment = "" if base is None else base.comment
        self.set_database(
            DatabaseVersion(
                name=shown or statement.name if base is None else base.name,
                charset=charset_of_collation(collation),
                collation=collation,
                comment=comment if statement.comment is None else statement.comment,
            )
        )

    def set_database(self, database: DatabaseVersion) -> None:
        key = self.case.key(database.name)
        if self.case is NameCase.LOWER:
            database = replace(database, name=key)
        self.databases[key] = database
        self._on_change(DATABASE, key, database)

    def _drop_database(self, database: str) -> None:
        if self.databases.pop(database, None) is not None:
            self._on_change(DATABASE, database, None)
        for name in sorted(self._tables_of.pop(database, set())):
            self._end(name)
        for program in sorted(self._programs_of.pop(database, set())):
            self._forget_program(program)

    def _program(self, found: ddl.NameProgram, statement: LoggedStatement, session: SchemaSession) -> None:
        key = program_key(found.name.database, found.kind, found.name.name)
        old = self.programs.get(key)
        if found.is_dropped:
            self._forget_program(key)
            if found.kind == "PACKAGE":
                self._forget_program((key[0], "PACKAGE BODY", key[2]))
        elif found.alters:
            if old is not None:
                self._forget_program(key)
                name = found.to or TableName(old.database, old.name)
                key = program_key(self.case.key(name.database), found.kind, name.name)
                self._set_program(key, replace(old, database=name.database, name=name.name, is_altered=True))
        elif old is None or not found.is_conditional:
            self._forget_program(key)
            program = StoredProgram(
                kind=found.kind,
                database=found.name.database,
                name=found.name.name,
                since=self._place,
                table="" if found.table is None else found.table.name,
                text=statement.text.rstrip(" \t\r\n;"),  # as a server does
                sql_mode=statement.sql_mode,
                client=session.client_charset,
                connection=session.connection_collation,
                of_database=self._collation_of(found.name.database, session),
                time_zone=statement.time_zone or "SYSTEM",
            )
            self._set_program(key, program)

    def _set_program(self, key: Program, program: StoredProgram) -> None:
        self.programs[key] = program
        self._programs_of.setdefault(key[0], set()).add(key)
        if program.table:
            self._triggers_of.setdefault(TableName(program.database, program.table), set()).add(key)
        self._on_change(PROGRAM, key, program)

    def _forget_program(self, key: Program) -> None:
        program = self.programs.pop(key, None)
        if program is None:
            return
        self._programs_of.get(key[0], set()).discard(key)
        self._triggers_of.get(TableName(program.database, program.table), set()).discard(key)
        self._on_change(PROGRAM, key, None)


def _drops(statement: ddl.DropTables, table: KnownTable) -> bool:
    """Taken for granted of an unknown table."""
    is_both = statement.kind is TableKind.BASE
    return isinstance(table, UnknownTable) or table.kind in (statement.kind, TableKind.SEQUENCE if is_both else None)


def _moved(trigger: StoredProgram, table: str) -> StoredProgram:
    cursor = PlacedCursor(trigger.text, trigger.sql_mode)
    while not cursor.is_at_end and not cursor.takes_words("ON"):
        cursor.take()
    start = cursor.start
    cursor.table("")
    has_quotes = trigger.sql_mode & ANSI_QUOTES
    shown = '"' + table.replace('"', '""') + '"' if has_quotes else quoted_name(table)
    return replace(trigger, table=table, text=f"{trigger.text[:start]}{shown}{trigger.text[cursor.end :]}")


def _following(keys: Iterable[ForeignConstraint], old: TableName, new: TableName) -> list[ForeignConstraint]:
    return [
        replace(key, parent_database=new.database, parent_table=new.name)
        if (key.parent_database, key.parent_table) == old
        else key
        for key in keys
    ]


def _names_made(statement: ddl.DdlStatement) -> Iterator[TableName]:
    match statement:
        case ddl.CreateTable() | ddl.CreateView() | ddl.CreateSequence():
            yield statement.table
        case ddl.RenameTables():
            yield from (new for _, new in statement.pairs)
        case ddl.AlterTable():
            if statement.to is not None:
                yield statement.to
            yield from (one.other for one in statement.clauses if isinstance(one, ddl.SplitTable) and not one.is_gone)
