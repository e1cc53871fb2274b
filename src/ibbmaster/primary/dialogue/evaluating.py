"""What a session, its primary and the clock say as values of expressions, and the answers to SELECT of these, with
columns as MariaDB describes them; `lone_expressions` computes others. NULL is None.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from ibbmaster.replication.wire.refusal import RefusedError, no_database, not_supported, out_of_memory
from ibbmaster.replication.wire.response import (
    COLLATION_BINARY,
    COLLATION_DEFAULT,
    DECIMALS_NOT_FIXED,
    ColumnDefinition,
    FieldType,
)
from ibbmaster.rows.expr.session_facts import (
    BINARY,
    CALLS,
    CLOCKS,
    DATES,
    NOT_NULL,
    NUMBER,
    OF_NOW,
    OF_THE_SESSION,
    UNSIGNED,
    USER_TEXT_MAX,
    USERS,
    QuerySession,
    is_of_session,
)
from ibbmaster.sqltext import moment
from ibbmaster.sqltext.expression import (
    Call,
    ColumnName,
    Default,
    Expression,
    GivenTable,
    Item,
    Literal,
    SqlQuery,
    Star,
    SystemVariable,
    UserVariable,
)
from ibbmaster.sqltext.literals import Value
from ibbmaster.versions import Difference
from .log_tables import ServerFacts
from .relation import Relation, bytes_of, integer_of, text_of
from .settings import FIXED, LOWER_CASE_TABLE_NAMES, SESSION_DEFAULTS, Settings, UserVariables, version_number
from .table_columns import LETTER_SIZE

ROW_SIZE_MAX = 16 << 20  # bytes of one row of expressions
DECIMALS_OF_DOUBLE = 31
_LONG_DIGITS = 9  # more may not fit into 32 bits
_MOMENTS = (FieldType.DATETIME, FieldType.TIMESTAMP, FieldType.DATE, FieldType.TIME)


LONG_VALUE = 1 << 10  # letters; shorter values are not counted
MADE_SIZE_MAX = 16 << 20  # letters of the long values that the calls of one statement make


@dataclass(slots=True)
class Who:
    connection_id: int
    user: str
    host: str
    database: str = ""

    def located(self, table: GivenTable) -> tuple[str, str]:
        """Database and name. Raises RefusedError: there is no database."""
        database = table.database or self.database
        if not database:
            raise no_database()
        return database, table.name


class Evaluator:
    """Of expressions of one session. A statement sees one moment: `begin_statement` takes it."""

    def __init__(self, facts: ServerFacts, settings: Settings, variables: UserVariables, who: Who) -> None:
        self._facts = facts
        self.settings = settings
        self.variables = variables
        self.who = who
        self.now_us = 0  # of the statement, in microseconds since 1970
        self._made_size = 0  # of the long values of a statement

    def begin_statement(self) -> None:
        self._made_size = 0
        fixed = self.settings.values.get("timestamp")
        seconds = fixed if isinstance(fixed, int | float) and fixed > 0 else self._facts.unix_timestamp()
        self.now_us = int(seconds * 10**6)

    def query_session(
        self, charset: str | None = "utf8mb4", collation_id: int = COLLATION_DEFAULT, *, is_binary: bool = False
    ) -> QuerySession:
        """What a query depends on; results have texts of this character set."""
        settings = self.settings
        digits = settings.value("div_precision_increment")
        return QuerySession(
            evaluator=self,
            database=self.who.database,
            collation=settings.collation,
            charset=charset,
            collation_id=collation_id,
            time_zone_s=settings.time_zone_s,
            division_digits=digits if isinstance(digits, int) else 4,
            version=version_number(self._facts),
            is_binary=is_binary,
            folds_names=bool(settings.value(LOWER_CASE_TABLE_NAMES)),
        )

    def evaluate(self, expression: Expression) -> Value:
        """Outside of a query. Raises RefusedError: the expression names what does not exist, or cannot be computed."""
        match expression:
            case Literal(value=value):
                return value
            case UserVariable(name=name):
                return self.variables.get(name)
            case SystemVariable():
                value = self.settings.read(expression)
                return int(value) if isinstance(value, bool) else value
            case Call(arguments=arguments) if is_of_session(expression):
                return self._of_session(expression, [self.evaluate(argument) for argument in arguments])
            case ColumnName(parts=(*_, table, _)):
                raise RefusedError(1109, "42S02", f"Unknown table '{table}' in SELECT")
            case Default():
                raise not_supported("DEFAULT here")
            case Star():
                raise RefusedError(1096, "HY000", "No tables used")
        from .lone_expressions import constant_value  # replicas compute nothing

        return constant_value(expression, self.query_session())

    def is_switch(self, variable: SystemVariable) -> bool:
        return isinstance(self.settings.read(variable), bool)

    def counted(self, value: Value) -> Value:
        """The same value. Raises RefusedError: the values that calls of the statement made are too large together."""
        if isinstance(value, str | bytes) and len(value) > LONG_VALUE:
            self._made_size += len(value)
            if self._made_size > MADE_SIZE_MAX:
                raise out_of_memory("the values of a statement are too long")
        return value

    def _of_session(self, call: Call, arguments: list[Value]) -> Value:
        name = call.name
        least, most = OF_THE_SESSION[name]
        if not least <= len(arguments) <= most:
            text = f"Incorrect parameter count in the call to native function '{call.written}'"
            raise RefusedError(1582, "42000", text)
        if name in CLOCKS:
            show, is_utc = CLOCKS[name]
            digits = integer_of(arguments[0]) if arguments else 0
            if digits is None or not 0 <= digits <= 6:
                raise RefusedError(1426, "42000", f"Too big precision specified for '{name}'. Maximum is 6")
            return show(self._local_us(is_utc), digits)
        if name in DATES:
            return moment.date_text(self._local_us(DATES[name]))
        if name in USERS:
            return f"{self.who.user}@{self.who.host}"
        match name, arguments:
            case "unix_timestamp", []:
                return self.now_us // 10**6
            case "current_user", _:
                return f"{self.who.user}@%"
            case "version", _:
                return self._facts.profile.sql_version
            case "connection_id", _:
                return self.who.connection_id
            case (("database" | "schema"), _):
                return self.who.database or None
            case "last_insert_id", _:
                return 0
            case (("row_count" | "master_gtid_wait"), _):
                return -1
            case "binlog_gtid_pos", [file_name, offset]:
                return self._gtid_position(file_name, offset)
        return None  # current_role

    def _local_us(self, is_utc: bool) -> int:
        return self.now_us + (0 if is_utc else self.settings.time_zone_s * 10**6)

    def _gtid_position(self, file_name: Value, offset: Value) -> Value:
        if self._facts.profile.storage_engine is not None:
            text = "BINLOG_GTID_POS() is not available when --binlog-storage-engine is enabled"
            raise RefusedError(4247, "HY000", text)
        place = integer_of(offset)
        if file_name is None or place is None or place < 0:
            return None
        return self._facts.gtid_position_at(text_of(file_name), place)


def values_answer(select: SqlQuery, evaluator: Evaluator, version: int) -> Relation:
    """The row of a query of items that are all `is_of_session`. Raises RefusedError: an item names what does not exist,
    or the row is too long."""
    values = [evaluator.evaluate(item.node) for item in select.items]
    row = tuple(
        f"{value:.6f}" if isinstance(value, float) and isinstance(item.node, SystemVariable) else value
        for item, value in zip(select.items, values, strict=True)
    )
    if sum(len(bytes_of(value) or b"") for value in row) > ROW_SIZE_MAX:
        raise RefusedError(1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes")
    return Relation(value_columns(select.items, values, version), [row]).limited(select.limit)


def value_columns(items: Sequence[Item], values: Sequence[Value], version: int) -> tuple[ColumnDefinition, ...]:
    """The columns of values; None: NULL, or still to come."""
    return tuple(_described(item, value, version) for item, value in zip(items, values, strict=True))


def _described(item: Item, value: Value, version: int) -> ColumnDefinition:
    name, expression = item.name, item.node
    match expression:
        case SystemVariable():
            return _of_system_variable(name, expression, value)
        case UserVariable():
            return _of_user_variable(name, value)
        case Call(name=function) if function in CALLS:
            return _column(name, *CALLS[function], _digits(expression))
        case Call(name=function) if function in OF_NOW:
            kind = FieldType.TIMESTAMP if Difference.NOW_IS_TIMESTAMP.holds(version) else FieldType.DATETIME
            return _column(name, kind, 19, NUMBER, _digits(expression))
        case Literal(charset=None, value=bytes() as data):
            return _column(name, FieldType.VAR_STRING, len(data), NUMBER | UNSIGNED, is_binary=True)
    column = _of_value(name, value)
    is_known = (isinstance(expression, Literal) and value is not None) or (
        isinstance(expression, Call) and expression.name == "version"
    )
    return replace(column, flags=column.flags | (NOT_NULL if is_known else 0))


def _of_value(name: str, value: Value) -> ColumnDefinition:
    match value:
        case None:
            return _column(name, FieldType.NULL, 0, BINARY)
        case int():
            length = len(str(value))
            kind = FieldType.LONG if length <= _LONG_DIGITS + (value < 0) else FieldType.LONGLONG
            return _column(name, kind, length, BINARY | (UNSIGNED if value >= 2**63 else 0))
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = max(-exponent, 0) if isinstance(exponent, int) else 0
            length = max(len(digits), scale + 1) + (1 if scale else 0) + 1
            return _column(name, FieldType.NEWDECIMAL, length, BINARY, scale)
        case float():
            return _column(name, FieldType.DOUBLE, len(text_of(value)), BINARY, DECIMALS_OF_DOUBLE)
        case bytes():
            return _column(name, FieldType.VAR_STRING, len(value), BINARY, is_binary=True)
        case _:
            return _column(name, FieldType.VAR_STRING, max(len(value), 1), 0)


def _of_system_variable(name: str, target: SystemVariable, value: Value) -> ColumnDefinition:
    known = FIXED.get(target.name, SESSION_DEFAULTS.get(target.name))
    if isinstance(known, bool):
        return _column(name, FieldType.LONGLONG, 1, BINARY)
    if target.name == "timestamp" or isinstance(value, float):
        return _column(name, FieldType.DOUBLE, 21, BINARY, 6)
    if isinstance(value, int):
        return _column(name, FieldType.LONGLONG, 21, BINARY | UNSIGNED)
    return _column(name, FieldType.VAR_STRING, len(text_of(value or "")), 0)


def _of_user_variable(name: str, value: Value) -> ColumnDefinition:
    match value:
        case int():
            return _column(name, FieldType.LONGLONG, 20, BINARY)
        case Decimal():
            return _column(name, FieldType.NEWDECIMAL, 83, BINARY, 38)
        case float():
            return _column(name, FieldType.DOUBLE, 23, BINARY, DECIMALS_OF_DOUBLE)
        case str():
            return _column(name, FieldType.LONG_BLOB, USER_TEXT_MAX, 0)
    return _column(name, FieldType.LONG_BLOB, USER_TEXT_MAX, BINARY, is_binary=True)


def _column(
    name: str, kind: FieldType, length: int, flags: int, decimals: int = 0, *, is_binary: bool = False
) -> ColumnDefinition:
    is_text = kind in (FieldType.VAR_STRING, FieldType.LONG_BLOB)
    has_letters = is_text and not is_binary
    if kind in _MOMENTS and decimals:
        length += 1 + decimals
    if is_text:
        decimals = DECIMALS_NOT_FIXED if has_letters or kind is FieldType.LONG_BLOB else 0
    return ColumnDefinition(
        name=name,
        column_type=kind,
        length=length * LETTER_SIZE if has_letters else length,
        flags=flags,
        decimals=decimals,
        collation_id=COLLATION_DEFAULT if has_letters else COLLATION_BINARY,
    )


def _digits(call: Call) -> int:
    match call.arguments:
        case (Literal(value=int() as digits),) if call.name in CLOCKS:
            return digits
    return 0
