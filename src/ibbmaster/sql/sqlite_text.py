"""Queries in MariaDB's SQL as SQLite reads them. Nothing is understood that need not be: tokens are replaced.

What has another meaning there is replaced, what has none is refused. Literals and variables become
parameters, so that no text of a client is ever read as SQL; names are put in backquotes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.dialogue.refusal import RefusedError, not_supported
from ibbmaster.schema.collations import find_charset
from ibbmaster.sqltext.expression import BARE_FUNCTIONS, SCOPES, SystemVariable
from ibbmaster.sqltext.literals import Value, binary_value
from ibbmaster.sqltext.sql_mode import EMPTY_STRING_IS_NULL, HIGH_NOT_PRECEDENCE, ORACLE, PIPES_AS_CONCAT
from ibbmaster.sqltext.token import LITERALS, PLACEHOLDER, Token, TokenKind, words

NESTING_MAX = 8
GROUP_CONCAT = "mariadb_group_concat"
SQLITE_OWN = words("count sum min max avg total coalesce ifnull nullif iif row_number rank dense_rank")
_KEYWORDS = words(
    "ALL AND AS ASC BETWEEN BY CASE CROSS DESC DISTINCT ELSE END ESCAPE EXCEPT EXISTS FROM GROUP HAVING IN INNER "
    "INTERSECT IS JOIN LEFT LIKE LIMIT NATURAL NOT NULL OFFSET ON OR ORDER OUTER OVER PARTITION RECURSIVE RIGHT ROWS "
    "SELECT THEN UNION USING VALUES WHEN WHERE WITH"
)
_REFUSED = words("XOR REGEXP RLIKE INTERVAL SOUNDS MATCH AGAINST INTO PROCEDURE ANY SOME")
_OPTIONS = words(
    "SQL_NO_CACHE SQL_CACHE SQL_CALC_FOUND_ROWS HIGH_PRIORITY SQL_SMALL_RESULT SQL_BIG_RESULT SQL_BUFFER_RESULT "
    "STRAIGHT_JOIN DISTINCTROW"
)
_SIGNS = {"||": "OR", "&&": "AND", "!": "NOT", "<=>": "IS", "/": "* 1.0 /"}
_REFUSED_SIGNS = frozenset((":=", "^", "@", "{", "}", "[", "]", "?", ":"))
_WORDS = {"DIV": "/", "MOD": "%", "TRUE": "1", "FALSE": "0", "UNKNOWN": "NULL", "STRAIGHT_JOIN": "JOIN"}
_NO_COLUMNS = BARE_FUNCTIONS | {"null", "true", "false"}
_COMPOUND = words("UNION EXCEPT INTERSECT")
_CASTS = {
    "SIGNED": "INTEGER",
    "UNSIGNED": "INTEGER",
    "INT": "INTEGER",
    "INTEGER": "INTEGER",
    "DECIMAL": "NUMERIC",
    "DOUBLE": "REAL",
    "FLOAT": "REAL",
}


@dataclass(frozen=True, slots=True)
class SelectedItem:
    """An item of the first SELECT: the name of its column, and what it is, if it is nothing but one thing."""

    name: str
    column: tuple[str, ...] | None
    is_star: bool = False
    function: str | None = None  # in lower case, where the whole is a call; `column` is its only argument then


@dataclass(frozen=True, slots=True)
class SqliteText:
    """A statement as SQLite reads it, with the values of its parameters."""

    sql: str
    values: tuple[Value, ...]


def sqlite_text(
    tokens: Sequence[Token], evaluator: Evaluator, is_function: Callable[[str], bool], sql_mode: int = 0
) -> SqliteText:
    """The statement for SQLite; `is_function` says which names, in lower case, are known there.

    Raises:
        RefusedError: it has something that SQLite has not, or a function nobody has.
    """
    return _Rewriter(tokens, evaluator, is_function, sql_mode).text()


def selected_items(tokens: Sequence[Token], text_between: Callable[[int, int], str]) -> list[SelectedItem]:
    """The items of the first SELECT of a query that stands in no brackets but those around the whole."""
    start = _first_select(tokens)
    if start is None:
        return []
    while start < len(tokens) and (_word(tokens[start]) in _OPTIONS or _word(tokens[start]) in ("ALL", "DISTINCT")):
        start += 1
    items: list[SelectedItem] = []
    depth, first = 0, start
    for no in range(start, len(tokens) + 1):
        word = _word(tokens[no]) if no < len(tokens) else ";"
        is_end = depth == 0 and (
            word in ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", ";", ")") or word in _COMPOUND
        )
        if is_end or (depth == 0 and word == ","):
            if first < no:
                items.append(_item(tokens[first:no], text_between))
            first = no + 1
        if is_end:
            break
        depth += (word == "(") - (word == ")")
    return items


def _first_select(tokens: Sequence[Token]) -> int | None:
    """What stands behind the first SELECT that is not in the definitions of WITH."""
    has_with = bool(tokens) and _word(tokens[0]) == "WITH"
    depth = 0
    for no, token in enumerate(tokens):
        word = _word(token)
        depth += (word == "(") - (word == ")")
        if word == "SELECT" and not (has_with and depth):
            return no + 1
    return None


def _item(tokens: Sequence[Token], text_between: Callable[[int, int], str]) -> SelectedItem:
    expression, name = list(tokens), None
    if len(tokens) > 2 and _word(tokens[-2]) == "AS":
        expression, name = expression[:-2], name_of(tokens[-1])
    elif len(tokens) > 1 and _is_alias(tokens[-1]) and _ends_operand(tokens[-2]):
        expression, name = expression[:-1], name_of(tokens[-1])
    column = _path(expression)
    if name is None:
        written = text_between(expression[0].start, expression[-1].end)
        is_text = len(expression) == 1 and expression[0].kind is TokenKind.TEXT and written != PLACEHOLDER
        name = name_of(expression[0]) if is_text else column[-1] if column is not None else written
    function = None
    if (
        len(expression) > 2
        and expression[0].kind is TokenKind.WORD
        and _word(expression[1]) == "("
        and _is_call(expression)
    ):
        function, column = expression[0].text.lower(), _path(expression[2:-1])
    return SelectedItem(name, column, _word(expression[-1]) == "*", function)


def _path(tokens: Sequence[Token]) -> tuple[str, ...] | None:
    """The parts of a column's name; None where the tokens are something else."""
    is_path = len(tokens) % 2 == 1 and all(
        token.is_sign(".") if place % 2 else token.is_name for place, token in enumerate(tokens)
    )
    if not is_path or (len(tokens) == 1 and tokens[0].text.lower() in _NO_COLUMNS):
        return None
    return tuple(name_of(token) for token in tokens[::2])


