"""A table of a lake as a Delta table, by delta-rs: each change is one commit, which includes the table's state.

The commit carries its number as a transaction of this application, so a run knows what a killed one committed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ibbmaster.errors import StoreError
from ibbmaster.lake.placing import replace_file
from ibbmaster.lake.row_versions import DELETED, END, WHOLE, LastChanges, NewVersions
from ibbmaster.storage.disk.object_store import storage_options
from ibbmaster.storage.disk.place import ObjectPath
from .reshaping import Reshape
from .state import TableState
from .target import APPLICATION, ForeignChangeError, directory_name

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.table import TableMerger

HARMLESS = frozenset(  # what keeps a table's rows
    ("OPTIMIZE", "VACUUM START", "VACUUM END", "FSCK", "SET TBLPROPERTIES", "COMPUTE STATS", "ANALYZE", "REORG")
) | {"ADD FEATURE"}
LOG = "_delta_log"
ZONELESS = "timestampNtz"  # of a protocol: moments without a time zone
LAYER = re.compile(r"(?:\x1b\[\d*m|\u21b3)+")
STACK = re.compile(r"\n\s+0: ")  # where RUST_BACKTRACE asks for it
EXPECTED = "ibbmaster-expected"  # rows that a MERGE shall change, and add
# Columns beside those of a table, with names too long for one of these.
OUTCOME = "outcome".ljust(65, "_")
KNOWN = "known:".rjust(65, "_")
CLOSES = "closes".ljust(65, "_")  # whether an entry ends a version


class DeltaLake:
    def __init__(self, place: Path) -> None:
        self._place = place

    def table(self, full_name: str) -> DeltaTarget:
        return DeltaTarget(self._place / directory_name(full_name))

    def close(self) -> None:
        """There is nothing that stays open."""


class DeltaTarget:
    """One Delta table; see `TargetTable`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._options = storage_options() if isinstance(directory, ObjectPath) else None

    def committed(self) -> TableState | None:
        """After a MERGE that changed or added other rows than the log says, no rows are those of the log."""
        with plain_errors(self._directory):
            table = self._table()
            if table is None:
                return None
            number = table.transaction_version(APPLICATION)
            if number is None:
                raise StoreError(f"{self._directory}: this Delta table was not made by `lake maintain`")
            for commit in table.history():
                if APPLICATION in commit:
                    state = TableState.of_json(json.loads(commit[APPLICATION]))
                    if state.commit == number:
                        return state if _is_as_expected(commit) else replace(state, rows_at=None)
            raise StoreError(f"{self._directory}: its Delta log does not say any more at which GTID position it is")

    def expect_own(self) -> None:
        with plain_errors(self._directory):
            table = self._table()
            for commit in table.history() if table is not None else ():
                if APPLICATION in commit:
                    return
                if commit.get("operation") not in HARMLESS:
                    version, operation = commit.get("version"), commit.get("operation")
                    raise ForeignChangeError(
                        f"another program has written to it ({operation}, version {version}): remove its directory to "
                        "have it made anew"
                    )

    def number(self) -> int:
        with plain_errors(self._directory):
            table = self._table()
            return 0 if table is None else table.transaction_version(APPLICATION) or 0

    def replace(self, rows: pa.RecordBatchReader, state: TableState) -> None:
        from deltalake import write_deltalake

        with plain_errors(self._directory):
            write_deltalake(
                str(self._directory),
                rows,
                mode="overwrite",
                schema_mode="overwrite",
                storage_options=self._options,
                commit_properties=_said(state),
            )

    def can_reshape(self, reshape: Reshape) -> bool:
        return not (reshape.renamed or reshape.dropped or reshape.widened)

    def _append(self, rows: pa.Table, reshape: Reshape, state: TableState) -> None:
        from deltalake import write_deltalake

        with plain_errors(self._directory):
            write_deltalake(
                self._ready(rows.schema),
                rows,
                mode="append",
                schema_mode="merge" if reshape else None,
                commit_properties=_said(state),
            )

    def merge(
        self, keys: Sequence[str], changes: LastChanges | NewVersions | pa.Table, reshape: Reshape, state: TableState
    ) -> bool:
        if isinstance(changes, LastChanges):
            self._patch(keys, changes, reshape, state)
        elif isinstance(changes, NewVersions):
            self._extend(keys, changes, reshape, state)
        else:
            self._append(changes, reshape, state)
            return True
        return self.committed() == state

    def _patch(self, keys: Sequence[str], changes: LastChanges, reshape: Reshape, state: TableState) -> None:
        there = int(changes.were_there.sum())
        come = int(((changes.outcomes == WHOLE) & ~changes.were_there).sum())
        with plain_errors(self._directory):
            names = changes.rows.column_names
            values = {name: f"source.{_quoted(name)}" for name in names}
            kept = {
                name: f"CASE WHEN source.{_quoted(KNOWN + name)} THEN {values[name]} ELSE target.{_quoted(name)} END"
                for name in changes.known
                if name not in reshape.added  # which are NULL where nothing is known
            }
            on = " AND ".join(f"target.{_quoted(key)} = {values[key]}" for key in keys)
            merge = self._merger(_source(changes), on, changes.rows.schema, reshape, _said(state, (there, come)))
            outcome = f"source.{_quoted(OUTCOME)}"
            (
                merge.when_matched_delete(f"{outcome} = {DELETED}")
                .when_matched_update({_quoted(name): (values | kept)[name] for name in names if name not in keys})
                .when_not_matched_insert({_quoted(name): values[name] for name in names}, f"{outcome} = {WHOLE}")
                .execute()
            )

    def _extend(self, keys: Sequence[str], versions: NewVersions, reshape: Reshape, state: TableState) -> None:
        names = versions.rows.column_names
        added = versions.rows.append_column(CLOSES, pa.array([False] * len(versions.rows)))
        ended = versions.ended.append_column(CLOSES, pa.array([True] * len(versions.ended)))
        source = pa.concat_tables([added, ended], promote_options="default")
        values, closes = {name: f"source.{_quoted(name)}" for name in names}, f"source.{_quoted(CLOSES)}"
        on = " AND ".join(f"target.{_quoted(key)} = {values[key]}" for key in keys)
        with plain_errors(self._directory):
            on = f"{closes} AND target._is_current AND {on}"
            said = _said(state, (len(versions.ended), len(versions.rows)))
            merge = self._merger(source, on, versions.rows.schema, reshape, said)
            (
                merge.when_matched_update({**{name: values[name] for name in END}, "_is_current": "false"})
                .when_not_matched_insert({_quoted(name): values[name] for name in names}, f"NOT {closes}")
                .execute()
            )

    def _merger(
        self, source: pa.Table, on: str, schema: pa.Schema, reshape: Reshape, said: CommitProperties
    ) -> TableMerger:
        table, more = self._ready(schema), bool(reshape)
        return table.merge(source, on, "source", "target", merge_schema=more, commit_properties=said)

    def files(self) -> set[str]:
        """All Parquet files; in an object store none, which VACUUM cleans."""
        if isinstance(self._directory, ObjectPath):
            return set()
        return {str(path.relative_to(self._directory)) for path in self._directory.rglob("*.parquet")}

    def remove_orphans(self, known: set[str]) -> list[str]:
        if isinstance(self._directory, ObjectPath):
            return []
        named = set()
        for path in (self._directory / LOG).glob("*.json"):
            actions = (json.loads(line) for line in path.read_text().splitlines())
            named |= {action["add"]["path"] for action in actions if "add" in action}
        orphans = sorted(name for name in self.files() - known - named if not name.startswith(LOG))
        for name in orphans:
            (self._directory / name).unlink()
        return orphans

    def _table(self) -> DeltaTable | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        place, options = str(self._directory), self._options
        if not DeltaTable.is_deltatable(place, options):
            return None
        try:
            return DeltaTable(place, storage_options=options)
        except DeltaError as error:  # an older version added a column, and no feature
            if ZONELESS not in str(error):
                raise
        last = max(int(path.stem) for path in (self._directory / LOG).iterdir() if path.stem.isdigit())
        said = feature_commit(DeltaTable(place, last - 1, options))
        replace_file(self._directory / LOG / f"{last + 1:020}.json", said)
        return DeltaTable(place, storage_options=options)

    def _ready(self, schema: pa.Schema) -> DeltaTable:
        table = self._table()
        assert table is not None
        have_features(table, schema)
        return table


