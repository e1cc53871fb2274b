"""The values of expressions in one session; NULL is None."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from ibbmaster.dialogue.conversion import (
    calculate,
    calculate_bits,
    compare,
    integer_of,
    number_of,
    text_of,
    truth_of,
)
from ibbmaster.dialogue.functions import FUNCTIONS, call_function, check_count
from ibbmaster.dialogue.matching import like
from ibbmaster.dialogue.refusal import RefusedError, no_database, not_supported, out_of_memory, unknown_column
from ibbmaster.dialogue.settings import Settings
from ibbmaster.dialogue.statement import GivenTable, Unread
from ibbmaster.dialogue.user_variables import UserVariables
from ibbmaster.dialogue.variables import ServerFacts, is_uca_default
from ibbmaster.schema.collations import character_sets, charset_of_collation
from ibbmaster.sqltext import moment
from ibbmaster.sqltext.expression import (
    Call,
    ColumnName,
    Default,
    Expression,
    Literal,
    Operation,
    Star,
    Subquery,
    SystemVariable,
    UserVariable,
)
from ibbmaster.sqltext.literals import Value
from ibbmaster.work import check_wanted

Row = Mapping[str, Value]  # by the name of the column, in lower case
AGGREGATES = frozenset(("count", "sum", "min", "max", "avg", "group_concat", "std", "variance", "bit_or", "bit_and"))
_CLOCKS = {  # what is shown of a moment, and whether in UTC
    "now": (moment.moment_text, False),
    "current_timestamp": (moment.moment_text, False),
    "localtime": (moment.moment_text, False),
    "localtimestamp": (moment.moment_text, False),
    "sysdate": (moment.moment_text, False),
    "utc_timestamp": (moment.moment_text, True),
    "current_time": (moment.time_of_day_text, False),
    "curtime": (moment.time_of_day_text, False),
    "utc_time": (moment.time_of_day_text, True),
}
_DATES = {"curdate": False, "current_date": False, "utc_date": True}
LONG_VALUE = 1 << 10  # letters; shorter values are not counted
MADE_SIZE_MAX = 16 << 20  # letters of the long values that calls make for one row
_USERS = ("user", "session_user", "system_user")


@dataclass(slots=True)
class Who:
    """Whose session it is."""

    connection_id: int
    user: str
    host: str
    database: str = ""  # the default one; empty: none

    def located(self, table: GivenTable) -> tuple[str, str]:
        """Database and name of a table; without a database it is in the default one.

        Raises:
            RefusedError: there is none.
        """
        database = table.database or self.database
        if not database:
            raise no_database()
        return database, table.name


class Evaluator:
    """Evaluates expressions of one session. A statement sees one moment: `begin_statement` takes it."""

    def __init__(self, facts: ServerFacts, settings: Settings, variables: UserVariables, who: Who) -> None:
        self._facts = facts
        self.settings = settings
        self.variables = variables
        self.who = who
        self.found_rows: Callable[[], int] = lambda: 0  # in the last answer that had rows
        self.warning_count = 0  # of the last statement
        self.now_us = 0  # of the statement, in microseconds since 1970
        self.subquery: Callable[[Unread], Value] | None = None
        self._made_size = 0  # of the long values of a row

    def begin_row(self) -> None:
        """What was computed before is not kept: the limit on memory for values starts anew."""
        self._made_size = 0

    def begin_statement(self) -> None:
        """Take the time."""
        self.begin_row()
        fixed = self.settings.values.get("timestamp")
        seconds = fixed if isinstance(fixed, int | float) and fixed > 0 else self._facts.unix_timestamp()
        self.now_us = int(seconds * 10**6)

    def evaluate(self, expression: Expression, row: Row | None = None) -> Value:
        """The value of an expression, for one row of a table or for none.

        Raises:
            RefusedError: it names what does not exist, or cannot be computed here.
        """
        match expression:
            case Literal(value=value):
                return value
            case UserVariable(name=name):
                return self.variables.get(name)
            case SystemVariable():
                value = self.settings.read(expression)
                return int(value) if isinstance(value, bool) else value
            case ColumnName(parts=parts):
                return self._column(parts, row)
            case Call():
                check_wanted()
                return self._counted(self._call(expression, row))
            case Operation():
                return self._operate(expression, row)
            case Subquery(query=query) if self.subquery is not None:
                return self.subquery(query)
            case Default():
                raise not_supported("DEFAULT here")
            case Star():
                raise RefusedError(1096, "HY000", "No tables used")
            case _:
                raise not_supported("this kind of subquery")

    def _counted(self, value: Value) -> Value:
        """A value that was made; the arguments of one call may be thousands.

        Raises:
            RefusedError: all of them together are too large.
        """
        if isinstance(value, str | bytes) and len(value) > LONG_VALUE:
            self._made_size += len(value)
            if self._made_size > MADE_SIZE_MAX:
                raise out_of_memory("the values of a statement are too long")
        return value

    def charset_of(self, expression: Expression) -> str:
        """The character set of an expression's value."""
        match expression:
            case Literal(charset=str() as charset):
                return charset
            case Literal(value=str()) | UserVariable() | Operation() | SystemVariable():
                return charset_of_collation(self.settings.collation)
            case Literal(value=None | bytes()):
                return "binary"
            case Call(name=name) if name in (*_USERS, "current_user", "database", "schema", "version"):
                return "utf8mb3"
            case _:
                return charset_of_collation(self.settings.collation)

    def _column(self, parts: tuple[str, ...], row: Row | None) -> Value:
        name = parts[-1].lower()
        if row is not None and name in row:
            return row[name]
        if len(parts) > 1 and row is None:
            raise RefusedError(1109, "42S02", f"Unknown table '{parts[-2]}' in SELECT")
        raise unknown_column(".".join(parts), "SELECT" if row is None else "WHERE")

    def _operate(self, operation: Operation, row: Row | None) -> Value:
        operands = operation.operands
        match operation.operator:
            case "AND" | "OR":
                return self._all_or_any(operation, row)
            case "CASE" | "CASE OF":
                return self._case(operation, row)
            case ":=":
                target, expression = operands
                assert isinstance(target, UserVariable)
                value = self.evaluate(expression, row)
                self.variables.assign(target.name, value)
                return value
            case "EXISTS":
                return int(self.evaluate(operands[0], row) is not None)
            case "INTERVAL" | "ROW":
                raise not_supported(operation.operator)
            case "IN" if isinstance(operands[1], Subquery):
                raise not_supported("IN with a query")
        values = [self.evaluate(operand, row) for operand in operands]
        return operate(operation.operator, values)

    def _all_or_any(self, operation: Operation, row: Row | None) -> Value:
        decides = operation.operator == "OR"
        found: Value = int(not decides)
        for operand in operation.operands:
            truth = truth_of(self.evaluate(operand, row))
            if truth is decides:
                return int(decides)
            if truth is None:
                found = None
        return found

    def _case(self, operation: Operation, row: Row | None) -> Value:
        value, *branches, otherwise = operation.operands
        wanted = self.evaluate(value, row)
        for condition, result in zip(branches[::2], branches[1::2], strict=True):
            found = self.evaluate(condition, row)
            if compare(wanted, found) == 0 if operation.operator == "CASE OF" else truth_of(found):
                return self.evaluate(result, row)
        return self.evaluate(otherwise, row)

    def _call(self, call: Call, row: Row | None) -> Value:
        name = call.name
        if call.database is not None:
            raise RefusedError(1305, "42000", f"FUNCTION {call.database}.{call.written} does not exist")
        if not self.is_function(name):
            raise RefusedError(1305, "42000", f"FUNCTION {call.written} does not exist")
        if not call.is_read:
            raise not_supported(f"{call.written}() with these arguments")
        if name in AGGREGATES:
            if row is None and name == "count":
                return 1
            raise not_supported(f"{call.written}() here")
        if name == "if":
            check_count(call.written, len(call.arguments), 3, 3)
            is_true = truth_of(self.evaluate(call.arguments[0], row))
            return self.evaluate(call.arguments[1 if is_true else 2], row)
        if name in ("charset", "collation"):
            check_count(call.written, len(call.arguments), 1, 1)
            self.evaluate(call.arguments[0], row)
            charset = self.charset_of(call.arguments[0])
            if name == "charset":
                return charset
            of_session = self.settings.collation
            if charset_of_collation(of_session) == charset:
                return of_session
            return character_sets()[charset].default_collation(is_uca=is_uca_default(self._facts))
        arguments = [self.evaluate(argument, row) for argument in call.arguments]
        if name in FUNCTIONS:
            return call_function(name, call.written, arguments)
        if name in ("cast", "convert"):
            return _cast(arguments[0], text_of(arguments[1]))
        return self._of_session(call, arguments)

    @staticmethod
    def is_function(name: str) -> bool:
        """Whether there is a function of that name, in lower case."""
        return (
            name in FUNCTIONS
            or name in _CLOCKS
            or name in _DATES
            or name in _USERS
            or name in AGGREGATES
            or name in _OF_THE_SESSION
        )

    def _of_session(self, call: Call, arguments: list[Value]) -> Value:
        """Functions whose value depends on the session, its primary and the time."""
        name = call.name
        least, most = _OF_THE_SESSION.get(name, (0, 1 if name in _CLOCKS else 0))
        check_count(call.written, len(arguments), least, most)
        if name in _CLOCKS:
            show, is_utc = _CLOCKS[name]
            digits = integer_of(arguments[0]) if arguments else 0
            if digits is None or not 0 <= digits <= 6:
                raise RefusedError(1426, "42000", f"Too big precision specified for '{name}'. Maximum is 6")
            return show(self._local_us(is_utc), digits)
        if name in _DATES:
            return moment.date_text(self._local_us(_DATES[name]))
        if name in _USERS:
            return f"{self.who.user}@{self.who.host}"
        match name, arguments:
            case "unix_timestamp", []:
                return self.now_us // 10**6
            case "unix_timestamp", [value]:
                found = None if value is None else moment.parse_moment(text_of(value))
                return None if found is None else max(found // 10**6 - self.settings.time_zone_s, 0)
            case "current_user", _:
                return f"{self.who.user}@%"
            case "version", _:
                return self._facts.profile.sql_version
            case "connection_id", _:
                return self.who.connection_id
            case (("database" | "schema"), _):
                return self.who.database or None
            case "found_rows", _:
                return self.found_rows()
            case "warning_count", _:
                return self.warning_count
            case "last_insert_id", _:
                return 0
            case "row_count", _:
                return -1
            case "binlog_gtid_pos", [file_name, offset]:
                return self._gtid_position(file_name, offset)
            case "master_gtid_wait", _:
                return -1
        return None  # current_role, and what has no value here

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


#: Functions of the session: the least and the most arguments.
_OF_THE_SESSION: Mapping[str, tuple[int, int]] = {
    "binlog_gtid_pos": (2, 2),
    "cast": (2, 2),
    "charset": (1, 1),
    "collation": (1, 1),
    "connection_id": (0, 0),
    "convert": (2, 2),
    "current_role": (0, 0),
    "current_user": (0, 0),
    "database": (0, 0),
    "found_rows": (0, 0),
    "if": (3, 3),
    "last_insert_id": (0, 1),
    "master_gtid_wait": (1, 2),
    "row_count": (0, 0),
    "schema": (0, 0),
    "unix_timestamp": (0, 1),
    "version": (0, 0),
}


def operate(operator: str, values: list[Value]) -> Value:
    """What an operator makes of values; NULL mostly makes NULL."""
    first = values[0]
    match operator:
        case "+" | "-" | "*" | "/" | "DIV" | "MOD":
            result = first
            for value in values[1:]:
                result = calculate(operator, result, value)
            return result
        case "||":
            return None if None in values else "".join(map(text_of, values))
        case "|| ORACLE":
            texts = [text_of(value) for value in values if value is not None]
            return "".join(texts) if texts else None
        case "|" | "&" | "^" | "<<" | ">>":
            return calculate_bits(operator, first, values[1])
        case "~":
            return calculate_bits("^", first, 2**64 - 1)
        case "NEGATIVE":
            return None if first is None else calculate("-", 0, first)
        case "BINARY":
            return None if first is None else text_of(first).encode("utf-8", "surrogateescape")
        case "NOT":
            return _truth(None if (truth := truth_of(first)) is None else not truth)
        case "XOR":
            left, right = truth_of(first), truth_of(values[1])
            return None if left is None or right is None else int(left is not right)
        case "IS NULL":
            return int(first is None)
        case "IS TRUE":
            return int(truth_of(first) is True)
        case "IS FALSE":
            return int(truth_of(first) is False)
        case "<=>":
            return int(compare(first, values[1]) == 0 or (first is None and values[1] is None))
        case "IN":
            orders = [_compared(first, value) for value in values[1:]]
            return 1 if 0 in orders else None if None in orders else 0
        case "BETWEEN":
            low, high = compare(first, values[1]), compare(first, values[2])
            return _truth(None if low is None or high is None else low >= 0 and high <= 0)
        case "LIKE":
            if first is None or values[1] is None:
                return None
            escape = text_of(values[2]) if len(values) > 2 and values[2] is not None else "\\"
            return int(like(text_of(values[1]), text_of(first), escape=escape))
        case "REGEXP":
            raise not_supported("REGEXP")
        case _:
            order = compare(first, values[1])
            return None if order is None else int(_COMPARED[operator](order))


_COMPARED: Mapping[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_INTEGERS = re.compile("SIGNED|UNSIGNED|INT|INTEGER")


def _compared(left: Value, right: Value) -> int | None:
    """As `compare`, of many."""
    check_wanted()
    return compare(left, right)


def _truth(value: bool | None) -> int | None:
    return None if value is None else int(value)


def _cast(value: Value, kind: str) -> Value:
    if value is None:
        return None
    if _INTEGERS.fullmatch(kind):
        integer = integer_of(value)
        return integer if integer is None or kind != "UNSIGNED" else integer % 2**64
    if kind in ("DECIMAL", "DOUBLE", "FLOAT"):
        number = number_of(value)
        return Decimal(number) if kind == "DECIMAL" and isinstance(number, int) else number
    if kind == "BINARY":
        return text_of(value).encode("utf-8", "surrogateescape")
    return text_of(value)
