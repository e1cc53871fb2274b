"""A table of a lake as an Iceberg table, by PyIceberg: each change is one snapshot, which includes its state.

The same commit puts the state into the table's lasting properties. Rows change by copy-on-write, as PyIceberg has no
MERGE in one snapshot: files with one of their keys are written anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.lake.row_versions import DELETED, END, WHOLE, LastChanges, NewVersions
from ibbmaster.sqltext.table_name import parse_table_name
from .reshaping import Reshape
from .state import TableState
from .target import APPLICATION, ForeignChangeError, directory_name

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table, Transaction

NONE = -1  # the number of a row that no key names
CATALOG = "catalog.db"
PARENT = "ibbmaster-parent"  # the snapshot that a commit goes on from
FILE_BYTES = 64 << 20  # in memory; a small change writes as much anew
PROPERTIES = {"write.target-file-size-bytes": str(FILE_BYTES), "write.metadata.delete-after-commit.enabled": "true"}


class IcebergLake:
    """Iceberg tables, in a catalog of PyIceberg's configuration, or in a directory with its own."""

    def __init__(self, place: Path, named: str | None = None) -> None:
        """Raises ConfigurationError: no catalog is called so; StoreError: that catalog cannot be reached."""
        self._place = place.resolve()
        self._has_own_catalog = named is None
        self._catalog = None if named is None else _named_catalog(named)

    def table(self, full_name: str) -> IcebergTarget:
        return IcebergTarget(
            self, full_name, self._place / directory_name(full_name) if self._has_own_catalog else None
        )

    def catalog(self, *, creates: bool = False) -> Catalog | None:
        """None if there is none yet and it is not to be created."""
        if self._catalog is None and (creates or (self._place / CATALOG).exists()):
            from pyiceberg.catalog.sql import SqlCatalog
            from sqlalchemy import URL

            uri = URL.create("sqlite", database=str(self._place / CATALOG)).render_as_string()
            self._catalog = SqlCatalog("ibbmaster", uri=uri, warehouse=f"file://{self._place}")
        return self._catalog

    def close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()


