"""Functions of SQL whose value depends on nothing but their arguments; NULL is None."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal

from ibbmaster.dialogue.conversion import DECIMALS, compare, integer_of, number_of, text_of
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.moment import duration_text, parse_duration, parse_moment

TEXT_SIZE_MAX = 1 << 20  # characters a function may give: one statement shall not fill the memory
Function = Callable[..., Value]


def call_function(name: str, written: str, arguments: Sequence[Value]) -> Value:
    """The value of a function that `FUNCTIONS` has.

    Raises:
        RefusedError: the number of arguments is wrong, or the value too large.
    """
    least, most, function = FUNCTIONS[name]
    check_count(written, len(arguments), least, most)
    value = function(*arguments)
    if isinstance(value, str | bytes) and len(value) > TEXT_SIZE_MAX:
        raise RefusedError(1301, "HY000", f"Result of {name}() was larger than {TEXT_SIZE_MAX} characters")
    return value


def check_count(written: str, count: int, least: int, most: int) -> None:
    """
    Raises:
        RefusedError: there are more arguments, or fewer.
    """
    if not least <= count <= most:
        raise RefusedError(1582, "42000", f"Incorrect parameter count in the call to native function '{written}'")


def _of_texts(function: Callable[..., Value]) -> Function:
    """A function of texts; NULL among them makes it NULL."""

    def call(*arguments: Value) -> Value:
        if any(argument is None for argument in arguments):
            return None
        return function(*map(text_of, arguments))

    return call


def _concat(*texts: str) -> str:
    if sum(map(len, texts)) > TEXT_SIZE_MAX:
        raise RefusedError(1301, "HY000", f"Result of concat() was larger than {TEXT_SIZE_MAX} characters")
    return "".join(texts)


def _concat_ws(separator: Value, *values: Value) -> Value:
    if separator is None:
        return None
    texts = [text_of(value) for value in values if value is not None]
    between = [text_of(separator)] * max(len(texts) - 1, 0)
    return _concat(*(part for pair in zip(texts, [*between, ""], strict=True) for part in pair)) if texts else ""


def _substring(text: Value, start: Value, count: Value = 2**31) -> Value:
    first, size = integer_of(start), integer_of(count)
    if text is None or first is None or size is None:
        return None
    letters = text_of(text)
    place = first - 1 if first > 0 else len(letters) + first
    return "" if first == 0 or place < 0 or size < 1 else letters[place : place + size]


def _left(text: Value, count: Value) -> Value:
    size = integer_of(count)
    return None if text is None or size is None else text_of(text)[: max(size, 0)]


def _right(text: Value, count: Value) -> Value:
    size = integer_of(count)
    return None if text is None or size is None else text_of(text)[-size:] if size > 0 else ""


def _replace(text: str, old: str, new: str) -> str:
    if old and len(text) + text.count(old) * max(len(new) - len(old), 0) > TEXT_SIZE_MAX:
        raise RefusedError(1301, "HY000", f"Result of replace() was larger than {TEXT_SIZE_MAX} characters")
    return text.replace(old, new) if old else text


def _round(value: Value, places: Value = 0) -> Value:
    return _rounded(value, integer_of(places), ROUND_HALF_UP)


def _rounded(value: Value, places: int | None, rounding: str) -> Value:
    number = number_of(value)
    if number is None or places is None:
        return None
    if isinstance(number, int) and places >= 0:
        return number
    unit = Decimal(1).scaleb(-max(min(places, 30), -65))
    exact = Decimal(number)
    if not exact.is_finite() or exact.adjusted() > 65:
        return number
    result = exact.quantize(unit, rounding, DECIMALS)
    if isinstance(number, float):
        return float(result)
    return int(result) if rounding != ROUND_HALF_UP or isinstance(number, int) else result


def _timediff(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    texts = text_of(left), text_of(right)
    for parse in (parse_moment, parse_duration):
        times = [parse(text) for text in texts]
        if times[0] is not None and times[1] is not None:
            return duration_text(times[0] - times[1], 6 if any("." in text for text in texts) else 0)
    return None


def _best(values: Sequence[Value], sign: int) -> Value:
    if any(value is None for value in values):
        return None
    best = values[0]
    for value in values[1:]:
        order = compare(value, best)
        best = value if order is not None and order * sign > 0 else best
    return best


def _hex(value: Value) -> Value:
    if value is None:
        return None
    if isinstance(value, str | bytes):
        data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
        return data.hex().upper()
    number = integer_of(value)
    assert number is not None
    return f"{number % 2**64:X}"


def _find_in_set(text: str, texts: str) -> int:
    wanted = text.casefold()
    return next((no for no, part in enumerate(texts.split(","), 1) if texts and part.casefold() == wanted), 0)


def _instr(text: str, part: str) -> int:
    return text.casefold().find(part.casefold()) + 1


def _substring_index(text: Value, separator: Value, count: Value) -> Value:
    """What stands before the n-th separator, or after it counted from the end."""
    number = integer_of(count)
    if text is None or separator is None or number is None:
        return None
    between = text_of(separator)
    if not between or not number:
        return ""
    parts = text_of(text).split(between)
    return between.join(parts[:number] if number > 0 else parts[number:])


def _abs(value: Value) -> Value:
    number = number_of(value)
    return number.copy_abs() if isinstance(number, Decimal) else None if number is None else abs(number)


_MANY = 10_000

#: By name: the least and the most arguments, and the function.
FUNCTIONS: Mapping[str, tuple[int, int, Function]] = {
    "abs": (1, 1, _abs),
    "ceil": (1, 1, lambda value: _rounded(value, 0, ROUND_CEILING)),
    "ceiling": (1, 1, lambda value: _rounded(value, 0, ROUND_CEILING)),
    "char_length": (1, 1, _of_texts(len)),
    "character_length": (1, 1, _of_texts(len)),
    "coalesce": (1, _MANY, lambda *values: next((value for value in values if value is not None), None)),
    "concat": (1, _MANY, _of_texts(_concat)),
    "concat_ws": (2, _MANY, _concat_ws),
    "find_in_set": (2, 2, _of_texts(_find_in_set)),
    "floor": (1, 1, lambda value: _rounded(value, 0, ROUND_FLOOR)),
    "greatest": (2, _MANY, lambda *values: _best(values, 1)),
    "hex": (1, 1, _hex),
    "ifnull": (2, 2, lambda value, other: other if value is None else value),
    "instr": (2, 2, _of_texts(_instr)),
    "isnull": (1, 1, lambda value: int(value is None)),
    "lcase": (1, 1, _of_texts(str.lower)),
    "least": (2, _MANY, lambda *values: _best(values, -1)),
    "left": (2, 2, _left),
    "length": (1, 1, _of_texts(lambda text: len(text.encode("utf-8", "surrogateescape")))),
    "locate": (2, 2, _of_texts(lambda part, text: _instr(text, part))),
    "lower": (1, 1, _of_texts(str.lower)),
    "ltrim": (1, 1, _of_texts(lambda text: text.lstrip(" "))),
    "mid": (3, 3, _substring),
    "nullif": (2, 2, lambda value, other: None if compare(value, other) == 0 else value),
    "nvl": (2, 2, lambda value, other: other if value is None else value),
    "octet_length": (1, 1, _of_texts(lambda text: len(text.encode("utf-8", "surrogateescape")))),
    "replace": (3, 3, _of_texts(_replace)),
    "reverse": (1, 1, _of_texts(lambda text: text[::-1])),
    "right": (2, 2, _right),
    "round": (1, 2, _round),
    "rtrim": (1, 1, _of_texts(lambda text: text.rstrip(" "))),
    "substr": (2, 3, _substring),
    "substring": (2, 3, _substring),
    "substring_index": (3, 3, _substring_index),
    "timediff": (2, 2, _timediff),
    "trim": (1, 1, _of_texts(lambda text: text.strip(" "))),
    "ucase": (1, 1, _of_texts(str.upper)),
    "upper": (1, 1, _of_texts(str.upper)),
}
