"""What statements mean under each sql_mode, to be asked of a real primary and of ours."""

import json
from pathlib import Path

MODES = (
    *("", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "ANSI_QUOTES", "HIGH_NOT_PRECEDENCE", "IGNORE_SPACE"),
    *("EMPTY_STRING_IS_NULL", "ORACLE", "MSSQL", "DB2", "MAXDB", "POSTGRESQL", "MYSQL40", "MYSQL323", "TRADITIONAL"),
    *("ANSI", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "pipes_as_concat,,High_Not_Precedence", "ANSI,foo", " ANSI"),
)
_DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
STATEMENTS = _DATA["statements"]
