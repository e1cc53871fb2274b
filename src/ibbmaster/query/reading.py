"""Reads a query out of its tokens, whole: what the dialogue's own reader passes over has a meaning here."""

from __future__ import annotations

from ibbmaster.dialogue.refusal import not_supported
from ibbmaster.query.tree import (
    Aggregate,
    Cast,
    Compound,
    Definition,
    DerivedTable,
    Item,
    Join,
    NamedTable,
    Nested,
    Node,
    OrderKey,
    Query,
    SelectBlock,
    Source,
    Window,
    WithQuery,
)
from ibbmaster.sqltext.expression import (
    BARE_FUNCTIONS,
    RESERVED,
    SPACELESS,
    Call,
    ColumnName,
    ExpressionParser,
    Literal,
    Operation,
    Star,
)
from ibbmaster.sqltext.operators import PREDICATE
from ibbmaster.sqltext.sql_mode import IGNORE_SPACE
from ibbmaster.sqltext.token import PLACEHOLDER, SqlTokens, TokenKind, words

AGGREGATES = words(
    "count sum avg min max group_concat std stddev stddev_pop stddev_samp variance var_pop var_samp bit_and bit_or "
    "bit_xor any_value json_arrayagg json_objectagg"
)
_OPTIONS = words(
    "ALL HIGH_PRIORITY STRAIGHT_JOIN SQL_SMALL_RESULT SQL_BIG_RESULT SQL_BUFFER_RESULT SQL_CACHE SQL_NO_CACHE "
    "SQL_CALC_FOUND_ROWS"
)
_ENDS_ALIAS = RESERVED | words("USE FORCE IGNORE PARTITION WINDOW OVER ROWS RETURNING")


def read_query(tokens: SqlTokens) -> Query:
    """The query that the tokens are.

    Raises:
        SqlError: they are none, or one in a form that is not known.
        RefusedError: they have a part that is not carried out.
    """
    reader = _QueryReader(tokens)
    query = reader.query()
    reader.skip_locks()
    reader.expect_end()
    return query


