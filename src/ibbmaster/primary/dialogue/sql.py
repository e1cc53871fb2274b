"""Reads the SQL statements that replicas, CDC clients and operators send, token by token."""

from collections.abc import Sequence
from dataclasses import replace

from ibbmaster.facts import rows_of
from ibbmaster.schema.collations import find_charset
from ibbmaster.sqltext.cursor import END
from ibbmaster.sqltext.expression import Default, Expression, GivenTable, Literal, SystemVariable, UserVariable
from ibbmaster.sqltext.query_reader import QueryReader
from ibbmaster.sqltext.token import SqlError, SqlTokens, Token, TokenKind, UnreadSqlError, tokenize, words
from . import statement as verbs

_WORDS = {part: words(text) for part, text in rows_of("ibbmaster.primary.dialogue", "verbs")}
_NOT_SUPPORTED = _WORDS["not_supported"]
_UNREAD_VERBS = _NOT_SUPPORTED | {"SELECT", "HANDLER", "(", "SHOW"}
_QUERIES = frozenset(("SELECT", "WITH", "("))
_SHOWN_ROWS = rows_of("ibbmaster.primary.dialogue", "shown")
#: The names of what can be shown, by the words for it.
_SHOWN = {of: {written: name for written, kind, name in _SHOWN_ROWS if kind == of} for _, of, _ in _SHOWN_ROWS}
_IS_READ_ONLY = {"READ ONLY": 1, "READ WRITE": 0}
_LEVELS = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")


def named_tables(tokens: Sequence[Token]) -> tuple[GivenTable, ...]:
    """The tables directly behind FROM and JOIN of a query that is not read, each once, but names that WITH defines."""
    defined = {*_defined_names(tokens), "dual"}
    found: dict[GivenTable, None] = {}
    has_select = [False]  # in the open brackets; else FROM belongs to a call, as in EXTRACT(YEAR FROM x)
    for place, token in enumerate(tokens, 1):
        match token.word:
            case "(":
                has_select.append(False)
            case ")" if len(has_select) > 1:
                has_select.pop()
            case "SELECT":
                has_select[-1] = True
            case "FROM" | "JOIN" if has_select[-1] and place < len(tokens) and tokens[place].is_name:
                name, end = _name(tokens, place)
                is_call = end < len(tokens) and tokens[end].is_sign("(")
                if not is_call and (name.database is not None or name.name.lower() not in defined):
                    found[name] = None
    return tuple(found)


def handled_table(tokens: Sequence[Token]) -> GivenTable:
    return _name(tokens, 1)[0]


def _defined_names(tokens: Sequence[Token]) -> set[str]:
    """The names that WITH defines: behind it, and behind a bracket and a comma."""
    if not any(token.is_word("WITH") for token in tokens):
        return set()
    return {
        token.text.lower()
        for before, last, token in zip((None, *tokens), tokens, tokens[1:], strict=False)
        if last.is_word("WITH", "RECURSIVE") or (last.is_sign(",") and before is not None and before.is_sign(")"))
    }


def _name(tokens: Sequence[Token], index: int) -> tuple[GivenTable, int]:
    first = tokens[index].text
    index += 1
    if index + 1 < len(tokens) and tokens[index].is_sign("."):
        return GivenTable(tokens[index + 1].text, first), index + 2
    return GivenTable(first), index


def parse(sql: str, *, version: int = 0, sql_mode: int = 0) -> list[verbs.Statement]:
    """`version` decides on conditional comments. Raises SqlError: the text makes no sense."""
    parser = _Parser(tokenize(sql, version=version, sql_mode=sql_mode))
    statements: list[verbs.Statement] = []
    while not parser.is_at_end:
        statements.append(parser.statement())
        while not parser.is_at_end:
            parser.expect(";")
            if not parser._peek(";"):
                break
    return statements or [verbs.Nothing()]


def parse_one(tokens: SqlTokens) -> verbs.Statement:
    """Raises SqlError: the text makes no sense, or has more than one statement."""
    parser = _Parser(tokens)
    statement = verbs.Nothing() if parser.is_at_end else parser.statement()
    if not parser.is_at_end:
        parser.expect(";")
        parser.expect_end()
    return statement


