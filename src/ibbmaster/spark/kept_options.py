"""The options of a table in Spark's catalog, kept in its schema: SELECT hands nothing else to a source in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from ibbmaster.arrow.shape import ShapeField, arrow_schema
from ibbmaster.errors import ConfigurationError
from ibbmaster.spark.options import listed

KEPT = "ibbmaster.options"  # in the metadata of the first column


def with_options(fields: Sequence[ShapeField], given: Mapping[str, str]) -> StructType:
    """The schema of a table that is made, with its options.

    Raises:
        ConfigurationError: a password is among them, which the catalog would show.
    """
    if "password" in given:
        raise ConfigurationError("CREATE TABLE would keep the password: set IBBMASTER_PASSWORD for driver and workers")
    first, *others = from_arrow_schema(arrow_schema(fields), prefer_timestamp_ntz=True).fields
    metadata = {KEPT: json.dumps(dict(given))}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_of(schema: StructType) -> dict[str, str]:
    """The options that a schema keeps, and its columns as one of them; none if there are none."""
    for field in schema.fields:
        if KEPT in field.metadata:
            given = json.loads(field.metadata[KEPT])
            given["columns"] = listed(schema.names)  # also where the log has altered the table since
            return dict(given)
    return {}
