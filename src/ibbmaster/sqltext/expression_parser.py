"""The one reader of expressions."""

from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

from ibbmaster.facts import rows_of
from .cursor import END
from .expression import (
    Aggregate,
    Call,
    Cast,
    ColumnName,
    Default,
    Expression,
    Literal,
    Operation,
    Star,
    SystemVariable,
    UserVariable,
)
from .literals import binary_value, number_value
from .operators import JOINED, JOINED_ORACLE, NOT, PREDICATE, UNARY, binary_operators
from .sql_mode import EMPTY_STRING_IS_NULL, HIGH_NOT_PRECEDENCE, IGNORE_SPACE
from .token import LITERALS, SqlError, SqlTokens, Token, TokenKind, UnreadSqlError, error_at, words

Read = TypeVar("Read")
SCOPES = {"global": "global", "session": "session", "local": "session"}
DEPTH_MAX = 40  # brackets in brackets
QUERY_INSIDE = "a query in an expression"
STEPS_MAX = 100  # operators that nest in each other; readers of the tree recurse as deep

WORDS = {kind: words(text) for kind, text in rows_of("ibbmaster.sqltext", "words")}
RESERVED = WORDS["reserved"]
COMPUTED_AGGREGATES = words("count sum avg min max")
_MOMENTS = words("DATE TIME TIMESTAMP")
_SAME_TYPES = {**dict.fromkeys(("signed", "unsigned", "int"), "integer"), "dec": "decimal", "numeric": "decimal"}
_OF_QUERIES = words("ALL ANY SOME")
_FLAT = frozenset(("OR", "AND", "+", JOINED, JOINED_ORACLE))  # many of one kind in a row are one operation


