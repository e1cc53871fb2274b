"""The conversation before, and beside, a dump: one SQL text in, answers out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ibbmaster.dialogue import privileges
from ibbmaster.dialogue.evaluating import Evaluator, Who
from ibbmaster.dialogue.information_schema import SYSTEM_DATABASES, Catalog
from ibbmaster.dialogue.light import LIGHT_SIZE_MAX, light_statements
from ibbmaster.dialogue.querying import Querying
from ibbmaster.dialogue.refusal import (
    RefusedError,
    missing_privilege,
    no_database,
    not_supported,
    unknown_database,
    unknown_table,
)
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.settings import Settings
from ibbmaster.dialogue.show import Shower
from ibbmaster.dialogue.sql import parse
from ibbmaster.dialogue.sql_token import SqlError
from ibbmaster.dialogue.statement import (
    Administration,
    Assignment,
    CallProcedure,
    CharsetAssignment,
    Default,
    Describe,
    Do,
    IsolationAssignment,
    KillStatement,
    KillUser,
    LockTables,
    Nothing,
    Savepoint,
    Select,
    Set,
    SetStatement,
    Show,
    Statement,
    SystemVariable,
    TableName,
    Transaction,
    Unread,
    Use,
    UserVariable,
)
from ibbmaster.dialogue.user_variables import UserVariables
from ibbmaster.dialogue.variables import ProcessRow, ServerFacts, version_number
from ibbmaster.dump.error import DumpError
from ibbmaster.errors import IbbMasterError
from ibbmaster.wire.capability import StatusFlag
from ibbmaster.wire.response import Err, Ok, Response, ResultSet

STATEMENT_SIZE_MAX = 1 << 20
SAVEPOINTS_MAX = 1000
READ_ONLY_TEXT = "The MariaDB server is running with the --read-only option so it cannot execute this statement"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The driver shall end another connection, or what it does; the client gets OK."""

    connection_id: int
    query_only: bool


