"""The operators of SQL: precedence, name and printed form."""

import functools
from collections.abc import Mapping
from typing import NamedTuple

from ibbmaster.facts import rows_of
from .sql_mode import ORACLE, PIPES_AS_CONCAT


class Operator(NamedTuple):
    """A larger `binds` means a tighter one."""

    binds: int
    name: str
    printed: str


_BINARY: Mapping[str, Operator] = {
    written: Operator(int(binds), name, printed) for written, binds, name, printed in rows_of(__package__, "operators")
}
BY_NAME: Mapping[str, Operator] = {operator.name: operator for operator in _BINARY.values()}
NOT = 4
PREDICATE = BY_NAME["="].binds  # IS, IN, BETWEEN, LIKE, REGEXP, and comparisons
SUM = BY_NAME["+"].binds
CONCAT = 13
UNARY = 14  # also COLLATE, BINARY, and NOT where sql_mode has it bind so
PRIMARY = 20
JOINED = "||"  # the name of || where it joins texts
JOINED_ORACLE = "|| ORACLE"  # where NULL is an empty text


def binary_operators(sql_mode: int) -> Mapping[str, Operator]:
    """The binary operators, by sign or word in capitals. Source: MariaDB 11.8, sql_yacc.yy, precedence of operators."""
    return _binary_operators(sql_mode & (PIPES_AS_CONCAT | ORACLE))


@functools.cache
def _binary_operators(sql_mode: int) -> Mapping[str, Operator]:
    if not sql_mode & PIPES_AS_CONCAT:
        return _BINARY
    if not sql_mode & ORACLE:
        return {**_BINARY, "||": Operator(CONCAT, JOINED, "||")}
    found = {**_BINARY, "||": Operator(SUM, JOINED_ORACLE, "||")}
    del found["%"]
    return found
