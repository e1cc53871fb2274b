"""Expressions that are asked for outside of queries: the values that SET gives, the rows that SHOW … WHERE chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.expr import values
from ibbmaster.expr.compiling import Compiler
from ibbmaster.expr.emitting import NO_SQLITE
from ibbmaster.expr.kinds import MOMENTS, Kind
from ibbmaster.expr.scalars import Scalar, Slot, as_text, as_truth
from ibbmaster.expr.session_functions import QuerySession
from ibbmaster.expr.walking import mapped
from ibbmaster.select.listed import listed_type, storing
from ibbmaster.sqltext.expression import ColumnName, Expression, Literal, Nested
from ibbmaster.sqltext.literals import Value
from ibbmaster.wire.refusal import unknown_column
from ibbmaster.wire.response import COLLATION_DEFAULT, ColumnDefinition


def session_of(
    evaluator: Evaluator,
    version: int,
    charset: str | None = "utf8mb4",
    collation_id: int = COLLATION_DEFAULT,
    *,
    is_binary: bool = False,
) -> QuerySession:
    """What a session has set now; `charset` and `collation_id` are those that texts of results get."""
    settings = evaluator.settings
    digits = settings.value("div_precision_increment")
    return QuerySession(
        evaluator=evaluator,
        database=evaluator.who.database,
        collation=settings.collation,
        charset=charset,
        collation_id=collation_id,
        time_zone_s=settings.time_zone_s,
        division_digits=digits if isinstance(digits, int) else 4,
        version=version,
        is_binary=is_binary,
    )


def constant_value(expression: Expression, evaluator: Evaluator, version: int) -> Value:
    """The value of an expression that names no column.

    Raises RefusedError: it is not computed here as MariaDB does it.
    """
    scalar, _ = _compiled(expression, evaluator, version, {})
    if scalar.type.kind in MOMENTS or scalar.type.kind is Kind.TEXT:
        scalar = as_text(scalar)
    value: Value = scalar.value
    return value


def row_condition(
    expression: Expression, columns: Sequence[ColumnDefinition], evaluator: Evaluator, version: int
) -> Callable[[Sequence[Value]], bool | None]:
    """Whether a row meets a condition that names its columns; None is NULL. Raises RefusedError: it names what does not
    exist, or is not computed here as MariaDB does it."""
    types = [listed_type(column, folds=True) for column in columns]
    known = {column.name.lower(): Slot(str(no), types[no]) for no, column in enumerate(columns)}
    scalar, slots = _compiled(expression, evaluator, version, known)
    truth = as_truth(scalar).run
    wanted = [(int(slot.sql), storing(slot.type), values.loading(slot.type)) for slot in slots]

    def holds(row: Sequence[Value]) -> bool | None:
        given = []
        for place, store, load in wanted:
            value = None if row[place] is None else store(row[place])
            given.append(value if value is None or load is None else load(value))
        found: bool | None = truth(given)
        return found

    return holds


def _compiled(
    expression: Expression, evaluator: Evaluator, version: int, known: dict[str, Slot]
) -> tuple[Scalar, list[Slot]]:
    def known_part(node: Any) -> Any:
        match node:
            case ColumnName(parts=parts):
                found = known.get(parts[-1].lower())
                if found is None:
                    raise unknown_column(".".join(parts), "WHERE" if known else "SELECT")
                return found
            case Nested(query=query):
                value = evaluator.subquery(query)
                return Literal(value, written=str(value))
        return None

    compiler = Compiler(session_of(evaluator, version), NO_SQLITE)
    return compiler.scalar(mapped(expression, known_part)), compiler.slots
