"""MONEY: cents in eight bytes, which are shown as decimal text. No server has such a type."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ibbmaster.replication.event.column_types import kind as kinds
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.replication.event.rows.value import Value
from ibbmaster.sqltext import literals


class Money(kinds.ColumnKind):
    content = ValueKind.MONEY
    size = 8
    zero = "0.00"
    is_shown_as_text = True

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        return lambda data: f"{Decimal(int.from_bytes(data, 'little', signed=True)).scaleb(-2):.2f}"

    def declare(self, column: Column, declared: kinds.DeclaredType) -> dict[str, Any]:
        declared.expect(column, column.type == ColumnType.LONGLONG)
        return {"kind": self.content}

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType:
        return kinds.WrittenType(ColumnType.LONGLONG, b"", _cents, is_unsigned=False)

    def stored(self, column: Column, sql: kinds.SqlType, value: literals.Value) -> bytes:
        return _cents(value)

    def fitted(self, value: Value, column: Column) -> Value:
        return None if (number := kinds.number_of(value)) is None else f"{number:.2f}"

    def result(self, sql: kinds.SqlType) -> kinds.ResultType:
        return kinds.ResultType(ColumnType.VAR_STRING, 21, is_text=True)


def _cents(value: object) -> bytes:
    return int(Decimal(str(value)).scaleb(2)).to_bytes(8, "little", signed=True)


KINDS = (Money("money", ColumnType.LONGLONG),)
