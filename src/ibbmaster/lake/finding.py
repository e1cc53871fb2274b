"""Which groups changed a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from ibbmaster.arrow.plan import find_fields, history_of, open_log, plan_tasks
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.reading import read_task
from ibbmaster.arrow.shape import RESERVED, ShapeField, arrow_schema, arrow_type, field_name
from ibbmaster.errors import ConfigurationError
from ibbmaster.lake.given_value import Given, parse_value

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("_gtid", "_commit_ts", "_change_type", "_file_no", "_offset")


def own_columns(columns: Iterable[str]) -> list[str]:
    """Those of the table itself."""
    return [name for name in columns if name not in RESERVED]


def find_in_log(options: ReadOptions, values: Mapping[str, str]) -> pa.Table:
    """The changes of rows of the table of options that have these values, in the order of the log, read range by range.

    Raises:
        ConfigurationError: the table has no such column, or the column no such value.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    assert options.table is not None
    with closing(open_log(options)) as log:
        name = history_of(options, log).case.key(options.table)
    options = replace(options, table=name, tables=(name,))
    fields = find_fields(options)
    wanted = _wanted(name, fields, values)
    found = []
    for task in plan_tasks(options, fields):
        for batch in read_task(task):
            for field, value in wanted:
                batch = batch.filter(pc.equal(batch[field.name], pa.scalar(value, arrow_type(field.type))))
            found.append(batch)
    return pa.Table.from_batches([batch for batch in found if len(batch)], schema=arrow_schema(fields))


def _wanted(table: str, fields: Iterable[ShapeField], values: Mapping[str, str]) -> list[tuple[ShapeField, Given]]:
    by_name = {field.name: field for field in fields}
    own = own_columns(by_name)
    found = []
    for given, text in values.items():
        name = given if given in own else field_name(given)
        if name not in by_name:
            raise ConfigurationError(f"{table} has no column {given}; it has {', '.join(own)}")
        found.append((by_name[name], parse_value(given, by_name[name].type, text)))
    return found
