"""One table's changes as CSV, with the columns of its last shape: docs/printing.md."""

import re
from collections.abc import Iterator

from ibbmaster.api.group import Group, Row, UndecodableValue
from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.replication.event.rows.column import TableSchema
from ibbmaster.sizes import time_text
from ibbmaster.tables.arrow.cell import text_of
from ibbmaster.tables.arrow.shape import field_name
from .content import GroupContent, Printer, RowItem

OWN_COLUMNS = ("_gtid", "_commit_ts", "_change_type", "_change_no", "_absent")
QUOTED = re.compile(r'[",\r\n]|^\s|\s$|^$')
TABLES_SHOWN = 8


class CsvLines(Printer):
    def __init__(self, table: str, *, keeps_bytes: bool = False) -> None:
        """`table` is `database.table`, as in the log; `keeps_bytes` as in `ChangeLines`."""
        self._table = table
        self._keeps_bytes = keeps_bytes
        self._columns: list[str] = []
        self._others: dict[str, None] = {}

    def end(self) -> bytes:
        """Raises ConfigurationError: no row of the table came."""
        if not self._columns:
            names = sorted(self._others)
            more = f" and {len(names) - TABLES_SHOWN} more" if len(names) > TABLES_SHOWN else ""
            there = f"there are {', '.join(names[:TABLES_SHOWN])}{more}" if names else "there are no rows"
            raise ConfigurationError(f"no row of table {self._table} is in this log: {there}")
        return b""

    def group(self, group: Group) -> Iterator[bytes]:
        """A line for each image, in UTF-8; first the names. Raises EventError."""
        content = GroupContent(group, keeps_bytes=self._keeps_bytes)
        gtid, time = str(content.head.gtid), time_text(content.timestamp)
        number = 0
        for item in content.items():
            if not isinstance(item, RowItem) or item.table.name != self._table:
                if isinstance(item, RowItem):
                    self._others[item.table.name] = None
                continue
            yield self._names(item.table)
            kind = item.change.kind
            for image, name in ((item.change.before, "update_preimage"), (item.change.after, "update_postimage")):
                if image is not None:
                    yield line_of([gtid, time, name if kind == "update" else kind, str(number), *self._cells(image)])
                    number += 1

    def _names(self, table: TableSchema) -> bytes:
        """The first line, once. Raises EventError: columns have no names, or others than before."""
        columns = [column.name for column in table.columns]
        if columns == self._columns:
            return b""
        if self._columns or not table.has_names:
            problem = "its columns become others" if self._columns else "its columns have no names"
            raise EventError(f"{self._table}: {problem} here; declare them with --schema, or print JSON")
        self._columns = columns
        return line_of([*OWN_COLUMNS, *map(field_name, columns)])

    def _cells(self, image: Row) -> Iterator[str | None]:
        yield " ".join(name for name in self._columns if name not in image) or None
        for name in self._columns:
            value = image.get(name)
            yield text_of(value.data if isinstance(value, UndecodableValue) else value)


def line_of(cells: list[str | None]) -> bytes:
    """NULL is nothing, an empty text two quotes."""
    texts = ("" if cell is None else _quoted(cell) for cell in cells)
    return (",".join(texts) + "\n").encode("utf-8", "surrogateescape")


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text
