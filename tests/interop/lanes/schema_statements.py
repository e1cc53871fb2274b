"""DDL that a real server runs and logs, and statements about its tables that ours must answer alike."""

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
#: Prepared with a value for each `?`: the same rows in the binary protocol.
PREPARED: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("SELECT 1, 1.50, -3, 18446744073709551615, 1e20, 0x4142, NULL", ()),
    ("SELECT 'a' LIKE ?", ("A%",)),
    ("SELECT table_name FROM information_schema.tables WHERE table_schema=? ORDER BY 1", ("r1",)),
    (
        "SELECT column_name, ordinal_position, numeric_precision, column_default FROM information_schema.columns WHERE "
        "table_schema=? AND table_name=? ORDER BY ordinal_position LIMIT ?",
        ("r1", "t1", 5),
    ),
    ("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema=?", ("r1",)),
    ("SHOW TABLES FROM r1 LIKE 'p%'", ()),
    ("SHOW CREATE TABLE r1.f", ()),
    ("SELECT TIMEDIFF('10:00:00','09:00:00')", ()),
    ("SELECT 1 LIMIT ?", (0,)),
    ("SET @a = ?", (7,)),
    ("KILL ?", (99999999,)),
    ("SELEC 1", ()),
    ("SELECT 1; SELECT 2", ()),
    ("", ()),
    ("SELECT ? FROM nodb.t", (1,)),
)
