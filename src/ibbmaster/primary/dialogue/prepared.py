"""Prepared statements of one session: texts whose `?` get values later. Loaded on demand."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Protocol

from ibbmaster.errors import RemoteProtocolError
from ibbmaster.replication.wire.binary_row import PARAMETERS_MAX, Parameter, decode_parameters
from ibbmaster.replication.wire.command import NEWEST_STATEMENT
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.replication.wire.response import COLLATION_BINARY, ColumnDefinition, FieldType, Ok, PreparedOk
from ibbmaster.sqltext.token import PLACEHOLDER, SqlTokens, Token, TokenKind
from .sql import parse_one
from .statement import Answer, Statement

STATEMENTS_MAX = 16_382  # max_prepared_stmt_count of a server, for each session
SIZE_MAX = 16 << 20  # bytes of all statements of a session, and of all pieces of parameters
TOKEN_SIZE = 200  # bytes in memory, about, beside its text
_COUNTED = ("LIMIT", "OFFSET", "KILL", "CONNECTION", "QUERY")


@dataclass(slots=True)
class PreparedStatement:
    statement_id: int
    tokens: SqlTokens
    places: tuple[int, ...]  # of the tokens that are `?`
    size: int
    types: list[int] = field(default_factory=list)
    pieces: dict[int, bytes] = field(default_factory=dict)  # of parameters, sent before
    is_too_long: bool = False  # the pieces

    def parameters(self) -> tuple[ColumnDefinition, ...]:
        one = ColumnDefinition(
            name=PLACEHOLDER, column_type=FieldType.NULL, length=0, collation_id=COLLATION_BINARY, flags=0x80
        )
        return (one,) * len(self.places)

    def bound(self, values: Sequence[Parameter]) -> SqlTokens:
        tokens = list(self.tokens.tokens)
        for place, value in sorted(zip(self.places, values, strict=True), reverse=True, key=lambda pair: pair[0]):
            tokens[place : place + 1] = _literal(tokens[place], value)
        return replace(self.tokens, tokens=tokens)

    def described(self) -> SqlTokens:
        """The statement with NULL, or 1 where a number is required, for each `?`: its columns can be described."""
        tokens = self.tokens.tokens
        values: list[Parameter] = []
        is_limit = False
        for no, token in enumerate(tokens):
            if token.kind is TokenKind.WORD:
                is_limit = token.text.upper() in _COUNTED
            if no in self.places:
                values.append(1 if is_limit else None)
        return self.bound(values)


Answers = Callable[[], Iterable[Answer]]


class PreparingSession(Protocol):
    @property
    def status(self) -> int: ...

    def carry_out(self, statement: Statement) -> Answer: ...

    def columns(self, statement: Statement) -> tuple[ColumnDefinition, ...]: ...

    def guarded(self, answer: Answers) -> list[Answer]: ...

    def hold(self, what: str, size: int) -> None: ...


class PreparedStatements:
    def __init__(self, session: PreparingSession, tokens_of: Callable[[bytes], SqlTokens]) -> None:
        """`tokens_of` cuts a text as the session reads it."""
        self._session = session
        self._tokens_of = tokens_of
        self._statements: dict[int, PreparedStatement] = {}
        self._newest = 0
        self._size = 0

    def prepare(self, sql: bytes) -> list[Answer]:
        def keep() -> Iterator[Answer]:
            tokens = self._tokens_of(sql)
            if not tokens.tokens:
                raise RefusedError(1065, "42000", "Query was empty")
            statement = self._add(tokens)
            try:
                columns = self._session.columns(parse_one(statement.described()))
            except Exception:
                self.close(statement.statement_id)
                raise
            number, parameters = statement.statement_id, statement.parameters()
            yield PreparedOk(statement_id=number, parameters=parameters, columns=columns, status=self._session.status)

        return self._session.guarded(keep)

    def execute(self, statement_id: int, parameters: bytes) -> list[Answer]:
        """COM_STMT_EXECUTE; rows are binary."""

        def carry_out() -> Iterator[Answer]:
            statement = self._find(statement_id, "mysqld_stmt_execute")
            yield self._session.carry_out(parse_one(self._bind(statement, parameters)))

        return self._session.guarded(carry_out)

    def reset(self, statement_id: int) -> list[Answer]:
        """COM_STMT_RESET: forget pieces of parameters."""

        def reset() -> Iterator[Answer]:
            self._forget_pieces(self._find(statement_id, "mysqld_stmt_reset"))
            yield Ok(status=self._session.status)

        return self._session.guarded(reset)

    def fetch(self, statement_id: int) -> list[Answer]:
        def fetch() -> Iterable[Answer]:
            self._find(statement_id, "mysqld_stmt_fetch")
            raise RefusedError(1421, "HY000", f"The statement ({statement_id}) has no open cursor.")

        return self._session.guarded(fetch)

    def _add(self, tokens: SqlTokens) -> PreparedStatement:
        """Raises RefusedError: there are too many or too large statements, or it has too many `?`."""
        places = tuple(no for no, token in enumerate(tokens.tokens) if token.is_sign(PLACEHOLDER))
        if len(places) > PARAMETERS_MAX:
            raise RefusedError(1390, "HY000", "Prepared statement contains too many placeholders")
        size = len(tokens.sql) + TOKEN_SIZE * len(tokens.tokens)
        if len(self._statements) >= STATEMENTS_MAX or self._size + size > SIZE_MAX:
            text = f"Can't create more than max_prepared_stmt_count statements (current value: {STATEMENTS_MAX})"
            raise RefusedError(1461, "42000", text)
        self._hold(self._size + size)
        self._newest = self._newest % (NEWEST_STATEMENT - 1) + 1
        statement = PreparedStatement(self._newest, tokens, places, size)
        self._statements[self._newest] = statement
        return statement

    def _hold(self, size: int) -> None:
        self._session.hold("prepared statements", size)
        self._size = size

    def _find(self, statement_id: int, command: str) -> PreparedStatement:
        number = self._newest if statement_id == NEWEST_STATEMENT else statement_id
        statement = self._statements.get(number)
        if statement is None:
            text = f"Unknown prepared statement handler ({statement_id}) given to {command}"
            raise RefusedError(1243, "HY000", text)
        return statement

    def close(self, statement_id: int) -> None:
        statement = self._statements.pop(statement_id, None)
        if statement is not None:
            self._hold(self._size - statement.size - sum(map(len, statement.pieces.values())))

    def add_piece(self, statement_id: int, parameter_no: int, data: bytes) -> None:
        """Of a parameter; errors show when the statement is carried out."""
        statement = self._statements.get(statement_id)
        if statement is None or parameter_no >= len(statement.places):
            return
        try:
            if self._size + len(data) <= SIZE_MAX:
                self._hold(self._size + len(data))
                statement.pieces[parameter_no] = statement.pieces.get(parameter_no, b"") + data
                return
        except RefusedError:
            pass
        statement.is_too_long = True

    def _forget_pieces(self, statement: PreparedStatement) -> None:
        self._hold(self._size - sum(map(len, statement.pieces.values())))
        statement.pieces.clear()
        statement.is_too_long = False

    def _bind(self, statement: PreparedStatement, parameters: bytes) -> SqlTokens:
        """With the values that a client sends; their pieces go. Raises RefusedError: they cannot be read, or are too
        long.
        """
        pieces: Mapping[int, bytes] = dict(statement.pieces)
        is_too_long = statement.is_too_long
        self._forget_pieces(statement)
        if is_too_long:
            text = "Parameter of prepared statement which is set through mysql_send_long_data() is longer than "
            raise RefusedError(1105, "HY000", f"{text}'max_allowed_packet' bytes")
        try:
            values, statement.types = decode_parameters(parameters, statement.types, len(statement.places), pieces)
        except RemoteProtocolError:
            raise RefusedError(1210, "HY000", "Incorrect arguments to mysqld_stmt_execute") from None
        return statement.bound(values)


def _literal(place: Token, value: Parameter) -> list[Token]:
    match value:
        case None:
            parts = [(TokenKind.WORD, "NULL")]
        case str():
            parts = [(TokenKind.TEXT, value)]
        case bytes():
            parts = [(TokenKind.HEX, f"x'{value.hex()}'")]
        case _:
            minus = [(TokenKind.SIGN, "-")] if value < 0 else []
            parts = [*minus, (TokenKind.NUMBER, _digits(value))]
    return [Token(kind, text, place.is_spaced, place.start, place.end) for kind, text in parts]


def _digits(value: int | float | Decimal) -> str:
    if isinstance(value, float):
        text = repr(abs(value))
        return text if "e" in text else f"{text}e0"  # without an exponent it would be a DECIMAL
    return f"{abs(value):f}" if isinstance(value, Decimal) else str(abs(value))
