"""The conversation of one session: an SQL text in, answers out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ibbmaster.errors import IbbMasterError
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.event.rows.charset import CODECS
from ibbmaster.replication.wire.capability import StatusFlag
from ibbmaster.replication.wire.refusal import (
    NOT_SUPPORTED,
    RefusedError,
    broken_off,
    missing_privilege,
    not_supported,
    out_of_memory,
)
from ibbmaster.replication.wire.response import (
    COLLATION_DEFAULT,
    ColumnDefinition,
    EndedRowsError,
    Err,
    Ok,
    Response,
    ResultSet,
    Row,
    with_more_results,
)
from ibbmaster.rows.expr.session_facts import is_of_session
from ibbmaster.sqltext.expression import Default, SqlQuery, SystemVariable, UserVariable
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.token import SqlError, SqlTokens, UnreadSqlError, tokenize
from ibbmaster.work import BrokenOffError, limit_work
from . import privileges
from . import statement as verbs
from .administration import computed, expect_administrator, new_state, state_of
from .evaluating import Evaluator, Who, value_columns, values_answer
from .immediate import IMMEDIATE_SIZE_MAX, KnownAnswers, immediate_statements, key_of
from .information_schema import Catalog
from .log_tables import ProcessRow, ServerFacts
from .relation import Relation
from .session_tables import POSITION_VARIABLE, SessionPosition, SessionTables
from .settings import Settings, SystemValue, UserVariables, version_number
from .show import Note, Shower
from .sql import parse_one
from .table_columns import SYSTEM_DATABASES

if TYPE_CHECKING:  # loaded when a statement asks for tables
    from .prepared import PreparedStatements

STATEMENT_SIZE_MAX = 1 << 20
#: Character sets with letters that end with the byte of a backslash.
TWO_BYTE_CODECS = {charset: str(CODECS[charset]) for charset in ("big5", "cp932", "gbk", "sjis")}
OPEN_ANSWER, OPEN_ANSWER_SIZE = "answers that are read", 4 << 20  # bytes that computing one takes, at most
SAVEPOINTS_MAX = 1000
_AUTOCOMMIT, _IN_TRANSACTION = int(StatusFlag.AUTOCOMMIT), int(StatusFlag.IN_TRANSACTION)  # quicker than flags
#: Errors for the client; others are faults of ours.
_ANSWERED = (SqlError, EndedRowsError, BrokenOffError, RecursionError, MemoryError, IbbMasterError)
READ_ONLY_TEXT = "The MariaDB server is running with the --read-only option so it cannot execute this statement"


@dataclass(frozen=True, slots=True)
class _NextStatement:
    end: int
    tokens: SqlTokens | SqlError | RefusedError

    def __call__(self) -> verbs.Statement:
        if isinstance(self.tokens, SqlTokens):
            return parse_one(self.tokens)
        raise self.tokens


class Dialog:
    """One session. `variables`: its user variables, by lower-case name."""

    def __init__(
        self,
        facts: ServerFacts,
        *,
        connection_id: int,
        user: str,
        host: str,
        hold: Callable[[str, int], None] = lambda what, size: None,
        ready: KnownAnswers | None = None,
    ) -> None:
        """`hold` gets the name and size in bytes of things that the session keeps; it raises RefusedError: they are too
        large. `ready`: answers of other sessions with the same facts."""
        self._facts = facts
        self._version = version_number(facts)
        self._ready = KnownAnswers() if ready is None else ready
        self.hold = hold
        self._who = Who(connection_id, user, host)
        self._held = privileges.READING
        self._tls = ("", "")
        self.reset()

    def reset(self) -> None:
        for what in ("user variables", "prepared statements"):
            self.hold(what, 0)
        self.variables = UserVariables(self.hold)
        self._position = SessionPosition(self._facts, self.variables)
        self._settings = Settings(self._facts, self._position.state)
        self._who.database = ""
        self._savepoints: set[str] = set()
        self._is_in_transaction = False
        self._last_error: Err | None = None
        self._notes: tuple[Note, ...] = ()
        self._has_failed = False  # the statement that is answered, or its rows
        self._evaluator = Evaluator(self._facts, self._settings, self.variables, self._who)
        self._tables = SessionTables(self._facts, self._evaluator, self._position, lambda: self._held)
        self._catalog = Catalog(self._facts, self._settings, self._processes, self._status_values, self._tables.schema)
        self._tables.catalog = self._catalog
        self._prepared: PreparedStatements | None = None
        self._is_binary = False  # the rows of a prepared statement are wanted

    def begin(
        self,
        *,
        user: str,
        database: str | None,
        held: frozenset[str] = privileges.READING,
        tls_version: str = "",
        tls_cipher: str = "",
    ) -> None:
        """Note the account that has logged in, its privileges, and the connection's encryption."""
        self._who.user = user
        self._who.database = database or ""
        self._held = held
        self._tls = (tls_version, tls_cipher)

    @property
    def skip_replication(self) -> bool:
        return bool(self._settings.value("skip_replication"))

    def check_dump(self) -> None:
        """Raises DumpError: the account may not dump."""
        if privileges.REPLICATION_SLAVE not in self._held:
            refused = missing_privilege(privileges.REPLICATION_SLAVE).err
            explanation = f"account {self._who.user!r} has no privilege {privileges.REPLICATION_SLAVE}"
            raise DumpError(refused.text, explanation, code=refused.code, sqlstate=refused.sqlstate, kind="privilege")

    def use(self, database: str) -> list[verbs.Answer]:
        return self._answers(lambda: [verbs.Use(database)])

    def _use(self, name: str) -> None:
        if name.lower() not in SYSTEM_DATABASES:
            database = self._tables.schema().database(name)
            self._settings.values["character_set_database"] = database.charset
            self._settings.values["collation_database"] = database.collation
            name = database.name
        self._who.database = name

    def query(self, sql: bytes) -> list[verbs.Answer]:
        return list(self.answers(sql))

    def answers(self, sql: bytes) -> Iterator[verbs.Answer]:
        """Answer the statements of a text up to the first error, each when its answer is asked for, after the one
        before was read; each answer but the last is marked as followed by another.
        """
        if len(sql) > STATEMENT_SIZE_MAX:
            yield Err(code=1153, sqlstate="08S01", text="Got a packet bigger than 'max_allowed_packet' bytes")
            return
        self._has_failed = False
        text = self._decoded(sql)
        following = self._next_statement(text, 0)
        while following is not None:
            read = following
            (answer,) = self.guarded(lambda read=read: [self._carry_out(read())])  # type: ignore[misc]
            following = None if self._has_failed else self._next_statement(text, read.end)
            yield answer if following is None else _with_more(answer)
            if self._has_failed:
                return

    def query_at_once(self, sql: bytes) -> list[verbs.Answer] | None:
        """As `query`, without the disk and in a short time; None, with nothing done, if that is impossible."""
        if len(sql) > IMMEDIATE_SIZE_MAX:
            return None
        statements = immediate_statements(self._decoded(sql), self._version, self._settings.sql_mode)
        if statements is None:
            return None
        if len(statements) == 1 and not self._settings.values and not self._is_in_transaction:
            return self.guarded(lambda: (self._answer_alike(sql, statements[0]),))
        return self._answers(lambda: statements)

    def _answer_alike(self, sql: bytes, statement: verbs.Statement) -> verbs.Answer:
        """As `_carry_out`; the answer depends on the session only by its values."""
        self._begin(statement)
        values: list[Value | SystemValue]
        match statement:
            case verbs.Select(values=(_, *_) as items):
                values = [self._evaluator.evaluate(item.node) for item in items]
            case verbs.Show(what="VARIABLES", pattern=pattern):
                values = [self._settings.value(name) for name in self._settings.names(pattern)]
            case _:
                return self._answer(statement)
        key = key_of(sql, values)
        found = self._ready.find(key)
        if found is None:
            answer = self._answer(statement)
            assert isinstance(answer, ResultSet)
            found = self._ready.keep(key, answer, tuple(answer.rows))
        return found

    def _next_statement(self, text: str, start: int) -> _NextStatement | None:
        if not start and not text.strip(" \t\r\n;"):
            return _NextStatement(len(text), RefusedError(1065, "42000", "Query was empty"))
        try:
            tokens = self._cut(text, start, is_one=True)
        except SqlError as error:
            return _NextStatement(len(text), error)
        return _NextStatement(tokens.end, tokens) if tokens.tokens or not start else None

    def _answers(self, statements: Callable[[], Iterable[verbs.Statement]]) -> list[verbs.Answer]:
        return self.guarded(lambda: map(self._carry_out, statements()))

    def _carry_out(self, statement: verbs.Statement) -> verbs.Answer:
        self._limit()
        self._begin(statement)
        return self._answer(statement)

    def _begin(self, statement: verbs.Statement) -> None:
        self._evaluator.begin_statement()
        self._tables.begin_statement()
        if not (isinstance(statement, verbs.Show) and statement.what in ("WARNINGS", "ERRORS")):
            self._last_error = None
            self._notes = ()
            self._catalog.refused = ()

    def _limit(self) -> None:
        limit_work(float(self._settings.value("max_statement_time") or 0) or math.inf)

    def guarded(self, answer: Callable[[], Iterable[verbs.Answer]]) -> list[verbs.Answer]:
        answers: list[verbs.Answer] = []
        try:
            answers.extend(answer())
        except _ANSWERED as error:
            answers.append(self._noted(error))
        last = answers[-1] if answers else None
        if isinstance(last, Err):
            self._last_error, self._has_failed = last, True
        return answers

    def _noted(self, error: Exception) -> Err:
        match error:
            case UnreadSqlError(what=what):
                err = not_supported(what).err
            case SqlError():
                err = _syntax_error(error)
            case EndedRowsError():
                err = error.err
            case BrokenOffError(reason=reason):
                err = broken_off(reason).err
            case RecursionError():
                err = Err(code=1436, sqlstate="HY000", text="Thread stack overrun: the statement is nested too deeply")
            case MemoryError():
                err = out_of_memory("the statement needs more than there is").err
            case _:
                err = Err(code=1105, sqlstate="HY000", text=self._facts.without_paths(str(error)))
        self._last_error, self._has_failed = err, True
        return err

    def _guarded_rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        try:
            yield from rows
        except _ANSWERED as error:
            raise EndedRowsError(self._noted(error)) from None
        finally:
            self.hold(OPEN_ANSWER, 0)

    @property
    def prepared(self) -> PreparedStatements:
        if self._prepared is None:
            from .prepared import PreparedStatements

            self._prepared = PreparedStatements(self, self._tokens)
        return self._prepared

    def _tokens(self, sql: bytes) -> SqlTokens:
        return self._cut(self._decoded(sql))

    def _cut(self, text: str, start: int = 0, *, is_one: bool = False) -> SqlTokens:
        return tokenize(text, version=self._version, sql_mode=self._settings.sql_mode, start=start, is_one=is_one)

    def _decoded(self, sql: bytes) -> str:
        return sql.decode(self._codec("character_set_client"), "surrogateescape")

    def _codec(self, variable: str) -> str:
        if not self._settings.values:
            return "utf-8"
        return TWO_BYTE_CODECS.get(str(self._settings.value(variable)), "utf-8")

    def carry_out(self, statement: verbs.Statement) -> verbs.Answer:
        """Answer a prepared statement: rows are binary."""
        self._is_binary = True
        try:
            return self._carry_out(statement)
        finally:
            self._is_binary = False

    def columns(self, statement: verbs.Statement) -> tuple[ColumnDefinition, ...]:
        if isinstance(statement, verbs.SetStatement):
            return self.columns(statement.statement)
        if not isinstance(statement, verbs.Select | verbs.Show):
            return ()
        self._limit()
        self._begin(statement)
        if isinstance(statement, verbs.Select) and _of_session(statement) is None:
            try:
                return self._told(self._tables.columns(statement))
            except RefusedError as refused:
                if refused.err.code != NOT_SUPPORTED or (items := statement.values) is None:
                    raise
            return self._told(value_columns(items, [None] * len(items), self._version))  # of values still to come
        answer = self._answer(statement)
        return answer.columns if isinstance(answer, ResultSet) else ()

    def kill(self, connection_id: int, *, query_only: bool) -> verbs.Answer:
        """KILL of connections of the account; with a privilege, of any. Source: MariaDB 12.3, sql_parse.cc,
        kill_one_thread()."""
        found = next((row for row in self._facts.processes() if row.connection_id == connection_id), None)
        if found is None:
            return Err(code=1094, sqlstate="HY000", text=f"Unknown thread id: {connection_id}")
        if found.user != self._who.user and not self._held & privileges.ADMINISTRATING:
            return Err(code=1095, sqlstate="HY000", text=f"You are not owner of thread {connection_id}")
        return verbs.Kill(connection_id=connection_id, query_only=query_only)

    def _answer(self, statement: verbs.Statement) -> verbs.Answer:
        if (assignment := new_state(statement)) is not None:
            expect_administrator(self._held, verbs.SetState, self._version)
            return self._act(state_of(assignment.value, self._evaluator))
        match statement:
            case verbs.Select():
                return self._select(statement)
            case verbs.PurgeLogs() | verbs.FlushLogs() | verbs.ResetLog() | verbs.SetState() | verbs.Shutdown():
                return self._act(statement)
            case verbs.Set(assignments=assignments):
                self._set(assignments)
            case verbs.SetStatement():
                return self._set_statement(statement)
            case verbs.Show():
                end, error = self._position.end, self._last_error
                shower = Shower(self._facts, self._evaluator, self._catalog, self._held, end, error, self._notes)
                return self._shown(shower.answer(statement))
            case verbs.Kill(connection_id=connection_id, query_only=query_only):
                return self.kill(connection_id, query_only=query_only)
            case verbs.Use(database=database):
                self._use(database)
            case verbs.Transaction(verb=verb, has_snapshot=has_snapshot):
                self._is_in_transaction = verb == "BEGIN"
                self._savepoints.clear()
                if self._is_in_transaction:
                    self._position.begin(has_snapshot=has_snapshot)
                else:
                    self._position.end_transaction()
            case verbs.Savepoint(verb=verb, name=name):
                self._savepoint(verb, name)
            case verbs.LockTables():
                self._lock(statement)
            case verbs.Nothing():
                pass
            case verbs.Unread(verb=verb, tables=tables):
                for table in tables:
                    if verb != "WITH" or table.database is not None:  # others may be its own
                        self._tables.find(table)
                raise not_supported(f"{verb} in this form")
            case verbs.Administration():
                raise RefusedError(1290, "HY000", READ_ONLY_TEXT)
        return Ok(status=self.status)

    def _act(self, what: verbs.Administrative) -> verbs.Act:
        expect_administrator(self._held, type(what), self._version)
        what, self._notes = computed(what, self._evaluator)
        return verbs.Act(what=what)

    def acted(self, act: verbs.Act, carry_out: Callable[[], Iterable[Note]]) -> Response:
        """The answer to a statement that `carry_out` carries out now; that returns warnings, and raises RefusedError or
        IbbMasterError."""

        def answer() -> Iterator[Response]:
            self._notes += tuple(carry_out())
            yield Ok(status=self.status, warning_count=len(self._notes))

        (found,) = self.guarded(answer)
        assert not isinstance(found, verbs.Kill | verbs.Act)
        return with_more_results(found) if act.has_more else found

    def _select(self, select: verbs.Select) -> Response:
        if (query := _of_session(select)) is not None:
            return self._shown(values_answer(query, self._evaluator, self._version))
        answer = self._tables.answer(select, is_binary=self._is_binary)
        return self._shown(answer) if isinstance(answer, Relation) else replace(answer, status=self.status)

    @property
    def status(self) -> int:
        settings = self._settings
        status = _AUTOCOMMIT if not settings.values or settings.value("autocommit") else 0
        return status | (_IN_TRANSACTION if self._is_in_transaction else 0)

    def _shown(self, relation: Relation) -> ResultSet:
        if relation.is_open:
            self.hold(OPEN_ANSWER, OPEN_ANSWER_SIZE)
        result = relation.result(self.status, is_binary=self._is_binary, codec=self._codec("character_set_results"))
        return replace(
            result,
            columns=self._told(result.columns),
            rows=self._guarded_rows(result.rows),
            warning_count=len(self._catalog.refused),
        )

    def _told(self, columns: tuple[ColumnDefinition, ...]) -> tuple[ColumnDefinition, ...]:
        number = self._settings.results_collation_number
        if number == COLLATION_DEFAULT or self._settings.value("character_set_results") != "utf8mb4":
            return columns
        return tuple(
            replace(column, collation_id=number) if column.collation_id == COLLATION_DEFAULT else column
            for column in columns
        )

    def _processes(self) -> Iterable[ProcessRow]:
        sees_all = privileges.PROCESS in self._held
        return [row for row in self._facts.processes() if sees_all or row.user == self._who.user]

    def _status_values(self) -> dict[str, object]:
        file_name, position = self._position.end()
        version, cipher = self._tls
        return {
            **self._facts.status(),
            "Binlog_snapshot_file": file_name,
            "Binlog_snapshot_position": position,
            "Ssl_cipher": cipher,
            "Ssl_version": version,
        }

    def _set(self, assignments: Iterable[verbs.AnyAssignment]) -> None:
        kept = dict(self._settings.values)
        try:
            for assignment in assignments:
                self._assign(assignment)
        except RefusedError:
            self._settings.values = kept
            raise

    def _assign(self, assignment: verbs.AnyAssignment) -> None:
        match assignment:
            case verbs.Assignment(target=UserVariable(name=name), value=value):
                kept = self.variables.get(name)
                self.variables.assign(name, self._evaluator.evaluate(value))
                if name == POSITION_VARIABLE:
                    self._go(kept)
            case verbs.CharsetAssignment():
                self._settings.assign_charset(assignment)
            case verbs.Assignment(target=SystemVariable() as target, value=Default()):
                self._settings.assign(target, None, is_default=True)
            case verbs.Assignment(target=SystemVariable() as target, value=value):
                self._settings.assign(target, self._evaluator.evaluate(value))

    def _go(self, kept: Value) -> None:
        try:
            _ = self._position.stopped
        except (RefusedError, IbbMasterError):
            self.variables.assign(POSITION_VARIABLE, kept)
            raise

    def _set_statement(self, statement: verbs.SetStatement) -> verbs.Answer:
        kept = dict(self._settings.values)
        names = [item.target.name for item in statement.assignments if isinstance(item.target, SystemVariable)]
        try:
            self._set(statement.assignments)
            self._limit()
            return self._answer(statement.statement)
        finally:
            for name in names:
                self._settings.values.pop(name, None)
            self._settings.values |= {name: kept[name] for name in names if name in kept}

    def _savepoint(self, verb: str, name: str) -> None:
        known = name.lower()
        if verb == "SAVEPOINT":
            if len(self._savepoints) >= SAVEPOINTS_MAX:
                raise not_supported(f"more than {SAVEPOINTS_MAX} savepoints")
            if self._is_in_transaction or not self._settings.value("autocommit"):
                self._savepoints.add(known)
        elif known not in self._savepoints:
            raise RefusedError(1305, "42000", f"SAVEPOINT {name} does not exist")
        elif verb == "RELEASE":
            self._savepoints.discard(known)

    def _lock(self, statement: verbs.LockTables) -> None:
        if statement.writes:
            raise RefusedError(1290, "HY000", READ_ONLY_TEXT)
        if statement.privilege == privileges.RELOAD and privileges.RELOAD not in self._held:
            raise missing_privilege(privileges.RELOAD)
        for table in statement.tables:
            database, _ = self._who.located(table)
            if privileges.LOCK_TABLES not in self._held:
                text = f"Access denied for user '{self._who.user}'@'%' to database '{database}'"
                raise RefusedError(1044, "42000", text)
            self._tables.find(table)
        if statement.stops:
            self._position.lock()
        elif statement.privilege is None:
            self._position.unlock()


def _with_more(answer: verbs.Answer) -> verbs.Answer:
    if isinstance(answer, verbs.Kill):
        return replace(answer, answer=with_more_results(answer.answer))
    if isinstance(answer, verbs.Act):
        return replace(answer, has_more=True)
    return with_more_results(answer)


def _of_session(select: verbs.Select) -> SqlQuery | None:
    items = select.values
    is_plain = items is not None and all(is_of_session(item.node) for item in items)
    return select.query if is_plain else None


def _syntax_error(error: SqlError) -> Err:
    return Err(
        code=1064,
        sqlstate="42000",
        text="You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server version "
        f"for the right syntax to use near '{error.near}' at line {error.line_no}",
    )