def _is_call(tokens: Sequence[Token]) -> bool:
    """Whether the bracket behind the first word is the one that ends the whole."""
    depth = 0
    for no, token in enumerate(tokens):
        depth += (_word(token) == "(") - (_word(token) == ")")
        if no and not depth:
            return no == len(tokens) - 1
    return False


def _is_alias(token: Token) -> bool:
    return token.kind in (TokenKind.NAME, TokenKind.TEXT) or (
        token.kind is TokenKind.WORD and _word(token) not in _KEYWORDS | _WORDS.keys()
    )


def _ends_operand(token: Token) -> bool:
    if token.kind is TokenKind.SIGN:
        return token.text == ")"
    return token.kind is not TokenKind.WORD or _word(token) not in _KEYWORDS - {"END", "NULL"}


def name_of(token: Token) -> str:
    """A name as it is meant."""
    return token.text


def _word(token: Token) -> str:
    return token.word


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``").replace("\0", "") + "`"


class _Rewriter:
    """Walks over the tokens of one statement."""

    def __init__(
        self,
        tokens: Sequence[Token],
        evaluator: Evaluator,
        is_function: Callable[[str], bool],
        sql_mode: int,
        depth: int = 0,
    ) -> None:
        if depth > NESTING_MAX:
            raise not_supported(f"more than {NESTING_MAX} GROUP_CONCAT in each other")
        self._depth = depth
        self._sql_mode = sql_mode
        self._tokens = tokens
        self._evaluator = evaluator
        self._is_function = is_function
        self._index = 0
        self._values: list[Value] = []
        self._parts: list[str] = []
        self._casts: list[str] = []  # for each open bracket what it belongs to

    def text(self) -> SqliteText:
        while self._index < len(self._tokens):
            self._next()
        return SqliteText(" ".join(self._parts), tuple(self._values))

    def _at(self, no: int) -> str:
        return _word(self._tokens[no]) if 0 <= no < len(self._tokens) else ""

    def _parameter(self, value: Value) -> None:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            value = float(value)
        self._values.append(value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value)
        self._parts.append("?")

    def _next(self) -> None:
        token = self._tokens[self._index]
        self._index += 1
        match token.kind:
            case TokenKind.TEXT:
                self._text(token)
            case TokenKind.NUMBER:
                self._parts.append(token.text)
            case TokenKind.HEX | TokenKind.BITS:
                self._parameter(binary_value(token))
            case TokenKind.NAME:
                self._parts.append(_quoted(token.text))
            case TokenKind.SYSTEM:
                self._system_variable()
            case TokenKind.USER:
                if self._at(self._index) == ":=":
                    raise not_supported("assignments in a query over tables")
                self._parameter(self._evaluator.variables.get(token.text.lower()))
            case TokenKind.SIGN:
                self._sign(token.text)
            case _:
                self._word(token)

    def _text(self, token: Token) -> None:
        before = self._tokens[self._index - 2] if self._index > 1 else None
        value = token.text
        meant = None if not value and self._sql_mode & EMPTY_STRING_IS_NULL else value
        if before is not None and before.kind is TokenKind.TEXT and self._parts[-1] == "?":
            last = self._values.pop()
            self._parts.pop()
            self._parameter(str(last) + value)
        elif before is not None and before.kind is TokenKind.WORD and self._is_introducer(before.text.upper()):
            self._parameter(meant)
        elif before is not None and (_word(before) == "AS" or (_ends_operand(before) and _word(before) != ")")):
            self._parts.append(_quoted(value))
        else:
            self._parameter(meant)

    def _system_variable(self) -> None:
        written = name_of(self._tokens[self._index]) if self._index < len(self._tokens) else ""
        scope = SCOPES.get(written.lower(), "")
        self._index += 1
        if scope and self._at(self._index) == "." and self._index + 1 < len(self._tokens):
            written = name_of(self._tokens[self._index + 1])
            self._index += 2
        else:
            scope = ""
        value = self._evaluator.settings.read(SystemVariable(written.lower(), scope, written))
        self._parameter(int(value) if isinstance(value, bool) else value)

    def _sign(self, sign: str) -> None:
        if sign == "||" and self._sql_mode & PIPES_AS_CONCAT:
            if self._sql_mode & ORACLE:
                raise not_supported("|| of sql_mode ORACLE in a query over tables")
            self._parts.append(sign)
            return
        if sign in _REFUSED_SIGNS:
            raise not_supported(f"{sign} in a query over tables")
        if sign == "(":
            is_member = self._at(self._index) == "SELECT" and self._index > 0 and self._begins_member(self._index - 1)
            self._parts.append("SELECT * FROM (" if is_member else "(")
            self._casts.append("")
        elif sign == ")":
            self._parts.append(sign)
            if self._casts:
                self._casts.pop()
        elif sign == "," and self._casts and self._casts[-1] == "CONVERT":
            self._cast(self._at(self._index))
        else:
            self._parts.append(_SIGNS.get(sign, sign))

    def _begins_member(self, no: int) -> bool:
        """Whether a bracket is around one of several SELECTs that UNION puts together."""
        before = self._at(no - 1)
        return before in _COMPOUND or (before in ("ALL", "DISTINCT") and self._at(no - 2) in _COMPOUND) or no == 0

    def _word(self, token: Token) -> None:
        word = token.text.upper()
        following = self._tokens[self._index] if self._index < len(self._tokens) else None
        is_part = self._at(self._index - 2) == "." or (following is not None and following.is_sign("."))
        if is_part and following is not None and not following.is_sign("("):
            self._parts.append(_quoted(token.text))
        elif following is not None and following.kind in LITERALS and self._is_introducer(word):
            return
        elif following is not None and following.is_sign("(") and self._is_callable(word):
            self._call(token)
        elif word in _REFUSED or (word == "NOT" and self._sql_mode & HIGH_NOT_PRECEDENCE):
            raise not_supported(f"{word} in a query over tables")
        elif word == "AS" and self._casts and self._casts[-1] == "CAST":
            self._cast(self._at(self._index))
        elif word == "USING" and self._casts and self._casts[-1] == "CONVERT":
            self._cast("CHAR")
        elif word in _OPTIONS and self._at(self._index - 2) in ("SELECT", "DISTINCT", "ALL", *_OPTIONS):
            self._parts.extend(["DISTINCT"] if word == "DISTINCTROW" else [])
        elif word == "BINARY" or (word == "DISTINCT" and self._at(self._index - 2) in _COMPOUND):
            return
        elif word == "COLLATE":
            name = name_of(self._tokens[self._index]) if following is not None else ""
            self._index += 1
            self._parts.append("COLLATE BINARY" if name.lower().endswith(("_bin", "binary")) else "COLLATE NOCASE")
        elif word == "FROM" and self._at(self._index) == "DUAL":
            self._index += 1
        elif word in ("FOR", "LOCK") and not (self._casts and self._casts[-1]):
            self._index = len(self._tokens)  # FOR UPDATE, LOCK IN SHARE MODE
        elif word in _KEYWORDS:
            self._parts.append(word)
        elif word in _WORDS:
            self._parts.append(_WORDS[word])
        elif word.lower() in BARE_FUNCTIONS:
            self._parts.append(f"{_quoted(word.lower())}()")
        else:
            self._parts.append(_quoted(token.text))

    @staticmethod
    def _is_callable(word: str) -> bool:
        return word not in _KEYWORDS or word in ("LEFT", "RIGHT")

    @staticmethod
    def _is_introducer(word: str) -> bool:
        return word in ("N", "BINARY") or (word[0] == "_" and find_charset(word[1:]) is not None)

    def _call(self, token: Token) -> None:
        name = token.text.lower()
        if name in ("cast", "convert"):
            self._index += 1
            self._parts.append("CAST (")
            self._casts.append(name.upper())
        elif name == "group_concat":
            self._group_concat()
        elif name == "if":
            self._parts.append("iif")
        elif name in SQLITE_OWN:
            self._parts.append(name)
        elif self._is_function(name):
            self._parts.append(_quoted(name))
        elif self._is_defined(token):
            self._parts.append(_quoted(token.text))
        else:
            database = self._evaluator.who.database
            path = f"{database}.{token.text}" if database else token.text
            raise RefusedError(1305, "42000", f"FUNCTION {path} does not exist")

    def _is_defined(self, token: Token) -> bool:
        """Whether WITH defines a table of that name, whose columns stand in the brackets."""
        return self._at(0) == "WITH" and self._at(self._index - 2) in ("WITH", "RECURSIVE", ",")

    def _cast(self, kind: str) -> None:
        """AS and the type; up to the bracket that ends the call."""
        self._parts.append(f"AS {_CASTS.get(kind, 'TEXT')}")
        depth = 0
        while self._index < len(self._tokens):
            word = self._at(self._index)
            if word == ")" and not depth:
                return
            depth += (word == "(") - (word == ")")
            self._index += 1

    def _group_concat(self) -> None:
        """GROUP_CONCAT as a call of ours: separator, whether distinct, number of values, directions; values, keys."""
        start = self._index + 1
        end, depth = start, 1
        cuts: Mapping[str, list[int]] = {"ORDER": [], "SEPARATOR": []}
        while end < len(self._tokens):
            word = self._at(end)
            depth += (word == "(") - (word == ")")
            if not depth:
                break
            if depth == 1 and word in cuts:
                cuts[word].append(end)
            end += 1
        separator, stop = ",", end
        if cuts["SEPARATOR"]:
            stop = cuts["SEPARATOR"][-1]
            separator = name_of(self._tokens[stop + 1]) if stop + 1 < end else ""
        is_distinct = self._at(start) == "DISTINCT"
        values_end = cuts["ORDER"][0] if cuts["ORDER"] else stop
        values = self._listed(start + is_distinct, values_end)
        keys = self._listed(values_end + 2, stop) if cuts["ORDER"] else []
        directions = ""
        for key in keys:
            is_falling = _word(key[-1]) == "DESC"
            directions += "-" if is_falling else "+"
            if is_falling or _word(key[-1]) == "ASC":
                key.pop()
        self._parts.append(f"{GROUP_CONCAT} (")
        self._parameter(f"{int(is_distinct)} {len(values)} {directions}")
        self._parts.append(",")
        self._parameter(separator)
        for part in (*values, *keys):
            self._parts.append(",")
            inner = _Rewriter(part, self._evaluator, self._is_function, self._sql_mode, self._depth + 1)
            text = inner.text()
            self._parts.append(text.sql)
            self._values.extend(text.values)
        self._parts.append(")")
        self._index = end + 1

    def _listed(self, start: int, end: int) -> list[list[Token]]:
        """Tokens between commas."""
        found: list[list[Token]] = [[]]
        depth = 0
        for token in self._tokens[start:end]:
            word = _word(token)
            depth += (word == "(") - (word == ")")
            if word == "," and not depth:
                found.append([])
            else:
                found[-1].append(token)
        if not all(found):
            raise not_supported("GROUP_CONCAT in this form")
        return found
