"""Values of results as the bytes that a client gets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ibbmaster.event.rows.charset import encoded
from ibbmaster.expr import values
from ibbmaster.expr.kinds import FLOATING, REALS, Kind, Type
from ibbmaster.expr.session_facts import QuerySession
from ibbmaster.versions import Difference
from ibbmaster.wire.refusal import not_supported

FIXED_MAX = 1e17  # of floating numbers that are shown with a fixed point


def shower(kind: Type, session: QuerySession) -> Callable[[Any], bytes] | None:
    """What makes the text of a value as SQLite has it."""
    load = values.loading(kind)
    charset = session.charset
    target = charset if charset not in (None, "binary") else kind.charset or "utf8mb4"
    if kind.kind is Kind.NULL:
        return None
    if kind.kind is Kind.OPAQUE:
        return lambda value: value if isinstance(value, bytes) else value.encode()
    has_negative_zero = Difference.SHOWS_NEGATIVE_ZERO.holds(session.version)
    if kind.kind is Kind.DOUBLE and kind.column is None and not has_negative_zero:
        load = lambda value: value + 0.0  # noqa: E731 - as the other ways to load
    elif kind.kind is Kind.DOUBLE and kind.column is None:
        load = _without_negative_zero
    if kind.kind is Kind.DOUBLE and kind.column is None and kind.decimals < FLOATING and not session.is_binary:
        load = _within_length(load)
    if kind.kind is Kind.DATETIME:
        decimals = kind.decimals
        return lambda value: values.fitted_moment(value, decimals).encode()
    text = values.text_function(kind)
    if session.is_binary and kind.kind in REALS:
        text = repr

    def show(value: Any) -> bytes:
        shown = text(value if load is None else load(value))
        if isinstance(shown, bytes):
            return shown
        return shown.encode() if target == "utf8mb4" and shown.isascii() else encoded(shown, str(target))

    return show


def _without_negative_zero(value: float) -> float:
    """Raises RefusedError: it is -0, which a server shows as it is or as 0, by how it has come by it."""
    if not value and math.copysign(1, value) < 0:
        raise not_supported("the number -0")
    return value


def _within_length(load: values.Convert | None) -> values.Convert:
    """A number with a fixed point: a server cuts the digits of a larger one if it has kept it in a table."""

    def check(value: float) -> float:
        if abs(value) >= FIXED_MAX:
            raise not_supported(f"numbers with a fixed point from {FIXED_MAX:g} on")
        return value if load is None else float(load(value))

    return check
