"""DDL that a real server runs and logs, and statements about its tables that ours must answer alike."""

import json
from pathlib import Path

from lanes.sql_file import sql_beside

_SQL = sql_beside(__file__)
DDL = _SQL["ddl"]
#: Their columns are described alike, and have the same rows.
DESCRIBED = _SQL["described"]
#: Queries of tables that every server has: told by their expressions.
TOLD_BY_EXPRESSIONS = _SQL["told by expressions"]
#: The same of what has no table: texts are sent in utf8mb4.
DESCRIBED_IN_UTF8MB4 = _SQL["described in utf8mb4"]
#: What sessions set before they are asked.
RESULT_SETTINGS_IN_UTF8MB4 = _SQL["result settings in utf8mb4"]
RESULT_SETTINGS = (
    *RESULT_SETTINGS_IN_UTF8MB4,
    "SET NAMES utf8mb3",
    "SET NAMES latin1",
    "SET NAMES cp932, time_zone = '-03:30'",
    "SET character_set_results = NULL, time_zone = '+02:00'",
    "SET character_set_results = binary",
)
#: Each is answered with the same names and rows: also those of MariaDB Connector/J (getTables, getColumns, …).
ABOUT_TABLES = _SQL["about tables"]
_DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
#: Prepared with a value for each `?`: the same rows in the binary protocol.
PREPARED = _DATA["prepared"]
