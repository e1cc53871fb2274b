"""Values of literals: numbers, bytes, texts and NULL."""

from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from .token import Token, TokenKind, tokens

Value: TypeAlias = int | float | Decimal | str | bytes | None  # None is NULL
UINT64_MAX = 2**64 - 1
_NAMED = {"NULL": None, "TRUE": 1, "FALSE": 0}


class VariableValueError(ValueError):
    """The value of an expression is not known without running it."""


def literal_value(expression: str) -> Value:
    """The value of a literal, perhaps in brackets or with a sign. Raises VariableValueError: it is something else."""
    found = list(tokens(expression))
    while len(found) > 2 and found[0].is_sign("(") and found[-1].is_sign(")"):
        found = found[1:-1]
    if len(found) > 1 and found[0].kind is TokenKind.WORD and found[0].text.startswith("_"):
        found = found[1:]  # the character set it is in
    if found and all(token.kind is TokenKind.TEXT for token in found):
        return "".join(token.text for token in found)
    sign = found.pop(0).text if len(found) == 2 and found[0].word in ("-", "+") else ""
    if len(found) != 1:
        raise VariableValueError(expression)
    (token,) = found
    if token.kind is TokenKind.NUMBER:
        number = number_value(token.text)
        if sign != "-" or not number:
            return number
        return number.copy_negate() if isinstance(number, Decimal) else -number  # `-` rounds to 28 digits
    if token.kind in (TokenKind.HEX, TokenKind.BITS) and not sign:
        return binary_value(token)
    if token.word in _NAMED and not sign:
        return _NAMED[token.word]
    raise VariableValueError(expression)


def number_value(text: str) -> int | float | Decimal:
    """A number, exact but with an exponent."""
    if text.isdecimal() and text.isascii():
        if len(text) <= 20 and (value := int(text)) <= UINT64_MAX:
            return value
        return Decimal(text[:400])
    if "e" in text.lower():
        return float(text)
    try:
        return Decimal(text[:400])
    except InvalidOperation:
        return float(text)


def binary_value(token: Token) -> bytes:
    digits = token.text[2:].removesuffix("'")
    if token.kind is TokenKind.HEX:
        return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "big")
