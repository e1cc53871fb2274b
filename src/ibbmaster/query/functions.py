"""Functions over columns, by name: what they give, and of which type."""

from collections.abc import Callable
from typing import Any

from ibbmaster.dialogue.refusal import RefusedError, not_supported
from ibbmaster.query import kinds, moments, number_functions, text_functions
from ibbmaster.query.kinds import Kind
from ibbmaster.query.operators import chosen, compared, first_known, is_null
from ibbmaster.query.scalars import Row, Scalar, as_integer, constant
from ibbmaster.query.text_functions import plain_text, text_type

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
    kind = text_type(others, max(other.type.length for other in others), is_nullable=True)
    runs = [plain_text(other).run for other in others]
    index = as_integer(number).run

    def pick(row: Row) -> Any:
        place = index(row)
        return runs[place - 1](row) if place is not None and 1 <= place <= len(runs) else None

    return Scalar(kind, pick, all(one.is_constant for one in arguments))


_CHOICES: dict[str, tuple[int, int, Build]] = {
    "if": (3, 3, _if),
    "ifnull": (2, 2, _ifnull),
    "nvl": (2, 2, _ifnull),
    "coalesce": (1, 1000, first_known),
    "nullif": (2, 2, _nullif),
    "isnull": (1, 1, _isnull),
    "field": (2, 1000, _field),
    "elt": (2, 1000, _elt),
}

_FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    **_CHOICES,
    **text_functions.FUNCTIONS,
    **number_functions.FUNCTIONS,
    **moments.FUNCTIONS,
}
_OF_ANYTHING = frozenset(("isnull", "coalesce", "ifnull", "nvl", "if"))
