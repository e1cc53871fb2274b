"""Statements that a real primary and ours answer alike, and what of an answer is compared."""

from lanes.sql_file import sql_beside

#: Answers equal in names and types of columns, in rows, and in the code of errors.
ALIKE = sql_beside(__file__)["alike"]

#: Answers equal in whether they are rows, OK or the code of an error.
OF_A_KIND = (
    "SELECT NOW(), CURRENT_TIMESTAMP, UTC_TIMESTAMP, USER(), CURRENT_USER, CONNECTION_ID(), VERSION()",
    "SHOW MASTER STATUS",
    "SHOW BINARY LOGS",
    "SHOW GRANTS FOR CURRENT_USER",
    "SHOW ENGINES",
    "SHOW PROCESSLIST",
    "SHOW PLUGINS",
    "SHOW VARIABLES",
    "SHOW STATUS LIKE 'binlog_snapshot_%'",
    "SELECT @@gtid_binlog_pos, @@gtid_current_pos, @@server_id",
    "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata",
)
