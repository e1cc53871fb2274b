"""Offsets of a stream: a GTID position as JSON, with a hint where in the log that is.

`{"v": 1, "gtid": "0-1-100,1-2-7", "file": 12, "offset": 14303233}`: one GTID for each domain, so it lies between two
groups and splits no transaction. The position decides; the hint is for people and metrics. Of traditional files `file`
is the name.

The latest offset that Spark shows also has the `lag` of the last batch, that of one table's stream its `columns` with
their types. A running primary does not send again what was before: its offsets have `tables` where statements have
changed any: their CREATE TABLE, null for one that is gone or unknown.
"""

import json
from collections.abc import Mapping

from ibbmaster.errors import ConfigurationError, GtidError
from ibbmaster.gtid import GtidPosition
from ibbmaster.position import LogPosition
from ibbmaster.sqltext.table_name import TableName, parse_table_name

VERSION = 1

Offset = dict[str, int | str | dict[str, str | None] | dict[str, int]]
TableTexts = dict[TableName, str | None]  # CREATE TABLE by database and table


def encode_offset(
    position: GtidPosition, point: LogPosition, tables: TableTexts | None = None, *, file_name: str | None = None
) -> Offset:
    """`file_name` is the name of a traditional file."""
    file = point.file_no if file_name is None else file_name
    offset: Offset = {"v": VERSION, "gtid": str(position), "file": file, "offset": point.offset}
    if tables:
        offset["tables"] = {str(name): text for name, text in sorted(tables.items())}
    return offset


def tables_of(offset: Mapping[str, object]) -> TableTexts:
    """Raises ConfigurationError: the tables of the offset were not written so."""
    found = offset.get("tables", {})
    if not isinstance(found, dict) or not all(text is None or isinstance(text, str) for text in found.values()):
        raise ConfigurationError(f"offset {json.dumps(dict(offset))[:60]} has tables that are no statements")
    try:
        return {parse_table_name(name): text for name, text in found.items()}
    except ConfigurationError as error:
        problem = "an older version wrote it, and it may mean another table: begin the stream anew"
        raise ConfigurationError(f"offset {json.dumps(dict(offset))[:60]}: {error}: {problem}") from None


def decode_offset(offset: Mapping[str, object]) -> GtidPosition:
    """Raises ConfigurationError: the offset is none of ours, or of a later version."""
    if offset.get("v") != VERSION or not isinstance(offset.get("gtid"), str):
        raise ConfigurationError(
            f"offset {json.dumps(dict(offset))[:60]} is not one of this source (version {VERSION})"
        )
    return GtidPosition.parse(str(offset["gtid"]))


def position_of_option(text: str) -> GtidPosition:
    """Raises ConfigurationError: `startingOffsets` is neither a GTID position nor an offset."""
    try:
        return decode_offset(json.loads(text)) if text.startswith("{") else GtidPosition.parse(text)
    except (ValueError, RecursionError, GtidError, ConfigurationError) as error:
        problem = f"option startingOffsets is {text[:60]!r}, expected earliest, latest, a GTID position or an offset"
        raise ConfigurationError(f"{problem}: {error}") from None