class Dialog:
    """One session's side of the conversation. `variables` are its user variables, by lower-case name."""

    def __init__(self, facts: ServerFacts, *, connection_id: int, user: str, host: str) -> None:
        self._facts = facts
        self._who = Who(connection_id, user, host)
        self._held = privileges.READING
        self._tls = ("", "")
        self.reset()

    def reset(self) -> None:
        """Begin a new session on the same connection."""
        self.variables = UserVariables()
        self._settings = Settings(self._facts)
        self._who.database = ""
        self._savepoints: set[str] = set()
        self._is_in_transaction = False
        self._last_error: Err | None = None
        self._evaluator = Evaluator(self._facts, self._settings, self.variables, self._who)
        self._catalog = Catalog(self._facts, self._settings, self._processes, self._status_values)
        self._querying = Querying(self._evaluator, self._find_table, version_number(self._facts))
        self._evaluator.subquery = self._querying.value

    def begin(
        self,
        *,
        user: str,
        database: str | None,
        held: frozenset[str] = privileges.READING,
        tls_version: str = "",
        tls_cipher: str = "",
    ) -> None:
        """Note who has logged in, what the account may do, and how the connection is encrypted."""
        self._who.user = user
        self._who.database = database or ""
        self._held = held
        self._tls = (tls_version, tls_cipher)

    @property
    def skip_replication(self) -> bool:
        """Whether the session wants no events that are marked to be skipped."""
        return bool(self._settings.value("skip_replication"))

    def check_dump(self) -> None:
        """
        Raises:
            DumpError: the account may not dump.
        """
        if privileges.REPLICATION_SLAVE not in self._held:
            refused = missing_privilege(privileges.REPLICATION_SLAVE).err
            explanation = f"account {self._who.user!r} has no privilege {privileges.REPLICATION_SLAVE}"
            raise DumpError(refused.text, explanation, code=refused.code, sqlstate=refused.sqlstate)

    def use(self, database: str) -> Response:
        """Choose a default database; there is nothing in most of them."""
        if database.lower() not in SYSTEM_DATABASES:
            return unknown_database(database).err
        self._who.database = database
        return self._ok()

    def query(self, sql: bytes) -> list[Response | Kill]:
        """Answer every statement of a text; after an error the rest is left undone, and the session continues."""
        if len(sql) > STATEMENT_SIZE_MAX:
            text = "Got a packet bigger than 'max_allowed_packet' bytes"
            return [Err(code=1153, sqlstate="08S01", text=text)]
        return self._answers(lambda: self._parse(sql))

    def query_at_once(self, sql: bytes) -> list[Response | Kill] | None:
        """As `query`, if that takes neither the disk nor long; else None, and nothing was done."""
        statements = light_statements(sql, version_number(self._facts)) if len(sql) <= LIGHT_SIZE_MAX else None
        return None if statements is None else self._answers(lambda: statements)

    def _parse(self, sql: bytes) -> list[Statement]:
        text = sql.decode("utf-8", "surrogateescape")
        if not text.strip(" \t\r\n;"):
            raise RefusedError(1065, "42000", "Query was empty")
        return parse(text, version=version_number(self._facts))

    def _answers(self, statements: Callable[[], Iterable[Statement]]) -> list[Response | Kill]:
        answers: list[Response | Kill] = []
        kept_error = None
        try:
            for statement in statements():
                self._evaluator.begin_statement()
                kept_error = self._last_error if _is_about_errors(statement) else None
                answers.append(self._answer(statement))
        except SqlError as error:
            answers.append(_syntax_error(error))
        except RefusedError as refused:
            answers.append(refused.err)
        except IbbMasterError as error:
            answers.append(Err(code=1105, sqlstate="HY000", text=str(error)))
        last = answers[-1] if answers else None
        self._last_error = last if isinstance(last, Err) else kept_error
        return answers

    def kill(self, connection_id: int, *, query_only: bool) -> Response | Kill:
        """KILL: of a connection of the same account, or with the right to it of any.

        Source: MariaDB 12.3, sql_parse.cc, kill_one_thread().
        """
        found = next((row for row in self._facts.processes() if row.connection_id == connection_id), None)
        if found is None:
            return Err(code=1094, sqlstate="HY000", text=f"Unknown thread id: {connection_id}")
        if found.user != self._who.user and not self._held & {privileges.CONNECTION_ADMIN, privileges.SUPER}:
            return Err(code=1095, sqlstate="HY000", text=f"You are not owner of thread {connection_id}")
        return Kill(connection_id=connection_id, query_only=query_only)

    def _answer(self, statement: Statement) -> Response | Kill:
        match statement:
            case Select():
                return self._shown(self._querying.answer(statement))
            case Set(assignments=assignments):
                self._set(assignments)
            case SetStatement():
                return self._set_statement(statement)
            case Show():
                return self._shown(self._shower().answer(statement))
            case Describe(table=table):
                return self._shown(self._shower().answer(Show(what="COLUMNS", table=table)))
            case KillStatement(connection_id=connection_id, query_only=query_only):
                return self.kill(connection_id, query_only=query_only)
            case KillUser():
                raise not_supported("KILL USER")
            case Use(database=database):
                return self.use(database)
            case Transaction(verb=verb):
                self._is_in_transaction = verb == "BEGIN"
                self._savepoints.clear()
            case Savepoint(verb=verb, name=name):
                self._savepoint(verb, name)
            case LockTables():
                self._lock(statement)
            case CallProcedure():
                if not (database := statement.database or self._who.database):
                    raise no_database()
                raise RefusedError(1305, "42000", f"PROCEDURE {database}.{statement.name} does not exist")
            case Do(expressions=expressions):
                for expression in expressions:
                    self._evaluator.evaluate(expression)
            case Nothing():
                pass
            case Unread(verb=verb, tables=tables):
                for table in tables:
                    if verb != "WITH" or table.database is not None:  # others may be its own
                        self._find_table(table)
                raise not_supported(f"{verb} in this form")
            case Administration():
                raise RefusedError(1290, "HY000", READ_ONLY_TEXT)
        return self._ok()

    @property
    def _status(self) -> int:
        status = StatusFlag.AUTOCOMMIT if self._settings.value("autocommit") else 0
        return status | (StatusFlag.IN_TRANSACTION if self._is_in_transaction else 0)

    def _ok(self) -> Ok:
        return Ok(status=self._status)

    def _shown(self, relation: Relation) -> ResultSet:
        return relation.result(self._status)

    def _shower(self) -> Shower:
        return Shower(
            self._facts,
            self._evaluator,
            self._catalog,
            self._held,
            self._processes,
            self._status_values,
            self._last_error,
        )

    def _processes(self) -> Iterable[ProcessRow]:
        """The connections that the account may see: its own, or all."""
        sees_all = privileges.PROCESS in self._held
        return [row for row in self._facts.processes() if sees_all or row.user == self._who.user]

    def _status_values(self) -> dict[str, object]:
        file_name, position = self._facts.binlog_end()
        version, cipher = self._tls
        return {
            "Binlog_snapshot_file": file_name,
            "Binlog_snapshot_position": position,
            "Ssl_cipher": cipher,
            "Ssl_version": version,
            "Threads_connected": len(self._facts.processes()),
            "Uptime": self._facts.uptime_s(),
        }

    def _find_table(self, table: TableName) -> Relation:
        """A table that exists.

        Raises:
            RefusedError: it does not, or the account may not read it.
        """
        database, name = self._shower().located(table)
        found = self._catalog.find(database, name)
        if database.lower() == "information_schema" and found is None:
            raise RefusedError(1109, "42S02", f"Unknown table '{name}' in information_schema")
        if database.lower() != "information_schema" and privileges.SELECT not in self._held:
            text = (
                f"SELECT command denied to user '{self._who.user}'@'{self._who.host}' for table `{database}`.`{name}`"
            )
            raise RefusedError(1142, "42000", text)
        if found is None:
            raise unknown_table(database, name)
        return found

    def _set(self, assignments: Iterable[Assignment | CharsetAssignment | IsolationAssignment]) -> None:
        """All assignments, or none of them."""
        kept = dict(self._settings.values)
        try:
            for assignment in assignments:
                self._assign(assignment)
        except RefusedError:
            self._settings.values = kept
            raise

    def _assign(self, assignment: Assignment | CharsetAssignment | IsolationAssignment) -> None:
        match assignment:
            case CharsetAssignment():
                self._settings.assign_charset(assignment)
            case IsolationAssignment(level=level, scope=scope):
                if scope == "global":
                    raise missing_privilege(privileges.SUPER)
                if level is not None and scope:
                    target = SystemVariable("transaction_isolation", "", "transaction_isolation")
                    self._settings.assign(target, level)
            case Assignment(target=UserVariable(name=name), value=value):
                self.variables.assign(name, self._evaluator.evaluate(value))
            case Assignment(target=SystemVariable() as target, value=Default()):
                self._settings.assign(target, None, is_default=True)
            case Assignment(target=SystemVariable() as target, value=value):
                self._settings.assign(target, self._evaluator.evaluate(value))

    def _set_statement(self, statement: SetStatement) -> Response | Kill:
        """Run a statement under other settings, and go back to those of the session."""
        kept = dict(self._settings.values)
        names = [item.target.name for item in statement.assignments if isinstance(item.target, SystemVariable)]
        try:
            self._set(statement.assignments)
            return self._answer(statement.statement)
        finally:
            for name in names:
                if name in kept:
                    self._settings.values[name] = kept[name]
                else:
                    self._settings.values.pop(name, None)

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

    def _lock(self, statement: LockTables) -> None:
        """Nobody writes here, so that there is nothing to keep out."""
        if statement.writes:
            raise RefusedError(1290, "HY000", READ_ONLY_TEXT)
        if statement.privilege == privileges.RELOAD and privileges.RELOAD not in self._held:
            raise missing_privilege(privileges.RELOAD)
        for table in statement.tables:
            database, _ = self._shower().located(table)
            if privileges.LOCK_TABLES not in self._held:
                text = f"Access denied for user '{self._who.user}'@'%' to database '{database}'"
                raise RefusedError(1044, "42000", text)


def _is_about_errors(statement: Statement) -> bool:
    return isinstance(statement, Show) and statement.what in ("WARNINGS", "ERRORS", "COUNT")


def _syntax_error(error: SqlError) -> Err:
    return Err(
        code=1064,
        sqlstate="42000",
        text="You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server version "
        f"for the right syntax to use near '{error.near}' at line {error.line_no}",
    )
