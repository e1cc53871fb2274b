"""Reads the expressions of a query: calls with words in them, aggregates and CAST have a meaning here."""

from __future__ import annotations

from ibbmaster.dialogue.refusal import not_supported
from ibbmaster.query.tree import Aggregate, Cast, Node, OrderKey
from ibbmaster.sqltext.expression import Call, ColumnName, Literal, Operation, Star
from ibbmaster.sqltext.expression_parser import BARE_FUNCTIONS, SPACELESS, ExpressionParser
from ibbmaster.sqltext.operators import PREDICATE
from ibbmaster.sqltext.sql_mode import IGNORE_SPACE
from ibbmaster.sqltext.token import TokenKind, words

AGGREGATES = words(
    "count sum avg min max group_concat std stddev stddev_pop stddev_samp variance var_pop var_samp bit_and bit_or "
    "bit_xor any_value json_arrayagg json_objectagg"
)
COMPUTED = words("count sum avg min max")
UNITS = words("MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR")


class NodeParser(ExpressionParser):
    """Recursive descent over expressions. Nodes of `tree` stand among those of the dialogue."""

    def _operand(self) -> Node:  # type: ignore[override]
        token = self._token()
        following = self._tokens[self._index + 1] if self._index + 1 < len(self._tokens) else None
        if token is not None and token.kind is TokenKind.WORD and following is not None:
            word = token.text.upper()
            if following.kind is TokenKind.TEXT and word in ("DATE", "TIME", "TIMESTAMP"):
                self._index += 1
                found: Node = Operation(f"LITERAL {word}", (Literal(self._take_texts()),))
                return found
            if word in ("ALL", "ANY", "SOME") and following.is_sign("("):
                raise not_supported(f"{word} (SELECT …)")
            if word == "INTERVAL" and following.is_sign("(") and self._is_amount():
                self._index += 1
                return Operation("INTERVAL", (self._expression(), Literal(self._take_name().upper())))
        node: Node = super()._operand()
        while self._accept("COLLATE"):
            node = Operation("COLLATE", (node, Literal(self._take_name().lower())))  # type: ignore[arg-type]
        return node

    def _is_amount(self) -> bool:
        """Whether brackets after INTERVAL hold how much, and not what the function INTERVAL counts."""
        start, self._index = self._index, self._index + 2
        self._skip_brackets()
        token, self._index = self._token(), start
        return token is not None and token.word in UNITS

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
            raise not_supported(f"{'.'.join(parts)}(), a function of a database")
        return ColumnName(tuple(parts))

    def _call(self, database: str | None = None) -> Node:  # type: ignore[override]
        written = self._take_name()
        name = written.lower()
        is_spaced = not self.is_at_end and self._tokens[self._index].is_spaced
        self.expect("(")
        if is_spaced and name in SPACELESS and not self._sql_mode & IGNORE_SPACE:
            self._skip_brackets()
            return Call(f"{name} ", written)  # which nobody has
        found = self._aggregate(name) if name in AGGREGATES else self._plain_call(name, written)
        if self._peek("OVER"):
            raise not_supported(f"{written}() OVER a window")
        return found

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
            case "extract" | "timestampdiff" | "timestampadd" | "weight_string":
                raise not_supported(f"{written}()")  # which have words of their own
            case "trim":
                arguments: tuple[Node, ...] = self._trimmed()
            case "position":
                wanted = self._expression(PREDICATE + 1)
                self.expect("IN")
                arguments = (wanted, self._expression())
                name = "locate"
            case "substring" | "substr" | "mid":
                arguments = self._substring()
            case _:
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
        if name not in COMPUTED:
            raise not_supported(f"{name.upper()}()")
        self.expect(")")
        return Aggregate(name, arguments, is_distinct)

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
