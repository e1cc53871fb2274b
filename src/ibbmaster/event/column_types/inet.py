"""INET4 and INET6: addresses, the highest byte first."""

from ipaddress import IPv4Address, IPv6Address

from ibbmaster.event.column_types.content import FixedContent
from ibbmaster.event.column_types.kind import SqlType
from ibbmaster.event.column_types.net import INET4_SIZE, INET6_SIZE, inet4_text, inet6_text
from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.event.rows.value import Value
from ibbmaster.sqltext import literals


class _Address(FixedContent):
    def key_value(self, column: Column, sql: SqlType, value: literals.Value, zone_s: int) -> literals.Value:
        return value if isinstance(value, str) else None

    def kept(self, value: literals.Value) -> bytes:
        return value if isinstance(value, bytes) else self.written(str(value))


class Inet4(_Address):
    content = ValueKind.INET4
    octets, width = INET4_SIZE, 15
    zero = "'0.0.0.0'"

    def written(self, text: str) -> bytes:
        return IPv4Address(text).packed

    def kept(self, value: literals.Value) -> bytes:
        if isinstance(value, bytes):
            return value
        parts = [int(part) for part in str(value).split(".")]
        if len(parts) != INET4_SIZE:
            raise ValueError(f"{str(value)!r} is no address")
        return bytes(parts)

    def fitted(self, value: Value, column: Column) -> Value:
        parts = value.split(".") if isinstance(value, str) else []
        is_plain = all(part.isdecimal() and part == str(int(part)) and int(part) < 256 for part in parts)
        return value if len(parts) == INET4_SIZE and is_plain else None


class Inet6(_Address):
    content = ValueKind.INET6
    octets, width = INET6_SIZE, 39
    zero = "'::'"

    def written(self, text: str) -> bytes:
        return IPv6Address(text).packed

    def fitted(self, value: Value, column: Column) -> Value:
        return value if value == "::" else None


KINDS = (Inet4("inet4", inet4_text), Inet6("inet6", inet6_text))
