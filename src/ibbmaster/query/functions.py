"""Functions over columns, by name: what they give, and of which type."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from typing import Any

from ibbmaster.dialogue.refusal import RefusedError, not_supported
from ibbmaster.query import kinds, moments, values
from ibbmaster.query.kinds import REALS, Kind, Type, joint_collation, of_all
from ibbmaster.query.operators import arithmetic, chosen, compared, first_known, is_null
from ibbmaster.query.scalars import (
    Row,
    Scalar,
    apply,
    apply_any,
    as_exact,
    as_integer,
    as_number,
    as_real,
    as_text,
    cast_to,
    constant,
)
from ibbmaster.query.values import EXACT, checked_int, checked_real
from ibbmaster.query.weights import key_of, letters_of
from ibbmaster.wire.response import FieldType

VALUE_MAX = 16 << 20  # letters that a function makes at most
DECIMAL_FROM = 20  # characters of a number whose whole part is shown as DECIMAL, and not as BIGINT
Build = Callable[[list[Scalar]], Scalar]


def call(name: str, written: str, arguments: list[Scalar], collation: str) -> Scalar:
    """A function of columns; `collation` is that of texts made of numbers.

    Raises:
        RefusedError: there is no such function here, or not with these arguments.
    """
    found = _FUNCTIONS.get(name)
    if found is None:
        raise not_supported(f"{written}() over columns of a table")
    least, most, build = found
    if not least <= len(arguments) <= most:
        raise RefusedError(1582, "42000", f"Incorrect parameter count in the call to native function '{written}'")
    if any(argument.type.kind is Kind.OPAQUE for argument in arguments) and name not in _OF_ANYTHING:
        raise not_supported(f"{written}() of such values")
    return build([_named(argument, collation) for argument in arguments])


def is_function(name: str) -> bool:
    return name in _FUNCTIONS


def _named(argument: Scalar, collation: str) -> Scalar:
    """Numbers that become texts have the collation of the session."""
    return argument if argument.type.collation is not None or argument.type.kind in kinds.TEXTS else Scalar(
        kinds.changed(argument.type, collation=collation, strength=5), argument.run, argument.is_constant, argument.slot
    )  # fmt: skip


# Texts ----------------------------------------------------------------------------------------


def _plain(argument: Scalar) -> Scalar:
    """A text.

    Raises:
        RefusedError: bytes, whose functions count other things.
    """
    if argument.type.kind in (Kind.BYTES, Kind.BIT):
        raise not_supported("functions of texts over bytes")
    if argument.is_constant and argument.type.kind in kinds.REALS:
        raise not_supported("functions of texts over a floating constant")  # a server cuts off what it did not expect
    return as_text(argument)


def _joint(arguments: list[Scalar]) -> tuple[str, int]:
    texts = [argument.type for argument in arguments if argument.type.kind is not Kind.NULL]
    if not texts:
        return "utf8mb4_general_ci", 4
    real = [kind for kind in texts if kind.kind in kinds.TEXTS]
    collation, strength = joint_collation(real or texts)
    charsets = {kind.charset for kind in real if kind.charset is not None}
    if len(charsets) > 1:
        raise not_supported("texts of several character sets together")
    return collation, strength


def _text(arguments: list[Scalar], length: int, *, is_nullable: bool | None = None, **changes: Any) -> Type:
    collation, strength = _joint(arguments)
    nullable = any(argument.type.is_nullable for argument in arguments) if is_nullable is None else is_nullable
    charset = next((one.type.charset for one in arguments if one.type.charset is not None), None)
    if charset not in (None, "utf8mb4", "latin1", "ascii", "utf8mb3"):
        raise not_supported(f"functions of texts of {charset}")
    return Type(
        kind=Kind.TEXT, length=length, collation=collation, strength=strength, is_nullable=nullable, charset=charset,
        **changes,
    )  # fmt: skip


def _length(argument: Scalar) -> int:
    return argument.type.length


def _bounded(text: str) -> str:
    if len(text) > VALUE_MAX:
        raise RefusedError(1041, "HY000", "Out of memory: a value is too long")
    return text


def _concat(arguments: list[Scalar]) -> Scalar:
    kind = _text(arguments, sum(map(_length, arguments)), is_nullable=True)
    return apply(kind, lambda *texts: _bounded("".join(texts)), *map(_plain, arguments))


def _concat_ws(arguments: list[Scalar]) -> Scalar:
    separator, *others = arguments
    length = sum(map(_length, others)) + _length(separator) * max(len(others) - 1, 0)
    kind = _text(arguments, length, is_nullable=True)

    def join(between: str | None, *texts: str | None) -> str | None:
        return None if between is None else _bounded(between.join(text for text in texts if text is not None))

    return apply_any(kind, join, *map(_plain, arguments))


def _same_length(function: Callable[..., str]) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        first = arguments[0]
        kind = _text(arguments[:1], _length(first), is_nullable=True, is_blob=first.type.is_blob)
        return apply(kind, function, _plain(first))

    return build


def _cased(is_upper: bool) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text.isascii():
            return text.upper() if is_upper else text.lower()
        return "".join(map(letter_of, text))

    def letter_of(letter: str) -> str:
        found = letter.upper() if is_upper else letter.lower()
        if letter.upper() == letter.lower() == letter:
            return letter
        if letter < "\u0180" or "\u0391" <= letter <= "\u03c9" or "\u0410" <= letter <= "\u044f":
            return found if len(found) == 1 and letter not in "\u0130\u0149\xb5\u017f\u03c2" else _other_case(letter)
        raise not_supported(f"the case of U+{ord(letter):04X}")

    def _other_case(letter: str) -> str:
        if letter == "ß":
            return letter
        raise not_supported(f"the case of U+{ord(letter):04X}")

    return convert


def _trim(arguments: list[Scalar]) -> Scalar:
    value, *more = arguments
    kind = _text(arguments[:1], _length(value), is_nullable=True, is_blob=value.type.is_blob)
    what = as_text(more[0]) if more else constant(value.type, " ")
    side = more[1].value if len(more) > 1 else "BOTH"

    def strip(text: str, piece: str) -> str:
        if not piece:
            return text
        if side != "TRAILING":
            while text.startswith(piece):
                text = text[len(piece) :]
        if side != "LEADING":
            while text.endswith(piece):
                text = text[: len(text) - len(piece)]
        return text

    return apply(kind, strip, _plain(value), what)


def _left(arguments: list[Scalar]) -> Scalar:
    value, count = arguments
    size = min(_length(value), max(_constant_int(count, _length(value)), 0))
    kind = _text(arguments[:1], size, is_nullable=True)
    return apply(kind, lambda text, size: text[: max(size, 0)], _plain(value), as_integer(count))


def _right(arguments: list[Scalar]) -> Scalar:
    value, count = arguments
    size = min(_length(value), max(_constant_int(count, _length(value)), 0))
    kind = _text(arguments[:1], size, is_nullable=True)
    return apply(kind, lambda text, size: text[-size:] if size > 0 else "", _plain(value), as_integer(count))


def _constant_int(argument: Scalar, otherwise: int) -> int:
    if not argument.is_constant:
        return otherwise
    value = as_integer(argument).value
    return otherwise if value is None else int(value)


def _substring(arguments: list[Scalar]) -> Scalar:
    value, start, *more = arguments
    length = _length(value)
    if start.is_constant and (first := _constant_int(start, 1)) > 0:
        length = max(length - first + 1, 0)
    elif start.is_constant:
        length = min(length, -first)
    if more:
        length = min(length, max(_constant_int(more[0], length), 0))
    kind = _text(arguments[:1], length, is_nullable=True)

    def cut(text: str, start: int, size: int = VALUE_MAX) -> str:
        if size <= 0 or start == 0:
            return ""
        if start < 0:
            start += len(text) + 1
            if start < 1:
                return ""
        return text[start - 1 : start - 1 + size]

    return apply(kind, cut, _plain(value), as_integer(start), *map(as_integer, more))


def _replace(arguments: list[Scalar]) -> Scalar:
    value, old, new = arguments
    length = _length(value)
    if _length(new) > _length(old):
        length *= _length(new) // max(_length(old), 1) if _length(old) else 1
    kind = _text(arguments, length, is_nullable=True)

    def replace(text: str, old: str, new: str) -> str:
        return _bounded(text.replace(old, new)) if old else text

    return apply(kind, replace, *map(_plain, arguments))


def _pad(is_left: bool) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        value, size = arguments[:2]
        fill = arguments[2] if len(arguments) > 2 else constant(value.type, " ")
        if not size.is_constant:
            raise not_supported("LPAD and RPAD to a length that is no constant")
        kind = _text([arguments[0], *arguments[2:]], max(_constant_int(size, 0), 0), is_nullable=True)

        def pad(text: str, size: int, fill: str) -> str | None:
            if size < 0:
                return None
            if size <= len(text):
                return text[:size]
            if not fill:
                return None
            missing = size - len(text)
            more = (fill * (missing // len(fill) + 1))[:missing]
            return _bounded(more + text if is_left else text + more)

        return apply(kind, pad, _plain(value), as_integer(size), as_text(fill))

    return build


def _repeat(arguments: list[Scalar]) -> Scalar:
    value, count = arguments
    times = _constant_int(count, 0)
    if not count.is_constant:
        raise not_supported("REPEAT so often as a column says")
    kind = _text(arguments[:1], _length(value) * max(times, 0), is_nullable=True)
    if kind.length > VALUE_MAX:
        raise not_supported("values so long")
    return apply(kind, lambda text, times: text * max(times, 0), _plain(value), as_integer(count))


def _counted(digits: int, function: Callable[[Any], int]) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        kind = kinds.integer(digits, length=digits, is_nullable=arguments[0].type.is_nullable)
        return apply(kinds.changed(kind, field=FieldType.LONG), function, as_text(arguments[0]))

    return build


def _octets(arguments: list[Scalar]) -> Scalar:
    charset = arguments[0].type.charset or "utf8mb4"

    def count(text: str | bytes) -> int:
        if isinstance(text, bytes):
            return len(text)
        if charset in ("latin1", "ascii"):
            return len(text)
        return len(text.encode("utf-8", "surrogateescape"))

    return _counted(10, count)(arguments)


def _locate(arguments: list[Scalar]) -> Scalar:
    wanted, value, *more = arguments
    collation, _ = _joint([wanted, value])
    weigh = letters_of(collation)
    if "uca1400" in collation or "unicode" in collation:
        raise not_supported(f"LOCATE by {collation}")

    def find(piece: str, text: str, start: int = 1) -> int:
        if start < 1 or start > len(text) + 1:
            return 0
        small, large = weigh(piece), weigh(text)
        for place in range(start - 1, len(large) - len(small) + 1):
            if large[place : place + len(small)] == small:
                return place + 1
        return 0

    kind = kinds.integer(10, length=11)
    return apply(kinds.changed(kind, field=FieldType.LONG), find, _plain(wanted), _plain(value), *map(as_integer, more))


def _find_in_set(arguments: list[Scalar]) -> Scalar:
    collation, _ = _joint(arguments)
    weigh = letters_of(collation)
    if "uca1400" in collation or "unicode" in collation:
        raise not_supported(f"FIND_IN_SET by {collation}")

    def find(piece: str, texts: str) -> int:
        wanted = weigh(piece)
        found = (number for number, text in enumerate(texts.split(","), 1) if weigh(text) == wanted)
        return next(found, 0) if texts and "," not in piece else 0

    kind = kinds.integer(3, length=3, is_nullable=any(one.type.is_nullable for one in arguments))
    return apply(kind, find, *map(_plain, arguments))


def _substring_index(arguments: list[Scalar]) -> Scalar:
    value, mark, count = arguments
    kind = _text(arguments[:1], _length(value), is_nullable=True)

    def cut(text: str, mark: str, count: int) -> str:
        if not mark or not count:
            return ""
        parts = text.split(mark)
        return mark.join(parts[:count] if count > 0 else parts[count:])

    return apply(kind, cut, _plain(value), _plain(mark), as_integer(count))


def _hex(arguments: list[Scalar]) -> Scalar:
    (value,) = arguments
    if value.type.kind in kinds.NUMBERS and value.type.kind not in (Kind.INT, Kind.YEAR):
        raise not_supported("HEX of such numbers")
    if value.type.kind is Kind.INT:
        kind = kinds.text(16, value.type.collation or "utf8mb4_general_ci", is_nullable=True)
        return apply(kind, lambda number: f"{number % (1 << 64):X}", as_number(value))
    charset = value.type.charset or "utf8mb4"
    if charset not in ("utf8mb4", "latin1", "ascii", "utf8mb3"):
        raise not_supported(f"HEX of {charset}")
    size = 1 if value.type.kind is Kind.BYTES or charset in ("latin1", "ascii") else 4
    from ibbmaster.event.rows.charset import encode_text

    def show(text: str | bytes) -> str:
        return (text if isinstance(text, bytes) else encode_text(text, charset)).hex().upper()

    return apply(kinds.text(_length(value) * 2 * size, "utf8mb4_general_ci"), show, as_text(value))


def _digest(size: int, function: Callable[[bytes], str]) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        (value,) = arguments
        if value.type.charset not in (None, "utf8mb4", "utf8mb3", "ascii"):
            raise not_supported("digests of such texts")

        def digest(text: str | bytes) -> str:
            return function(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))

        return apply(kinds.text(size, "utf8mb4_general_ci"), digest, as_text(value))

    return build


def _crc32(arguments: list[Scalar]) -> Scalar:
    if arguments[0].type.charset not in (None, "utf8mb4", "utf8mb3", "ascii"):
        raise not_supported("CRC32 of such texts")
    kind = kinds.integer(10, length=10, is_unsigned=True)

    def digest(text: str | bytes) -> int:
        return zlib.crc32(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))

    return apply(kinds.changed(kind, field=FieldType.LONG), digest, as_text(arguments[0]))


def _field(arguments: list[Scalar]) -> Scalar:
    first, *others = arguments
    for other in others:
        if (other.type.kind in kinds.NUMBERS) != (first.type.kind in kinds.NUMBERS):
            raise not_supported("FIELD of texts and numbers")
    tests = [compared("=", first, other).run for other in others]

    def find(row: Row) -> int:
        return next((number for number, test in enumerate(tests, 1) if test(row)), 0)

    kind = kinds.integer(3, length=3, is_nullable=False)
    return Scalar(kind, find, all(one.is_constant for one in arguments))


def _elt(arguments: list[Scalar]) -> Scalar:
    number, *others = arguments
    kind = _text(others, max(map(_length, others)), is_nullable=True)
    runs = [_plain(other).run for other in others]
    index = as_integer(number).run

    def pick(row: Row) -> Any:
        place = index(row)
        return runs[place - 1](row) if place is not None and 1 <= place <= len(runs) else None

    return Scalar(kind, pick, all(one.is_constant for one in arguments))


def _ascii(arguments: list[Scalar]) -> Scalar:
    kind = kinds.integer(3, length=3, is_nullable=arguments[0].type.is_nullable)

    def first(text: str | bytes) -> int:
        found = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
        return found[0] if found else 0

    if arguments[0].type.charset not in (None, "utf8mb4", "utf8mb3", "ascii"):
        raise not_supported("ASCII of such texts")
    return apply(kind, first, as_text(arguments[0]))


# Numbers --------------------------------------------------------------------------------------


def _number(argument: Scalar) -> Scalar:
    """
    Raises:
        RefusedError: the argument is none.
    """
    if argument.type.kind not in (Kind.INT, Kind.YEAR, Kind.DECIMAL, Kind.DOUBLE, Kind.FLOAT, Kind.TEXT):
        raise not_supported(f"functions of numbers over {argument.type.kind.value}")
    return as_number(argument)


def _is_real(argument: Scalar) -> bool:
    return argument.type.kind in REALS or argument.type.kind is Kind.TEXT


def _abs(arguments: list[Scalar]) -> Scalar:
    (value,) = arguments
    number = _number(value)
    if _is_real(value):
        decimals = value.type.decimals if value.type.kind in REALS else kinds.FLOATING
        return apply(kinds.real(is_nullable=value.type.is_nullable, decimals=decimals), abs, number)
    if value.type.kind is Kind.DECIMAL:
        return apply(value.type.computed(field=None), lambda one: one.copy_abs(), number)
    field = FieldType.LONG if _length(value) <= 9 else FieldType.LONGLONG
    kind = value.type.computed(field=field, kind=Kind.INT)
    return apply(kind, lambda one: checked_int(abs(one), kind.is_unsigned), number)


def _whole(rounding: str) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        (value,) = arguments
        number = _number(value)
        if _is_real(value):
            function = math.floor if rounding == ROUND_FLOOR else math.ceil
            kind = kinds.changed(kinds.real(is_nullable=value.type.is_nullable, decimals=0), length=17)
            return apply(kind, lambda one: math.copysign(float(function(one)), one), number)
        if value.type.kind is Kind.DECIMAL:
            digits = value.type.digits - value.type.decimals
            if value.type.length - value.type.decimals >= DECIMAL_FROM:
                kind = kinds.decimal(digits + 1, 0, is_nullable=value.type.is_nullable)
                return apply(kind, lambda one: values.rounded(one, 0, rounding), number)
            length = digits + 2
            field = FieldType.LONG if length <= 10 else FieldType.LONGLONG
            kind = kinds.integer(digits + 1, length=length, is_nullable=value.type.is_nullable)
            return apply(kinds.changed(kind, field=field), lambda one: int(values.rounded(one, 0, rounding)), number)
        return _same_whole(value)

    return build


def _round(arguments: list[Scalar]) -> Scalar:
    value = arguments[0]
    places = arguments[1] if len(arguments) > 1 else constant(kinds.integer(1), 0)
    if not places.is_constant or places.value is None:
        raise not_supported("ROUND to digits that are no constant")
    wanted = int(as_integer(places).value)
    number = _number(value)
    is_nullable = value.type.is_nullable
    if _is_real(value):
        if not -300 <= wanted <= 300:
            raise not_supported("ROUND to so many digits")
        kind = kinds.real(is_nullable=is_nullable, decimals=min(max(wanted, 0), kinds.FLOATING))
        if kind.decimals < kinds.FLOATING:
            kind = kinds.changed(kind, length=17 + kind.decimals)
        return apply(kind, lambda one: _rounded_real(one, wanted), number)
    if value.type.kind is Kind.DECIMAL:
        scale = max(wanted, 0)
        whole = value.type.digits - value.type.decimals
        grows = wanted < value.type.decimals
        kind = kinds.decimal(whole + scale + grows, scale, is_nullable=is_nullable, is_unsigned=value.type.is_unsigned)
        return apply(kind, lambda one: _rounded(one, wanted, scale), number)
    if wanted < 0:
        raise not_supported("ROUND of whole numbers to tens")
    return _same_whole(value)


def _same_whole(value: Scalar) -> Scalar:
    """A whole number, in a field as wide as its column's."""
    return Scalar(value.type.computed(kind=Kind.INT), value.run, value.is_constant)


