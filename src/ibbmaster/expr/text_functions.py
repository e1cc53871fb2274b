"""Functions of texts: what they give, and of which type."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from ibbmaster.expr import kinds
from ibbmaster.expr.kinds import Kind, Type, joint_collation
from ibbmaster.expr.scalars import Scalar, apply, as_integer, as_text
from ibbmaster.expr.weights import letters_of
from ibbmaster.wire.refusal import RefusedError, not_supported
from ibbmaster.wire.response import FieldType

Build = Callable[[list[Scalar]], Scalar]
VALUE_MAX = 16 << 20  # letters that a function makes at most


def _plain_text(argument: Scalar) -> Scalar:
    """A text. Raises RefusedError: bytes, whose functions count other things."""
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


def _text_type(arguments: list[Scalar], length: int, *, is_blob: bool = False) -> Type:
    if all(argument.type.kind is Kind.NULL for argument in arguments):
        return kinds.data(0)
    collation, strength = _joint(arguments)
    charset = next((one.type.charset for one in arguments if one.type.charset is not None), None)
    if charset not in (None, "utf8mb4", "latin1", "ascii", "utf8mb3"):
        raise not_supported(f"functions of texts of {charset}")
    return Type(kind=Kind.TEXT, length=length, collation=collation, strength=strength, charset=charset, is_blob=is_blob)


def _length(argument: Scalar) -> int:
    return argument.type.length


def _bounded(text: str) -> str:
    if len(text) > VALUE_MAX:
        raise RefusedError(1041, "HY000", "Out of memory: a value is too long")
    return text


def _concat(arguments: list[Scalar]) -> Scalar:
    kind = _text_type(arguments, sum(map(_length, arguments)))
    return apply(kind, lambda *texts: _bounded("".join(texts)), *map(_plain_text, arguments))


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

    def build(arguments: list[Scalar]) -> Scalar:
        first = arguments[0]
        kind = _text_type(arguments[:1], _length(first), is_blob=first.type.is_blob)
        return apply(kind, convert, _plain_text(first))

    return build


def _left(arguments: list[Scalar]) -> Scalar:
    value, count = arguments
    size = min(_length(value), max(_constant_int(count, _length(value)), 0))
    kind = _text_type(arguments[:1], size)
    return apply(kind, lambda text, size: text[: max(size, 0)], _plain_text(value), as_integer(count))


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
    kind = _text_type(arguments[:1], length)

    def cut(text: str, start: int, size: int = VALUE_MAX) -> str:
        if size <= 0 or start == 0:
            return ""
        if start < 0:
            start += len(text) + 1
            if start < 1:
                return ""
        return text[start - 1 : start - 1 + size]

    return apply(kind, cut, _plain_text(value), as_integer(start), *map(as_integer, more))


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
        kinds.changed(kind, field=FieldType.LONG), find, _plain_text(wanted), _plain_text(value), *map(as_integer, more)
    )


def _substring_index(arguments: list[Scalar]) -> Scalar:
    value, mark, count = arguments
    kind = _text_type(arguments[:1], _length(value))

    def cut(text: str, mark: str, count: int) -> str:
        if not mark or not count:
            return ""
        parts = text.split(mark)
        return mark.join(parts[:count] if count > 0 else parts[count:])

    return apply(kind, cut, _plain_text(value), _plain_text(mark), as_integer(count))


def _crc32(arguments: list[Scalar]) -> Scalar:
    if arguments[0].type.charset not in (None, "utf8mb4", "utf8mb3", "ascii"):
        raise not_supported("CRC32 of such texts")
    kind = kinds.integer(10, length=10, is_unsigned=True)

    def digest(text: str | bytes) -> int:
        return zlib.crc32(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))

    return apply(kinds.changed(kind, field=FieldType.LONG), digest, as_text(arguments[0]))


FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    "concat": (1, 1000, _concat),
    "upper": (1, 1, _cased(is_upper=True)),
    "lower": (1, 1, _cased(is_upper=False)),
    "left": (2, 2, _left),
    "substring": (2, 3, _substring),
    "locate": (2, 3, _locate),
    "substring_index": (3, 3, _substring_index),
    "crc32": (1, 1, _crc32),
}
