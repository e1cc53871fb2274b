"""CAST, BINARY and COLLATE: values as those of another type."""

from __future__ import annotations

import re
from decimal import Decimal

from ibbmaster.expr import functions, kinds, values
from ibbmaster.expr.kinds import Kind, Type
from ibbmaster.expr.scalars import Scalar, apply, as_exact, as_integer, as_moment, as_real, as_text, converted
from ibbmaster.expr.session_facts import QuerySession
from ibbmaster.sqltext.expression import Cast
from ibbmaster.versions import Difference
from ibbmaster.wire.refusal import not_supported
from ibbmaster.wire.response import FieldType


def cast_as(value: Scalar, cast: Cast, session: QuerySession) -> Scalar:
    """CAST, CONVERT. Raises RefusedError: MariaDB's result is not told here."""
    is_nullable = value.type.is_nullable
    if value.type.kind is Kind.OPAQUE:
        raise not_supported("CAST of such values")
    match cast.kind:
        case "integer":
            return _to_integer(value, is_unsigned=cast.is_unsigned)
        case "decimal":
            digits, scale = cast.length or 10, cast.scale or 0
            if digits > 65 or scale > 38 or scale > digits:
                raise not_supported("CAST to such a DECIMAL")
            limit = Decimal(10) ** (digits - scale)

            def fit(number: Decimal | int) -> Decimal:
                if -limit < number < limit and abs(found := values.rounded(number, scale)) < limit:
                    return found
                most = values.EXACT.subtract(limit, Decimal(1).scaleb(-scale))
                return most if number > 0 else values.EXACT.minus(most)

            return apply(kinds.decimal(digits, scale, is_nullable=is_nullable), fit, as_exact(value))
        case "double":
            if cast.length is not None:
                raise not_supported("CAST AS DOUBLE of so many digits")
            return apply(kinds.real(is_nullable=is_nullable, length=22), lambda number: number, as_real(value))
        case "char" | "varchar" | "using":
            return _to_text(value, cast, session)
        case "binary":
            if cast.length is not None:
                raise not_supported("CAST AS BINARY(n)")
            found = binary(value)
            length = value.type.length * (4 if value.type.kind in kinds.TEXTS else 1)
            return Scalar(kinds.changed(found.type, length=length), found.run, found.is_constant)
        case "date":
            return functions.call("date", "date", [value], session.collation)
        case "datetime":
            digits = cast.length or 0
            if value.type.kind is Kind.TEXT and not value.is_constant:
                raise not_supported("texts of a table as dates")
            if digits < (value.type.decimals if value.type.kind is Kind.DATETIME else 0):
                raise not_supported("CAST to fewer digits of a second")
            return apply(kinds.moment(digits), lambda one: values.fitted_moment(one, digits), as_moment(value))
    raise not_supported(f"CAST AS {cast.kind.upper()}")


def _to_integer(value: Scalar, *, is_unsigned: bool) -> Scalar:
    own = value.type
    if own.kind in kinds.MOMENTS and own.decimals:
        raise not_supported("CAST of a fraction of a second AS SIGNED")
    length = 21 if own.kind in kinds.REALS else own.length
    is_literal = value.is_constant and own.kind is Kind.INT and value.value is not None
    if is_unsigned and not own.is_unsigned and length > 1 and (not is_literal or value.value < 0):
        length = 20
    elif not is_unsigned and own.kind is Kind.TEXT:
        length = max(length, 2)
    kind = Type(
        kind=Kind.INT, length=length, digits=20 if is_unsigned else 19, is_unsigned=is_unsigned,
        field=FieldType.LONGLONG if length > 9 or own.kind in kinds.REALS else FieldType.LONG,
        is_nullable=own.is_nullable,
    )  # fmt: skip

    def fit(number: int) -> int:
        if is_unsigned:
            if own.kind in (Kind.DECIMAL, *kinds.REALS) and number < 0:
                if own.kind is Kind.DECIMAL:
                    return 0
                raise not_supported("a negative number AS UNSIGNED")
            if number >= 1 << 64:
                return (1 << 64) - 1
            return number % (1 << 64)
        if number >= 1 << 63:
            if own.kind in (Kind.INT, Kind.TEXT):
                return min(number, (1 << 64) - 1) - (1 << 64)
            return (1 << 63) - 1
        return max(number, -(1 << 63))

    number = value if own.kind is not Kind.TEXT else converted(value, values.leading_integer)
    return apply(kind, fit, number if own.kind is Kind.TEXT else as_integer(value))


def _to_text(value: Scalar, cast: Cast, session: QuerySession) -> Scalar:
    own = value.type
    charset = {None: "utf8mb4", "utf8": "utf8mb3"}.get(cast.charset, cast.charset)
    if charset not in ("utf8mb4", "utf8mb3") or own.kind in (Kind.BYTES, Kind.BIT):
        raise not_supported("CAST to texts of such a kind")
    length = own.length if cast.length is None else cast.length
    is_named = cast.charset is not None
    collation = f"{charset}_general_ci" if is_named else session.collation
    if Difference.UCA_1400_IS_DEFAULT.holds(session.version) and is_named:
        collation = f"{charset}_uca1400_ai_ci"
    known = (charset, "utf8mb3", "utf8mb4") if is_named else (collation.split("_")[0], "utf8mb3")
    if own.kind in kinds.TEXTS and (own.charset or "utf8mb4") not in known:
        raise not_supported("CAST of texts of another character set")
    size = cast.length

    def cut(text: str) -> str:
        if charset == "utf8mb3" and not text.isascii() and max(text) > "\uffff":
            raise not_supported("a letter that utf8mb3 does not have")
        return text if size is None else text[:size]

    kind = kinds.text(length, collation, strength=2, is_nullable=True)
    return apply(kinds.changed(kind, charset="utf8mb3" if charset == "utf8mb3" else None), cut, as_text(value))


def binary(value: Scalar) -> Scalar:
    """BINARY x"""
    if value.type.charset not in (None, "utf8mb4", "utf8mb3", "ascii"):
        raise not_supported("BINARY of such texts")
    kind = kinds.data(value.type.length * 4, is_nullable=value.type.is_nullable)
    return apply(
        kind, lambda text: text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"), as_text(value)
    )


def collated(found: Scalar, name: str) -> Scalar:
    """COLLATE"""
    name = re.sub("^utf8_", "utf8mb3_", name)
    collation = name if "_" in name and not name.startswith("uca1400") else f"utf8mb4_{name}"
    if found.type.kind not in kinds.TEXTS or (found.type.charset or "utf8mb4") != collation.split("_")[0]:
        raise not_supported(f"COLLATE {name} of such values")
    text = as_text(found)
    kind = found.type.computed(collation=collation, strength=0, kind=Kind.TEXT)
    return Scalar(kind, text.run, text.is_constant)
