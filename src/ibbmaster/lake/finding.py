"""Which groups changed a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ibbmaster.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("_gtid", "_commit_ts", "_change_type", "_file_no", "_offset")


def find_changes(
    session: SparkSession, path: str, table: str, values: Mapping[str, str], *, schema: str | None = None
) -> DataFrame:
    """The changes of rows that have these values, as text, in the order of the log; with all columns of the table.

    Raises:
        ConfigurationError: the table has no such column.
    """
    from pyspark.sql import functions as f

    options = {"table": table} | ({"schema": schema} if schema else {})
    frame = session.read.format("ibb").options(**options).load(path)
    for name, value in values.items():
        if name not in frame.columns:
            own = [column for column in frame.columns if not column.startswith("_")]
            raise ConfigurationError(f"{table} has no column {name}; it has {', '.join(own)}")
        quoted = "`" + name.replace("`", "``") + "`"
        frame = frame.where(f.col(quoted).cast("string") == value)
    return frame.orderBy("_file_no", "_offset", "_change_no")
