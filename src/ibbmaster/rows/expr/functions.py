"""Functions by name, with the types of their values."""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ibbmaster.replication.wire.refusal import RefusedError, not_supported
from ibbmaster.replication.wire.response import FieldType
from ibbmaster.sqltext.moment import parse_duration
from . import kinds, values
from .judged import expect_function
from .kinds import REALS, Family, ValueType, joint_collation, of_all
from .operators import arithmetic, chosen, first_known, is_null
from .scalars import Scalar, apply, as_integer, as_number, as_text, cast_to, constant
from .values import SECOND, checked_int, checked_real
from .weights import key_of, letters_of

VALUE_MAX = 16 << 20  # letters of a text
Build = Callable[..., Scalar]
DURATION_MAX = (838 * 3600 + 59 * 60 + 59) * SECOND
ALIASES = {"lcase": "lower", "nvl": "ifnull", "substr": "substring", "ucase": "upper"}


def call(name: str, written: str, arguments: list[Scalar], collation: str) -> Scalar:
    """`collation` is that of texts made of numbers."""
    name = ALIASES.get(name, name)
    found = _FUNCTIONS.get(name)
    if found is None:
        raise not_supported(f"{written}() over columns of a table")
    least, most, build = found
    if not least <= len(arguments) <= most:
        raise RefusedError(1582, "42000", f"Incorrect parameter count in the call to native function '{written}'")
    expect_function(name, arguments)
    return build(*(_named(argument, collation) for argument in arguments))


def is_function(name: str) -> bool:
    return ALIASES.get(name, name) in _FUNCTIONS


def _named(argument: Scalar, collation: str) -> Scalar:
    """Numbers that become texts have the collation of the session."""
    if argument.type.collation is not None or argument.kind in kinds.TEXTS:
        return argument
    return replace(argument, type=replace(argument.type, collation=collation, strength=5))


def _if(condition: Scalar, first: Scalar, second: Scalar) -> Scalar:
    if first.kind is second.kind is Family.NULL:
        raise not_supported("IF of NULL and NULL")
    return chosen([condition], [_null_as(first, second), _null_as(second, first)])


def _null_as(value: Scalar, other: Scalar) -> Scalar:
    """NULL as a value of another's type; IF sees nothing else of it."""
    return constant(other.type.computed(is_nullable=True), None) if value.kind is Family.NULL else value


def _is_real(argument: Scalar) -> bool:
    return argument.kind in REALS or argument.kind is Family.TEXT


def _abs(value: Scalar) -> Scalar:
    number = as_number(value)
    if _is_real(value):
        decimals = value.type.decimals if value.kind in REALS else kinds.FLOATING
        return apply(kinds.real(is_nullable=value.type.is_nullable, decimals=decimals), abs, number)
    if value.kind is Family.DECIMAL:
        return apply(value.type.computed(field=None), lambda one: one.copy_abs(), number)
    field = FieldType.LONG if value.type.length <= 9 else FieldType.LONGLONG
    kind = value.type.computed(field=field, kind=Family.INT)
    return apply(kind, lambda one: checked_int(abs(one), kind.is_unsigned), number)


def _round(value: Scalar, places: Scalar | None = None) -> Scalar:
    if places is not None and (not places.is_constant or places.value is None):
        raise not_supported("ROUND to digits that are no constant")
    wanted = 0 if places is None else int(as_integer(places).value)
    if not 0 <= wanted <= 300:
        raise not_supported("ROUND to this many digits")
    number, own = as_number(value), value.type
    if _is_real(value):
        kind = kinds.shown_real(wanted, is_nullable=own.is_nullable)
        return apply(kind, lambda one: _rounded_real(one, wanted), number)
    if own.kind is Family.DECIMAL:
        digits = own.digits - own.decimals + wanted + (wanted < own.decimals)
        kind = kinds.decimal(digits, wanted, is_nullable=own.is_nullable, is_unsigned=own.is_unsigned)
        return apply(kind, lambda one: values.rounded(one, wanted), number)
    return Scalar(own.computed(kind=Family.INT), value.run, value.is_constant)  # in a field as wide as its column's


