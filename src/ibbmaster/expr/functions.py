"""Functions over columns, by name: what they give, and of which type."""

from collections.abc import Callable
from dataclasses import replace

from ibbmaster.expr import kinds, moments, number_functions, text_functions
from ibbmaster.expr.judged import expect_function
from ibbmaster.expr.kinds import Kind
from ibbmaster.expr.operators import chosen, compared, first_known, is_null
from ibbmaster.expr.scalars import Scalar, constant
from ibbmaster.wire.refusal import RefusedError, not_supported

Build = Callable[[list[Scalar]], Scalar]
#: Other names of functions.
ALIASES = {
    "adddate": "date_add",
    "ceiling": "ceil",
    "character_length": "char_length",
    "dayofmonth": "day",
    "lcase": "lower",
    "nvl": "ifnull",
    "octet_length": "length",
    "subdate": "date_sub",
    "substr": "substring",
    "ucase": "upper",
}


def call(name: str, written: str, arguments: list[Scalar], collation: str) -> Scalar:
    """A function of columns; `collation` is that of texts made of numbers.

    Raises:
        RefusedError: there is no such function here, or not with these arguments.
    """
    name = ALIASES.get(name, name)
    found = _FUNCTIONS.get(name)
    if found is None:
        raise not_supported(f"{written}() over columns of a table")
    least, most, build = found
    if not least <= len(arguments) <= most:
        raise RefusedError(1582, "42000", f"Incorrect parameter count in the call to native function '{written}'")
    if any(argument.type.kind is Kind.OPAQUE for argument in arguments) and name not in _OF_ANYTHING:
        raise not_supported(f"{written}() of such values")
    expect_function(name, arguments)
    return build([_named(argument, collation) for argument in arguments])


def is_function(name: str) -> bool:
    return ALIASES.get(name, name) in _FUNCTIONS


def _named(argument: Scalar, collation: str) -> Scalar:
    """Numbers that become texts have the collation of the session."""
    if argument.type.collation is not None or argument.type.kind in kinds.TEXTS:
        return argument
    return replace(argument, type=kinds.changed(argument.type, collation=collation, strength=5))


def _if(arguments: list[Scalar]) -> Scalar:
    condition, first, second = arguments
    if first.type.kind is second.type.kind is Kind.NULL:
        raise not_supported("IF of NULL and NULL")
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


_CHOICES: dict[str, tuple[int, int, Build]] = {
    "if": (3, 3, _if),
    "ifnull": (2, 2, _ifnull),
    "coalesce": (1, 1000, first_known),
    "nullif": (2, 2, _nullif),
    "isnull": (1, 1, _isnull),
}

_FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    **_CHOICES,
    **text_functions.FUNCTIONS,
    **number_functions.FUNCTIONS,
    **moments.FUNCTIONS,
}
_OF_ANYTHING = frozenset(("isnull", "coalesce", "ifnull", "if"))
