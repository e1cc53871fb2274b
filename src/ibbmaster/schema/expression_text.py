"""Expressions of DDL as a server prints them: names quoted, operators spaced, functions by the names it prefers.

A server prints the tree it has parsed. Only what is known to be printed so by 10.11 and 11.8 is
rewritten here; an expression with anything else in it stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

EXPRESSION_SIZE_MAX = 4096  # characters; longer ones stay as they are
DEPTH_MAX = 40

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^'\\]++|\\.|'')*+')
  | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w$]))
  | (?P<quoted>`(?:[^`]++|``)*+`)
  | (?P<word>[A-Za-z_$][\w$]*)
  | (?P<sign><=>|<=|>=|<>|!=|<<|>>|\|\||&&|[-+*/%(),.=<>&|^~!])
    )""",
    re.VERBOSE | re.DOTALL,
)
_PREDICATES = frozenset(("IS", "NOT", "IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE"))
_NOT = 4
_PREDICATE = 6
_UNARY = 13
_PRIMARY = 20
#: Between two operands: how tightly it binds, and how it is printed.
_BINARY = {
    "OR": (1, "or"),
    "XOR": (2, "xor"),
    "AND": (3, "and"),
    "&&": (3, "and"),
    "=": (6, "="),
    "<=>": (6, "<=>"),
    ">=": (6, ">="),
    ">": (6, ">"),
    "<=": (6, "<="),
    "<": (6, "<"),
    "<>": (6, "<>"),
    "!=": (6, "<>"),
    "|": (7, "|"),
    "&": (8, "&"),
    "<<": (9, "<<"),
    ">>": (9, ">>"),
    "+": (10, "+"),
    "-": (10, "-"),
    "*": (11, "*"),
    "/": (11, "/"),
    "DIV": (11, "DIV"),
    "%": (11, "MOD"),
    "MOD": (11, "MOD"),
    "^": (12, "^"),
}
_OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_CONDITIONS = {"and": "or", "or": "and"}
#: Functions that are printed by another name.
_RENAMED = {
    "upper": "ucase",
    "lower": "lcase",
    "length": "octet_length",
    "octet_length": "octet_length",
    "substring": "substr",
    "mid": "substr",
    "character_length": "char_length",
    "pow": "pow",
    "now": "current_timestamp",
    "localtime": "current_timestamp",
    "localtimestamp": "current_timestamp",
    "current_date": "curdate",
    "ceil": "ceiling",
    "st_geomfromtext": "st_geometryfromtext",
}
_SAME = frozenset(
    """
    abs acos ascii asin atan bin bit_count ceiling char_length coalesce concat concat_ws conv cos crc32
    current_timestamp curdate current_user dayofmonth dayofweek dayofyear degrees elt exp field find_in_set
    floor format from_unixtime greatest hex hour if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa
    isnull locate json_array json_compact json_contains json_exists json_extract json_keys json_length json_object
    json_query json_type json_unquote json_valid json_value last_day lcase least ln log log10 log2 lpad ltrim
    md5 microsecond minute month nullif oct ord pi pow quarter radians rand repeat reverse round rpad rtrim
    second sha sha1 sha2 sign sin space sqrt st_x st_y strcmp substr substring_index sys_guid tan to_base64
    to_days trim ucase unhex unix_timestamp uuid uuid_short version week weekday year yearweek
    """.split()  # noqa: SIM905
)
_MOVES = {"date_add": "+", "adddate": "+", "date_sub": "-", "subdate": "-"}
_BARE = {"current_timestamp": "current_timestamp()", "current_date": "curdate()", "current_user": "current_user()"}
_RESERVED = frozenset(
    """
    AND OR XOR NOT IS IN BETWEEN LIKE NULL TRUE FALSE CASE WHEN THEN ELSE END DIV MOD INTERVAL BINARY COLLATE
    REGEXP RLIKE EXISTS SELECT ESCAPE
    """.split()  # noqa: SIM905
)


class _UnprintableError(Exception):
    """Something is in the expression whose printed form is not known."""


@dataclass(frozen=True, slots=True)
class _Printed:
    """A part of an expression: how it is printed, and how tightly its operator binds."""

    text: str
    binds: int = _PRIMARY
    needs_brackets: bool = False  # as a whole DEFAULT
    opposite: str | None = None  # how its negation is printed, where NOT becomes a part of it
    opposite_binds: int = _PREDICATE
    is_column: bool = False