def _said(state: TableState, expected: tuple[int, int] | None = None) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    metadata = {APPLICATION: json.dumps(state.as_json())}
    if expected is not None:
        metadata[EXPECTED] = json.dumps(expected)
    return CommitProperties(custom_metadata=metadata, app_transactions=[Transaction(APPLICATION, state.commit)])


def _is_as_expected(commit: Mapping[str, Any]) -> bool:
    if EXPECTED not in commit:
        return True
    metrics = commit["operationMetrics"]
    changed = int(metrics["num_target_rows_updated"]) + int(metrics["num_target_rows_deleted"])
    return bool([changed, int(metrics["num_target_rows_inserted"])] == json.loads(commit[EXPECTED]))


def _source(changes: LastChanges) -> pa.Table:
    columns = {name: changes.rows[name] for name in changes.rows.column_names}
    flags = {KNOWN + name: pa.array(known) for name, known in changes.known.items()}
    return pa.table({**columns, **flags, OUTCOME: pa.array(changes.outcomes)})


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def plain_errors(directory: Path) -> Iterator[None]:
    """Errors of delta-rs in one line, with the table's place."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise StoreError(f"{directory}: {innermost(str(error))}") from error


def innermost(text: str) -> str:
    """The cause in an error that shows errors inside errors as a coloured tree, and a stack trace."""
    lines = [" ".join(line.split()) for line in LAYER.split(STACK.split(text)[0])]
    return next((line for line in reversed(lines) if line), "delta-rs gave no reason")


def have_features(table: DeltaTable, schema: pa.Schema) -> None:
    """Give a table the feature that these columns need; a MERGE that adds them does not."""
    from deltalake import TableFeatures

    is_needed = any(pa.types.is_timestamp(one) and one.tz is None for one in schema.types)
    if is_needed and ZONELESS not in (table.protocol().reader_features or ()):
        table.alter.add_feature(TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True)


def feature_commit(before: DeltaTable) -> bytes:
    """The commit of `have_features`, for a table that cannot be opened for want of it; `before` is the table then."""
    protocol = before.protocol()
    known = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
    raised: dict[str, Any] = {name: sorted({*(found or ()), ZONELESS}) for name, found in known.items()}
    raised |= {"minReaderVersion": 3, "minWriterVersion": 7}
    return b'{"commitInfo":{"operation":"ADD FEATURE"}}\n' + json.dumps({"protocol": raised}).encode()