class _QueryReader(ExpressionParser):
    """Recursive descent over one query. Nodes of `tree` stand among the dialogue's expressions."""

    def _query(self) -> Query:
        return self.query()

    def query(self) -> Query:
        """WITH, SELECT, UNION."""
        if self._accept("WITH"):
            is_recursive = self._accept("RECURSIVE")
            definitions = [self._definition()]
            while self._accept(","):
                definitions.append(self._definition())
            return WithQuery(tuple(definitions), self.query(), is_recursive)
        members = [self._member()]
        operators = []
        while (operator := self._set_operator()) is not None:
            operators.append(operator)
            members.append(self._member())
        if not operators:
            query = members[0]
            return self._ordered(query)
        if "INTERSECT" in operators and len(set(operators)) > 1:
            raise not_supported("INTERSECT beside UNION and EXCEPT")
        last = members[-1]
        order_by, limit = self._order_keys(), self._limited()
        if isinstance(last, SelectBlock) and not self._last_was_in_brackets:
            order_by, limit = last.order_by, last.limit
            members[-1] = _without_end(last)
        return Compound(members=tuple(members), operators=tuple(operators), order_by=order_by, limit=limit)

    _last_was_in_brackets = False

    def _ordered(self, query: Query) -> Query:
        """A query in brackets, with what stands behind them."""
        if not self._last_was_in_brackets or not (self._peek("ORDER") or self._peek("LIMIT")):
            return query
        order_by, limit = self._order_keys(), self._limited()
        return Compound(members=(query,), operators=(), order_by=order_by, limit=limit)

    def _set_operator(self) -> str | None:
        if self._accept("UNION"):
            if self._accept("ALL"):
                return "UNION ALL"
            self._accept("DISTINCT")
            return "UNION"
        for word in ("EXCEPT", "INTERSECT"):
            if self._accept(word):
                if self._accept("ALL"):
                    raise not_supported(f"{word} ALL")
                self._accept("DISTINCT")
                return word
        return None

    def _definition(self) -> Definition:
        name = self._take_name()
        columns = self._names_in_brackets() if self._peek("(") else ()
        self.expect("AS")
        self.expect("(")
        query = self.query()
        self.expect(")")
        return Definition(name, columns, query)

    def _names_in_brackets(self) -> tuple[str, ...]:
        self.expect("(")
        names = [self._take_name()]
        while self._accept(","):
            names.append(self._take_name())
        self.expect(")")
        return tuple(names)

    def _member(self) -> Query:
        if self._accept("("):
            self._depth += 1
            if self._depth > 20:
                raise self._error()
            query = self.query()
            self.expect(")")
            self._depth -= 1
            self._last_was_in_brackets = True
            return query
        block = self._block()
        self._last_was_in_brackets = False
        return block

    def _block(self) -> SelectBlock:
        self.expect("SELECT")
        is_distinct = counts_all = False
        while (token := self._token()) is not None and token.kind is TokenKind.WORD:
            word = token.text.upper()
            counts_all |= word == "SQL_CALC_FOUND_ROWS"
            if word not in _OPTIONS and word not in ("DISTINCT", "DISTINCTROW"):
                break
            is_distinct |= word.startswith("DISTINCT")
            self._index += 1
        items = [self._item()]
        while self._accept(","):
            items.append(self._item())
        source = self._sources() if self._accept("FROM") else None
        where = self._expression() if self._accept("WHERE") else None
        group_by: tuple[Node, ...] = ()
        if self._accept("GROUP", "BY"):
            group_by = self._list(self._group_key)  # type: ignore[arg-type]
            if self._accept("WITH", "ROLLUP"):
                raise not_supported("WITH ROLLUP over tables of the log")
        having = self._expression() if self._accept("HAVING") else None
        if self._peek("WINDOW") or self._peek("PROCEDURE") or self._peek("INTO"):
            raise not_supported(f"{self._take_word()} over tables of the log")
        if counts_all and self._peek("LIMIT"):
            raise not_supported("SQL_CALC_FOUND_ROWS and LIMIT")
        return SelectBlock(
            items=tuple(items),
            source=source,
            where=where,
            group_by=group_by,
            having=having,
            order_by=self._order_keys(),
            limit=self._limited(),
            is_distinct=is_distinct,
        )

    def _group_key(self) -> Node:
        found = self._expression()
        if self._accept("DESC"):
            raise not_supported("GROUP BY … DESC")
        self._accept("ASC")
        return found

    def skip_locks(self) -> None:
        """FOR UPDATE and LOCK IN SHARE MODE: nothing can be changed here."""
        if self._accept("FOR", "UPDATE") or self._accept("LOCK", "IN", "SHARE", "MODE"):
            self._accept("NOWAIT")
            self._accept("SKIP", "LOCKED")
        self._accept(";")

    def _item(self) -> Item:
        start = self._start()
        if self._accept("*"):
            return Item(Star(), "*")
        node = self._expression()
        name = self._text.text_between(start, self._tokens[self._index - 1].end)
        if self._accept("AS"):
            alias = self._take_name()
            return Item(node, alias, alias)
        token = self._token()
        if token is not None and (
            token.kind in ("quoted", "text")
            or (token.kind == "word" and token.text.upper() not in RESERVED | {"WINDOW"})
        ):
            alias = self._take_name()
            return Item(node, alias, alias)
        if isinstance(node, Literal) and isinstance(node.value, str) and name != PLACEHOLDER:
            name = node.value
        elif isinstance(node, ColumnName):
            name = node.parts[-1]
        return Item(node, name)

    # FROM -------------------------------------------------------------------------------------

    def _sources(self) -> Source | None:
        found = self._joined()
        while self._accept(","):
            found = Join("INNER", found, self._joined())
        if isinstance(found, NamedTable) and found.database is None and found.name.upper() == "DUAL":
            return None
        return found

    def _joined(self) -> Source:
        left = self._source()
        while True:
            is_natural = self._accept("NATURAL")
            kind = self._join_kind()
            if kind is None:
                if is_natural:
                    raise self._error()
                return left
            right = self._source()
            if is_natural:
                left = Join(kind, left, right, using=())
            elif self._accept("ON"):
                left = Join(kind, left, right, on=self._expression())
            elif self._accept("USING"):
                left = Join(kind, left, right, using=self._names_in_brackets())
            elif kind == "INNER":
                left = Join(kind, left, right)
            else:
                raise self._error()

    def _join_kind(self) -> str | None:
        for kind in ("LEFT", "RIGHT"):
            if self._accept(kind):
                self._accept("OUTER")
                self.expect("JOIN")
                return kind
        if self._accept("INNER") or self._accept("CROSS"):
            self.expect("JOIN")
            return "INNER"
        return "INNER" if self._accept("JOIN") or self._accept("STRAIGHT_JOIN") else None

    def _source(self) -> Source:
        if self._accept("("):
            if self._begins_query() or self._peek("("):
                query = self.query()
                self.expect(")")
                alias = self._table_alias()
                if alias is None:
                    raise self._error()
                columns = self._names_in_brackets() if self._peek("(") else ()
                return DerivedTable(query, alias, columns)
            found = self._joined()
            while self._accept(","):
                found = Join("INNER", found, self._joined())
            self.expect(")")
            return found
        first = self._take_name()
        database, name = (first, self._take_name()) if self._accept(".") else (None, first)
        if self._peek("("):
            raise not_supported(f"{name}() in FROM")
        if self._accept("PARTITION"):
            raise not_supported("PARTITION in FROM")
        if self._accept("FOR", "SYSTEM_TIME"):
            raise not_supported("FOR SYSTEM_TIME")
        alias = self._table_alias()
        while self._accept("USE") or self._accept("FORCE") or self._accept("IGNORE"):
            if not self._accept("INDEX"):
                self.expect("KEY")
            if self._accept("FOR"):
                self._index += 1 + self._peek("ORDER") + self._peek("GROUP")
            self.expect("(")
            self._skip_brackets()
        return NamedTable(name, database, alias)

    def _table_alias(self) -> str | None:
        if self._accept("AS"):
            return self._take_name()
        token = self._token()
        is_alias = token is not None and (
            token.kind is TokenKind.NAME or (token.kind is TokenKind.WORD and token.word not in _ENDS_ALIAS)
        )
        return self._take_name() if is_alias else None

    def _order_keys(self) -> tuple[OrderKey, ...]:
        if not self._accept("ORDER", "BY"):
            return ()
        keys = []
        while True:
            node = self._expression()
            is_descending = self._accept("DESC")
            if not is_descending:
                self._accept("ASC")
            keys.append(OrderKey(node, is_descending))
            if not self._accept(","):
                return tuple(keys)

    def _limited(self) -> tuple[int, int | None] | None:
        if self._accept("LIMIT"):
            first = self._take_int()
            if self._accept(","):
                return first, self._take_int()
            return (self._take_int(), first) if self._accept("OFFSET") else (0, first)
        if not (self._peek("OFFSET") or self._peek("FETCH")):
            return None
        skip = self._take_int() if self._accept("OFFSET") else 0
        if not self._accept("ROWS"):
            self._accept("ROW")
        count: int | None = None
        if self._accept("FETCH"):
            if not self._accept("FIRST"):
                self.expect("NEXT")
            count = 1 if self._peek("ROW") or self._peek("ROWS") else self._take_int()
            if not self._accept("ROWS"):
                self.expect("ROW")
            if not self._accept("ONLY"):
                raise not_supported("FETCH … WITH TIES")
        return skip, count

    # Expressions ------------------------------------------------------------------------------

    def _operand(self) -> Node:  # type: ignore[override]
        token = self._token()
        following = self._tokens[self._index + 1] if self._index + 1 < len(self._tokens) else None
        if token is not None and token.kind is TokenKind.WORD and following is not None:
            word = token.text.upper()
            if following.kind is TokenKind.TEXT and word in ("DATE", "TIME", "TIMESTAMP"):
                self._index += 1
                found: Node = Operation(f"LITERAL {word}", (Literal(self._take_texts()),))
                return found
        node: Node = super()._operand()
        while self._accept("COLLATE"):
            node = Operation("COLLATE", (node, Literal(self._take_name().lower())))  # type: ignore[arg-type]
        return node

    def _subquery(self) -> Nested:  # type: ignore[override]
        self._depth += 1
        if self._depth > 20:
            raise self._error()
        query = self.query()
        self.expect(")")
        self._depth -= 1
        return Nested(query)

    def _column_or_call(self) -> Node:  # type: ignore[override]
        token = self._token()
        assert token is not None
        if self._is_call() and token.kind != "quoted":
            return self._call()
        parts = [self._take_name()]
        if token.kind is TokenKind.WORD and token.text.lower() in BARE_FUNCTIONS:
            return Call(token.text.lower(), token.text)
        while len(parts) < 3 and self._accept("."):
            if self._accept("*"):
                return Star(tuple(parts))
            parts.append(self._take_name())
        if self._peek("("):
            raise not_supported(f"{'.'.join(parts)}() over tables of the log")
        return ColumnName(tuple(parts))

    def _call(self, database: str | None = None) -> Node:  # type: ignore[override]
        written = self._take_name()
        name = written.lower()
        is_spaced = not self.is_at_end and self._tokens[self._index].is_spaced
        self.expect("(")
        if is_spaced and name in SPACELESS and not self._sql_mode & IGNORE_SPACE:
            self._skip_brackets()
            return Call(f"{name} ", written)  # which nobody has
        if name in AGGREGATES:
            function: Aggregate | Call = self._aggregate(name)
        else:
            node = self._plain_call(name, written)
            if not isinstance(node, Call):
                return node
            function = node
        return self._window(function) if self._accept("OVER") else function

    def _plain_call(self, name: str, written: str) -> Node:
        match name:
            case "cast":
                value = self._expression()
                self.expect("AS")
                return self._cast(value)
            case "convert":
                value = self._expression()
                if self._accept("USING"):
                    charset = self._take_name().lower()
                    self.expect(")")
                    return Cast(value, "using", charset=charset)
                self.expect(",")
                return self._cast(value)
            case "extract":
                unit = self._take_word()
                self.expect("FROM")
                arguments: tuple[Node, ...] = (Literal(unit), self._expression())
            case "trim":
                arguments = self._trimmed()
            case "position":
                wanted = self._expression(PREDICATE + 1)
                self.expect("IN")
                arguments = (wanted, self._expression())
                name = "locate"
            case "substring" | "substr" | "mid":
                arguments = self._substring()
            case "timestampdiff" | "timestampadd":
                unit = self._take_word().removeprefix("SQL_TSI_")
                self.expect(",")
                arguments = (Literal(unit), *self._list(self._expression))
            case "char":
                arguments = self._list(self._expression)
                if self._accept("USING"):
                    raise not_supported("CHAR(… USING …)")
            case "mod" | "left" | "right" | _:
                arguments = () if self._peek(")") else self._list(self._expression)
        self.expect(")")
        return Call(name, written, arguments)  # type: ignore[arg-type]

    def _trimmed(self) -> tuple[Node, ...]:
        side = next((word for word in ("LEADING", "TRAILING", "BOTH") if self._accept(word)), "BOTH")
        if self._accept("FROM"):
            return self._expression(), Literal(" "), Literal(side)
        first = self._expression()
        if self._accept("FROM"):
            return self._expression(), first, Literal(side)
        return first, Literal(" "), Literal(side)

    def _substring(self) -> tuple[Node, ...]:
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
        order_by: tuple[OrderKey, ...] = ()
        separator = ","
        if name == "group_concat":
            order_by = self._order_keys()
            if self._accept("SEPARATOR"):
                separator = self._take_text()
            if self._peek("LIMIT"):
                raise not_supported("LIMIT in GROUP_CONCAT")
        self.expect(")")
        return Aggregate(name, arguments, is_distinct, order_by, separator)

    def _window(self, function: Aggregate | Call) -> Window:
        if not self._accept("("):
            raise not_supported("windows by name")
        partition_by: tuple[Node, ...] = ()
        if self._accept("PARTITION", "BY"):
            partition_by = self._list(self._expression)
        order_by = self._order_keys()
        frame = ""
        if self._peek("ROWS") or self._peek("RANGE"):
            frame = self._frame()
        self.expect(")")
        return Window(function, partition_by, order_by, frame)

    def _frame(self) -> str:
        unit = self._take_word()
        if unit == "RANGE":
            raise not_supported("RANGE of a window")
        if self._accept("BETWEEN"):
            first = self._bound()
            self.expect("AND")
            return f"ROWS BETWEEN {first} AND {self._bound()}"
        return f"ROWS {self._bound()}"

    def _bound(self) -> str:
        if self._accept("CURRENT", "ROW"):
            return "CURRENT ROW"
        amount = "UNBOUNDED" if self._accept("UNBOUNDED") else str(self._take_int())
        return f"{amount} {'PRECEDING' if self._accept('PRECEDING') else self._following()}"

    def _following(self) -> str:
        self.expect("FOLLOWING")
        return "FOLLOWING"

    def _cast(self, value: Node) -> Cast:
        """A type, and the bracket that ends the call."""
        kind = self._take_word().lower()
        is_unsigned = kind == "unsigned"
        if kind in ("signed", "unsigned"):
            if not self._accept("INTEGER"):
                self._accept("INT")
            kind = "integer"
        elif kind == "int":
            kind = "integer"
        elif kind in ("dec", "numeric"):
            kind = "decimal"
        elif kind == "double":
            self._accept("PRECISION")
        elif kind == "nchar":
            raise not_supported("CAST AS NCHAR")
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


def _without_end(block: SelectBlock) -> SelectBlock:
    return SelectBlock(
        items=block.items,
        source=block.source,
        where=block.where,
        group_by=block.group_by,
        having=block.having,
        is_distinct=block.is_distinct,
    )
