"""Which groups changed a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ibbmaster.arrow.shape import RESERVED, field_name
from ibbmaster.errors import ConfigurationError
from ibbmaster.lake.text import named
from ibbmaster.spark.options import schema_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("_gtid", "_commit_ts", "_change_type", "_file_no", "_offset")


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
) -> DataFrame:
    """The changes of rows that have these values, as text, in the order of the log; with all columns of the table.

    Raises:
        ConfigurationError: the table has no such column.
    """
    from pyspark.sql import functions as f

    options = {"table": table, **schema_options(schema or None, name_case)}
    frame = session.read.format("ibb").options(**options).load(path)
    for given, value in values.items():
        name = given if given in own_columns(frame.columns) else field_name(given)
        if name not in frame.columns:
            own = own_columns(frame.columns)
            raise ConfigurationError(f"{table} has no column {given}; it has {', '.join(own)}")
        frame = frame.where(f.col(named(name)).cast("string") == value)
    return frame.orderBy("_file_no", "_offset", "_change_no")
