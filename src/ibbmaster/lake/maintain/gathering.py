"""The changes of tables that are asked for one after the other, read in as few scans of a log as memory allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ibbmaster.arrow.many_tables import plan_tables, read_tables
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.shape import TableFields, arrow_schema
from ibbmaster.errors import IbbMasterError
from ibbmaster.schema.history import SchemaHistory

if TYPE_CHECKING:
    import pyarrow as pa

BYTES_MAX = 256 << 20  # in memory: the table that is returned, and those kept for later


class TableRequest(NamedTuple):
    """The changes of a table, as `database.table`, that come after a GTID position, or all, into some columns."""

    table: str
    fields: TableFields
    starting_gtid: str | None


class SharedScan:
    """Reads together what is wanted of a log, where it begins at the same position; `known` is as for `plan_tables`."""

    def __init__(
        self, options: ReadOptions, wanted: Sequence[TableRequest], known: SchemaHistory | None = None
    ) -> None:
        self._options = options
        self._known = known
        self._wanted = list(wanted)  # in the order in which it will be asked for
        self._read: dict[TableRequest, pa.Table] = {}

    def take(self, one: TableRequest) -> pa.Table:
        """What is wanted, which is not kept; what was not known before is read by itself.

        Raises:
            EventError, FormatError, ClassicFormatError, PositionError, StoreError: as `read_tables`.
        """
        if one in self._read:
            return self._read.pop(one)
        others = [other for other in self._wanted if other.starting_gtid == one.starting_gtid and other != one]
        if one in self._wanted and others:
            try:
                self._read |= self._scanned([one, *others])
            except IbbMasterError:  # it may be that of a table alone: each finds its own
                self._wanted.clear()
            self._wanted = [other for other in self._wanted if other not in self._read]
        return self._read.pop(one) if one in self._read else self._scanned([one])[one]

    def _scanned(self, wanted: list[TableRequest]) -> dict[TableRequest, pa.Table]:
        """The first of these, and of the others as many as there is memory for, in one scan."""
        import pyarrow as pa

        tables = {one.table: one for one in wanted}
        batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in tables}
        sizes = dict.fromkeys(tables, 0)
        left_out: set[str] = set()
        options = replace(self._options, starting_gtid=wanted[0].starting_gtid)
        for task in plan_tables(options, {name: one.fields for name, one in tables.items()}, known=self._known):
            for name, batch in read_tables(task, left_out):
                batches[name].append(batch)
                sizes[name] += batch.nbytes
                while sum(sizes.values()) > BYTES_MAX and len(sizes) > 1:
                    last, _ = sizes.popitem()
                    left_out.add(last)
                    del batches[last]
        return {
            tables[name]: pa.Table.from_batches(found, schema=arrow_schema(tables[name].fields))
            for name, found in batches.items()
        }
