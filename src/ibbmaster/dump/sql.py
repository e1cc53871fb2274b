"""Reads the few SQL statements that replicas, CDC clients and operators send to a primary.

A statement is cut into tokens and parsed; its text is never compared as a whole, so case,
spaces, comments and a trailing semicolon do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from ibbmaster.dump.sql_token import SqlError, Token, error_at, tokenize, unquote
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

_SCOPES = {"global": "global", "session": "session", "local": "session"}
_SHOWN = (
    ("BINARY", "LOGS"),
    ("MASTER", "LOGS"),
    ("MASTER", "STATUS"),
    ("BINLOG", "STATUS"),
    ("BINLOG", "EVENTS"),
    ("SLAVE", "HOSTS"),
    ("REPLICA", "HOSTS"),
    ("SLAVE", "STATUS"),
    ("REPLICA", "STATUS"),
    ("ALL", "SLAVES", "STATUS"),
    ("ALL", "REPLICAS", "STATUS"),
    ("VARIABLES",),
    ("STATUS",),
    ("PROCESSLIST",),
    ("WARNINGS",),
    ("ERRORS",),
    ("DATABASES",),
    ("SCHEMAS",),
    ("TABLES",),
    ("GRANTS",),
    ("ENGINES",),
    ("PLUGINS",),
    ("COLLATION",),
    ("CHARACTER", "SET"),
)
_ADMINISTRATION = frozenset(
    ("PURGE", "FLUSH", "RESET", "CHANGE", "START", "STOP", "CREATE", "DROP", "ALTER", "INSERT", "UPDATE", "DELETE")
)


def parse(sql: str) -> list[Statement]:
    """The statements of a text, of which only the last may be empty.

    Raises:
        SqlError: what stands there is not understood.
    """
    parser = _Parser(sql, tokenize(sql))
    statements = []
    while not parser.is_at_end:
        statements.append(parser.statement())
        while not parser.is_at_end:
            parser.expect(";")
            if not parser.is_next(";"):
                break
    if not statements:
        raise error_at(sql, len(sql))
    return statements


class _Parser:
    """Recursive descent over the tokens; expressions nest only in the arguments of calls."""

    def __init__(self, sql: str, tokens: Sequence[Token]) -> None:
        self._sql = sql
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    @property
    def is_at_end(self) -> bool:
        return self._index >= len(self._tokens)

    def statement(self) -> Statement:
        keyword = self._take_word()
        match keyword:
            case "SELECT":
                return self._select()
            case "SET":
                return self._set()
            case "SHOW":
                return self._show()
            case "KILL":
                query_only = self._accept("QUERY")
                if not query_only:
                    self._accept("CONNECTION")
                return KillStatement(self._take_int(), query_only)
            case "USE":
                return Use(self._take_name())
            case "BEGIN" | "COMMIT" | "ROLLBACK":
                self._accept("WORK")
                return Transaction()
            case "START" if self._peek("TRANSACTION"):
                self._skip_statement()
                return Transaction()
            case _ if keyword in _ADMINISTRATION:
                self._skip_statement()
                return Administration(keyword)
        raise error_at(self._sql, self._tokens[self._index - 1].start)

    def is_next(self, sign: str) -> bool:
        return self._peek(sign)

    def expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._error()

    def _select(self) -> Select:
        items = [self._select_item()]
        while self._accept(","):
            items.append(self._select_item())
        table = None
        if self._accept("FROM"):
            table = self._take_name()
            while self._accept("."):
                table += f".{self._take_name()}"
            if table.upper() != "DUAL":
                self._skip_statement()
                return Select(tuple(items), table=table)
            table = None
        limit = self._take_int() if self._accept("LIMIT") else None
        if self._accept(","):
            limit = self._take_int()
        return Select(tuple(items), limit=limit)

    def _select_item(self) -> SelectItem:
        start = self._start()
        if self._accept("*"):
            return SelectItem(Literal("*"), "*")
        expression = self._expression()
        name = self._sql[start : self._tokens[self._index - 1].end]
        if self._accept("AS"):
            return SelectItem(expression, self._take_name())
        token = self._token()
        if token is not None and token.kind in ("quoted", "text"):
            return SelectItem(expression, self._take_name())
        if isinstance(expression, Literal) and isinstance(expression.value, str):
            name = expression.value
        return SelectItem(expression, name)

    def _set(self) -> Set:
        if self._accept("NAMES") or (self._peek("CHARACTER") or self._peek("CHARSET") or self._peek("TRANSACTION")):
            self._skip_statement()
            return Set(())
        scope = self._take_scope()
        if scope and self._accept("TRANSACTION"):
            self._skip_statement()
            return Set(())
        assignments = [self._assignment(scope)]
        while self._accept(","):
            assignments.append(self._assignment(self._take_scope() or scope))
        return Set(tuple(assignments))

    def _assignment(self, scope: str) -> Assignment:
        token = self._token()
        if token is not None and token.kind in ("user", "system"):
            target = self._expression()
        else:
            name = self._take_name()
            target = SystemVariable(name.lower(), scope, name)
        if not (self._accept("=") or self._accept(":=")) or not isinstance(target, UserVariable | SystemVariable):
            raise self._error()
        token = self._token()
        is_keyword = token is not None and token.kind == "word" and not self._is_call()
        if is_keyword and not self._peek("NULL"):
            return Assignment(target, Literal(self._take_name()))
        return Assignment(target, self._expression())

    def _show(self) -> Show:
        self._take_scope()
        self._accept("FULL")
        for words in _SHOWN:
            start = self._index
            if all(self._accept(word) for word in words):
                return self._show_rest(" ".join(words))
            self._index = start
        raise self._error()

    def _show_rest(self, what: str) -> Show:
        if what == "BINLOG EVENTS":
            file_name = self._take_name() if self._accept("IN") else None
            offset = self._take_int() if self._accept("FROM") else None
            limit = None
            if self._accept("LIMIT"):
                first = self._take_int()
                limit = (first, self._take_int()) if self._accept(",") else (0, first)
            return Show(what, file_name=file_name, offset=offset, limit=limit)
        if what == "GRANTS":
            self._skip_statement()
        if self._accept("LIKE"):
            return Show(what, pattern=self._take_text())
        if self._accept("WHERE"):
            return Show(what, names=self._where())
        if what in ("WARNINGS", "ERRORS", "TABLES"):
            self._skip_statement()
        return Show(what)

    def _where(self) -> tuple[str, ...]:
        """`Variable_name = 'x'`, `IN ('x', …)`, several joined by OR."""
        names: list[str] = []
        while True:
            if self._take_name().lower() != "variable_name":
                self._index -= 1
                raise self._error()
            if self._accept("IN"):
                self.expect("(")
                names.append(self._take_text())
                while self._accept(","):
                    names.append(self._take_text())
                self.expect(")")
            elif self._accept("=") or self._accept("LIKE"):
                names.append(self._take_text())
            else:
                raise self._error()
            if not self._accept("OR"):
                return tuple(names)

    def _expression(self) -> Expression:
        token = self._token()
        if token is None:
            raise self._error()
        match token.kind:
            case "number":
                self._index += 1
                return Literal(_number(token.text))
            case "text":
                return Literal(self._take_text())
            case "user":
                self._index += 1
                name = token.text[1:]
                return UserVariable((unquote(name) if name[0] in "`'\"" else name).lower())
            case "system":
                return self._system_variable()
            case "sign" if token.text == "-":
                self._index += 1
                literal = self._expression()
                if isinstance(literal, Literal) and isinstance(literal.value, int | float):
                    return Literal(-literal.value)
            case "word" if self._is_call():
                return self._call()
            case "word" if token.text.upper() in ("NULL", "TRUE", "FALSE"):
                self._index += 1
                return Literal({"NULL": None, "TRUE": 1, "FALSE": 0}[token.text.upper()])
        raise self._error()

    def _call(self) -> Call:
        name = self._take_name().lower()
        self.expect("(")
        self._depth += 1
        if self._depth > 8:
            raise self._error()
        arguments: list[Expression] = []
        while not self._accept(")"):
            if arguments:
                self.expect(",")
            arguments.append(self._expression())
        self._depth -= 1
        return Call(name, tuple(arguments))

    def _system_variable(self) -> SystemVariable:
        self._index += 1
        name = self._take_name()
        scope = _SCOPES.get(name.lower(), "")
        if scope and self._accept("."):
            name = self._take_name()
        return SystemVariable(name.lower(), scope, name)

    def _token(self) -> Token | None:
        return None if self.is_at_end else self._tokens[self._index]

    def _start(self) -> int:
        token = self._token()
        return len(self._sql) if token is None else token.start

    def _is_call(self) -> bool:
        following = self._index + 1
        return following < len(self._tokens) and self._tokens[following].text == "("

    def _peek(self, text: str) -> bool:
        token = self._token()
        return token is not None and token.kind in ("word", "sign") and token.text.upper() == text

    def _accept(self, text: str) -> bool:
        is_there = self._peek(text)
        self._index += is_there
        return is_there

    def _take_word(self) -> str:
        token = self._token()
        if token is None or token.kind != "word":
            raise self._error()
        self._index += 1
        return token.text.upper()

    def _take_name(self) -> str:
        token = self._token()
        if token is None or token.kind not in ("word", "quoted", "text"):
            raise self._error()
        self._index += 1
        return token.text if token.kind == "word" else unquote(token.text)

    def _take_text(self) -> str:
        token = self._token()
        if token is None or token.kind != "text":
            raise self._error()
        self._index += 1
        return unquote(token.text)

    def _take_int(self) -> int:
        token = self._token()
        value = _number(token.text) if token is not None and token.kind == "number" else None
        if not isinstance(value, int):
            raise self._error()
        self._index += 1
        return value

    def _take_scope(self) -> str:
        token = self._token()
        scope = _SCOPES.get(token.text.lower(), "") if token is not None and token.kind == "word" else ""
        self._index += bool(scope)
        return scope

    def _skip_statement(self) -> None:
        while not self.is_at_end and not self._peek(";"):
            self._index += 1

    def _error(self) -> SqlError:
        return error_at(self._sql, self._start())


def _number(text: str) -> int | float:
    if text[:2].lower() == "0x":
        return int(text, 16)
    if text.isdigit():
        return int(text[:400])
    return float(text)