class IcebergTarget:
    """One Iceberg table, in a directory where the catalog is ours; see `TargetTable`."""

    def __init__(self, lake: IcebergLake, full_name: str, directory: Path | None) -> None:
        self._lake = lake
        self._name = tuple(parse_table_name(full_name))
        self._full_name = full_name
        self._directory = directory

    def committed(self) -> TableState | None:
        with self._plain_errors():
            table = self._table()
            return None if table is None else self._state(table)

    def expect_own(self) -> None:
        with self._plain_errors():
            table = self._table()
            if table is None:
                return
            state, snapshot = self._state(table), table.current_snapshot()
            while snapshot is not None:
                said = {} if snapshot.summary is None else snapshot.summary.additional_properties
                parent = snapshot.parent_snapshot_id
                if APPLICATION in said:
                    if said[PARENT] != str(parent):
                        raise _foreign(f"snapshot {parent}")
                    if TableState.of_json(json.loads(said[APPLICATION])) != state:
                        raise _foreign(f"it was set back to snapshot {snapshot.snapshot_id}")
                    return
                if snapshot.summary is None or snapshot.summary.operation.value != "replace":
                    raise _foreign(f"snapshot {snapshot.snapshot_id}")
                snapshot = None if parent is None else table.snapshot_by_id(parent)

    def number(self) -> int:
        state = self.committed()
        return 0 if state is None else state.commit

    def replace(self, rows: pa.RecordBatchReader, state: TableState) -> None:
        with self._plain_errors():
            table = self._table()
            if table is None:
                change = self._creating(rows.schema)
                files = []
            else:
                change = table.transaction()
                _have_columns(change, rows.schema)
                files = [task.file for task in table.scan().plan_files()]
            _commit(change, state, files, _written(change, rows))

    def can_reshape(self, reshape: Reshape) -> bool:
        return True

    def merge(
        self, keys: Sequence[str], changes: LastChanges | NewVersions | pa.Table, reshape: Reshape, state: TableState
    ) -> bool:
        if isinstance(changes, pa.Table):
            with self._plain_errors():
                change = self._reshaped(reshape, changes.schema)
                _commit(change, state, [], _written(change, changes.to_reader()))
            return True
        wanted = changes.rows if isinstance(changes, LastChanges) else changes.ended

        def changed(rows: pa.Table) -> tuple[Any, pa.Table]:
            numbers = numbers_of(rows, wanted, keys)
            if isinstance(changes, LastChanges):
                return numbers, as_changed(rows, numbers, changes)
            numbers = np.where(rows["_is_current"].to_numpy(), numbers, NONE)
            return numbers, as_ended(rows, numbers, changes.ended)

        if isinstance(changes, LastChanges):
            are_there = changes.were_there
            added = changes.rows.filter(pa.array((changes.outcomes == WHOLE) & ~are_there))
        else:
            are_there, added = np.ones(len(wanted), dtype=bool), changes.rows
        return self._rewrite(reshape, _range_of(wanted, keys), changed, are_there, added, state)

    def files(self) -> set[str]:
        """None where another catalog decides where they are."""
        if self._directory is None:
            return set()
        return {str(path.relative_to(self._directory)) for path in self._directory.rglob("*") if path.is_file()}

    def remove_orphans(self, known: set[str]) -> list[str]:
        fresh = self.files() - known
        if self._directory is None or not fresh:
            return []
        with self._plain_errors():
            table = self._table()
            named = set() if table is None else {Path(one).name for one in _files_of(table, fresh)}
        orphans = sorted(name for name in fresh if Path(name).name not in named)
        for name in orphans:
            (self._directory / name).unlink()
        return orphans

    def _rewrite(
        self,
        reshape: Reshape,
        is_named: BooleanExpression,
        changed: Callable[[pa.Table], tuple[Any, pa.Table]],
        are_there: Any,
        added: pa.Table,
        state: TableState,
    ) -> bool:
        """Write files with wanted rows anew, and new rows; `changed` gives the wanted row of each. Where the rows are
        not `are_there` it commits nothing, and removes the files."""
        with self._plain_errors():
            change = self._reshaped(reshape, added.schema)
            counts = np.zeros(len(are_there), dtype=np.int64)
            old: list[DataFile] = []
            new: list[DataFile] = []
            waiting = added.slice(0, 0)
            for task in _files_with(change, is_named) if len(are_there) else ():
                rows = _rows_of(change, task).select(added.column_names).cast(added.schema)
                numbers, rows = changed(rows)
                if (numbers >= 0).any():
                    counts += np.bincount(numbers[numbers >= 0], minlength=len(counts))
                    old.append(task.file)
                    new += _written(change, waiting.to_reader())
                    waiting = rows
            if (counts != are_there).any():
                for file in new:
                    change._table.io.delete(file.file_path)
                return False
            new += _written(change, pa.concat_tables([waiting, added]).to_reader())
            _commit(change, state, old, new)
            return True

    def _state(self, table: Table) -> TableState:
        try:
            return TableState.of_json(json.loads(table.properties[APPLICATION]))
        except (KeyError, ValueError):
            raise StoreError(f"{self._full_name}: this Iceberg table was not made by `lake maintain`") from None

    def _table(self) -> Table | None:
        """Raises StoreError: its metadata is unreadable."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, ValidationError

        catalog = self._lake.catalog()
        if catalog is None:
            return None
        try:
            return catalog.load_table(self._name)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except FileNotFoundError:
            if self._directory is None or self._directory.exists():
                raise
            catalog.drop_table(self._name)  # its directory has been removed
            return None
        except (ValueError, ValidationError):
            where = "" if self._directory is None else f" in {self._directory / 'metadata'}"
            raise StoreError(f"{self._full_name}: the metadata.json that the catalog names{where} is damaged") from None

    def _reshaped(self, reshape: Reshape, schema: pa.Schema) -> Transaction:
        """A change that gives the table a schema's columns. Raises ForeignChangeError: it has others."""
        table = self._table()
        assert table is not None
        change = table.transaction()
        if not {field.name for field in table.schema().fields} >= {*reshape.renamed, *reshape.dropped}:
            raise _foreign("it has other columns")
        if reshape.dropped:
            with change.update_schema(allow_incompatible_changes=True) as update:
                for name in reshape.dropped:
                    update.delete_column((name,))
        _rename(change, reshape.renamed)
        if reshape.added or reshape.widened:
            with change.update_schema() as update:
                update.union_by_name(pa.schema([schema.field(name) for name in (*reshape.added, *reshape.widened)]))
        if {field.name for field in change.table_metadata.schema().fields} != set(schema.names):
            raise _foreign("it has other columns")
        return change

    def _creating(self, schema: pa.Schema) -> Transaction:
        catalog = self._lake.catalog(creates=True)
        assert catalog is not None
        catalog.create_namespace_if_not_exists(self._name[:-1])
        location = None if self._directory is None else f"file://{self._directory}"
        return catalog.create_table_transaction(self._name, schema, location, properties=PROPERTIES)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        import pyiceberg.exceptions

        try:
            yield
        except Exception as error:
            is_of_library = type(error).__module__ in (pyiceberg.exceptions.__name__, "sqlalchemy.exc")
            if not is_of_library and not isinstance(error, (pa.ArrowException, OSError, NotImplementedError)):
                raise
            if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
                raise  # it names the place
            raise StoreError(f"{self._full_name}: {_first_line(error)}") from error


