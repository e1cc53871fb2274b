"""Values of one type taken as another, as MariaDB does it; NULL is None."""

from __future__ import annotations

import re
from decimal import Context, Decimal

from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.sqltext.literals import Value

DECIMALS = Context(prec=130)  # DECIMAL has 65 digits; a product of two has all of them
_NUMBER = re.compile(r"\s*([+-]?(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,3})?)", re.ASCII)


def text_of(value: Value) -> str:
    """A value that is not NULL as the text a client gets; bytes that are no UTF-8 keep their places."""
    match value:
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case float():
            text = repr(value).removesuffix(".0")
            return text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)


def bytes_of(value: Value, codec: str = "utf-8") -> bytes | None:
    """A value as it goes into a row; `?` stands for what a character set does not have."""
    if value is None or isinstance(value, bytes):
        return value
    try:
        return text_of(value).encode(codec, "surrogateescape")
    except UnicodeEncodeError:
        return text_of(value).encode(codec, "replace")


def number_of(value: Value) -> int | float | Decimal | None:
    """A value as a number: a text counts up to its first other character."""
    match value:
        case None | int() | float() | Decimal():
            return value
        case _:
            match = _NUMBER.match(text_of(value))
            return float(match[1]) if match else 0.0


def truth_of(value: Value) -> bool | None:
    """Whether a value counts as true; None where it is NULL."""
    number = number_of(value)
    return None if number is None else number != 0


def integer_of(value: Value) -> int | None:
    """A value as an integer, rounded.

    Raises:
        RefusedError: it is too large.
    """
    number = number_of(value)
    if number is None or isinstance(number, int):
        return number
    if isinstance(number, float) and not abs(number) < 2.0**64:
        raise out_of_range("BIGINT", value)
    if isinstance(number, Decimal) and abs(number) >= 2**64:
        raise out_of_range("BIGINT", value)
    return int(number + Decimal("0.5").copy_sign(number) if isinstance(number, Decimal) else round(number))


def compare(left: Value, right: Value) -> int | None:
    """-1, 0 or 1; None where one is NULL. Texts compare without regard to case and blanks after, bytes with it."""
    if left is None or right is None:
        return None
    if isinstance(left, str | bytes) and isinstance(right, str | bytes):
        if isinstance(left, bytes) or isinstance(right, bytes):
            one, other = (text_of(value).encode("utf-8", "surrogateescape") for value in (left, right))
            return (one > other) - (one < other)
        a, b = text_of(left).rstrip(" ").casefold(), text_of(right).rstrip(" ").casefold()
        return (a > b) - (a < b)
    first, second = number_of(left), number_of(right)
    assert first is not None
    assert second is not None
    return (first > second) - (first < second)


def calculate(operator: str, left: Value, right: Value) -> Value:
    """`left operator right` for the signs of arithmetic.

    Raises:
        RefusedError: the result is too large for its type.
    """
    a, b = number_of(left), number_of(right)
    if a is None or b is None:
        return None
    if operator in ("/", "DIV", "MOD") and b == 0:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return _floats(operator, float(a), float(b))
    if operator == "DIV":
        quotient = DECIMALS.divide_int(Decimal(a), Decimal(b))
        return _checked(int(quotient), operator)
    if operator == "/" or isinstance(a, Decimal) or isinstance(b, Decimal):
        return _decimals(operator, Decimal(a), Decimal(b))
    match operator:
        case "+":
            return _checked(a + b, operator)
        case "-":
            return _checked(a - b, operator)
        case "*":
            return _checked(a * b, operator)
        case _:  # MOD has the sign of the first
            return abs(a) % abs(b) * (-1 if a < 0 else 1)


def calculate_bits(operator: str, left: Value, right: Value) -> int | None:
    """`left operator right` for the signs that work on bits; the result is unsigned."""
    a, b = integer_of(left), integer_of(right)
    if a is None or b is None:
        return None
    a, b = a % 2**64, b % 2**64
    match operator:
        case "|":
            return a | b
        case "&":
            return a & b
        case "^":
            return a ^ b
        case "<<":
            return (a << b) % 2**64 if b < 64 else 0
        case _:
            return a >> b if b < 64 else 0


def out_of_range(kind: str, value: object) -> RefusedError:
    return RefusedError(1690, "22003", f"{kind} value is out of range in '{str(value)[:64]}'")


def _floats(operator: str, a: float, b: float) -> float | int:
    try:
        match operator:
            case "+":
                result = a + b
            case "-":
                result = a - b
            case "*":
                result = a * b
            case "/":
                result = a / b
            case "DIV":
                return _checked(int(a / b), operator)
            case _:
                result = abs(a) % abs(b) * (-1 if a < 0 else 1)
    except OverflowError:
        raise out_of_range("DOUBLE", operator) from None
    if result in (float("inf"), float("-inf")) or result != result:
        raise out_of_range("DOUBLE", operator)
    return result


def _decimals(operator: str, a: Decimal, b: Decimal) -> Decimal:
    match operator:
        case "+":
            result = DECIMALS.add(a, b)
        case "-":
            result = DECIMALS.subtract(a, b)
        case "*":
            result = DECIMALS.multiply(a, b)
        case "/":
            result = DECIMALS.divide(a, b)
            scale = min(_scale(a) + 4, 30)
            result = DECIMALS.quantize(result, Decimal(1).scaleb(-scale)) if result.adjusted() < 65 else result
        case _:
            result = DECIMALS.remainder(a, b)
    if result.adjusted() >= 65:
        raise out_of_range("DECIMAL", operator)
    return result


def _scale(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def _checked(value: int, operator: str) -> int:
    if not -(2**63) <= value < 2**64:
        raise out_of_range("BIGINT", operator)
    return value
