"""Which groups changed a row: found by Spark, or in this process."""

from __future__ import annotations

import datetime
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
from ibbmaster.lake.text import named
from ibbmaster.spark.options import schema_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

COLUMNS = ("_gtid", "_commit_ts", "_change_type", "_file_no", "_offset")
ORDER = ("_file_no", "_offset", "_change_no")


def own_columns(columns: Iterable[str]) -> list[str]:
    """Those of the table itself."""
    return [name for name in columns if name not in RESERVED]


def find_changes(
    session: SparkSession,
    path: str,
    table: str,
    values: Mapping[str, str],
    *,
    schema: str | None = None,
    name_case: int | None = None,
    zero_dates: str = "null",
) -> DataFrame:
    """The changes of rows that have these values, in the order of the log; with all columns of the table.

    Raises:
        ConfigurationError: the table has no such column, or the column no such value.
    """
    from pyspark.sql import functions as f

    options = {"table": table, "zeroDates": zero_dates, **schema_options(schema or None, name_case)}
    frame = session.read.format("ibb").options(**options).load(path)
    fields = [ShapeField(one.name, one.dataType.simpleString()) for one in frame.schema.fields]
    for field, value in _wanted(table, fields, values):
        frame = frame.where(f.col(named(field.name)) == _literal(value).cast(field.type))
    return frame.orderBy(*ORDER)


def find_in_log(options: ReadOptions, values: Mapping[str, str]) -> pa.Table:
    """The same of the table of options, read by this process range by range.

    Raises: as `find_changes`.
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


def _literal(value: Given) -> Column:
    """A value in Spark, which is cast then to the type of its column."""
    from pyspark.sql import functions as f

    if isinstance(value, bytes):
        return f.unhex(f.lit(value.hex()))
    return f.lit(value.isoformat() if isinstance(value, datetime.date) else value)
