"""The SQL statements that replicas, CDC clients and operators send to a primary, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, NULL, or a keyword used as a value, as in SET x = DEFAULT."""

    value: int | float | str | None


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
class Call:
    """A function with its arguments; the name is in lower case."""

    name: str
    arguments: tuple[Expression, ...]


Expression = Literal | UserVariable | SystemVariable | Call


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An expression, and the name its column gets: the text as written, or an alias."""

    expression: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT without a table; `table` is set where one is named."""

    items: tuple[SelectItem, ...]
    limit: int | None = None
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """One target of SET."""

    target: UserVariable | SystemVariable
    value: Expression


@dataclass(frozen=True, slots=True)
class Set:
    """SET with its assignments; SET NAMES and the like have none."""

    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW: what, in upper case without GLOBAL or FULL, and how the rows are chosen."""

    what: str
    pattern: str | None = None  # LIKE
    names: tuple[str, ...] | None = None  # WHERE Variable_name = or IN
    file_name: str | None = None
    offset: int | None = None
    limit: tuple[int, int] | None = None  # rows to leave out, rows to show


@dataclass(frozen=True, slots=True)
class KillStatement:
    """KILL [CONNECTION|QUERY] n."""

    connection_id: int
    query_only: bool


@dataclass(frozen=True, slots=True)
class Use:
    """USE name."""

    database: str


@dataclass(frozen=True, slots=True)
class Transaction:
    """BEGIN, COMMIT, ROLLBACK, START TRANSACTION: nothing to do here."""


@dataclass(frozen=True, slots=True)
class Administration:
    """PURGE, FLUSH, RESET, CHANGE MASTER and so on: understood, and refused."""

    verb: str


Statement = Select | Set | Show | KillStatement | Use | Transaction | Administration