def _rounded(value: Decimal, places: int, scale: int) -> Decimal:
    if places >= scale:
        return values.rounded(value, scale)
    shifted = EXACT.scaleb(value, places)
    return values.rounded(EXACT.scaleb(values.rounded(shifted, 0), -places), 0)


def _rounded_real(value: float, places: int) -> float:
    """As my_double_round(): by a power of ten, half to even."""
    power = 10.0 ** abs(places)
    product = value * power if places >= 0 else value / power
    if abs(places) < 300 and product - product != 0:
        return value
    found = math.copysign(float(round(product)), value) if abs(product) < 1e300 else product
    return checked_real(found / power if places >= 0 else found * power)


def _truncate(arguments: list[Scalar]) -> Scalar:
    value, places = arguments
    if not places.is_constant or places.value is None:
        raise not_supported("TRUNCATE to digits that are no constant")
    wanted = int(as_integer(places).value)
    number = _number(value)
    if _is_real(value):
        kind = kinds.real(is_nullable=value.type.is_nullable, decimals=min(max(wanted, 0), kinds.FLOATING))
        if kind.decimals < kinds.FLOATING:
            kind = kinds.changed(kind, length=17 + kind.decimals)

        def cut(one: float) -> float:
            power = 10.0 ** abs(wanted)
            product = one * power if wanted >= 0 else one / power
            if product - product != 0:
                return one
            found = math.copysign(float(math.trunc(product)), one)
            return found / power if wanted >= 0 else found * power

        return apply(kind, cut, number)
    if value.type.kind is Kind.DECIMAL:
        if wanted < 0:
            raise not_supported("TRUNCATE to tens")
        scale = wanted
        kind = kinds.decimal(
            value.type.digits - value.type.decimals + scale, scale,
            is_nullable=value.type.is_nullable, is_unsigned=value.type.is_unsigned,
        )  # fmt: skip
        return apply(kind, lambda one: values.rounded(one, scale, ROUND_DOWN), number)
    if wanted < 0:
        raise not_supported("TRUNCATE to tens")
    return _same_whole(value)


