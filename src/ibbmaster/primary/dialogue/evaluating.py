"""What a session, its primary and the clock say as values of expressions; `lone_expressions` computes others.

NULL is None.
"""

from dataclasses import dataclass

from ibbmaster.replication.wire.refusal import RefusedError, no_database, not_supported, out_of_memory
from ibbmaster.replication.wire.response import COLLATION_DEFAULT
from ibbmaster.rows.expr.session_facts import CLOCKS, DATES, OF_THE_SESSION, USERS, QuerySession, is_of_session
from ibbmaster.sqltext import moment
from ibbmaster.sqltext.expression import (
    Call,
    ColumnName,
    Default,
    Expression,
    GivenTable,
    Literal,
    Star,
    SystemVariable,
    UserVariable,
)
from ibbmaster.sqltext.literals import Value
from .log_tables import ServerFacts
from .relation import integer_of, text_of
from .settings import Settings, UserVariables
from .variables import LOWER_CASE_TABLE_NAMES, version_number

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