class _Parser(QueryReader):
    def statement(self) -> verbs.Statement:
        """Up to its end. Raises SqlError: it makes no sense, and names no table."""
        start = self._index
        try:
            statement = self._known_statement()
            if not (self.is_at_end or self._peek(";")):
                raise self._error()
        except SqlError as problem:
            failed = self._index
            self._index, self._depth, self._steps = start, 0, 0
            unread = self._unread(failed, problem)
            if unread is None:
                self._index = failed
                raise
            return unread
        return statement

    def _known_statement(self) -> verbs.Statement:
        if self._peek("(") or self._peek("SELECT") or self._peek("WITH"):
            query = self.query()
            self.skip_locks()
            return verbs.Select(query, sql_mode=self._sql_mode)
        keyword = self._take_word()
        match keyword:
            case "SET" if self._accept("STATEMENT"):
                return self._set_statement()
            case "SET":
                return verbs.Set(self._assignments())
            case "SHOW":
                return self._show()
            case "KILL":
                return self._kill()
            case "USE":
                return verbs.Use(self._take_name())
            case "BEGIN" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE":
                return self._transaction(keyword)
            case "START" if self._accept("TRANSACTION"):
                return self._start_transaction()
            case "LOCK" | "UNLOCK" | "FLUSH":
                return self._lock(keyword)
            case "DESCRIBE" | "DESC" | "EXPLAIN" if not self._begins_query():
                table = self._table_name()
                pattern = None if self.is_at_end or self._peek(";") else self._take_name()
                return verbs.Show(what="COLUMNS", table=table, pattern=pattern)
            case "PURGE":
                return self._purge()
            case "RESET" if self._accept("MASTER"):
                if self._accept("TO"):
                    self._take_int()
                    raise UnreadSqlError("RESET MASTER TO")
                if self.is_at_end or self._peek(";"):
                    return verbs.ResetLog()
                self._skip_statement()
                return verbs.Administration(keyword)
            case "SHUTDOWN":
                if not self._accept("WAIT"):
                    return verbs.Shutdown()
                self.expect("FOR")
                self.expect("ALL")
                self._choice("REPLICAS", "SLAVES")
                return verbs.Shutdown(waits=True)
            case _ if keyword in _WORDS["administration"]:
                self._skip_statement()
                return verbs.Administration(keyword)
        self._index -= 1
        raise self._error()

    def _charset(self, name: str) -> str | None:
        return find_charset(name)

    def _show(self) -> verbs.Show:
        scope = self._take_scope()
        is_full = self._accept("FULL")
        if self._accept("BINLOG", "EVENTS"):
            return self._binlog_events()
        if self._accept("GRANTS"):
            return verbs.Show(what="GRANTS", user=self._grantee() if self._accept("FOR") else None)
        if self._accept("CREATE"):
            what = self._choice(*_SHOWN["created"])
            if_not_exists = self._accept("IF", "NOT", "EXISTS")
            return verbs.Show(what=f"CREATE {what}", table=self._table_name(), if_not_exists=if_not_exists)
        if self._accept("ENGINE"):
            table = GivenTable(self._take_name())
            self._choice("STATUS", "MUTEX", "LOGS")
            return verbs.Show(what="ENGINE", table=table)
        for written, name in _SHOWN["table"].items():
            if self._accept(written):
                return self._of_a_table(name, is_full)
        for name in _SHOWN["database"]:
            if self._accept(*name.split()):
                database = self._take_name() if self._accept("FROM") or self._accept("IN") else None
                return self._chosen(verbs.Show(what=name, is_full=is_full, database=database))
        what = _SHOWN["server"][self._choice(*_SHOWN["server"])]
        return self._chosen(verbs.Show(what=what, scope=scope, is_full=is_full))

    def _of_a_table(self, what: str, is_full: bool) -> verbs.Show:
        self._choice("FROM", "IN")
        table = self._table_name()
        if self._accept("FROM") or self._accept("IN"):
            table = GivenTable(table.name, self._take_name())
        return self._chosen(verbs.Show(what=what, is_full=is_full, table=table))

    def _chosen(self, show: verbs.Show) -> verbs.Show:
        pattern = self._take(TokenKind.TEXT) if self._accept("LIKE") else None
        where = self._expression() if pattern is None and self._accept("WHERE") else None
        limit = self._limited() if show.what in ("WARNINGS", "ERRORS") else None
        return replace(show, pattern=pattern, where=where, limit=limit)

    def _binlog_events(self) -> verbs.Show:
        file_name = self._take_name() if self._accept("IN") else None
        offset = self._take_int() if self._accept("FROM") else None
        return verbs.Show(what="BINLOG EVENTS", file_name=file_name, offset=offset, limit=self._limited())

    def _grantee(self) -> str | None:
        if self._accept("CURRENT_USER"):
            if self._accept("("):
                self.expect(")")
            return None
        name = self._take_name()
        self._index += self._token().kind is TokenKind.USER
        return name

    def _table_name(self) -> GivenTable:
        name = self._take_name()
        if self._accept("."):
            return GivenTable(self._take_name(), name)
        return GivenTable(name)

    def _choice(self, *choices: str) -> str:
        for choice in choices:
            if self._accept(*choice.split()):
                return choice
        raise self._error()

    def _unread(self, failed: int, problem: SqlError) -> verbs.Select | verbs.Unread | None:
        """A statement in an unknown form, with the tables it names; None if it is none. `failed`: the first unknown
        token."""
        token = self._token()
        if token.word not in _UNREAD_VERBS:
            return None
        if token.word == "SHOW":
            return self._unread_show()
        start, balance = self._index, 0
        while not (self.is_at_end or self._peek(";")):
            balance += self._peek("(") - self._peek(")")
            if balance < 0:
                return None
            self._index += 1
        tokens = self._tokens[start : self._index]
        verb = token.word
        tables = (handled_table(tokens),) if verb == "HANDLER" and len(tokens) > 1 else named_tables(tokens)
        if verb in _QUERIES:
            is_cut_off = failed == self._index and not tables and not isinstance(problem, UnreadSqlError)
            return None if balance or is_cut_off else verbs.Select(None, tables, self._sql_mode, problem)
        return verbs.Unread(verb, tables) if not balance and (tables or verb in _NOT_SUPPORTED) else None

    def _unread_show(self) -> verbs.Unread | None:
        self._index += 1
        self._accept("CREATE")
        word = self._token().word
        self._skip_statement()
        return verbs.Unread("SHOW", ()) if word in _WORDS["shown"] else None

    def _set_statement(self) -> verbs.SetStatement:
        assignments = self._list(lambda: self._assignment(""))
        self.expect("FOR")
        self._depth += 1
        if self._depth > 8:
            raise self._error()
        return verbs.SetStatement(assignments, self._known_statement())

    def _assignments(self) -> tuple[verbs.AnyAssignment, ...]:
        found: list[verbs.AnyAssignment] = []
        scope = self._take_scope()
        if self._accept("TRANSACTION"):
            return self._isolation(scope)
        while True:
            found.append(self._charset_assignment() or self._assignment(scope))
            if not self._accept(","):
                return tuple(found)
            scope = self._take_scope() or scope

    def _charset_assignment(self) -> verbs.CharsetAssignment | None:
        if self._token(1).word in ("=", ":="):
            return None  # a variable of that name
        is_names = self._accept("NAMES")
        if not (is_names or self._accept("CHARACTER", "SET") or self._accept("CHARSET")):
            return None
        if self._accept("DEFAULT"):
            return verbs.CharsetAssignment(None, None, is_names)
        charset = self._take_name()
        collation = None
        if is_names and self._accept("COLLATE") and not self._accept("DEFAULT"):
            collation = self._take_name()
        return verbs.CharsetAssignment(charset, collation, is_names)

    def _isolation(self, scope: str) -> tuple[verbs.Assignment, ...]:
        """SET TRANSACTION; without a scope, about the next one alone, it has no effect."""

        def read() -> verbs.Assignment:
            name, value = "transaction_read_only", self._choice("ISOLATION LEVEL", "READ ONLY", "READ WRITE")
            if value == "ISOLATION LEVEL":
                name, value = "transaction_isolation", self._choice(*_LEVELS).replace(" ", "-")
            return verbs.Assignment(SystemVariable(name, scope, name), Literal(_IS_READ_ONLY.get(value, value)))

        found = self._list(read)
        return found if scope else ()

    def _assignment(self, scope: str) -> verbs.Assignment:
        target: UserVariable | SystemVariable
        match self._token().kind:
            case TokenKind.USER:
                target = self._take_user_variable()
            case TokenKind.SYSTEM:
                target = self._system_variable()
            case _:
                name = self._take_name()
                target = SystemVariable(name.lower(), scope, name)
        if not (self._accept("=") or self._accept(":=")):
            raise self._error()
        return verbs.Assignment(target, self._assigned_value(target))

    def _assigned_value(self, target: UserVariable | SystemVariable) -> Expression:
        """System variables also take keywords such as ON."""
        token = self._token()
        is_word = token.kind is TokenKind.WORD and (self._token(1) is END or self._token(1).word in (",", ";", "FOR"))
        if is_word and isinstance(target, SystemVariable):
            self._index += 1
            return Default() if token.word == "DEFAULT" else Literal(None if token.word == "NULL" else token.text)
        return self._expression()

    def _kill(self) -> verbs.Kill:
        if not self._accept("HARD"):
            self._accept("SOFT")
        query_only = self._accept("QUERY")
        if query_only:
            self._accept("ID")
        else:
            self._accept("CONNECTION")
        if self._accept("USER"):
            raise UnreadSqlError("KILL USER")
        return verbs.Kill(connection_id=self._take_int(), query_only=query_only)

    def _transaction(self, verb: str) -> verbs.Transaction | verbs.Savepoint:
        if verb == "SAVEPOINT":
            return verbs.Savepoint(verb, self._take_name())
        if verb == "RELEASE":
            self.expect("SAVEPOINT")
            return verbs.Savepoint(verb, self._take_name())
        self._accept("WORK")
        if verb == "ROLLBACK" and self._accept("TO"):
            self._accept("SAVEPOINT")
            return verbs.Savepoint(verb, self._take_name())
        if verb != "BEGIN":
            if self._accept("AND"):
                self._accept("NO")
                self.expect("CHAIN")
            self._accept("NO")
            self._accept("RELEASE")
        return verbs.Transaction(verb)

    def _start_transaction(self) -> verbs.Transaction:
        has_snapshot = False
        while not (self.is_at_end or self._peek(";")):
            if self._accept("WITH", "CONSISTENT", "SNAPSHOT"):
                has_snapshot = True
            elif not (self._accept("READ", "ONLY") or self._accept("READ", "WRITE")):
                raise self._error()
            self._accept(",")
        return verbs.Transaction("BEGIN", has_snapshot)

    def _purge(self) -> verbs.PurgeLogs:
        if not self._accept("MASTER"):
            self.expect("BINARY")
        self.expect("LOGS")
        if self._accept("TO"):
            return verbs.PurgeLogs(to=self._take(TokenKind.TEXT))
        self.expect("BEFORE")
        return verbs.PurgeLogs(before=self._expression())

    def _deleted_domains(self) -> tuple[int, ...]:
        self.expect("=")
        self.expect("(")
        found = () if self._peek(")") else self._list(self._take_int)
        self.expect(")")
        return found

    def _lock(self, verb: str) -> verbs.LockTables | verbs.Administration | verbs.FlushLogs:
        if verb == "FLUSH":
            if not self._accept("NO_WRITE_TO_BINLOG"):
                self._accept("LOCAL")
            if self._accept("BINARY", "LOGS") or self._accept("LOGS"):
                domain_ids = self._deleted_domains() if self._accept("DELETE_DOMAIN_ID") else ()
                if self.is_at_end or self._peek(";"):
                    return verbs.FlushLogs(domain_ids)
            is_harmless = self._accept("TABLES") or self._accept("TABLE") or self._accept("STATUS")
            stops = False
            while not (self.is_at_end or self._peek(";")):
                stops |= self._accept("WITH", "READ", "LOCK") or self._accept("FOR", "EXPORT")
                self._index += not (self.is_at_end or self._peek(";"))
            return verbs.LockTables((), "RELOAD", stops=stops) if is_harmless else verbs.Administration(verb)
        if not (self._accept("TABLES") or self._accept("TABLE")):
            raise self._error()
        tables: list[GivenTable] = []
        writes = False
        while verb == "LOCK":
            tables.append(self._table_name())
            if self._accept("AS") or not (self._peek("READ") or self._peek("WRITE") or self._peek("LOW_PRIORITY")):
                self._take_name()
            if self._accept("READ"):
                self._accept("LOCAL")
            else:
                self._accept("LOW_PRIORITY")
                self.expect("WRITE")
                writes = True
            if not self._accept(","):
                break
        return verbs.LockTables(tuple(tables), "LOCK TABLES" if tables else None, writes, stops=bool(tables))
