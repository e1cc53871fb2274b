"""Whether an export can go on in the directory of its last run: what is there must still be the rows of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from ibbmaster.arrow.plan import end_of, history_of, of_table, open_log, selected_versions
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.shape import column_type
from ibbmaster.errors import StoreError
from ibbmaster.lake.table_directory import directory_of
from ibbmaster.rows.shape import added
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.schema.names import column_of
from ibbmaster.spark.options import parse_options
from ibbmaster.sqltext.table_name import parse_table_name


def tables_to_export(source: Mapping[str, str], names: Iterable[str], place: Path, start: str, end: str) -> list[str]:
    """The names under which tables are exported that a run has found rows of: those that they have at its end.

    Raises:
        StoreError: the last run ended at `start`, and what it has written of a table is not what that table has now.
    """
    options = parse_options(source)
    with closing(open_log(options)) as log:
        history = history_of(options, log)
        now = SchemaPlace(end_of(end, options, log), 0)
        found = sorted({_name_of(options, history, name, now) for name in names})
        if not start:
            return found
        then = SchemaPlace(end_of(start, options, log), 0)
        problems = [
            f"{name}: {problem}"
            for name in found
            for own in [history_of(of_table(options, name), log)]
            for problem in changes_of_table(options, own, name, then, now, has_rows=_is_there(place, name))
        ]
    if problems:
        raise StoreError(
            f"{place}: since the last run, which ended at {start}, {'; '.join(problems)}: rows that are there would be "
            "wrong: export into a new directory"
        )
    return found


def _name_of(options: ReadOptions, history: SchemaHistory, name: str, now: SchemaPlace) -> str:
    """What a table is called now that something was written under some name of."""
    newest = selected_versions(of_table(options, name), history, now).newest(now)
    return name if newest is None else newest.full_name


def _is_there(place: Path, name: str) -> bool:
    return directory_of(place, name).exists()


def changes_of_table(
    options: ReadOptions,
    history: SchemaHistory,
    name: str,
    then: SchemaPlace,
    now: SchemaPlace,
    *,
    has_rows: bool = True,
) -> Iterator[str]:
    """What has become of a table between two places, as far as rows that were written of it do not show it."""
    database, table = parse_table_name(name)
    versions = selected_versions(of_table(options, name), history, now)
    old, new = versions.newest(then), versions.newest(now)
    if old is not None and old.full_name != name:
        yield f"{old.full_name} is called so"
        return
    if not has_rows:
        return
    if history.table_at(database, table, then) is not None and not versions.means(database, table, then):
        yield "another table is called so"
    elif isinstance(old, TableVersion) and isinstance(new, TableVersion):
        yield from _column_changes(old, new, options)
    elif new is not None and new.undefined_because:
        yield f"its columns were perhaps others: {new.undefined_because}"


def _column_changes(old: TableVersion, new: TableVersion, options: ReadOptions) -> Iterator[str]:
    before = {column.id: column for column in old.shown.columns}
    names = {column.name for column in before.values()}
    for column in new.shown.columns:
        known = before.get(column.id)
        if known is None:
            origin = added(column, column_of(column))
            if column.name in names:
                yield f"another column is called {column.name}"
            elif origin.is_unknown or origin.fill is not None:
                yield f"column {column.name} was added, and has a value in older rows"
        elif known.name != column.name:
            yield f"column {known.name} is called {column.name}"
        elif column_type(column_of(known), options.zero_dates) != column_type(column_of(column), options.zero_dates):
            yield f"column {column.name} has another type"