def _named_catalog(name: str) -> Catalog:
    from pyiceberg.catalog import load_catalog

    try:
        return load_catalog(name)
    except ValueError:
        raise ConfigurationError(f"--catalog: the configuration of PyIceberg has no catalog {name[:80]!r}") from None
    except Exception as error:
        raise StoreError(f"catalog {name[:80]}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _foreign(what: str) -> ForeignChangeError:
    return ForeignChangeError(
        f"another program has written to it ({what}): drop it from the catalog to have it made anew"
    )


def _have_columns(change: Transaction, schema: pa.Schema) -> None:
    """Give a table a schema's columns, in order; those of the same name and type stay the same."""
    known = {field.name: field.type for field in change.table_metadata.schema().as_arrow()}
    gone = [name for name in known if name not in schema.names or known[name] != schema.field(name).type]
    if gone:
        with change.update_schema(allow_incompatible_changes=True) as update:
            for name in gone:
                update.delete_column((name,))
    if gone or schema.names != list(known):
        with change.update_schema() as update:
            update.union_by_name(schema)
        with change.update_schema() as update:
            for before, name in zip((None, *schema.names), schema.names, strict=False):
                update.move_first((name,)) if before is None else update.move_after((name,), (before,))


def _rename(change: Transaction, renamed: Mapping[str, str]) -> None:
    waiting = {name: f"_ibbmaster-{number}" for number, name in enumerate(renamed)}
    is_taken = bool(set(renamed) & set(renamed.values()))
    steps = [waiting, {waiting[name]: new for name, new in renamed.items()}] if is_taken else [renamed]
    for step in steps if renamed else ():
        with change.update_schema() as update:
            for name, new in step.items():
                update.rename_column((name,), new)


def _commit(change: Transaction, state: TableState, old: Iterable[DataFile], new: Iterable[DataFile]) -> None:
    """Replace files by others, with a state, in one snapshot."""
    said = json.dumps(state.as_json())
    new = list(new)
    snapshot = change.table_metadata.current_snapshot()
    parent = None if snapshot is None else snapshot.snapshot_id
    update = change.update_snapshot({APPLICATION: said, PARENT: str(parent)})
    with update.overwrite() if old else update.fast_append() as files:
        for file in old:
            files.delete_data_file(file)
        for file in new:
            files.append_data_file(file)
    change.set_properties({APPLICATION: said})
    change.commit_transaction()


def _written(change: Transaction, rows: pa.RecordBatchReader) -> Iterator[DataFile]:
    from pyiceberg.io.pyarrow import bin_pack_record_batches, pyarrow_to_schema, write_file
    from pyiceberg.table import WriteTask

    metadata = change.table_metadata
    schema = pyarrow_to_schema(rows.schema, name_mapping=metadata.schema().name_mapping)
    number = uuid4()
    for task_id, batches in enumerate(bin_pack_record_batches(_small_batches(rows), FILE_BYTES)):
        if any(len(batch) for batch in batches):
            task = WriteTask(number, task_id, schema, batches)
            yield from write_file(change._table.io, metadata, iter([task]))  # a staged table has no other


def _small_batches(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        parts = -(-batch.nbytes // FILE_BYTES)
        size = -(-len(batch) // max(parts, 1))
        yield from (batch.slice(start, size) for start in range(0, len(batch), size or 1))


def _files_with(change: Transaction, is_named: BooleanExpression) -> Iterator[FileScanTask]:
    from pyiceberg.table import DataScan

    scan = DataScan(table_metadata=change.table_metadata, io=change._table.io, row_filter=is_named)
    yield from scan.plan_files()


def _rows_of(change: Transaction, task: FileScanTask) -> pa.Table:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    metadata = change.table_metadata
    return ArrowScan(metadata, change._table.io, metadata.schema(), AlwaysTrue()).to_table([task])


def _range_of(rows: pa.Table, keys: Sequence[str]) -> BooleanExpression:
    from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, LessThanOrEqual

    found: BooleanExpression = AlwaysTrue()
    for key in keys if len(rows) else ():
        if pa.types.is_integer(rows[key].type) or pa.types.is_string(rows[key].type):
            bounds = pc.min_max(rows[key]).as_py()
            found = And(found, GreaterThanOrEqual(key, bounds["min"]), LessThanOrEqual(key, bounds["max"]))
    return found


def _files_of(table: Table, fresh: Iterable[str]) -> Iterator[str]:
    """The files a table names; a snapshot whose list is not fresh names no fresh one."""
    names = {Path(name).name for name in fresh}
    yield table.metadata_location
    yield from (entry.metadata_file for entry in table.metadata.metadata_log)
    for snapshot in table.snapshots():
        yield snapshot.manifest_list
        if Path(snapshot.manifest_list).name in names:
            for manifest in snapshot.manifests(table.io):
                yield manifest.manifest_path
                yield from (entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))


# Rows after changes -----------------------------------------------------------------------------


def numbers_of(rows: pa.Table, wanted: pa.Table, keys: Sequence[str]) -> Any:
    """By row, the number of the wanted one with its key, or `NONE`; wanted keys are unique."""
    found, numbers = np.zeros(len(rows), dtype=np.int64), np.zeros(len(wanted), dtype=np.int64)
    is_there = np.ones(len(rows), dtype=bool)
    for key in keys:
        values = pc.unique(wanted[key])
        places = pc.index_in(rows[key].cast(values.type), value_set=values)
        is_there &= pc.is_valid(places).to_numpy()
        found = found * len(values) + pc.fill_null(places, 0).to_numpy()
        numbers = numbers * len(values) + pc.index_in(wanted[key], value_set=values).to_numpy()
        # Numbers stay below that of wanted rows, also for many columns.
        known, numbers = np.unique(numbers, return_inverse=True)
        places = np.searchsorted(known, found)
        places[places == len(known)] = 0
        is_there &= len(known) > 0 and known[places] == found
        found = places
    order = np.empty(len(wanted), dtype=np.int64)
    order[numbers] = np.arange(len(wanted))
    return np.where(is_there, order[found], NONE) if len(order) else np.full(len(rows), NONE)


def as_changed(rows: pa.Table, numbers: Any, changes: LastChanges) -> pa.Table:
    """`numbers` has the change of each row."""
    kept = np.ones(len(rows), dtype=bool)
    kept[numbers >= 0] = changes.outcomes[numbers[numbers >= 0]] != DELETED
    places = np.flatnonzero(kept)
    numbers = numbers[kept]
    columns = {}
    for name in rows.column_names:
        is_new = numbers >= 0
        if name in changes.known:
            is_new[is_new] = changes.known[name][numbers[is_new]]
        columns[name] = _chosen(rows[name], changes.rows[name], np.where(is_new, len(rows) + numbers, places))
    return pa.table(columns, rows.schema)


def as_ended(rows: pa.Table, numbers: Any, ended: pa.Table) -> pa.Table:
    """Versions of rows, some ended; `numbers` has the end of each."""
    is_ended = numbers >= 0
    places = np.where(is_ended, len(rows) + numbers, np.arange(len(rows)))
    columns = {name: rows[name] for name in rows.column_names}
    columns |= {name: _chosen(rows[name], ended[name], places) for name in END}
    columns["_is_current"] = pa.array(~is_ended & rows["_is_current"].to_numpy())
    return pa.table(columns, rows.schema)


def _chosen(one: pa.ChunkedArray, other: pa.ChunkedArray, places: Any) -> pa.ChunkedArray:
    chunks = [*one.chunks, *other.cast(one.type).chunks]
    return pa.chunked_array([pa.chunked_array(chunks, one.type).take(pa.array(places)).combine_chunks()], one.type)
