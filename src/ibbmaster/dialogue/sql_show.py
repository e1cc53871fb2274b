"""Reads SHOW: what is shown, of what, and how its rows are chosen."""

from __future__ import annotations

from dataclasses import replace

from ibbmaster.dialogue.statement import Show
from ibbmaster.schema.collations import find_charset
from ibbmaster.sqltext.literals import UINT64_MAX
from ibbmaster.sqltext.query_reader import QueryReader
from ibbmaster.sqltext.query_tree import GivenTable
from ibbmaster.sqltext.token import TokenKind

#: What can be shown, by what may follow: rows chosen by LIKE and WHERE come with each of the first three.
_OF_THE_SERVER = (
    *("VARIABLES", "STATUS", "PROCESSLIST", "DATABASES", "SCHEMAS", "COLLATION", "CHARACTER SET", "CHARSET"),
    *("ENGINES", "STORAGE ENGINES", "PLUGINS", "PRIVILEGES", "PROFILES", "WARNINGS", "ERRORS", "BINARY LOGS"),
    *("MASTER LOGS", "MASTER STATUS", "BINLOG STATUS", "SLAVE HOSTS", "REPLICA HOSTS", "SLAVE STATUS"),
    *("REPLICA STATUS", "ALL SLAVES STATUS", "ALL REPLICAS STATUS", "PROCEDURE STATUS", "FUNCTION STATUS"),
    *("PACKAGE STATUS", "PACKAGE BODY STATUS", "AUTHORS", "CONTRIBUTORS"),
)
_OF_A_DATABASE = ("TABLES", "TABLE STATUS", "TRIGGERS", "EVENTS", "OPEN TABLES")
_OF_A_TABLE = ("COLUMNS", "FIELDS", "INDEXES", "INDEX", "KEYS")
_CREATED = (
    *("TABLE", "VIEW", "SEQUENCE", "DATABASE", "SCHEMA"),
    *("PROCEDURE", "FUNCTION", "PACKAGE BODY", "PACKAGE", "TRIGGER", "EVENT"),
)
_SAME = {
    "MASTER LOGS": "BINARY LOGS",
    "BINLOG STATUS": "MASTER STATUS",
    "REPLICA HOSTS": "SLAVE HOSTS",
    "REPLICA STATUS": "SLAVE STATUS",
    "ALL REPLICAS STATUS": "ALL SLAVES STATUS",
    "SCHEMAS": "DATABASES",
    "CHARSET": "CHARACTER SET",
    "STORAGE ENGINES": "ENGINES",
    "AUTHORS": "CONTRIBUTORS",
    "FIELDS": "COLUMNS",
    "INDEXES": "INDEX",
    "KEYS": "INDEX",
}


class ShowParser(QueryReader):
    """Recursive descent over the words of SHOW."""

    def _charset(self, name: str) -> str | None:
        return find_charset(name)

    def _show(self) -> Show:
        scope = self._take_scope()
        is_full = self._accept("FULL")
        if self._accept("COUNT", "(", "*", ")"):
            return Show(what="COUNT", pattern=self._choice("WARNINGS", "ERRORS"))
        if self._accept("BINLOG", "EVENTS"):
            return self._binlog_events()
        if self._accept("GRANTS"):
            return Show(what="GRANTS", user=self._grantee() if self._accept("FOR") else None)
        if self._accept("CREATE"):
            what = self._choice(*_CREATED)
            if_not_exists = self._accept("IF", "NOT", "EXISTS")
            return Show(what=f"CREATE {what}", table=self._table_name(), if_not_exists=if_not_exists)
        if self._accept("ENGINE"):
            table = GivenTable(self._take_name())
            self._choice("STATUS", "MUTEX", "LOGS")
            return Show(what="ENGINE", table=table)
        for name in _OF_A_TABLE:
            if self._accept(name):
                return self._of_a_table(_SAME.get(name, name), is_full)
        for name in _OF_A_DATABASE:
            if self._accept(*name.split()):
                database = self._take_name() if self._accept("FROM") or self._accept("IN") else None
                return self._chosen(Show(what=name, is_full=is_full, database=database))
        what = self._choice(*_OF_THE_SERVER)
        return self._chosen(Show(what=_SAME.get(what, what), scope=scope, is_full=is_full))

    def _of_a_table(self, what: str, is_full: bool) -> Show:
        self._choice("FROM", "IN")
        table = self._table_name()
        if self._accept("FROM") or self._accept("IN"):
            table = GivenTable(table.name, self._take_name())
        return self._chosen(Show(what=what, is_full=is_full, table=table))

    def _chosen(self, show: Show) -> Show:
        """The same with LIKE, WHERE or, for messages, LIMIT after it."""
        pattern = self._take_text() if self._accept("LIKE") else None
        where = self._expression() if pattern is None and self._accept("WHERE") else None
        limit = self._limit() if show.what in ("WARNINGS", "ERRORS") else None
        return replace(show, pattern=pattern, where=where, limit=limit)

    def _binlog_events(self) -> Show:
        file_name = self._take_name() if self._accept("IN") else None
        offset = self._take_int() if self._accept("FROM") else None
        return Show(what="BINLOG EVENTS", file_name=file_name, offset=offset, limit=self._limit())

    def _grantee(self) -> str | None:
        """The account whose rights are asked for; None is the one who asks."""
        if self._accept("CURRENT_USER"):
            if self._accept("("):
                self.expect(")")
            return None
        name = self._take_name()
        token = self._token()
        if token is not None and token.kind is TokenKind.USER:
            self._index += 1
        return name

    def _limit(self) -> tuple[int, int | None] | None:
        """LIMIT count, LIMIT first, count, LIMIT count OFFSET first: rows to leave out, and to give."""
        if not self._accept("LIMIT"):
            return None
        first = self._take_limit()
        if self._accept(","):
            return first, self._take_limit()
        if self._accept("OFFSET"):
            return self._take_limit(), first
        return 0, first

    def _take_limit(self) -> int:
        value = self._take_int()
        assert value <= UINT64_MAX
        return value

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