def _sign(arguments: list[Scalar]) -> Scalar:
    kind = kinds.integer(1, length=2, is_nullable=arguments[0].type.is_nullable)
    return apply(kind, lambda one: (one > 0) - (one < 0), _number(arguments[0]))


def _mod(arguments: list[Scalar]) -> Scalar:
    return arithmetic("MOD", arguments[0], arguments[1])


def _analytic(function: Callable[..., float | None]) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        def compute(*numbers: float) -> float | None:
            found = function(*numbers)
            return None if found is None else checked_real(found)

        return apply(kinds.real(), compute, *(as_real(_numbered(argument)) for argument in arguments))

    return build


def _numbered(argument: Scalar) -> Scalar:
    _number(argument)
    return argument


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        raise values.out_of_range("DOUBLE") from None
    except ValueError:
        raise values.out_of_range("DOUBLE") from None


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        raise values.out_of_range("DOUBLE") from None


def _extreme(is_greatest: bool) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        kind = of_all([argument.type for argument in arguments])
        if any(argument.type.kind is Kind.NULL for argument in arguments):
            raise not_supported("GREATEST and LEAST of NULL")
        found = [argument.type.kind for argument in arguments]
        if kind.kind is Kind.TEXT and not set(found) <= {Kind.TEXT}:
            raise not_supported("GREATEST and LEAST of several types")
        cast = [cast_to(argument, kind) for argument in arguments]
        if kind.kind is Kind.TEXT:
            collation, _ = joint_collation([argument.type for argument in arguments])
            key: Callable[[Any], Any] = key_of(collation)
        else:
            key = lambda value: value  # noqa: E731 - one of two ways
        pick = _last_max if is_greatest else min

        def choose(*given: Any) -> Any:
            return pick(given, key=key)

        return apply(kind, choose, *cast)

    return build


