"""The one reader of queries."""

from dataclasses import replace

from . import expression
from .expression_parser import RESERVED, WORDS, ExpressionParser
from .token import PLACEHOLDER, TokenKind, UnreadSqlError, words

QUERY_DEPTH_MAX = 20  # brackets in brackets
_ENDS_ALIAS = RESERVED | words("USE FORCE IGNORE PARTITION WINDOW OVER ROWS RETURNING")


class QueryReader(ExpressionParser):
    def query(self) -> expression.SqlQuery:
        """SELECT up to where it ends, perhaps in brackets with ORDER BY and LIMIT behind them."""
        found = self._in_brackets() if self._accept("(") else self._block()
        for word in ("UNION", "EXCEPT", "INTERSECT"):
            if self._peek(word):
                raise UnreadSqlError(word)
        return found

    def _in_brackets(self) -> expression.SqlQuery:
        self._depth += 1
        if self._depth > QUERY_DEPTH_MAX:
            raise self._error()
        found = self.query()
        self.expect(")")
        self._depth -= 1
        if not (self._peek("ORDER") or self._peek("LIMIT")):
            return found
        if found.order_by or found.limit is not None:
            raise UnreadSqlError("ORDER BY and LIMIT inside of brackets and behind them")
        return replace(found, order_by=self._order_keys(), limit=self._limited())

    def _block(self) -> expression.SqlQuery:
        if self._peek("WITH"):
            raise UnreadSqlError("WITH")
        self.expect("SELECT")
        is_distinct = False
        while (token := self._token()).kind is TokenKind.WORD:
            word = token.text.upper()
            if word not in WORDS["option"] and word not in ("DISTINCT", "DISTINCTROW"):
                break
            is_distinct |= word.startswith("DISTINCT")
            self._index += 1
        items = self._list(self._item)
        source = self._comma_joined() if self._accept("FROM") else None
        if isinstance(source, expression.GivenTable) and source.database is None and source.name.upper() == "DUAL":
            source = None
        where = self._expression() if self._accept("WHERE") else None
        group_by: tuple[expression.Expression, ...] = ()
        if self._accept("GROUP", "BY"):
            group_by = self._list(self._group_key)
            if self._accept("WITH", "ROLLUP"):
                raise UnreadSqlError("WITH ROLLUP over tables of the log")
        having = self._expression() if self._accept("HAVING") else None
        if self._peek("WINDOW") or self._peek("PROCEDURE") or self._peek("INTO"):
            raise UnreadSqlError(f"{self._take_word()} over tables of the log")
        return expression.SqlQuery(
            items=items,
            source=source,
            where=where,
            group_by=group_by,
            having=having,
            order_by=self._order_keys(),
            limit=self._limited(),
            is_distinct=is_distinct,
        )

    def _group_key(self) -> expression.Expression:
        found = self._expression()
        if self._accept("DESC"):
            raise UnreadSqlError("GROUP BY … DESC")
        self._accept("ASC")
        return found

    def skip_locks(self) -> None:
        """No session changes anything."""
        if self._accept("FOR", "UPDATE") or self._accept("LOCK", "IN", "SHARE", "MODE"):
            self._accept("NOWAIT")
            self._accept("SKIP", "LOCKED")
        self._accept(";")

    def _item(self) -> expression.Item:
        start = self._start()
        if self._accept("*"):
            return expression.Item(expression.Star(), "*")
        node = self._expression()
        name = self._text.text_between(start, self._tokens[self._index - 1].end)
        if self._accept("AS"):
            alias = self._take_name()
            return expression.Item(node, alias, alias)
        token = self._token()
        is_word = token.kind is TokenKind.WORD and token.word not in RESERVED | {"WINDOW"}
        if is_word or token.kind in (TokenKind.NAME, TokenKind.TEXT):
            alias = self._take_name()
            return expression.Item(node, alias, alias)
        if isinstance(node, expression.Literal) and isinstance(node.value, str) and name != PLACEHOLDER:
            name = node.value
        elif isinstance(node, expression.ColumnName):
            name = node.parts[-1]
        return expression.Item(node, name)

    def _joined(self) -> expression.Source:
        left = self._source()
        while (is_left := self._join_kind()) is not None:
            right = self._source()
            if self._accept("ON"):
                left = expression.Join(left, right, is_left, self._expression())
            elif self._peek("USING"):
                raise UnreadSqlError("JOIN … USING")
            elif is_left:
                raise self._error()
            else:
                left = expression.Join(left, right)
        return left

    def _join_kind(self) -> bool | None:
        """Whether a LEFT JOIN comes next; None: no join does."""
        for kind in ("NATURAL", "RIGHT"):
            if self._peek(kind):
                raise UnreadSqlError(f"{kind} JOIN")
        if self._accept("LEFT"):
            self._accept("OUTER")
            self.expect("JOIN")
            return True
        if self._accept("INNER") or self._accept("CROSS"):
            self.expect("JOIN")
            return False
        return False if self._accept("JOIN") or self._accept("STRAIGHT_JOIN") else None

    def _comma_joined(self) -> expression.Source:
        found = self._joined()
        while self._accept(","):
            found = expression.Join(found, self._joined())
        return found

    def _source(self) -> expression.Source:
        if self._accept("("):
            if self._begins_query() or self._peek("("):
                query = self.query()
                self.expect(")")
                alias = self._table_alias()
                if alias is None:
                    raise self._error()
                if self._peek("("):
                    raise UnreadSqlError("names of columns behind a query in FROM")
                return expression.DerivedTable(query, alias)
            found = self._comma_joined()
            self.expect(")")
            return found
        first = self._take_name()
        database, name = (first, self._take_name()) if self._accept(".") else (None, first)
        if self._peek("("):
            raise UnreadSqlError(f"{name}() in FROM")
        if self._accept("PARTITION"):
            raise UnreadSqlError("PARTITION in FROM")
        if self._accept("FOR", "SYSTEM_TIME"):
            raise UnreadSqlError("FOR SYSTEM_TIME")
        alias = self._table_alias()
        while self._accept("USE") or self._accept("FORCE") or self._accept("IGNORE"):
            if not self._accept("INDEX"):
                self.expect("KEY")
            if self._accept("FOR"):
                self._index += 1 + self._peek("ORDER") + self._peek("GROUP")
            self.expect("(")
            self._skip_brackets()
        return expression.GivenTable(name, database, alias)

    def _table_alias(self) -> str | None:
        if self._accept("AS"):
            return self._take_name()
        token = self._token()
        is_word = token.kind is TokenKind.WORD and token.word not in _ENDS_ALIAS
        return self._take_name() if is_word or token.kind is TokenKind.NAME else None

    def _limited(self) -> tuple[int, int | None] | None:
        if self._accept("LIMIT"):
            first = self._take_int()
            if self._accept(","):
                return first, self._take_int()
            return (self._take_int(), first) if self._accept("OFFSET") else (0, first)
        if self._peek("OFFSET") or self._peek("FETCH"):
            raise UnreadSqlError("OFFSET and FETCH without LIMIT")
        return None

    def _order_keys(self) -> tuple[expression.OrderKey, ...]:
        return self._list(self._order_key) if self._accept("ORDER", "BY") else ()

    def _order_key(self) -> expression.OrderKey:
        node = self._expression()
        is_descending = self._accept("DESC")
        if not is_descending:
            self._accept("ASC")
        return expression.OrderKey(node, is_descending)
