"""The tables that a log answers with: changes, snapshots and histories of rows, as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibbmaster.errors import ConfigurationError
from ibbmaster.extras import needed_for
from ibbmaster.logs.log.interface import LogFile
from ibbmaster.logs.stages.options import StageOptions
from ibbmaster.logs.stages.span import LogSpan
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.tables.arrow.read_options import parse_schema_mode
from .log_files import LogFiles, stored_bytes
from .seeking import Position, as_position

if TYPE_CHECKING:
    import pyarrow as pa

    from ibbmaster.logs.log.interface import LogEngine
    from ibbmaster.replication.event.rows.declared import Declaration
    from ibbmaster.schema.name_case import NameCase
    from ibbmaster.tables.arrow.read_options import ReadOptions

OnDoubt = Callable[[str], object]


class TabularLog:
    """The part of a `Log` that makes tables; each call loads what it needs."""

    path: Path
    stored: LogFiles  # the answers of its kind of files
    name_case: NameCase | None  # how its server compares names of tables; None: what the log says
    row_event_max: int | None  # bytes of one, put together and unpacked; None: what a log can have
    stages: tuple[StageOptions, ...] = ()  # that it has gone through, if it is a part of the log of its files
    spans: tuple[LogSpan | None, ...] = ()  # which part, by each of them
    _schema: Mapping[str, Declaration]
    _engine: LogEngine

    @property
    def files(self) -> list[LogFile]:
        """Every file with name and size in bytes, the oldest first."""
        return [file for file in self._engine.files() if file.size]

    def to_arrow(
        self,
        *,
        table: str | None = None,
        after: Position | None = None,
        until: Position | None = None,
        columns: Sequence[str] = (),
        schema_mode: str = "latest",
        complete_keys: bool = False,
    ) -> pa.Table:
        """Every change of every row, or with `table` ("database.table") those of one, with columns of its own types.

        The columns are those of the DataFrames in docs/spark-reference.md; `columns` takes some of them. `schema_mode`
        chooses the columns of a table that the log alters: "latest", "asWritten" or "at:GTID". `complete_keys` fills
        columns that an image after an update leaves out from the one before it, as the key under
        binlog_row_image=MINIMAL.
        `after` and `until` are as in `groups`. The files of a log that another process writes may be a second old. The
        result is in memory as a whole.

        Raises:
            ConfigurationError: there is no such table or column, or its columns have no names; or pyarrow is missing.
            DamageError: groups are in the redo log of a writer that is gone, and not in the files.
            EventError: a value cannot be read.
            PositionError, FormatError, ClassicFormatError, StoreError: as `groups`.
        """
        with needed_for("to_arrow"):
            import numpy  # noqa: F401  # wanted by what is imported later
            import pyarrow as pa

        from ibbmaster.tables.arrow.plan import find_fields, plan_tasks
        from ibbmaster.tables.arrow.reading import read_task
        from ibbmaster.tables.arrow.shape import arrow_schema

        named = () if table is None else (table,)
        options = self._changes_options("to_arrow", named, after, until, schema_mode, complete_keys, columns)
        options = replace(options, table=next(iter(options.tables), None))
        fields = find_fields(options)
        batches = [batch for task in plan_tasks(options, fields) for batch in read_task(task)]
        return pa.Table.from_batches(batches, schema=arrow_schema(fields))

    def to_arrow_tables(
        self,
        tables: str | Sequence[str] = "*.*",
        *,
        after: Position | None = None,
        until: Position | None = None,
        schema_mode: str = "latest",
        complete_keys: bool = False,
    ) -> dict[str, pa.Table]:
        """The changes of several tables by name, each as `to_arrow` gives them; rows of the log are read once for all.

        `tables` is a pattern, or several, as "shop.*". The result has every table that exists at the end or was written
        to, under its name there. Other arguments, and errors, are those of `to_arrow`.

        Raises ConfigurationError: a pattern matches no table; the error names those that there are.
        """
        with needed_for("to_arrow_tables"):
            import numpy  # noqa: F401  # wanted by what is imported later
            import pyarrow as pa

        from ibbmaster.tables.arrow.many_tables import find_tables, plan_tables, read_tables
        from ibbmaster.tables.arrow.shape import arrow_schema

        patterns = (tables,) if isinstance(tables, str) else tuple(tables)
        options = self._changes_options("to_arrow_tables", patterns, after, until, schema_mode, complete_keys)
        found = find_tables(options)
        batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in found}
        for task in plan_tables(options, found):
            for name, batch in read_tables(task):
                batches[name].append(batch)
        return {name: pa.Table.from_batches(batches[name], arrow_schema(fields)) for name, fields in found.items()}

    def _changes_options(
        self,
        reader: str,
        tables: tuple[str, ...],
        after: Position | None,
        until: Position | None,
        schema_mode: str,
        complete_keys: bool,
        columns: Sequence[str] = (),
    ) -> ReadOptions:
        from ibbmaster.tables.arrow.read_options import with_keys

        mode, schema_at = parse_schema_mode("schema_mode", schema_mode)
        self._expect_files(reader)
        return with_keys(
            self._staged_options(
                tables=tables,
                starting_gtid=None if after is None else str(as_position(after)),
                ending_gtid=None if until is None else str(as_position(until)),
                columns=tuple(columns),
                schema_mode=mode,
                schema_at=schema_at,
                completes_keys=complete_keys,
            )
        )

    def snapshot(
        self,
        table: str,
        at: Position | None = None,
        *,
        key: Sequence[str] = (),
        zero_dates: str = "null",
        base: str | Path | None = None,
        on_doubt: OnDoubt | None = None,
    ) -> pa.Table:
        """The rows of a table ("database.table") at a GTID position, or at the end of the log.

        They are exactly those that its server had there, as the metadata of the result say under `exact at GTID`; else
        an error names the GTID since which they are not, and why. `on_doubt` hears that instead, and the rows are then
        what the changes of rows come to, distinguished by `key`, or the primary key. `zero_dates` "text" makes dates
        texts, which keeps `0000-00-00`. `base` is the path of a dump with the GTID position from which the log goes on,
        as `mariadb-dump --master-data --gtid` writes it. `ibbmaster lake snapshot` gives the same rows.

        Raises:
            InexactError: rows have changed in ways that the log does not show.
            ConfigurationError: there is no such table, its columns have no names, or pyarrow is missing.
            DamageError, EventError, PositionError, FormatError, ClassicFormatError, StoreError: as `to_arrow`.
        """
        options = self._table_options("snapshot", table, at, zero_dates, base)
        from ibbmaster.lake.arrow_snapshots import arrow_snapshot

        return arrow_snapshot(options, key=key, on_doubt=on_doubt)

    def history(
        self,
        table: str,
        at: Position | None = None,
        *,
        key: Sequence[str] = (),
        zero_dates: str = "null",
        base: str | Path | None = None,
        on_doubt: OnDoubt | None = None,
    ) -> pa.Table:
        """Every version that each row of a table had up to a GTID position, or to the end of the log.

        `_valid_from` and `_valid_to` say when a version held, as do `_gtid_from`, `_gtid_to` and `_is_current`. Other
        arguments, metadata and errors are those of `snapshot`.
        """
        options = self._table_options("history", table, at, zero_dates, base)
        from ibbmaster.lake.arrow_snapshots import arrow_history

        return arrow_history(options, key=key, on_doubt=on_doubt)

    def difference(
        self,
        table: str,
        after: Position,
        until: Position | None = None,
        *,
        zero_dates: str = "null",
        base: str | Path | None = None,
    ) -> pa.Table:
        """The differences between the rows of a table at a GTID position and at a later one, or at the end of the log.

        `_change_type` is "insert", "delete", or "update_preimage" followed by "update_postimage"; rows that are the
        same at both are left out. The columns are those of the later position; newer columns are NULL in earlier rows,
        which alone makes no difference.

        Raises: as `snapshot`; ConfigurationError also where a column has values of other types at the two.
        """
        options = self._table_options("difference", table, until, zero_dates, base)
        from ibbmaster.lake.arrow_snapshots import arrow_difference

        return arrow_difference(replace(options, starting_gtid=str(as_position(after))))

    def _table_options(
        self, reader: str, table: str, at: Position | None, zero_dates: str, base: str | Path | None
    ) -> ReadOptions:
        with needed_for(reader):
            import pyarrow  # noqa: F401  # wanted by what is imported later

        from ibbmaster.tables.arrow.read_options import ZeroDates

        table = str(parse_table_name(table))
        if zero_dates not in ("null", "text"):
            raise ConfigurationError(f"zero_dates is {zero_dates[:60]!r}, expected null or text")
        self._expect_files(reader)
        if base is not None and self.stages:
            raise ConfigurationError("a base is of a log as it is written, and this one goes through stages")
        return self._staged_options(
            base=None if base is None else str(base),
            table=table,
            tables=(table,),
            ending_gtid=None if at is None else str(as_position(at)),
            zero_dates=ZeroDates(zero_dates),
        )

    def _expect_files(self, what: str) -> None:
        """Raises ConfigurationError: `what` cannot read this log from files; DamageError: groups are in the redo log of
        a writer that is gone, and not in the files."""
        self.bring_to_files()
        self.stored.expect_whole()

    def _staged_options(self, **given: Any) -> ReadOptions:
        from ibbmaster.kernel.loading import do_pay

        return self.read_options(stages=self.stages, spans=self.spans, uses_kernels=do_pay(self.stored_bytes), **given)

    def read_options(self, **given: Any) -> ReadOptions:
        from ibbmaster.tables.arrow.read_options import ReadOptions

        return ReadOptions(
            path=str(self.path.absolute()),
            is_classic=self.stored.is_classic,
            declarations={name: dict(declared) for name, declared in self._schema.items()},
            name_case=self.name_case,
            row_event_max=self.row_event_max,
            **given,
        )

    @property
    def stored_bytes(self) -> int:
        """As `stored_bytes` of their files."""
        return stored_bytes(self.path, self.files)

    def bring_to_files(self) -> None:
        """Write to the files what our own writer still holds."""
