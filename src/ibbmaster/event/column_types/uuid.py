"""UUID: sixteen bytes, in row events as it reads."""

import re

from ibbmaster.event.column_types.content import FixedContent
from ibbmaster.event.column_types.net import UUID_SIZE, uuid_bytes, uuid_text
from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.event.rows.value import Value
from ibbmaster.sqltext import literals

_TEXT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Uuid(FixedContent):
    content = ValueKind.UUID
    octets, width = UUID_SIZE, 36
    is_ordered = False
    zero = "'00000000-0000-0000-0000-000000000000'"

    def written(self, text: str) -> bytes:
        return uuid_bytes(text)

    def kept(self, value: literals.Value) -> bytes:
        data = value if isinstance(value, bytes) else bytes.fromhex(str(value).replace("-", ""))
        if len(data) != UUID_SIZE:
            raise ValueError(f"{value!r} is no UUID")
        if data[8] & 0x80 and 0 < data[6] < 0x60:  # versions 1 to 5 are stored in the order of time
            return data[10:16] + data[8:10] + data[6:8] + data[4:6] + data[0:4]
        return data

    def fitted(self, value: Value, column: Column) -> Value:
        return value.lower() if isinstance(value, str) and _TEXT.fullmatch(value.lower()) else None


KINDS = (Uuid("uuid", uuid_text),)