def _last_max(given: tuple[Any, ...], key: Callable[[Any], Any]) -> Any:
    return max(given, key=key)


# Choice ---------------------------------------------------------------------------------------


def _if(arguments: list[Scalar]) -> Scalar:
    condition, first, second = arguments
    return chosen([condition], [_null_as(first, second), _null_as(second, first)])


def _null_as(value: Scalar, other: Scalar) -> Scalar:
    """NULL as a value of another's type, which is all that IF sees of it."""
    return constant(other.type.computed(is_nullable=True), None) if value.type.kind is Kind.NULL else value


def _ifnull(arguments: list[Scalar]) -> Scalar:
    return first_known(arguments)


def _nullif(arguments: list[Scalar]) -> Scalar:
    first, second = arguments
    if first.type.kind is Kind.NULL:
        raise not_supported("NULLIF of NULL")  # a server makes it an empty text here, and NULL there
    test = compared("=", first, second).run
    value = first.run
    kind = first.type.computed(is_nullable=True)
    return Scalar(kind, lambda row: None if test(row) else value(row), first.is_constant and second.is_constant)


def _isnull(arguments: list[Scalar]) -> Scalar:
    return is_null(arguments[0])


def _interval(arguments: list[Scalar]) -> Scalar:
    kind = kinds.integer(2, length=2, is_nullable=False)

    def count(one: Any, *limits: Any) -> int:
        if one is None:
            return -1
        return sum(1 for limit in limits if limit is None or one >= limit)

    return apply_any(kind, count, *(as_exact(_numbered(argument)) for argument in arguments))


