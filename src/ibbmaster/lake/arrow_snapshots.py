"""Tables as the changes of a log leave them: their rows now (type 1), or each row with its validity (type 2).

Where changes do not tell all, `doubts` says of which rows.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from ibbmaster.errors import ConfigurationError, EventError, InexactError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.rows.column import TableSchema
from ibbmaster.rows.shape import TableShape
from ibbmaster.schema.catalog import KnownTable
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.tables.arrow.plan import end_of, find_shape, history_of, open_log
from ibbmaster.tables.arrow.read_options import ReadOptions
from ibbmaster.tables.arrow.shape import ShapeField, field_name, table_fields
from .doubts import find_doubts, folded_columns, image_doubts
from .maintain.rows import OF_VERSIONS, rows_of
from .maintain.source import LogSource, Read, UncertainRowsError
from .pasts import START, Doubt, past_of
from .row_versions import CONTRADICTION, PartialChangeError, new_versions, numbers_of_keys

EXACT_AT = b"exact at GTID"  # in the metadata of a table: the position with these rows
INEXACT = b"inexact"  # in place of it: the reasons
OnDoubt = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class AskedTable:
    """A table at a position of an open log."""

    options: ReadOptions
    log: LogEngine
    history: SchemaHistory
    end: LogPosition | None  # None at the end of the log
    shape: TableShape
    columns: tuple[ShapeField, ...]  # those of the table itself

    @property
    def name(self) -> str:
        assert self.options.table is not None
        return self.options.table

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.columns]

    @property
    def position(self) -> str:
        return self.options.ending_gtid or str(self.log.state().position())

    @property
    def version(self) -> TableVersion | None:
        """The version there, if statements define it and its rows agree."""
        place = SchemaPlace(self.log.end() if self.end is None else self.end, 0)
        state = self.history.table_at(*parse_table_name(self.name), place)
        return state if _is_of(state, self.shape) else None


def arrow_snapshot(options: ReadOptions, *, key: Sequence[str] = (), on_doubt: OnDoubt | None = None) -> pa.Table:
    """The rows that the table of options has where they end.

    Their metadata say at which GTID they are exact. Without `on_doubt` they must be; else it gets the reasons, each
    with the GTID from which on they may not be: then they are what the changes of rows come to, by `key`.

    Raises:
        ConfigurationError: the table is not in the log, its columns have no names, or it has no key.
        InexactError: rows have changed in ways that the log does not tell.
        PositionError: the position is not in the log.
    """
    return _rows(options, key, on_doubt, has_history=False)


def arrow_history(options: ReadOptions, *, key: Sequence[str] = (), on_doubt: OnDoubt | None = None) -> pa.Table:
    """Every version of each row, and when it held; arguments and errors of `arrow_snapshot`."""
    return _rows(options, key, on_doubt, has_history=True)


def _rows(options: ReadOptions, key: Sequence[str], on_doubt: OnDoubt | None, *, has_history: bool) -> pa.Table:
    with closing(open_log(options)) as log:
        asked = _asked(options, log)
        version = asked.version
        keys = _key_of(asked.shape.schema, key) if key else []
        texts: list[str] = []
        if version is not None and (asked.end is None or len(log.state().position().values()) == 1):
            try:
                return _judged(rows_of(asked.options, version, has_history=has_history), asked, [])
            except UncertainRowsError as error:
                texts = [str(Doubt(START, *error.args))]
            if on_doubt is None:
                raise InexactError(asked.name, texts)
        return _as_changed(asked, keys or _key_of(asked.shape.schema, ()), texts, on_doubt, has_history=has_history)


def arrow_difference(options: ReadOptions) -> pa.Table:
    """The changes of a table between two positions, one for each row at most. Columns are those of the later position;
    one that the earlier lacks is NULL in its rows, and no difference. Raises InexactError: the log does not show the
    rows at one of them; ConfigurationError: a column has values of another type at one of them."""
    with closing(open_log(options)) as log:
        asked = _asked(replace(options, starting_gtid=None), log)
        before_options = replace(asked.options, ending_gtid=options.starting_gtid or "")
        begin = end_of(options.starting_gtid or "", options, log)
        version = asked.version
        old = _same_table(asked, SchemaPlace(begin, 0))
        after = arrow_snapshot(asked.options)
        if old is None and version is not None and version.is_created_in_log:
            before, shared = after.slice(0, 0), asked.names
        else:
            name = old.full_name if old is not None else asked.name
            rows = arrow_snapshot(replace(before_options, table=name, tables=(name,)))
            before, shared = _as_later(rows, old, version, after.schema)
        index = None if version is None else row_key(version)
        ids = set() if index is None else {part.column_id for part in index.parts}
        keys = [field_name(one.name) for one in version.columns if one.id in ids] if version is not None else []
        return _judged(_differing(before, after, shared, keys), asked, [])


def _asked(options: ReadOptions, log: LogEngine) -> AskedTable:
    """Raises ConfigurationError: the table is not in the log, or its columns have no names; PositionError: the position
    is not in the log."""
    assert options.table is not None
    history = history_of(options, log)
    name = history.case.key(options.table)
    options = replace(options, table=name, tables=(name,))
    end = None if options.ending_gtid is None else end_of(options.ending_gtid, options, log)
    shape = find_shape(options, name)
    own = {field_name(column.name) for column in shape.columns}
    columns = tuple(field for field in table_fields(shape, options.zero_dates) if field.name in own)
    return AskedTable(options, log, history, end, shape, columns)


def domains_left_out(options: ReadOptions) -> list[int]:
    """Domains of the log that the position where options end does not name: a snapshot there has nothing of them.
    Raises StoreError: there is no log."""
    if options.ending_gtid is None:
        return []
    with closing(open_log(options)) as log:
        logged = {gtid.domain_id for gtid in log.state().position().values()}
    return sorted(logged - {gtid.domain_id for gtid in GtidPosition.parse(options.ending_gtid).values()})


def _is_of(state: KnownTable | None, shape: TableShape) -> TypeGuard[TableVersion]:
    return (
        isinstance(state, TableVersion)
        and not state.undefined_because
        and [one.name for one in shape.columns] == [one.name for one in state.shown.columns]
    )


def _key_of(table: TableSchema, key: Iterable[str]) -> list[str]:
    """As in a DataFrame; `key` may name columns so, or as the table does. Raises ConfigurationError: the table has no
    such column, or no key."""
    names = [field_name(column.name) for column in table.columns]
    keys = [name if name in names else field_name(name) for name in key]
    keys = keys or [names[number] for number in table.primary_key]
    missing = [name for name in keys if name not in names]
    if not keys or missing:
        problem = f"no column {missing[0]}" if missing else "no primary key that the log tells: name its key columns"
        raise ConfigurationError(f"{table.name}: {problem}")
    return keys


def _as_changed(
    asked: AskedTable, keys: Sequence[str], texts: list[str], on_doubt: OnDoubt | None, *, has_history: bool
) -> pa.Table:
    """The result of changes; `texts` say why they are not all there is. Raises InexactError: they are not all, and
    nobody hears it; or contradict each other; EventError: a key changes, and its image is not whole."""
    fields = table_fields(asked.shape, asked.options.zero_dates, [*OF_VERSIONS, *asked.names])
    with LogSource(asked.options) as source:
        name, end = parse_table_name(asked.name), None if asked.end is None else SchemaPlace(asked.end, 0)
        past = past_of(asked.history, name, end, source.statements)
        changes = source.changes(Read(name, fields, START if has_history else past.begin))
        columns = folded_columns(fields, keys, past, asked.options.zero_dates)
        if not texts:
            found = find_doubts(source, past, has_gone=has_history, is_whole=bool(past.cuts))
            texts = [str(one) for one in sorted({*found, *image_doubts(changes, columns)})]
    if texts and on_doubt is None:
        raise InexactError(asked.name, texts)
    for text in texts:
        assert on_doubt is not None
        on_doubt(f"{asked.name}: {text}")
    try:
        versions = new_versions(changes, columns, past.cuts if has_history else (), is_strict=False)
    except PartialChangeError as error:
        raise EventError(f"{asked.name}: {error}") from None
    if not texts and (len(versions.ended) or not versions.is_sound):
        raise InexactError(asked.name, [f"the log contradicts itself: {CONTRADICTION}"])
    rows = versions.rows
    return _judged(rows if has_history else rows.filter(rows["_is_current"]).select(asked.names), asked, texts)


def _judged(rows: pa.Table, asked: AskedTable, texts: Sequence[str]) -> pa.Table:
    verdict = {INEXACT: "\n".join(texts)} if texts else {EXACT_AT: asked.position}
    return rows.replace_schema_metadata(verdict)


def _same_table(asked: AskedTable, place: SchemaPlace) -> TableVersion | None:
    """The table at an earlier place, under whatever name; else the one called so."""
    version = asked.version
    if version is not None:
        for known in asked.history.at(place).tables.values():
            if isinstance(known, TableVersion) and known.generation == version.generation:
                return known
    state = asked.history.table_at(*parse_table_name(asked.name), place)
    return state if isinstance(state, TableVersion) else None


def _as_later(
    rows: pa.Table, old: TableVersion | None, new: TableVersion | None, schema: pa.Schema
) -> tuple[pa.Table, list[str]]:
    names = {name: name for name in rows.column_names}
    if old is not None and new is not None and old.generation == new.generation:
        olds = {column.id: field_name(column.name) for column in old.columns}
        names = {field_name(column.name): olds[column.id] for column in new.columns if column.id in olds}
    columns = []
    for field in schema:
        if names.get(field.name) not in rows.column_names:
            columns.append(pa.nulls(len(rows), field.type))
            continue
        try:
            columns.append(rows[names[field.name]].cast(field.type))
        except pa.ArrowException:
            raise ConfigurationError(
                f"column {field.name} has values of another type at the earlier position: compare two snapshots"
            ) from None
    return pa.table(columns, schema=schema), [name for name in schema.names if names.get(name) in rows.column_names]


def _differing(before: pa.Table, after: pa.Table, shared: Sequence[str], keys: Sequence[str]) -> pa.Table:
    """The changes that make one table of another; all values distinguish rows without a key."""
    by = keys if keys and set(keys) <= set(shared) else shared
    rows = pa.concat_tables([before.replace_schema_metadata(), after.replace_schema_metadata()])
    count = len(before)
    values = numbers_of_keys(rows, shared)
    alike = np.unique(numbers_of_keys(rows, by), return_inverse=True)[1]
    places = np.arange(len(rows))
    order = np.lexsort((places, alike))
    olds, news = order[order < count], order[order >= count]
    pairs = [alike[some] * len(rows) + _turns(alike[some]) for some in (olds, news)]
    later = np.full(count, -1)
    _, old, new = np.intersect1d(pairs[0], pairs[1], assume_unique=True, return_indices=True)
    later[olds[old]] = news[new]
    is_new = np.ones(len(rows), dtype=bool)
    is_new[:count] = is_new[later[later >= 0]] = False
    is_gone = later < 0
    changed = np.flatnonzero(is_gone | (values[:count] != values[later])) if by else places[:0]
    kept = np.repeat(changed, np.where(is_gone[changed], 1, 2))
    is_second = np.r_[False, kept[1:] == kept[:-1]] if len(kept) else kept > 0
    kinds = np.where(is_gone[kept], "delete", np.where(is_second, "update_postimage", "update_preimage"))
    added = np.flatnonzero(is_new) if by else places[:0]
    taken = rows.take(pa.array(np.r_[np.where(is_second, later[kept], kept), added], pa.int64()))
    return taken.add_column(0, "_change_type", pa.array([*kinds, *["insert"] * len(added)], pa.string()))


def _turns(alike: Any) -> Any:
    starts = np.flatnonzero(np.r_[True, alike[1:] != alike[:-1]]) if len(alike) else alike
    return np.arange(len(alike)) - np.repeat(starts, np.diff(np.r_[starts, len(alike)]))