def expression_text(written: str) -> str:
    """An expression as SHOW CREATE TABLE prints it, without brackets around it."""
    return _printed(written).text


def default_expression_text(written: str) -> str:
    """An expression as SHOW CREATE TABLE prints it behind DEFAULT: in brackets, but a call."""
    printed = _printed(_without_brackets(written))
    return f"({printed.text})" if printed.needs_brackets else printed.text


def _printed(written: str) -> _Printed:
    written = written.strip()
    if len(written) > EXPRESSION_SIZE_MAX:
        return _Printed(written, needs_brackets=True)
    try:
        return _Parser(written).whole()
    except _UnprintableError:
        return _Printed(written, needs_brackets=True)


def _without_brackets(text: str) -> str:
    text = text.strip()
    while text.startswith("(") and _closing(text) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closing(text: str) -> int:
    """Where the bracket ends that the text begins with; -1 where it does not."""
    depth = 0
    for match in re.finditer(r"'(?:[^'\\]++|\\.|'')*+'|`[^`]*+`|\"[^\"]*+\"|[()]", text, re.DOTALL):
        depth += (match[0] == "(") - (match[0] == ")")
        if not depth:
            return match.start()
    return -1


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        offset = 0
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None:
                raise _UnprintableError
            self._tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            offset = match.end()
        self._index = 0
        self._depth = 0

    def whole(self) -> _Printed:
        printed = self._expression(1)
        if self._index < len(self._tokens):
            raise _UnprintableError
        return printed

    def _peek(self) -> str:
        if self._index >= len(self._tokens):
            return ""
        kind, text = self._tokens[self._index]
        return text.upper() if kind in ("word", "sign") else ""

    def _accept(self, word: str) -> bool:
        found = self._peek() == word
        self._index += found
        return found

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise _UnprintableError

    def _expression(self, least: int) -> _Printed:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise _UnprintableError
        left = self._negated() if least <= _NOT and self._accept("NOT") else self._unary()
        while (following := self._continued(left, least)) is not None:
            left = following
        if self._accept("COLLATE"):
            left = _Printed(f"{_bound(left, _UNARY)} collate {self._take_word()}", _UNARY, True)
        self._depth -= 1
        return left

    def _continued(self, left: _Printed, least: int) -> _Printed | None:
        word = self._peek()
        if word in _BINARY:
            binds, sign = _BINARY[word]
            if binds < least:
                return None
            self._index += 1
            right = self._expression(binds + 1)
            return _joined(left, right, sign, binds)
        return self._predicate(left) if least <= _PREDICATE and word in _PREDICATES else None

    def _negated(self) -> _Printed:
        """What follows NOT: predicates take it into themselves."""
        return _negation(self._expression(_NOT))

    def _predicate(self, left: _Printed) -> _Printed:
        operand = _bound(left, _PREDICATE + 1)
        if self._accept("IS"):
            is_negated = self._accept("NOT")
            for word in ("TRUE", "FALSE"):
                if self._accept(word):
                    return _Printed(f"{operand} is {'not ' * is_negated}{word.lower()}", _PREDICATE, True)
            if not self._accept("UNKNOWN"):
                self._expect("NULL")
            return _either(f"{operand} is null", f"{operand} is not null", is_negated)
        is_negated = self._accept("NOT")
        if self._accept("IN"):
            self._expect("(")
            found = self._items()
            if len(found) == 1:
                value = _bound(found[0], _PREDICATE + 1)
                return _either(f"{operand} = {value}", f"{operand} <> {value}", is_negated)
            values = f"in ({','.join(one.text for one in found)})"
            return _either(f"{operand} {values}", f"{operand} not {values}", is_negated)
        if self._accept("BETWEEN"):
            low = _bound(self._expression(_PREDICATE + 1), _PREDICATE + 1)
            self._expect("AND")
            limits = f"between {low} and {_bound(self._expression(_PREDICATE + 1), _PREDICATE + 1)}"
            return _either(f"{operand} {limits}", f"{operand} not {limits}", is_negated)
        if self._accept("REGEXP") or self._accept("RLIKE"):
            if is_negated:
                raise _UnprintableError
            return _Printed(f"{operand} regexp {_bound(self._expression(_UNARY), _UNARY)}", _PREDICATE, True)
        self._expect("LIKE")
        pattern = _bound(self._expression(_PREDICATE + 1), _PREDICATE + 1)
        return _either(f"{operand} like {pattern}", f"{operand}  not like {pattern}", is_negated)

    def _unary(self) -> _Printed:
        if self._accept("-"):
            kind = self._tokens[self._index][0] if self._index < len(self._tokens) else ""
            operand = self._expression(_UNARY)
            return _Printed(f"-{_bound(operand, _UNARY)}", _UNARY, kind != "number")
        if self._accept("!"):
            return _negation(self._expression(_UNARY))
        if self._accept("~"):
            return _Printed(f"~{_bound(self._expression(_UNARY), _UNARY)}", _UNARY, True)
        return self._primary()

    def _primary(self) -> _Printed:
        if self._index >= len(self._tokens):
            raise _UnprintableError
        kind, text = self._tokens[self._index]
        self._index += 1
        if kind == "sign":
            if text != "(":
                raise _UnprintableError
            inner = self._expression(1)
            self._expect(")")
            return inner
        if kind in ("text", "number"):
            return _Printed(text)
        if kind == "quoted":
            return self._column(text)
        return self._word(text)

    def _column(self, quoted: str) -> _Printed:
        if self._peek() in ("(", "."):
            raise _UnprintableError
        return _Printed(quoted, needs_brackets=True, is_column=True)

    def _word(self, word: str) -> _Printed:
        upper, lower = word.upper(), word.lower()
        if upper == "CASE":
            return self._case()
        if upper in ("NULL", "TRUE", "FALSE"):
            return _Printed({"NULL": "NULL", "TRUE": "1", "FALSE": "0"}[upper])
        if self._peek() == "(":
            return self._call(lower)
        if lower in _BARE:
            return _Printed(_BARE[lower])
        if upper in _RESERVED or word.startswith("_"):
            raise _UnprintableError
        return self._column(f"`{word}`")

    def _call(self, name: str) -> _Printed:
        if name in ("nextval", "lastval"):
            return self._sequence(name)
        if name in _MOVES:
            return self._moved(_MOVES[name])
        if name in _SPECIAL:
            self._index += 1
            return _SPECIAL[name](self)
        name = _RENAMED.get(name, name)
        if name not in _SAME and name not in _RENAMED.values():
            raise _UnprintableError
        self._index += 1
        arguments = [] if self._accept(")") else self._list()
        return _Printed(f"{name}({','.join(arguments)})")

    def trim(self) -> _Printed:
        """TRIM: from both ends where no end is named."""
        ends = next((word for word in ("BOTH", "LEADING", "TRAILING") if self._accept(word)), None)
        text = self._expression(1).text
        if self._accept("FROM"):
            text = f"{(ends or 'BOTH').lower()} {text} from {self._expression(1).text}"
        elif ends is not None:
            raise _UnprintableError
        self._expect(")")
        return _Printed(f"trim({text})")

    def position(self) -> _Printed:
        """POSITION: printed as LOCATE."""
        part = self._expression(_PREDICATE + 1).text
        self._expect("IN")
        whole = self._expression(1).text
        self._expect(")")
        return _Printed(f"locate({part},{whole})")

    def instr(self) -> _Printed:
        """INSTR: printed as LOCATE, which has its arguments the other way round."""
        arguments = self._list()
        if len(arguments) != 2:
            raise _UnprintableError
        return _Printed(f"locate({arguments[1]},{arguments[0]})")

    def extract(self) -> _Printed:
        """EXTRACT."""
        unit = self._take_word().lower()
        self._expect("FROM")
        moment = self._expression(1).text
        self._expect(")")
        return _Printed(f"extract({unit} from {moment})")

    def date(self) -> _Printed:
        """DATE: printed as CAST."""
        moment = self._expression(1).text
        self._expect(")")
        return _Printed(f"cast({moment} as date)")

    def cast(self) -> _Printed:
        """CAST to what has no character set."""
        value = self._expression(1).text
        self._expect("AS")
        kind = self._take_word().lower()
        if kind in ("decimal", "datetime", "time"):
            if self._accept("("):
                kind += f"({','.join(self._list())})"
            elif kind == "decimal":
                raise _UnprintableError
        elif kind in ("signed", "unsigned"):
            self._accept("INTEGER")
        elif kind not in ("date", "double"):
            raise _UnprintableError
        self._expect(")")
        return _Printed(f"cast({value} as {kind})")

    def _sequence(self, function: str) -> _Printed:
        """A value of a sequence, whose name may have its database in front."""
        self._index += 1
        names = [self._take_name()]
        while self._accept("."):
            names.append(self._take_name())
        self._expect(")")
        return _Printed(f"{function}({'.'.join(names)})")

    def _take_name(self) -> str:
        """A name, in backquotes."""
        if self._index < len(self._tokens) and self._tokens[self._index][0] == "quoted":
            self._index += 1
            return self._tokens[self._index - 1][1]
        return f"`{self._take_word()}`"

    def _moved(self, sign: str) -> _Printed:
        """DATE_ADD and DATE_SUB: printed as a sum."""
        self._index += 1
        moment = _bound(self._expression(1), 11)
        self._expect(",")
        self._expect("INTERVAL")
        amount = self._expression(1).text
        unit = self._take_word().lower()
        self._expect(")")
        return _Printed(f"{moment} {sign} interval {amount} {unit}", 10, True)

    def _take_word(self) -> str:
        if self._index >= len(self._tokens) or self._tokens[self._index][0] != "word":
            raise _UnprintableError
        self._index += 1
        return self._tokens[self._index - 1][1]

    def _list(self) -> list[str]:
        """Expressions up to the bracket that ends them, as they are printed."""
        return [item.text for item in self._items()]

    def _items(self) -> list[_Printed]:
        values = [self._expression(1)]
        while self._accept(","):
            values.append(self._expression(1))
        self._expect(")")
        return values

    def _case(self) -> _Printed:
        text = "case"
        if self._peek() != "WHEN":
            text += f" {self._expression(1).text}"
        while self._accept("WHEN"):
            text += f" when {self._expression(1).text}"
            self._expect("THEN")
            text += f" then {self._expression(1).text}"
        if self._accept("ELSE"):
            text += f" else {self._expression(1).text}"
        self._expect("END")
        return _Printed(f"{text} end", needs_brackets=True)


