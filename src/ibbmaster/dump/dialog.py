"""The conversation before, and beside, a dump: one SQL text in, answers out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from ibbmaster.dump import show
from ibbmaster.dump.request import UserValue
from ibbmaster.dump.sql import parse
from ibbmaster.dump.sql_token import SqlError
from ibbmaster.dump.statement import (
    Administration,
    Assignment,
    Call,
    Expression,
    KillStatement,
    Literal,
    Select,
    SelectItem,
    Set,
    Show,
    Statement,
    SystemVariable,
    Transaction,
    Use,
    UserVariable,
)
from ibbmaster.dump.variables import READ_ONLY, ServerFacts, has_variable, variable
from ibbmaster.errors import IbbMasterError
from ibbmaster.wire.capability import StatusFlag
from ibbmaster.wire.response import (
    COLLATION_BINARY,
    DECIMALS_NOT_FIXED,
    ColumnDefinition,
    ColumnType,
    Err,
    Ok,
    Response,
    ResultSet,
)

STATEMENT_SIZE_MAX = 1 << 20
VARIABLE_COUNT_MAX = 1000
VARIABLE_SIZE_MAX = 1 << 20
DATABASES = ("", "information_schema", "mysql")
TEXT_LENGTH = 67108860


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The driver shall end another connection, or what it does; the client gets OK."""

    connection_id: int
    query_only: bool


class _RefusedError(Exception):
    def __init__(self, code: int, sqlstate: str, text: str) -> None:
        super().__init__(text)
        self.err = Err(code=code, sqlstate=sqlstate, text=text)


class Dialog:
    """One session's side of the conversation. `variables` are its user variables, by lower-case name."""

    def __init__(self, facts: ServerFacts, *, connection_id: int, user: str, host: str) -> None:
        self._facts = facts
        self._connection_id = connection_id
        self._user = user
        self._host = host
        self.reset()

    def reset(self) -> None:
        """Begin a new session on the same connection."""
        self.variables: dict[str, UserValue] = {}
        self.skip_replication = False
        self._database = ""
        self._autocommit = True
        self._last_error: Err | None = None

    def begin(self, *, user: str, database: str | None) -> None:
        """Note who has logged in."""
        self._user = user
        self._database = database or ""

    def use(self, database: str) -> Response:
        """Choose a default database; there is nothing in any of them."""
        if database.lower() not in DATABASES:
            return Err(code=1049, sqlstate="42000", text=f"Unknown database '{database}'")
        self._database = database
        return self._ok()

    def query(self, sql: bytes) -> list[Response | Kill]:
        """Answer every statement of a text; after an error the rest is left undone, and the session goes on."""
        if len(sql) > STATEMENT_SIZE_MAX:
            text = "Got a packet bigger than 'max_allowed_packet' bytes"
            return [Err(code=1153, sqlstate="08S01", text=text)]
        answers: list[Response | Kill] = []
        try:
            answers.extend(map(self._answer, parse(sql.decode("utf-8", "surrogateescape"))))
        except SqlError as error:
            answers.append(_syntax_error(error))
        except _RefusedError as refused:
            answers.append(refused.err)
        except IbbMasterError as error:
            answers.append(Err(code=1105, sqlstate="HY000", text=str(error)))
        if not (answers and isinstance(answers[-1], ResultSet)):
            last = answers[-1] if answers else None
            self._last_error = last if isinstance(last, Err) else None
        return answers

    def _answer(self, statement: Statement) -> Response | Kill:
        match statement:
            case Select():
                return self._select(statement)
            case Set(assignments=assignments):
                for assignment in assignments:
                    self._assign(assignment)
                return self._ok()
            case Show():
                answer = show.answer_show(
                    statement, self._facts, user=self._user, host=self._host, last_error=self._last_error
                )
                return replace(answer, status=self._status) if isinstance(answer, ResultSet) else answer
            case KillStatement(connection_id=connection_id, query_only=query_only):
                if connection_id not in {row.connection_id for row in self._facts.processes()}:
                    raise _RefusedError(1094, "HY000", f"Unknown thread id: {connection_id}")
                return Kill(connection_id=connection_id, query_only=query_only)
            case Use(database=database):
                return self.use(database)
            case Transaction():
                return self._ok()
            case Administration():
                text = "The MariaDB server is running with the --read-only option so it cannot execute this statement"
                raise _RefusedError(1290, "HY000", text)

    @property
    def _status(self) -> int:
        return StatusFlag.AUTOCOMMIT if self._autocommit else 0

    def _ok(self) -> Ok:
        return Ok(status=self._status)

    def _select(self, select: Select) -> ResultSet:
        if select.table is not None:
            raise _RefusedError(1146, "42S02", f"Table '{select.table}' doesn't exist")
        values = [self._evaluate(item.expression) for item in select.items]
        columns = tuple(
            _column(item, value, is_boolean=self._is_boolean(item.expression))
            for item, value in zip(select.items, values, strict=True)
        )
        row = tuple(None if value is None else _text(value).encode("utf-8", "surrogateescape") for value in values)
        return ResultSet(columns=columns, rows=[] if select.limit == 0 else [row], status=self._status)

    def _assign(self, assignment: Assignment) -> None:
        value = self._evaluate(assignment.value)
        target = assignment.target
        if isinstance(target, UserVariable):
            size = len(value) if isinstance(value, str) else 8
            if size > VARIABLE_SIZE_MAX or (
                target.name not in self.variables and len(self.variables) >= VARIABLE_COUNT_MAX
            ):
                raise _RefusedError(1041, "HY000", f"Out of memory: too much in user variables, at '@{target.name}'")
            self.variables[target.name] = value
            return
        if not has_variable(self._facts, target.name):
            raise _unknown_variable(target)
        if target.scope == "global":
            text = "Access denied; you need (at least one of) the SUPER privilege(s) for this operation"
            raise _RefusedError(1227, "42000", text)
        if target.name in READ_ONLY:
            raise _RefusedError(1238, "HY000", f"Variable '{target.written}' is a read only variable")
        if target.name == "skip_replication":
            self.skip_replication = _is_true(value)
        elif target.name == "autocommit":
            self._autocommit = _is_true(value)

    def _evaluate(self, expression: Expression) -> UserValue:
        match expression:
            case Literal(value=value):
                return value
            case UserVariable(name=name):
                return self.variables.get(name)
            case SystemVariable():
                return self._system_value(expression)
            case Call():
                return self._call(expression)

    def _system_value(self, target: SystemVariable) -> UserValue:
        if not has_variable(self._facts, target.name):
            raise _unknown_variable(target)
        if target.name == "autocommit" and target.scope != "global":
            return int(self._autocommit)
        if target.name == "skip_replication":
            return int(self.skip_replication)
        value = variable(self._facts, target.name)
        return int(value) if isinstance(value, bool) else value

    def _is_boolean(self, expression: Expression) -> bool:
        return isinstance(expression, SystemVariable) and isinstance(variable(self._facts, expression.name), bool)

    def _call(self, call: Call) -> UserValue:
        arguments = [self._evaluate(argument) for argument in call.arguments]
        match call.name, arguments:
            case "unix_timestamp", []:
                return int(self._facts.unix_timestamp())
            case "version", []:
                return self._facts.profile.sql_version
            case "connection_id", []:
                return self._connection_id
            case (("database" | "schema"), []):
                return self._database or None
            case (("user" | "current_user" | "session_user" | "system_user"), []):
                return f"{self._user}@{self._host}"
            case "binlog_gtid_pos", [_, _]:
                if self._facts.profile.storage_engine is not None:
                    text = "BINLOG_GTID_POS() is not available when --binlog-storage-engine is enabled"
                    raise _RefusedError(4247, "HY000", text)
                return None
            case "master_gtid_wait", [_, *_]:
                return -1
        raise _RefusedError(1305, "42000", f"FUNCTION {call.name} does not exist")


