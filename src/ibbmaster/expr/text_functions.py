"""Functions of texts: what they give, and of which type."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from ibbmaster.expr import kinds
from ibbmaster.expr.kinds import Kind, Type, joint_collation
from ibbmaster.expr.scalars import Scalar, apply, apply_any, as_integer, as_number, as_text, constant
from ibbmaster.expr.weights import letters_of
from ibbmaster.wire.refusal import RefusedError, not_supported
from ibbmaster.wire.response import FieldType

Build = Callable[[list[Scalar]], Scalar]


VALUE_MAX = 16 << 20  # letters that a function makes at most


def plain_text(argument: Scalar) -> Scalar:
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


def text_type(arguments: list[Scalar], length: int, *, is_nullable: bool | None = None, **changes: Any) -> Type:
    if all(argument.type.kind is Kind.NULL for argument in arguments):
        return kinds.data(0)
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
    kind = text_type(arguments, sum(map(_length, arguments)), is_nullable=True)
    return apply(kind, lambda *texts: _bounded("".join(texts)), *map(plain_text, arguments))


def _concat_ws(arguments: list[Scalar]) -> Scalar:
    separator, *others = arguments
    length = sum(map(_length, others)) + _length(separator) * max(len(others) - 1, 0)
    kind = text_type(arguments, length, is_nullable=True)

    def join(between: str | None, *texts: str | None) -> str | None:
        return None if between is None else _bounded(between.join(text for text in texts if text is not None))

    return apply_any(kind, join, *map(plain_text, arguments))


def _same_length(function: Callable[..., str]) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        first = arguments[0]
        kind = text_type(arguments[:1], _length(first), is_nullable=True, is_blob=first.type.is_blob)
        return apply(kind, function, plain_text(first))

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
    kind = text_type(arguments[:1], _length(value), is_nullable=True, is_blob=value.type.is_blob)
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

    return apply(kind, strip, plain_text(value), what)


def _left(arguments: list[Scalar]) -> Scalar:
    value, count = arguments
    size = min(_length(value), max(_constant_int(count, _length(value)), 0))
    kind = text_type(arguments[:1], size, is_nullable=True)
    return apply(kind, lambda text, size: text[: max(size, 0)], plain_text(value), as_integer(count))


def _right(arguments: list[Scalar]) -> Scalar:
    value, count = arguments
    size = min(_length(value), max(_constant_int(count, _length(value)), 0))
    kind = text_type(arguments[:1], size, is_nullable=True)
    return apply(kind, lambda text, size: text[-size:] if size > 0 else "", plain_text(value), as_integer(count))


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
    kind = text_type(arguments[:1], length, is_nullable=True)

    def cut(text: str, start: int, size: int = VALUE_MAX) -> str:
        if size <= 0 or start == 0:
            return ""
        if start < 0:
            start += len(text) + 1
            if start < 1:
                return ""
        return text[start - 1 : start - 1 + size]

    return apply(kind, cut, plain_text(value), as_integer(start), *map(as_integer, more))


def _replace(arguments: list[Scalar]) -> Scalar:
    value, old, new = arguments
    length = _length(value)
    if _length(new) > _length(old):
        length *= _length(new) // max(_length(old), 1) if _length(old) else 1
    kind = text_type(arguments, length, is_nullable=True)

    def replace(text: str, old: str, new: str) -> str:
        return _bounded(text.replace(old, new)) if old else text

    return apply(kind, replace, *map(plain_text, arguments))


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
        kinds.changed(kind, field=FieldType.LONG), find, plain_text(wanted), plain_text(value), *map(as_integer, more)
    )


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
    return apply(kind, find, *map(plain_text, arguments))


def _substring_index(arguments: list[Scalar]) -> Scalar:
    value, mark, count = arguments
    kind = text_type(arguments[:1], _length(value), is_nullable=True)

    def cut(text: str, mark: str, count: int) -> str:
        if not mark or not count:
            return ""
        parts = text.split(mark)
        return mark.join(parts[:count] if count > 0 else parts[count:])

    return apply(kind, cut, plain_text(value), plain_text(mark), as_integer(count))


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


def _crc32(arguments: list[Scalar]) -> Scalar:
    if arguments[0].type.charset not in (None, "utf8mb4", "utf8mb3", "ascii"):
        raise not_supported("CRC32 of such texts")
    kind = kinds.integer(10, length=10, is_unsigned=True)

    def digest(text: str | bytes) -> int:
        return zlib.crc32(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))

    return apply(kinds.changed(kind, field=FieldType.LONG), digest, as_text(arguments[0]))


FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    "concat": (1, 1000, _concat),
    "concat_ws": (2, 1000, _concat_ws),
    "upper": (1, 1, _same_length(_cased(True))),
    "lower": (1, 1, _same_length(_cased(False))),
    "trim": (1, 3, _trim),
    "ltrim": (1, 1, _same_length(lambda text: text.lstrip(" "))),
    "rtrim": (1, 1, _same_length(lambda text: text.rstrip(" "))),
    "left": (2, 2, _left),
    "right": (2, 2, _right),
    "substring": (2, 3, _substring),
    "mid": (3, 3, _substring),
    "replace": (3, 3, _replace),
    "length": (1, 1, _octets),
    "char_length": (1, 1, _counted(10, len)),
    "locate": (2, 3, _locate),
    "instr": (2, 2, lambda arguments: _locate([arguments[1], arguments[0]])),
    "find_in_set": (2, 2, _find_in_set),
    "substring_index": (3, 3, _substring_index),
    "hex": (1, 1, _hex),
    "crc32": (1, 1, _crc32),
}
