"""The operations over families of values that are answered: tests/interop/lanes/select_grid.py asks real servers a grid
of them, and leaves out of `judged.tsv` each pair of which one answer of ours was another."""

import functools
import re
from collections.abc import Sequence

from ibbmaster.facts import rows_of
from ibbmaster.replication.wire.refusal import not_supported
from . import values
from .kinds import FLOATING, Family
from .scalars import Scalar

#: Arguments that any function takes behind its first one.
PARAMETERS = frozenset(("'int'", "'decimal'", "'text'", "'number text'", "'NULL'"))
_ORDERS = frozenset(("<", "<=", ">", ">="))
_TURNED = frozenset(("<", "=", "!=", "<=>"))
_LITERALS = (
    ("number text", re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)),
    ("date text", re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)),
    ("moment text", re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII)),
    ("clock text", re.compile(r"-?\d\d\d?:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII)),
)


def family(scalar: Scalar) -> str:
    """The name of values that servers treat alike: in quotes those in the statement, in brackets computed ones."""
    kind = scalar.type
    name = kind.kind.value.lower()
    match kind.kind:
        case Family.INT if kind.sql is not None and kind.sql.is_zerofill:
            name = "zerofill"
        case Family.INT if kind.digits > values.EXACT_DIGITS:
            name = "ubigint" if kind.is_unsigned else "bigint"
        case Family.DATETIME if kind.field is not None and kind.field.name.startswith("TIMESTAMP"):
            name = "timestamp"
        case Family.FLOAT if kind.decimals < FLOATING:
            name = "float(m,d)"
        case Family.OPAQUE if kind.sql is not None:
            name = kind.sql.word
        case Family.TEXT if (kind.collation or "").endswith("_bin"):
            name = "bin"
    if scalar.literal:
        return f"'{_literal(scalar)}'"
    return f"({name})" if kind.column is None else name


def _literal(scalar: Scalar) -> str:
    if scalar.literal != "text":
        return scalar.literal  # also @int and its like, of variables
    return next((name for name, form in _LITERALS if form.fullmatch(scalar.value)), "text")


def expect_judged(operator: str, one: Scalar, *others: Scalar) -> None:
    """Raises RefusedError: a comparison of such values was not judged, or a server answers otherwise."""
    operator = "<" if operator in _ORDERS else operator
    for other in others:
        pair = (other, one) if one.is_constant and not other.is_constant and operator in _TURNED else (one, other)
        left, right = map(family, pair)
        if f"{left} beside {right}" not in judged().get(operator, ()):
            raise not_supported(f"{left} {operator} {right}")


def expect_function(name: str, arguments: Sequence[Scalar]) -> None:
    """As `expect_judged`, of a function, or an operator that takes all operands alike."""
    for number, argument in enumerate(arguments):
        found = family(argument)
        if (not number or found not in PARAMETERS) and found not in judged().get(name, ()):
            raise not_supported(f"{name.upper()} of {found}")


@functools.cache
def judged() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for operation, left, families in rows_of("ibbmaster.rows.expr", "judged"):
        beside = f"{left} beside " if left else ""
        found.setdefault(operation, set()).update(beside + one for one in families.split(", "))
    return found