_SPECIAL: dict[str, Callable[[_Parser], _Printed]] = {  # what stands between their brackets is no list
    "trim": _Parser.trim,
    "position": _Parser.position,
    "instr": _Parser.instr,
    "extract": _Parser.extract,
    "date": _Parser.date,
    "cast": _Parser.cast,
}


def _joined(left: _Printed, right: _Printed, sign: str, binds: int) -> _Printed:
    """Two operands; AND and OR take a column as a condition, and what is compared has an opposite."""
    opposite, opposite_binds = None, _PREDICATE
    if sign in _CONDITIONS:
        left, right = _condition(left), _condition(right)
        if left.opposite is not None and right.opposite is not None:
            other = _CONDITIONS[sign]
            opposite_binds = _BINARY[other.upper()][0]
            first, second = _negation(left), _negation(right)
            opposite = f"{_bound(first, opposite_binds)} {other} {_bound(second, opposite_binds + 1)}"
    elif sign in _OPPOSITES:
        opposite = f"{_bound(left, binds)} {_OPPOSITES[sign]} {_bound(right, binds + 1)}"
    return _Printed(f"{_bound(left, binds)} {sign} {_bound(right, binds + 1)}", binds, True, opposite, opposite_binds)


def _condition(printed: _Printed) -> _Printed:
    """A column on its own is compared with 0."""
    return _either(f"{printed.text} <> 0", f"{printed.text} = 0", False) if printed.is_column else printed


def _negation(printed: _Printed) -> _Printed:
    """NOT of something, as a server prints it that has turned it round."""
    printed = _condition(printed)
    if printed.opposite is None:
        raise _UnprintableError
    return _Printed(printed.opposite, printed.opposite_binds, True, printed.text, printed.binds)


def _either(text: str, opposite: str, is_negated: bool) -> _Printed:
    if is_negated:
        text, opposite = opposite, text
    return _Printed(text, _PREDICATE, True, opposite)


def _bound(printed: _Printed, least: int) -> str:
    return printed.text if printed.binds >= least else f"({printed.text})"
