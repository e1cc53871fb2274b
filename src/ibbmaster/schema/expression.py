"""Values that SQL expressions give, where that is simple and exact; of all others nothing is said.

A constant, a column, + - * of integers and decimals, CONCAT of texts and numbers: what these
give does not hang on the session that evaluates them.
"""

from __future__ import annotations

import decimal
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import NoReturn

from ibbmaster.errors import IbbMasterError
from ibbmaster.event.rows.charset import character_size
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.kinds.integer import INTEGER_SIZES
from ibbmaster.event.rows.value import Value
from ibbmaster.sqltext.token import Token, TokenKind, tokens

Evaluate = Callable[[Mapping[str, Value]], Value]
"""Takes the values of columns by their names in lower case."""

DEPTH_MAX = 32  # of brackets in brackets
TOKENS_MAX = 500
DIGITS_MAX = 65  # of a DECIMAL
SCALE_MAX = 38
BIGINT_BITS = 64
TAKEN_KINDS = (ValueKind.TEXT, ValueKind.INTEGER, ValueKind.DECIMAL)  # of columns
_EXACT = decimal.Context(prec=4 * DIGITS_MAX)
_NUMBER = re.compile(r"[+-]?\d{1,65}(?:\.\d{1,38})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"(-?\d{2,3}:[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)
_DATETIME = re.compile(r"(\d{4}-\d\d-\d\d [0-2]\d:[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FLOAT = struct.Struct("<f")


class NotSimpleError(IbbMasterError):
    """What an expression gives cannot be told here; the text says why."""


def constant(text: str, column: Column) -> Value:
    """What a column holds that is given an expression without columns.

    Raises:
        NotSimpleError: it cannot be told.
    """
    return stored(_Parser(text, {}).expression()({}), column)


def formula(text: str, columns: Mapping[str, Column], target: Column) -> tuple[frozenset[str], Evaluate]:
    """What computes a generated column: the columns it takes, in lower case, and how.

    `columns` are those of its table, by name in lower case. What is computed raises NotSimpleError
    for values that the column could not hold.

    Raises:
        NotSimpleError: the expression is not simple.
    """
    parser = _Parser(text, columns)
    compute = parser.expression()
    if parser.plain is not None and not _is_alike(columns[parser.plain], target):
        raise NotSimpleError(f"({text}) changes the type of {parser.plain}")
    return frozenset(parser.taken), lambda values: stored(compute(values), target)


def _is_alike(one: Column, other: Column) -> bool:
    """Whether a value goes from one column into another without being rounded or read in a time zone."""
    numbers = (ValueKind.INTEGER, ValueKind.DECIMAL)
    if one.kind in numbers and other.kind in numbers:
        return True
    return one.kind is other.kind and one.type == other.type and one.scale == other.scale and one.labels == other.labels


class _Parser:
    """Reads an expression by recursive descent; `taken` are the columns it names, `plain` the one that it is."""

    def __init__(self, text: str, columns: Mapping[str, Column]) -> None:
        self._text = text
        self._columns = columns
        self._tokens: list[Token] = []
        for token in tokens(text):
            if len(self._tokens) >= TOKENS_MAX:
                raise self._not_simple()
            self._tokens.append(token)
        self._at = self._depth = 0
        self.taken: set[str] = set()
        self.plain: str | None = None

    def _not_simple(self) -> NotSimpleError:
        text = self._text if len(self._text) <= 60 else self._text[:59] + "…"
        return NotSimpleError(f"({text}) is not computed here")

    def _peek(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else Token(TokenKind.SIGN, "")

    def _take(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, sign: str) -> None:
        if not self._take().is_sign(sign):
            raise self._not_simple()

    def expression(self) -> Evaluate:
        """The whole text."""
        found = self._sum()
        if self._at != len(self._tokens):
            raise self._not_simple()
        names = [token for token in self._tokens if not token.is_sign("(") and not token.is_sign(")")]
        if len(names) == 1 and self.taken:
            self.plain = next(iter(self.taken))
        return found

    def _sum(self) -> Evaluate:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._not_simple()
        found = self._product()
        while self._peek().is_sign("+") or self._peek().is_sign("-"):
            sign = self._take().text
            found = _calculated(sign, found, self._product())
        self._depth -= 1
        return found

    def _product(self) -> Evaluate:
        found = self._signed()
        while self._peek().is_sign("*"):
            self._take()
            found = _calculated("*", found, self._signed())
        return found

    def _signed(self) -> Evaluate:
        is_negative = False
        while self._peek().is_sign("-") or self._peek().is_sign("+"):
            is_negative ^= self._take().text == "-"
        found = self._single()
        return _calculated("-", lambda values: 0, found) if is_negative else found

    def _single(self) -> Evaluate:
        token = self._take()
        if token.is_sign("("):
            found = self._sum()
            self._expect(")")
            return found
        if token.kind is TokenKind.TEXT:
            text = token.text
            return lambda values: text
        if token.kind is TokenKind.NAME:
            return self._column(token.text)
        if token.kind is TokenKind.NUMBER:
            number = int(token.text) if token.text.isdecimal() else Decimal(token.text)
            return (lambda values: number) if _NUMBER.fullmatch(token.text) else self._fail()
        if token.kind in (TokenKind.HEX, TokenKind.BITS):
            value = self._digits(token)
            return lambda values: value
        if token.kind is not TokenKind.WORD:
            raise self._not_simple()
        return self._word(token.text)

    def _digits(self, token: Token) -> Value:
        """A number in bits, or bytes in hexadecimal digits."""
        digits = token.text[2:].removesuffix("'")
        if token.kind is TokenKind.BITS:
            return int(digits or "0", 2)
        return bytes.fromhex(digits) if len(digits) % 2 == 0 else self._fail()

    def _word(self, word: str) -> Evaluate:
        following = self._peek()
        if word.upper() in ("DATE", "TIME", "TIMESTAMP") and following.kind is TokenKind.TEXT:
            text = self._take().text
            return lambda values: text
        if word.upper() == "CONCAT" and following.is_sign("("):
            return self._concat()
        named: dict[str, Value] = {"NULL": None, "TRUE": 1, "FALSE": 0}
        if word.upper() in named and not following.is_sign("("):
            value = named[word.upper()]
            return lambda values: value
        if following.is_sign("(") or following.is_sign("."):
            raise self._not_simple()
        return self._column(word)

    def _fail(self) -> NoReturn:
        raise self._not_simple()

    def _column(self, name: str) -> Evaluate:
        key = name.lower()
        if key not in self._columns or self._columns[key].kind not in TAKEN_KINDS:
            raise self._not_simple()
        self.taken.add(key)
        return lambda values: values[key]

    def _concat(self) -> Evaluate:
        self._expect("(")
        parts = [self._sum()]
        while self._peek().is_sign(","):
            self._take()
            parts.append(self._sum())
        self._expect(")")

        def joined(values: Mapping[str, Value]) -> Value:
            found = [part(values) for part in parts]
            return None if None in found else "".join(map(_text, found))

        return joined


def _calculated(sign: str, one: Evaluate, other: Evaluate) -> Evaluate:
    """+, - or * as MariaDB has it: integers of 64 bits, decimals of at most 65 digits; NULL makes NULL."""

    def compute(values: Mapping[str, Value]) -> Value:
        first, second = one(values), other(values)
        if first is None or second is None:
            return None
        if not isinstance(first, int | Decimal) or not isinstance(second, int | Decimal):
            raise NotSimpleError("arithmetic with what is no exact number")
        if isinstance(first, int) and isinstance(second, int):
            result = first + second if sign == "+" else first - second if sign == "-" else first * second
            if not -(1 << BIGINT_BITS - 1) <= result < 1 << BIGINT_BITS:
                raise NotSimpleError(f"{result} has more than {BIGINT_BITS} bits")
            return result
        left, right = Decimal(first), Decimal(second)
        operation = {"+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply}[sign]
        exact = operation(left, right)
        digits = len(exact.as_tuple().digits)
        if digits > DIGITS_MAX or -int(exact.as_tuple().exponent) > SCALE_MAX:
            raise NotSimpleError(f"{exact} has more digits than a DECIMAL")
        return exact

    return compute


def _text(value: Value) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, str | int):
        return str(value)
    raise NotSimpleError("bytes as text")


def stored(value: Value, column: Column) -> Value:
    """What a column holds that an expression's value is stored in.

    Raises:
        NotSimpleError: the value is not one of the column's as it stands.
    """
    if value is None:
        return None
    found = _stored(value, column)
    if found is None:
        raise NotSimpleError(f"{value!r} as {column.type_name}")
    return found


def _stored(value: Value, column: Column) -> Value:
    """None: that cannot be told."""
    match column.kind:
        case ValueKind.INTEGER | ValueKind.DECIMAL | ValueKind.FLOAT | ValueKind.BIT | ValueKind.YEAR:
            return _stored_number(value, column)
        case ValueKind.TEXT:
            if not isinstance(value, str | int | Decimal):
                return None
            text = _text(value)
            is_sized = column.type in (ColumnType.STRING, ColumnType.VARCHAR)
            if is_sized and len(text) > column.size // character_size(column.charset or "utf8mb4"):
                return None
            return text.rstrip(" ") if column.type == ColumnType.STRING else text
        case ValueKind.BINARY:
            if isinstance(value, str) and value.isascii():
                value = value.encode()
            is_fixed = column.type == ColumnType.STRING
            return (value.ljust(column.size, b"\0") if is_fixed else value) if isinstance(value, bytes) else None
    return _stored_text(value, column) if isinstance(value, str) else None


def _stored_number(value: Value, column: Column) -> Value:
    if isinstance(value, bytes) and len(value) <= 8:
        value = int.from_bytes(value, "big")
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip(" ")):
        value = Decimal(value.strip(" "))
    if not isinstance(value, int | Decimal):
        return None
    number = Decimal(value)
    if column.kind is ValueKind.DECIMAL:
        rounded = _rounded(number, column.scale)
        return rounded if abs(rounded) < 10 ** (column.size - column.scale) else None
    if column.kind is ValueKind.FLOAT:
        return _FLOAT.unpack(_FLOAT.pack(float(number)))[0] if column.type == ColumnType.FLOAT else float(number)
    whole = int(_rounded(number, 0))
    if column.kind is ValueKind.BIT:
        return whole if 0 <= whole < 1 << column.size else None
    if column.kind is ValueKind.YEAR:
        return whole if whole == 0 or 1901 <= whole <= 2155 else None
    bits = 8 * INTEGER_SIZES[ColumnType(column.type)]
    low, high = (0, 1 << bits) if column.is_unsigned else (-(1 << bits - 1), 1 << bits - 1)
    return whole if low <= whole < high else None


def _rounded(number: Decimal, scale: int) -> Decimal:
    rounded = number.quantize(Decimal(1).scaleb(-scale), rounding=decimal.ROUND_HALF_UP, context=_EXACT)
    return rounded if rounded else abs(rounded)  # there is no -0


def _stored_text(text: str, column: Column) -> Value:
    """A text that stands for something else."""
    match column.kind:
        case ValueKind.DATE:
            return text if _DATE.fullmatch(text) else None
        case ValueKind.TIME:
            return _with_digits(_TIME.fullmatch(text), column.scale)
        case ValueKind.DATETIME:
            return _with_digits(_DATETIME.fullmatch(text if len(text) > 10 else f"{text} 00:00:00"), column.scale)
        case ValueKind.TIMESTAMP:  # others hang on the time zone of the session
            return _with_digits(_DATETIME.fullmatch(text), column.scale) if text.startswith("0000-00-00") else None
        case ValueKind.ENUM:
            return _label(text, column)
        case ValueKind.SET:
            labels = [_label(part, column) for part in text.split(",")] if text else []
            order = column.labels or ()
            return None if None in labels else ",".join(label for label in order if label in labels)
        case ValueKind.UUID:
            return text.lower() if _UUID.fullmatch(text.lower()) else None
        case ValueKind.INET4:
            parts = text.split(".")
            is_plain = all(part.isdecimal() and part == str(int(part)) and int(part) < 256 for part in parts)
            return text if len(parts) == 4 and is_plain else None
    return "::" if column.kind is ValueKind.INET6 and text == "::" else None


def _label(text: str, column: Column) -> str | None:
    """A label by its text; only one that differs in its case alone is that label, too."""
    labels = column.labels or ()
    if text in labels:
        return text
    alike = [label for label in labels if label.lower() == text.lower()]
    return alike[0] if len(alike) == 1 else None


def _with_digits(match: re.Match[str] | None, scale: int) -> str | None:
    """A time with as many digits of a second as its column has; None if some would be lost."""
    if match is None or len(match[2] or "") > scale:
        return None
    return match[1] + (f".{(match[2] or '').ljust(scale, '0')}" if scale else "")
