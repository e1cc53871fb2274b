"""Expressions as a tree: operators, calls, variables, literals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ibbmaster.sqltext.literals import Value


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, bytes (as 0x41 is written) or NULL."""

    value: Value
    charset: str | None = None  # what _utf8mb4'…' names
    written: str = field(default="", compare=False)  # of numbers and bytes, how they were


@dataclass(frozen=True, slots=True)
class Default:
    """The keyword DEFAULT as the value of a variable."""


@dataclass(frozen=True, slots=True)
class UserVariable:
    """@name; the name is in lower case."""

    name: str


@dataclass(frozen=True, slots=True)
class SystemVariable:
    """@@name or @@scope.name, or a bare name in SET; `scope` is 'global', 'session' or ''."""

    name: str
    scope: str
    written: str  # the name as the client wrote it


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column, perhaps with its table and database before it."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Star:
    """* or table.*"""

    table: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; the name is in lower case. `is_read` is False where the arguments are none that
    the parser knows: it is a call all the same."""

    name: str
    written: str
    arguments: tuple[Expression, ...] = ()
    database: str | None = None
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator, in upper case, and what it is applied to; CASE has value, WHEN, THEN, …, ELSE."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST, CONVERT; `kind` is the type's first word in lower case, or `using`."""

    value: Expression
    kind: str
    length: int | None = None
    scale: int | None = None
    is_unsigned: bool = False
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """COUNT(*) has no arguments."""

    name: str
    arguments: tuple[Expression, ...]
    is_distinct: bool = False


Expression: TypeAlias = (
    Literal | Default | UserVariable | SystemVariable | ColumnName | Star | Call | Operation | Cast | Aggregate
)