def _rounded_real(value: float, places: int) -> float:
    """As my_double_round(): by a power of ten, half to even."""
    product = value * 10.0**places
    if places < 300 and product - product != 0:
        return value
    found = math.copysign(float(round(product)), value) if abs(product) < 1e300 else product
    return checked_real(found / 10.0**places)


def _least(*arguments: Scalar) -> Scalar:
    kind = of_all([argument.type for argument in arguments])
    found = {argument.kind for argument in arguments}
    if Family.NULL in found:
        raise not_supported("LEAST of NULL")
    if kind.kind is Family.TEXT and found != {Family.TEXT}:
        raise not_supported("LEAST of several types")
    key: Callable[[Any], Any] | None = None
    if kind.kind is Family.TEXT:
        key = key_of(joint_collation([argument.type for argument in arguments])[0])
    return apply(kind, lambda *given: min(given, key=key), *(cast_to(argument, kind) for argument in arguments))


def _timediff(*arguments: Scalar) -> Scalar:
    """NULL between a moment and a duration."""
    digits = max(map(_fraction_of, arguments))
    most = DURATION_MAX + (SECOND - 1 if digits else 0)

    def difference(one: Any, other: Any) -> int | None:
        pair = _microseconds(one), _microseconds(other)
        if pair[0][0] != pair[1][0]:
            return None
        return max(min(pair[0][1] - pair[1][1], most), -most)

    return apply(kinds.duration(digits), difference, *arguments)


def _fraction_of(value: Scalar) -> int:
    if value.kind in kinds.MOMENTS:
        return value.type.decimals
    if value.kind is Family.TEXT and value.is_constant and value.value is not None:
        text = value.value
        found = values.parsed_moment(text)
        if found[:10] == text[:10] if found is not None else parse_duration(text) is not None:
            return min(len(text.partition(".")[2]), 6)
    raise not_supported("such values as moments")


def _microseconds(value: Any) -> tuple[bool, int]:
    if isinstance(value, int):
        return False, value
    moment = values.parsed_moment(value)
    return (False, parse_duration(value) or 0) if moment is None else (True, values.microseconds_of(moment))


def _letters_of(argument: Scalar) -> Scalar:
    if argument.is_constant and argument.kind in kinds.REALS:
        raise not_supported("functions of texts over a floating constant")  # a server cuts off what it did not expect
    return as_text(argument)


def _joint(arguments: Sequence[Scalar]) -> tuple[str, int]:
    texts = [argument.type for argument in arguments if argument.kind is not Family.NULL]
    if not texts:
        return "utf8mb4_general_ci", 4
    real = [kind for kind in texts if kind.kind in kinds.TEXTS]
    collation, strength = joint_collation(real or texts)
    charsets = {kind.charset for kind in real if kind.charset is not None}
    if len(charsets) > 1:
        raise not_supported("texts of several character sets together")
    return collation, strength


def _text_type(arguments: Sequence[Scalar], length: int, *, is_blob: bool = False) -> ValueType:
    if all(argument.kind is Family.NULL for argument in arguments):
        return kinds.data(0)
    collation, strength = _joint(arguments)
    charset = next((one.type.charset for one in arguments if one.type.charset is not None), None)
    if charset not in (None, "utf8mb4", "latin1", "ascii", "utf8mb3"):
        raise not_supported(f"functions of texts of {charset}")
    return ValueType(
        kind=Family.TEXT, length=length, collation=collation, strength=strength, charset=charset, is_blob=is_blob
    )


def _bounded(text: str) -> str:
    if len(text) > VALUE_MAX:
        raise RefusedError(1041, "HY000", "Out of memory: a value is too long")
    return text


def _concat(*arguments: Scalar) -> Scalar:
    kind = _text_type(arguments, sum(argument.type.length for argument in arguments))
    return apply(kind, lambda *texts: _bounded("".join(texts)), *map(_letters_of, arguments))


