"""The tables that a log answers with: changes, snapshots and histories of rows, as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibbmaster.api.log_files import LogFiles
from ibbmaster.api.seeking import Position, as_position
from ibbmaster.arrow.read_options import parse_schema_mode
from ibbmaster.errors import ConfigurationError
from ibbmaster.extras import needed_for
from ibbmaster.log.interface import LogFile
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.stages.options import StageOptions
from ibbmaster.stages.span import LogSpan

if TYPE_CHECKING:
    import pyarrow as pa

    from ibbmaster.arrow.read_options import ReadOptions
    from ibbmaster.event.rows.declared import Declaration
    from ibbmaster.schema.name_case import NameCase

BLOCK_SIZE = 512  # bytes, in which the system counts what a file has of the disk


class LogTables:
    """The part of a `Log` that makes tables; each call loads what it needs."""

    path: Path
    stored: LogFiles  # the answers of its kind of files
    name_case: NameCase | None  # how its server compares names of tables; None: what the log says
    row_event_max: int | None  # bytes of one, put together and unpacked; None: what a log can have
    stages: tuple[StageOptions, ...] = ()  # that it has gone through, if it is a part of the log of its files
    spans: tuple[LogSpan | None, ...] = ()  # which part, by each of them
    _schema: Mapping[str, Declaration]

    @property
    def files(self) -> list[LogFile]:
        """Every file with name and size in bytes, the oldest first."""
        raise NotImplementedError

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

        The columns are those of the DataFrames that docs/spark.md describes; `columns` takes some of them.
        `schema_mode` says which columns a table has that the log alters: "latest", "asWritten" or "at:GTID". With
        `complete_keys` an image after an update has the values of the one before it in columns that it leaves out, as
        under binlog_row_image=MINIMAL its key. `after` and `until` are as in `groups`. It is the log as its files have
        it, which of one that another process writes may be a second old; all of it is in memory.

        Raises:
            ConfigurationError: there is no such table or column, or its columns have no names; or pyarrow is missing.
            DamageError: groups are in the redo log of a writer that is gone, and not in the files.
            EventError: a value cannot be read.
            PositionError, FormatError, ClassicFormatError, StoreError: as `groups`.
        """
        with needed_for("to_arrow"):
            import numpy  # noqa: F401  # wanted by what is imported later
            import pyarrow as pa

        from ibbmaster.arrow.plan import find_fields, plan_tasks
        from ibbmaster.arrow.reading import read_task
        from ibbmaster.arrow.shape import arrow_schema

        options = self._changes_options(
            "to_arrow",
            tables=() if table is None else (table,),
            after=after,
            until=until,
            columns=columns,
            schema_mode=schema_mode,
            complete_keys=complete_keys,
        )
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
        """The changes of several tables, each as `to_arrow` gives them, by name: the log's rows are read once for all.

        `tables` is a pattern, or several, as "shop.*". Every table that is there at the end, or was written to, is
        among them, by its name there. Other arguments, and errors, are those of `to_arrow`.

        Raises ConfigurationError: a pattern matches no table; the error names those that there are.
        """
        with needed_for("to_arrow_tables"):
            import numpy  # noqa: F401  # wanted by what is imported later
            import pyarrow as pa

        from ibbmaster.arrow.many_tables import find_tables, plan_tables, read_tables
        from ibbmaster.arrow.shape import arrow_schema

        patterns = (tables,) if isinstance(tables, str) else tuple(tables)
        options = self._changes_options(
            "to_arrow_tables",
            tables=patterns,
            after=after,
            until=until,
            schema_mode=schema_mode,
            complete_keys=complete_keys,
        )
        found = find_tables(options)
        batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in found}
        for task in plan_tables(options, found):
            for name, batch in read_tables(task):
                batches[name].append(batch)
        return {name: pa.Table.from_batches(batches[name], arrow_schema(fields)) for name, fields in found.items()}

    def _changes_options(
        self,
        reader: str,
        *,
        tables: tuple[str, ...],
        after: Position | None,
        until: Position | None,
        columns: Sequence[str] = (),
        schema_mode: str,
        complete_keys: bool,
    ) -> ReadOptions:
        """The options with which a reader gets the changes of tables; errors as `to_arrow`."""
        from ibbmaster.arrow.read_options import with_keys
        from ibbmaster.kernel.loading import do_pay

        mode, schema_at = parse_schema_mode("schema_mode", schema_mode)
        self._expect_files(reader)
        return with_keys(
            self.read_options(
                stages=self.stages,
                spans=self.spans,
                tables=tables,
                starting_gtid=None if after is None else str(as_position(after)),
                ending_gtid=None if until is None else str(as_position(until)),
                columns=tuple(columns),
                schema_mode=mode,
                schema_at=schema_at,
                completes_keys=complete_keys,
                uses_kernels=do_pay(self.stored_bytes),
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
        on_doubt: Callable[[str], object] | None = None,
    ) -> pa.Table:
        """The rows that a table ("database.table") has at a GTID position, or at the end of the log.

        They are exactly those that its server had there, and the metadata of the result say so, under
        `exact at GTID`; else it is an error that says since which GTID they are not, and why. With `on_doubt` that
        hears it instead, and the rows are what the changes of rows come to, distinguished by `key`, or the primary key.
        `zero_dates` "text" makes texts of dates, so that `0000-00-00` is kept. `base` is the path of
        a dump with the GTID position that the log goes on from, as `mariadb-dump --master-data --gtid` writes it. The
        same is answered by `ibbmaster lake snapshot`.

        Raises:
            InexactError: rows have changed in ways that the log does not show.
            ConfigurationError: there is no such table, its columns have no names, or pyarrow is missing.
            DamageError, EventError, PositionError, FormatError, ClassicFormatError, StoreError: as `to_arrow`.
        """
        with needed_for("snapshot"):
            import pyarrow  # noqa: F401  # wanted by what is imported later

        from ibbmaster.lake.arrow_snapshots import arrow_snapshot

        return arrow_snapshot(self._table_options(table, at, zero_dates, base), key=key, on_doubt=on_doubt)

    def history(
        self,
        table: str,
        at: Position | None = None,
        *,
        key: Sequence[str] = (),
        zero_dates: str = "null",
        base: str | Path | None = None,
        on_doubt: Callable[[str], object] | None = None,
    ) -> pa.Table:
        """Every version that each row of a table has had up to a GTID position, or to the end of the log.

        Beside its values it has `_valid_from` and `_valid_to`, when it held, `_gtid_from` and `_gtid_to`, and
        `_is_current`. Other arguments, metadata and errors are those of `snapshot`.
        """
        with needed_for("history"):
            import pyarrow  # noqa: F401  # wanted by what is imported later

        from ibbmaster.lake.arrow_snapshots import arrow_history

        options = self._table_options(table, at, zero_dates, base, reader="history")
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
        """How the rows of a table at one GTID position differ from those at a later one, or at the end of the log.

        `_change_type` is "insert", "delete", or "update_preimage" with "update_postimage" after it; a row that has
        come and gone meanwhile, or has its old values again, is in none. The columns are those of the later position,
        and those that the table has had since then alone are NULL in earlier rows, and no difference by themselves.

        Raises: as `snapshot`; ConfigurationError also where a column has values of other types at the two.
        """
        with needed_for("difference"):
            import pyarrow  # noqa: F401  # wanted by what is imported later

        from ibbmaster.lake.arrow_snapshots import arrow_difference

        options = self._table_options(table, until, zero_dates, base, reader="difference")
        return arrow_difference(replace(options, starting_gtid=str(as_position(after))))

    def _table_options(
        self,
        table: str,
        at: Position | None,
        zero_dates: str,
        base: str | Path | None = None,
        *,
        reader: str = "snapshot",
    ) -> ReadOptions:
        """The options for one table up to a position. Raises ConfigurationError: an argument is none that is known."""
        from ibbmaster.arrow.read_options import ZeroDates
        from ibbmaster.kernel.loading import do_pay

        table = str(parse_table_name(table))
        if zero_dates not in ("null", "text"):
            raise ConfigurationError(f"zero_dates is {zero_dates[:60]!r}, expected null or text")
        self._expect_files(reader)
        if base is not None and self.stages:
            raise ConfigurationError("a base is of a log as it is written, and this one goes through stages")
        return self.read_options(
            base=None if base is None else str(base),
            stages=self.stages,
            spans=self.spans,
            table=table,
            tables=(table,),
            ending_gtid=None if at is None else str(as_position(at)),
            zero_dates=ZeroDates(zero_dates),
            uses_kernels=do_pay(self.stored_bytes),
        )

    def _expect_files(self, what: str) -> None:
        """See that the files of the log have all that `what` is to read. Raises ConfigurationError: it cannot be read
        from files; DamageError: groups are in the redo log of a writer that is gone, and not in the files."""
        self.bring_to_files()
        self.stored.expect_whole()

    def read_options(self, **given: Any) -> ReadOptions:
        """The options with which record batches of this log are read; `given` are more of their fields."""
        from ibbmaster.arrow.read_options import ReadOptions

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
        """What its files take on the disk: less than their sizes where they were made for what is to come."""
        paths = (self.path if self.path.is_file() else self.path / file.name for file in self.files)
        return sum(path.stat().st_blocks * BLOCK_SIZE for path in paths if path.exists())

    def bring_to_files(self) -> None:
        """Have in the files what is in the log, as far as it is ours."""