_CHOICES: dict[str, tuple[int, int, Build]] = {
    "if": (3, 3, _if),
    "ifnull": (2, 2, _ifnull),
    "nvl": (2, 2, _ifnull),
    "coalesce": (1, 1000, first_known),
    "nullif": (2, 2, _nullif),
    "isnull": (1, 1, _isnull),
}

_FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    **_CHOICES,
    "concat": (1, 1000, _concat),
    "concat_ws": (2, 1000, _concat_ws),
    "upper": (1, 1, _same_length(_cased(True))),
    "ucase": (1, 1, _same_length(_cased(True))),
    "lower": (1, 1, _same_length(_cased(False))),
    "lcase": (1, 1, _same_length(_cased(False))),
    "trim": (1, 3, _trim),
    "ltrim": (1, 1, _same_length(lambda text: text.lstrip(" "))),
    "rtrim": (1, 1, _same_length(lambda text: text.rstrip(" "))),
    "reverse": (1, 1, _same_length(lambda text: text[::-1])),
    "left": (2, 2, _left),
    "right": (2, 2, _right),
    "substring": (2, 3, _substring),
    "substr": (2, 3, _substring),
    "mid": (3, 3, _substring),
    "replace": (3, 3, _replace),
    "lpad": (2, 3, _pad(True)),
    "rpad": (2, 3, _pad(False)),
    "repeat": (2, 2, _repeat),
    "length": (1, 1, _octets),
    "octet_length": (1, 1, _octets),
    "char_length": (1, 1, _counted(10, len)),
    "character_length": (1, 1, _counted(10, len)),
    "locate": (2, 3, _locate),
    "instr": (2, 2, lambda arguments: _locate([arguments[1], arguments[0]])),
    "find_in_set": (2, 2, _find_in_set),
    "substring_index": (3, 3, _substring_index),
    "hex": (1, 1, _hex),
    "md5": (1, 1, _digest(32, lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest())),
    "sha1": (1, 1, _digest(40, lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest())),
    "sha": (1, 1, _digest(40, lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest())),
    "crc32": (1, 1, _crc32),
    "field": (2, 1000, _field),
    "elt": (2, 1000, _elt),
    "ascii": (1, 1, _ascii),
    "abs": (1, 1, _abs),
    "floor": (1, 1, _whole(ROUND_FLOOR)),
    "ceil": (1, 1, _whole(ROUND_CEILING)),
    "ceiling": (1, 1, _whole(ROUND_CEILING)),
    "round": (1, 2, _round),
    "truncate": (2, 2, _truncate),
    "sign": (1, 1, _sign),
    "mod": (2, 2, _mod),
    "pow": (2, 2, _analytic(_power)),
    "power": (2, 2, _analytic(_power)),
    "sqrt": (1, 1, _analytic(lambda value: math.sqrt(value) if value >= 0 else None)),
    "exp": (1, 1, _analytic(_exponential)),
    "ln": (1, 1, _analytic(lambda value: math.log(value) if value > 0 else None)),
    "log10": (1, 1, _analytic(lambda value: math.log10(value) if value > 0 else None)),
    "log2": (1, 1, _analytic(lambda value: math.log2(value) if value > 0 else None)),
    "greatest": (2, 1000, _extreme(True)),
    "least": (2, 1000, _extreme(False)),
    "interval": (2, 1000, _interval),
    **moments.FUNCTIONS,
}
_OF_ANYTHING = frozenset(("isnull", "coalesce", "ifnull", "nvl", "if"))