def _cased(*, is_upper: bool) -> Build:
    def letter_of(letter: str) -> str:
        found = letter.upper() if is_upper else letter.lower()
        if letter == "ß" or letter.upper() == letter.lower() == letter:
            return letter
        is_known = letter < "\u0180" or "\u0391" <= letter <= "\u03c9" or "\u0410" <= letter <= "\u044f"
        if is_known and len(found) == 1 and letter not in "\u0130\u0149\xb5\u017f\u03c2":
            return found
        raise not_supported(f"the case of U+{ord(letter):04X}")

    def convert(text: str) -> str:
        if text.isascii():
            return text.upper() if is_upper else text.lower()
        return "".join(map(letter_of, text))

    def build(value: Scalar) -> Scalar:
        kind = _text_type([value], value.type.length, is_blob=value.type.is_blob)
        return apply(kind, convert, _letters_of(value))

    return build


def _constant_int(argument: Scalar, otherwise: int) -> int:
    if not argument.is_constant:
        return otherwise
    value = as_integer(argument).value
    return otherwise if value is None else int(value)


def _substring(value: Scalar, start: Scalar, *more: Scalar) -> Scalar:
    length = value.type.length
    if start.is_constant and (first := _constant_int(start, 1)) > 0:
        length = max(length - first + 1, 0)
    elif start.is_constant:
        length = min(length, -first)
    if more:
        length = min(length, max(_constant_int(more[0], length), 0))
    kind = _text_type([value], length)

    def cut(text: str, start: int, size: int = VALUE_MAX) -> str:
        if size <= 0 or start == 0:
            return ""
        if start < 0:
            start += len(text) + 1
            if start < 1:
                return ""
        return text[start - 1 : start - 1 + size]

    return apply(kind, cut, _letters_of(value), as_integer(start), *map(as_integer, more))


def _locate(wanted: Scalar, value: Scalar, *more: Scalar) -> Scalar:
    collation, _ = _joint([wanted, value])
    weigh = letters_of(collation)
    if "uca1400" in collation or "unicode" in collation:
        raise not_supported(f"LOCATE by {collation}")

    def find(piece: str, text: str, start: int = 1) -> int:
        if not (piece + text).isascii():
            raise not_supported("LOCATE of other letters than those of ASCII")
        if start < 1 or start > len(text) + 1:
            return 0
        small, large = weigh(piece), weigh(text)
        for place in range(start - 1, len(large) - len(small) + 1):
            if large[place : place + len(small)] == small:
                return place + 1
        return 0

    kind = kinds.integer(10, length=11)
    return apply(
        replace(kind, field=FieldType.LONG), find, _letters_of(wanted), _letters_of(value), *map(as_integer, more)
    )


def _substring_index(value: Scalar, mark: Scalar, count: Scalar) -> Scalar:

    def cut(text: str, mark: str, count: int) -> str:
        if not mark or not count:
            return ""
        parts = text.split(mark)
        return mark.join(parts[:count] if count > 0 else parts[count:])

    kind = _text_type([value], value.type.length)
    return apply(kind, cut, _letters_of(value), _letters_of(mark), as_integer(count))


def _crc32(value: Scalar) -> Scalar:
    if value.type.charset not in (None, "utf8mb4", "utf8mb3", "ascii"):
        raise not_supported("CRC32 of such texts")
    kind = kinds.integer(10, length=10, is_unsigned=True)

    def digest(text: str | bytes) -> int:
        return zlib.crc32(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))

    return apply(replace(kind, field=FieldType.LONG), digest, as_text(value))


_FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    "if": (3, 3, _if),
    "ifnull": (2, 2, first_known),
    "coalesce": (1, 1000, first_known),
    "isnull": (1, 1, is_null),
    "abs": (1, 1, _abs),
    "round": (1, 2, _round),
    "mod": (2, 2, lambda one, other: arithmetic("MOD", one, other)),
    "least": (2, 1000, _least),
    "timediff": (2, 2, _timediff),
    "concat": (1, 1000, _concat),
    "upper": (1, 1, _cased(is_upper=True)),
    "lower": (1, 1, _cased(is_upper=False)),
    "left": (2, 2, lambda value, count: _substring(value, constant(kinds.integer(1), 1), count)),
    "substring": (2, 3, _substring),
    "locate": (2, 3, _locate),
    "substring_index": (3, 3, _substring_index),
    "crc32": (1, 1, _crc32),
}