def _column(item: SelectItem, value: UserValue, *, is_boolean: bool) -> ColumnDefinition:
    """A column as MariaDB describes it for such an expression."""
    if isinstance(value, int):
        is_variable = isinstance(item.expression, SystemVariable)
        length, flags = (1, 0x80) if is_boolean else (21, 0xA0) if is_variable else (20, 0x80)
        return ColumnDefinition(
            name=item.name,
            column_type=ColumnType.LONGLONG,
            length=17 if isinstance(item.expression, Call) else length,
            flags=flags,
            collation_id=COLLATION_BINARY,
        )
    if isinstance(value, float):
        return ColumnDefinition(
            name=item.name, column_type=ColumnType.DOUBLE, length=23, flags=0x80, collation_id=COLLATION_BINARY
        )
    is_blob = isinstance(item.expression, UserVariable)
    return ColumnDefinition(
        name=item.name,
        column_type=ColumnType.LONG_BLOB if is_blob else ColumnType.VAR_STRING,
        length=TEXT_LENGTH if is_blob else 4 * max(len(_text(value or "")), 1),
        decimals=DECIMALS_NOT_FIXED,
    )


def _text(value: int | float | Decimal | str | bytes) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)


def _is_true(value: UserValue) -> bool:
    return str(value).upper() in ("1", "ON", "TRUE")


def _unknown_variable(target: SystemVariable) -> _RefusedError:
    return _RefusedError(1193, "HY000", f"Unknown system variable '{target.written}'")


def _syntax_error(error: SqlError) -> Err:
    return Err(
        code=1064,
        sqlstate="42000",
        text="You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server version "
        f"for the right syntax to use near '{error.near}' at line {error.line_no}",
    )