class ExpressionParser:
    def __init__(self, tokens: SqlTokens) -> None:
        self._text = tokens
        self._sql = tokens.sql
        self._tokens = tokens.tokens
        self._sql_mode = tokens.sql_mode
        self._operators = binary_operators(tokens.sql_mode)
        self._index = 0
        self._depth = 0
        self._steps = 0

    @property
    def is_at_end(self) -> bool:
        return self._index >= len(self._tokens)

    def expect_end(self) -> None:
        if not self.is_at_end:
            raise self._error()

    def expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._error()

    def _charset(self, name: str) -> str | None:
        return name.lower()

    def _expression(self, least: int = 1) -> Expression:
        """Operators that bind at least as tightly as `least`."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._error()
        left = self._prefixed(least)
        while (found := self._operator(left, least)) is not None:
            left = found
        self._depth -= 1
        return left

    def _prefixed(self, least: int) -> Expression:
        if self._peek("NOT"):
            binds = UNARY if self._sql_mode & HIGH_NOT_PRECEDENCE else NOT
            if least <= binds:
                self._index += 1
                return Operation("NOT", (self._expression(binds),))
        operand = self._operand()
        while self._accept("COLLATE"):
            operand = Operation("COLLATE", (operand, Literal(self._take_name())))
        return operand

    def _operator(self, left: Expression, least: int) -> Expression | None:
        word = self._token().word
        if word in self._operators:
            precedence, operator, _ = self._operators[word]
            if precedence < least:
                return None
            self._index += 1
            right = self._expression(precedence + 1)
            if operator in _FLAT and isinstance(left, Operation) and left.operator == operator:
                return Operation(operator, (*left.operands, right))
            return self._step(operator, left, right)
        return self._predicate(left) if word and least <= PREDICATE else None

    def _predicate(self, left: Expression) -> Expression | None:
        start = self._index
        if self._accept("IS"):
            is_negated = self._accept("NOT")
            for word in ("NULL", "TRUE", "FALSE", "UNKNOWN"):
                if self._accept(word):
                    word = "NULL" if word == "UNKNOWN" else word
                    return self._negated(self._step(f"IS {word}", left), is_negated)
            raise self._error()
        is_negated = self._accept("NOT")
        if self._accept("IN"):
            self.expect("(")
            return self._negated(self._step("IN", left, *self._bracketed()), is_negated)
        if self._accept("BETWEEN"):
            low = self._expression(PREDICATE + 1)
            self.expect("AND")
            return self._negated(self._step("BETWEEN", left, low, self._expression(PREDICATE + 1)), is_negated)
        if self._accept("LIKE"):
            pattern = self._expression(PREDICATE + 1)
            escape = (self._expression(PREDICATE + 1),) if self._accept("ESCAPE") else ()
            return self._negated(self._step("LIKE", left, pattern, *escape), is_negated)
        if self._accept("REGEXP") or self._accept("RLIKE"):
            return self._negated(self._step("REGEXP", left, self._expression(PREDICATE + 1)), is_negated)
        self._index = start
        return None

    def _step(self, operator: str, *operands: Expression) -> Operation:
        self._steps += 1
        if self._steps > STEPS_MAX and any(isinstance(operand, Operation) for operand in operands):
            raise self._error()
        return Operation(operator, operands)

    @staticmethod
    def _negated(operation: Operation, is_negated: bool) -> Operation:
        return Operation("NOT", (operation,)) if is_negated else operation

    def _operand(self) -> Expression:
        token = self._token()
        match token.kind:
            case TokenKind.NUMBER:
                self._index += 1
                return Literal(number_value(token.text), written=token.text)
            case TokenKind.TEXT:
                text = self._take_texts()
                return Literal(text if text or not self._sql_mode & EMPTY_STRING_IS_NULL else None)
            case TokenKind.HEX | TokenKind.BITS:
                self._index += 1
                return Literal(binary_value(token), written=token.text)
            case TokenKind.USER:
                return self._user_variable()
            case TokenKind.SYSTEM:
                return self._system_variable()
            case TokenKind.NAME:
                return self._column_or_call()
            case TokenKind.SIGN:
                return self._after_sign(token.text)
            case _:
                return self._after_word(token)

    def _after_sign(self, sign: str) -> Expression:
        if self._accept("("):
            values = self._bracketed()
            return values[0] if len(values) == 1 else Operation("ROW", values)
        if sign in ("-", "+", "~", "!"):
            self._index += 1
            value = self._expression(UNARY)
            if sign == "+":
                return value
            if sign == "-" and isinstance(value, Literal):
                if isinstance(value.value, Decimal):
                    return Literal(value.value.copy_negate(), written=_negative(value.written))
                if isinstance(value.value, int | float):
                    return Literal(-value.value, written=_negative(value.written))
            return self._step({"-": "NEGATIVE", "!": "NOT"}.get(sign, sign), value)
        raise self._error()

    def _after_word(self, token: Token) -> Expression:
        word = token.word
        following = self._token(1)
        if word in _OF_QUERIES and self._is_call():
            raise UnreadSqlError(f"{word} (SELECT …)")
        if word[0] == "_" and following.kind in LITERALS and (charset := self._charset(word[1:])) is not None:
            self._index += 1
            literal = self._operand()
            assert isinstance(literal, Literal)
            return Literal(literal.value, charset, literal.written)
        if word in ("NULL", "TRUE", "FALSE") and not self._is_call():
            self._index += 1
            return Literal({"NULL": None, "TRUE": 1, "FALSE": 0}[word], written="NULL" if word == "NULL" else "")
        if word == "DEFAULT" and not self._is_call():
            self._index += 1
            return Default()
        match word:
            case "CASE":
                return self._case()
            case "EXISTS" if self._is_call():
                raise UnreadSqlError(QUERY_INSIDE)
            case _ if word in _MOMENTS and following.kind is TokenKind.TEXT:
                self._index += 1
                return Operation(f"LITERAL {word}", (Literal(self._take_texts()),))
            case "BINARY":
                self._index += 1
                return Operation("BINARY", (self._expression(UNARY),))
            case "INTERVAL" if not self._is_call() or self._is_amount():
                self._index += 1
                amount = self._expression()
                return Operation("INTERVAL", (amount, Literal(self._take_name().upper())))
            case _ if word in RESERVED and not (self._is_call() and word in ("LEFT", "RIGHT", "MOD", "VALUES")):
                raise self._error()
        return self._column_or_call()

    def _case(self) -> Operation:
        self._index += 1
        value: Expression = Literal(1) if self._peek("WHEN") else self._expression()
        is_searched = self._tokens[self._index - 1].is_word("CASE")
        branches: list[Expression] = []
        while self._accept("WHEN"):
            branches.append(self._expression())
            self.expect("THEN")
            branches.append(self._expression())
        if not branches:
            raise self._error()
        branches.append(self._expression() if self._accept("ELSE") else Literal(None))
        self.expect("END")
        return Operation("CASE" if is_searched else "CASE OF", (value, *branches))

    def _column_or_call(self) -> Expression:
        token = self._token()
        if self._is_call() and token.kind is not TokenKind.NAME:
            return self._call()
        start = self._index
        if token.kind is TokenKind.WORD and token.text.lower() in WORDS["bare"]:
            self._index += 1
            return Call(token.text.lower(), token.text)
        parts = [self._take_name()]
        while len(parts) < 3 and self._accept("."):
            if self._accept("*"):
                return Star(tuple(parts))
            if len(parts) == 1 and self._is_call():
                return self._call(database=parts[0])
            parts.append(self._take_name())
        if self._peek("("):
            self._index = start
            return self._call()
        return ColumnName(tuple(parts))

    def _call(self, database: str | None = None) -> Expression:
        written = self._take_name()
        name = written.lower()
        is_spaced = self._token().is_spaced
        self.expect("(")
        first, depth = self._index, self._depth
        try:
            found = self._called(name, written)
        except UnreadSqlError:
            raise
        except SqlError:
            self._index, self._depth = first, depth
            self._skip_brackets()
            found = Call(name, written, is_read=False)
        if self._peek("OVER"):
            raise UnreadSqlError(f"{written}() OVER a window")
        if is_spaced and name in WORDS["spaceless"] and not self._sql_mode & IGNORE_SPACE:
            return Call(f"{name} ", written)  # which does not exist
        if database is None:
            return found
        arguments = found.arguments if isinstance(found, Call) else ()
        return Call(name, written, arguments, database, isinstance(found, Call) and found.is_read)

    def _called(self, name: str, written: str) -> Expression:
        if name in WORDS["aggregate"]:
            return self._aggregate(name)
        if name in WORDS["own"]:
            raise UnreadSqlError(f"{written}()")
        match name:
            case "cast" | "convert":
                value = self._expression()
                if name == "convert" and self._accept("USING"):
                    found = Cast(value, "using", charset=self._take_name().lower())
                    self.expect(")")
                    return found
                self.expect("AS" if name == "cast" else ",")
                return self._cast(value)
            case "position":
                wanted = self._expression(PREDICATE + 1)
                self.expect("IN")
                name = "locate"
                arguments: tuple[Expression, ...] = (wanted, self._expression())
            case "substring" | "substr":
                arguments = self._substring()
            case _:
                arguments = () if self._peek(")") else self._list(self._expression)
        self.expect(")")
        return Call(name, written, arguments)

    def _substring(self) -> tuple[Expression, ...]:
        value = self._expression()
        if self._accept("FROM"):
            start = self._expression()
            return (value, start, self._expression()) if self._accept("FOR") else (value, start)
        self.expect(",")
        return value, *self._list(self._expression)

    def _aggregate(self, name: str) -> Aggregate:
        if name == "count" and self._accept("*"):
            self.expect(")")
            return Aggregate(name, ())
        is_distinct = self._accept("DISTINCT")
        if not is_distinct:
            self._accept("ALL")
        arguments = self._list(self._expression)
        if name not in COMPUTED_AGGREGATES:
            raise UnreadSqlError(f"{name.upper()}()")
        self.expect(")")
        return Aggregate(name, arguments, is_distinct)

    def _cast(self, value: Expression) -> Cast:
        kind = self._take_word().lower()
        is_unsigned = kind == "unsigned"
        if kind in ("signed", "unsigned"):
            _ = self._accept("INTEGER") or self._accept("INT")
        elif kind == "double":
            self._accept("PRECISION")
        elif kind == "nchar":
            raise UnreadSqlError("CAST AS NCHAR")
        kind = _SAME_TYPES.get(kind, kind)
        length = scale = None
        if self._accept("("):
            length = self._take_int()
            scale = self._take_int() if self._accept(",") else None
            self.expect(")")
        charset = None
        if self._accept("CHARACTER", "SET") or self._accept("CHARSET"):
            charset = self._take_name().lower()
        self.expect(")")
        return Cast(value, kind, length, scale, is_unsigned, charset)

    def _is_amount(self) -> bool:
        """Whether brackets after INTERVAL hold an amount, not arguments of the function INTERVAL."""
        start, self._index = self._index, self._index + 2
        self._skip_brackets()
        word, self._index = self._token().word, start
        return word in WORDS["unit"]

    def _bracketed(self) -> tuple[Expression, ...]:
        if self._begins_query():
            raise UnreadSqlError(QUERY_INSIDE)
        values = self._list(self._expression)
        self.expect(")")
        return values

    def _begins_query(self) -> bool:
        return self._peek("SELECT") or self._peek("WITH") or self._peek("VALUES")

    def _user_variable(self) -> Expression:
        variable = self._take_user_variable()
        if self._peek(":="):
            raise UnreadSqlError(":= in an expression")
        return variable

    def _take_user_variable(self) -> UserVariable:
        return UserVariable(self._take(TokenKind.USER).lower())

    def _system_variable(self) -> SystemVariable:
        self._index += 1
        name = self._take_name()
        scope = SCOPES.get(name.lower(), "")
        if scope and self._accept("."):
            name = self._take_name()
        else:
            scope = ""
        return SystemVariable(name.lower(), scope, name)

    def _list(self, read: Callable[[], Read]) -> tuple[Read, ...]:
        values = [read()]
        while self._accept(","):
            values.append(read())
        return tuple(values)

    def _token(self, ahead: int = 0) -> Token:
        place = self._index + ahead
        return self._tokens[place] if place < len(self._tokens) else END

    def _start(self) -> int:
        return len(self._sql) if self.is_at_end else self._token().start

    def _is_call(self) -> bool:
        return self._token(1).is_sign("(")

    def _peek(self, text: str) -> bool:
        return self._token().word == text

    def _accept(self, *texts: str) -> bool:
        start = self._index
        for text in texts:
            if not self._peek(text):
                self._index = start
                return False
            self._index += 1
        return True

    def _take(self, *wanted: TokenKind) -> str:
        token = self._token()
        if token.kind not in wanted:
            raise self._error()
        self._index += 1
        return token.text

    def _take_word(self) -> str:
        return self._take(TokenKind.WORD).upper()

    def _take_name(self) -> str:
        return self._take(TokenKind.WORD, TokenKind.NAME, TokenKind.TEXT)

    def _take_texts(self) -> str:
        texts = [self._take(TokenKind.TEXT)]
        while self._token().kind is TokenKind.TEXT:
            texts.append(self._take(TokenKind.TEXT))
        return "".join(texts)

    def _take_int(self) -> int:
        token = self._token()
        value = number_value(token.text) if token.kind is TokenKind.NUMBER else None
        if not isinstance(value, int):
            raise self._error()
        self._index += 1
        return value

    def _take_scope(self) -> str:
        scope = SCOPES.get(self._token().word.lower(), "")
        self._index += bool(scope)
        return scope

    def _skip_statement(self) -> None:
        while not self.is_at_end and not self._peek(";"):
            self._index += 1

    def _skip_brackets(self) -> None:
        open_count = 1
        while open_count:
            if self.is_at_end or self._peek(";"):
                raise self._error()
            open_count += self._peek("(") - self._peek(")")
            self._index += 1

    def _error(self) -> SqlError:
        return error_at(self._sql, self._start())


def _negative(written: str) -> str:
    return written[1:] if written.startswith("-") else f"-{written}"
