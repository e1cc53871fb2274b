"""The columns of information_schema's tables and of what SHOW lists: facts of MariaDB 11.8.

Collected from a server's answers. A column is its name, a letter for its type with its length in bytes,
its flags in hexadecimal if they are not NOT NULL (`?`: it may be NULL), and its decimals.
"""

from __future__ import annotations

import functools

from ibbmaster.wire.response import COLLATION_BINARY, COLLATION_DEFAULT, ColumnDefinition, FieldType

SYSTEM_DATABASES = ("information_schema", "mysql", "performance_schema")

_FLAGS = 0x1001  # NOT NULL, and without a default
_MAY_BE_NULL = 0x1000
_TYPES = {
    "v": FieldType.VAR_STRING,
    "t": FieldType.BLOB,
    "b": FieldType.LONG_BLOB,
    "y": FieldType.TINY,
    "s": FieldType.SHORT,
    "i": FieldType.LONG,
    "l": FieldType.LONGLONG,
    "n": FieldType.NEWDECIMAL,
    "r": FieldType.FLOAT,
    "f": FieldType.DOUBLE,
    "d": FieldType.DATETIME,
}
_TEXTS = "vtb"


def read_columns(text: str, *, schema: str = "", table: str = "") -> tuple[ColumnDefinition, ...]:
    """Columns out of a text such as `Charset v128, Maxlen l3`."""
    return tuple(_column(part, schema, table) for part in text.split(", "))


@functools.cache
def information_columns(table: str) -> tuple[ColumnDefinition, ...]:
    """The columns of a table of information_schema, by its name in upper case."""
    return read_columns(INFORMATION_SCHEMA[table], schema="information_schema", table=table)


def _column(text: str, schema: str, table: str) -> ColumnDefinition:
    name, _, rest = text.rpartition(" ")
    rest, _, decimals = rest.partition("/")
    rest, _, flags = rest.partition(":")
    may_be_null = rest.endswith("?")
    return ColumnDefinition(
        name=name,
        column_type=_TYPES[rest[0]],
        length=int(rest[1:].removesuffix("?")),
        collation_id=COLLATION_DEFAULT if rest[0] in _TEXTS else COLLATION_BINARY,
        flags=int(flags, 16) if flags else _MAY_BE_NULL if may_be_null else _FLAGS,
        decimals=int(decimals or 0),
        schema=schema,
        table=table,
        original_table=table,
        original_name=name if table else "",
    )


INFORMATION_SCHEMA = {
    "CHARACTER_SETS": "CHARACTER_SET_NAME v128, DEFAULT_COLLATE_NAME v256, DESCRIPTION v240, MAXLEN l3",
    "COLLATIONS": (
        "COLLATION_NAME v256, CHARACTER_SET_NAME v128?, ID l11?, IS_DEFAULT v12?, IS_COMPILED v12, SORTLEN "
        "l3, COMMENT v320"
    ),
    "COLLATION_CHARACTER_SET_APPLICABILITY": (
        "COLLATION_NAME v256, CHARACTER_SET_NAME v128, FULL_COLLATION_NAME v256, ID l11, IS_DEFAULT v12"
    ),
    "CHECK_CONSTRAINTS": (
        "CONSTRAINT_CATALOG v2048, CONSTRAINT_SCHEMA v256, TABLE_NAME v256, CONSTRAINT_NAME v256, LEVEL v24, "
        "CHECK_CLAUSE t786384:1011"
    ),
    "COLUMNS": (
        "TABLE_CATALOG v2048, TABLE_SCHEMA v256, TABLE_NAME v256, COLUMN_NAME v256, ORDINAL_POSITION "
        "l21:1021, COLUMN_DEFAULT t786384:1010, IS_NULLABLE v12, DATA_TYPE v256, CHARACTER_MAXIMUM_LENGTH "
        "l21:1020, CHARACTER_OCTET_LENGTH l21:1020, NUMERIC_PRECISION l21:1020, NUMERIC_SCALE l21:1020, "
        "DATETIME_PRECISION l21:1020, CHARACTER_SET_NAME v128?, COLLATION_NAME v256?, COLUMN_TYPE "
        "t786420:1011, COLUMN_KEY v12, EXTRA v320, PRIVILEGES v320, COLUMN_COMMENT v4096, IS_GENERATED v24, "
        "GENERATION_EXPRESSION t786384:1010, IS_SYSTEM_TIME_PERIOD_START v12, IS_SYSTEM_TIME_PERIOD_END v12"
    ),
    "COLUMN_PRIVILEGES": (
        "GRANTEE v1540, TABLE_CATALOG v2048, TABLE_SCHEMA v256, TABLE_NAME v256, COLUMN_NAME v256, "
        "PRIVILEGE_TYPE v256, IS_GRANTABLE v12"
    ),
    "ENGINES": "ENGINE v256, SUPPORT v32, COMMENT v640, TRANSACTIONS v12?, XA v12?, SAVEPOINTS v12?",
    "EVENTS": (
        "EVENT_CATALOG v256, EVENT_SCHEMA v256, EVENT_NAME v256, DEFINER v1536, TIME_ZONE v256, EVENT_BODY "
        "v32, EVENT_DEFINITION t786420:1011, EVENT_TYPE v36, EXECUTE_AT d19:1080, INTERVAL_VALUE v1024?, "
        "INTERVAL_FIELD v72?, SQL_MODE v32768, STARTS d19:1080, ENDS d19:1080, STATUS v72, ON_COMPLETION v48, "
        "CREATED d19:1081, LAST_ALTERED d19:1081, LAST_EXECUTED d19:1080, EVENT_COMMENT v256, ORIGINATOR l10, "
        "CHARACTER_SET_CLIENT v128, COLLATION_CONNECTION v256, DATABASE_COLLATION v256"
    ),
    "INNODB_CMP": (
        "page_size i5, compress_ops i11, compress_ops_ok i11, compress_time i11, uncompress_ops i11, "
        "uncompress_time i11"
    ),
    "INNODB_CMPMEM": (
        "page_size i5, buffer_pool_instance i11, pages_used i11, pages_free i11, relocation_ops l21, "
        "relocation_time i11"
    ),
    "FILES": (
        "FILE_ID l4, FILE_NAME v2048?, FILE_TYPE v80, TABLESPACE_NAME v256?, TABLE_CATALOG v256, TABLE_SCHEMA "
        "v256?, TABLE_NAME v256?, LOGFILE_GROUP_NAME v256?, LOGFILE_GROUP_NUMBER l4?, ENGINE v256, "
        "FULLTEXT_KEYS v256?, DELETED_ROWS l4?, UPDATE_COUNT l4?, FREE_EXTENTS l4?, TOTAL_EXTENTS l4?, "
        "EXTENT_SIZE l4, INITIAL_SIZE l21:1020, MAXIMUM_SIZE l21:1020, AUTOEXTEND_SIZE l21:1020, "
        "CREATION_TIME d19:1080, LAST_UPDATE_TIME d19:1080, LAST_ACCESS_TIME d19:1080, RECOVER_TIME l4?, "
        "TRANSACTION_COUNTER l4?, VERSION l21:1020, ROW_FORMAT v40?, TABLE_ROWS l21:1020, AVG_ROW_LENGTH "
        "l21:1020, DATA_LENGTH l21:1020, MAX_DATA_LENGTH l21:1020, INDEX_LENGTH l21:1020, DATA_FREE l21:1020, "
        "CREATE_TIME d19:1080, UPDATE_TIME d19:1080, CHECK_TIME d19:1080, CHECKSUM l21:1020, STATUS v80, "
        "EXTRA v1020?"
    ),
    "GLOBAL_STATUS": "VARIABLE_NAME v256, VARIABLE_VALUE v16384",
    "GLOBAL_VARIABLES": "VARIABLE_NAME v256, VARIABLE_VALUE v16384",
    "KEY_COLUMN_USAGE": (
        "CONSTRAINT_CATALOG v2048, CONSTRAINT_SCHEMA v256, CONSTRAINT_NAME v256, TABLE_CATALOG v2048, "
        "TABLE_SCHEMA v256, TABLE_NAME v256, COLUMN_NAME v256, ORDINAL_POSITION l10, "
        "POSITION_IN_UNIQUE_CONSTRAINT l10?, REFERENCED_TABLE_SCHEMA v256?, REFERENCED_TABLE_NAME v256?, "
        "REFERENCED_COLUMN_NAME v256?"
    ),
    "PARAMETERS": (
        "SPECIFIC_CATALOG v2048, SPECIFIC_SCHEMA v256, SPECIFIC_NAME v256, ORDINAL_POSITION i21, "
        "PARAMETER_MODE v20?, PARAMETER_NAME v256?, DATA_TYPE v256, CHARACTER_MAXIMUM_LENGTH i21?, "
        "CHARACTER_OCTET_LENGTH i21?, NUMERIC_PRECISION i21?, NUMERIC_SCALE i21?, DATETIME_PRECISION "
        "l21:1020, CHARACTER_SET_NAME v256?, COLLATION_NAME v256?, DTD_IDENTIFIER t786420:1011, ROUTINE_TYPE "
        "v36"
    ),
    "PARTITIONS": (
        "TABLE_CATALOG v2048, TABLE_SCHEMA v256, TABLE_NAME v256, PARTITION_NAME v256?, SUBPARTITION_NAME "
        "v256?, PARTITION_ORDINAL_POSITION l21:1020, SUBPARTITION_ORDINAL_POSITION l21:1020, PARTITION_METHOD "
        "v72?, SUBPARTITION_METHOD v48?, PARTITION_EXPRESSION t786420:1010, SUBPARTITION_EXPRESSION "
        "t786420:1010, PARTITION_DESCRIPTION t786420:1010, TABLE_ROWS l21:1021, AVG_ROW_LENGTH l21:1021, "
        "DATA_LENGTH l21:1021, MAX_DATA_LENGTH l21:1020, INDEX_LENGTH l21:1021, DATA_FREE l21:1021, "
        "CREATE_TIME d19:1080, UPDATE_TIME d19:1080, CHECK_TIME d19:1080, CHECKSUM l21:1020, "
        "PARTITION_COMMENT v320, NODEGROUP v48, TABLESPACE_NAME v256?"
    ),
    "PLUGINS": (
        "PLUGIN_NAME v256, PLUGIN_VERSION v80, PLUGIN_STATUS v64, PLUGIN_TYPE v320, PLUGIN_TYPE_VERSION v80, "
        "PLUGIN_LIBRARY v256?, PLUGIN_LIBRARY_VERSION v80?, PLUGIN_AUTHOR v256?, PLUGIN_DESCRIPTION "
        "t786420:1010, PLUGIN_LICENSE v320, LOAD_OPTION v256, PLUGIN_MATURITY v48, PLUGIN_AUTH_VERSION v320?"
    ),
    "PROCESSLIST": (
        "ID l4, USER v512, HOST v256, DB v256?, COMMAND v64, TIME i7, STATE v256?, INFO t786420:1010, TIME_MS "
        "n24/3, STAGE y2, MAX_STAGE y2, PROGRESS n9/3, MEMORY_USED l10, MAX_MEMORY_USED l10, EXAMINED_ROWS "
        "l10, SENT_ROWS l10, QUERY_ID l10, INFO_BINARY t65535:1090, TID l10, TMP_SPACE_USED l10"
    ),
    "REFERENTIAL_CONSTRAINTS": (
        "CONSTRAINT_CATALOG v2048, CONSTRAINT_SCHEMA v256, CONSTRAINT_NAME v256, UNIQUE_CONSTRAINT_CATALOG "
        "v2048, UNIQUE_CONSTRAINT_SCHEMA v256, UNIQUE_CONSTRAINT_NAME v256?, MATCH_OPTION v256, UPDATE_RULE "
        "v256, DELETE_RULE v256, TABLE_NAME v256, REFERENCED_TABLE_NAME v256?"
    ),
    "ROUTINES": (
        "SPECIFIC_NAME v256, ROUTINE_CATALOG v2048, ROUTINE_SCHEMA v256, ROUTINE_NAME v256, ROUTINE_TYPE v52, "
        "DATA_TYPE v256, CHARACTER_MAXIMUM_LENGTH i21?, CHARACTER_OCTET_LENGTH i21?, NUMERIC_PRECISION i21?, "
        "NUMERIC_SCALE i21?, DATETIME_PRECISION l21:1020, CHARACTER_SET_NAME v256?, COLLATION_NAME v256?, "
        "DTD_IDENTIFIER t786420:1010, ROUTINE_BODY v32, ROUTINE_DEFINITION t786420:1010, EXTERNAL_NAME v256?, "
        "EXTERNAL_LANGUAGE v256?, PARAMETER_STYLE v32, IS_DETERMINISTIC v12, SQL_DATA_ACCESS v256, SQL_PATH "
        "v256?, SECURITY_TYPE v28, CREATED d19:1081, LAST_ALTERED d19:1081, SQL_MODE v32768, ROUTINE_COMMENT "
        "t786420:1011, DEFINER v1536, CHARACTER_SET_CLIENT v128, COLLATION_CONNECTION v256, "
        "DATABASE_COLLATION v256"
    ),
    "SCHEMATA": (
        "CATALOG_NAME v2048, SCHEMA_NAME v256, DEFAULT_CHARACTER_SET_NAME v128, DEFAULT_COLLATION_NAME v256, "
        "SQL_PATH v2048?, SCHEMA_COMMENT v4096"
    ),
    "SCHEMA_PRIVILEGES": "GRANTEE v1540, TABLE_CATALOG v2048, TABLE_SCHEMA v256, PRIVILEGE_TYPE v256, IS_GRANTABLE v12",
    "SESSION_STATUS": "VARIABLE_NAME v256, VARIABLE_VALUE v16384",
    "SESSION_VARIABLES": "VARIABLE_NAME v256, VARIABLE_VALUE v16384",
    "STATISTICS": (
        "TABLE_CATALOG v2048, TABLE_SCHEMA v256, TABLE_NAME v256, NON_UNIQUE l1, INDEX_SCHEMA v256, "
        "INDEX_NAME v256, SEQ_IN_INDEX i2:1021, COLUMN_NAME v256, COLLATION v4?, CARDINALITY l21?, SUB_PART "
        "l3?, PACKED v40?, NULLABLE v12, INDEX_TYPE v64, COMMENT v64, INDEX_COMMENT v4096, IGNORED v12"
    ),
    "TABLES": (
        "TABLE_CATALOG v2048, TABLE_SCHEMA v256, TABLE_NAME v256, TABLE_TYPE v256, ENGINE v256?, VERSION "
        "l21:1020, ROW_FORMAT v40?, TABLE_ROWS l21:1020, AVG_ROW_LENGTH l21:1020, DATA_LENGTH l21:1020, "
        "MAX_DATA_LENGTH l21:1020, INDEX_LENGTH l21:1020, DATA_FREE l21:1020, AUTO_INCREMENT l21:1020, "
        "CREATE_TIME d19:1080, UPDATE_TIME d19:1080, CHECK_TIME d19:1080, TABLE_COLLATION v256?, CHECKSUM "
        "l21:1020, CREATE_OPTIONS v8192?, TABLE_COMMENT v8192, MAX_INDEX_LENGTH l21:1020, TEMPORARY v4?"
    ),
    "TABLE_CONSTRAINTS": (
        "CONSTRAINT_CATALOG v2048, CONSTRAINT_SCHEMA v256, CONSTRAINT_NAME v256, TABLE_SCHEMA v256, "
        "TABLE_NAME v256, CONSTRAINT_TYPE v256"
    ),
    "TABLE_PRIVILEGES": (
        "GRANTEE v1540, TABLE_CATALOG v2048, TABLE_SCHEMA v256, TABLE_NAME v256, PRIVILEGE_TYPE v256, IS_GRANTABLE v12"
    ),
    "TRIGGERS": (
        "TRIGGER_CATALOG v2048, TRIGGER_SCHEMA v256, TRIGGER_NAME v256, EVENT_MANIPULATION v24, "
        "EVENT_OBJECT_CATALOG v2048, EVENT_OBJECT_SCHEMA v256, EVENT_OBJECT_TABLE v256, ACTION_ORDER l4, "
        "ACTION_CONDITION t786420:1010, ACTION_STATEMENT t786420:1010, ACTION_ORIENTATION v36, ACTION_TIMING "
        "v24, ACTION_REFERENCE_OLD_TABLE v256?, ACTION_REFERENCE_NEW_TABLE v256?, ACTION_REFERENCE_OLD_ROW "
        "v12, ACTION_REFERENCE_NEW_ROW v12, CREATED d22:1080/2, SQL_MODE v32768, DEFINER v1536?, "
        "CHARACTER_SET_CLIENT v128, COLLATION_CONNECTION v256, DATABASE_COLLATION v256"
    ),
    "USER_PRIVILEGES": "GRANTEE v1540, TABLE_CATALOG v2048, PRIVILEGE_TYPE v256, IS_GRANTABLE v12",
    "VIEWS": (
        "TABLE_CATALOG v2048, TABLE_SCHEMA v256, TABLE_NAME v256, VIEW_DEFINITION t786420:1011, CHECK_OPTION "
        "v32, IS_UPDATABLE v12, DEFINER v1536, SECURITY_TYPE v28, CHARACTER_SET_CLIENT v128, "
        "COLLATION_CONNECTION v256, ALGORITHM v40"
    ),
}

#: By what is shown. SHOW TABLES names its first column after the database.
SHOWN = {
    "COLLATION": "Collation v256, Charset v128?, Id l11?, Default v12?, Compiled v12, Sortlen l3",
    "CHARACTER SET": "Charset v128, Description v240, Default collation v256, Maxlen l3",
    "ENGINES": "Engine v256, Support v32, Comment v640, Transactions v12?, XA v12?, Savepoints v12?",
    "PLUGINS": "Name v256, Status v64, Type v320, Library v256?, License v320",
    "PRIVILEGES": "Privilege v40:1/39, Context v60:1/39, Comment v256:1/39",
    "PROFILES": "Query_ID i10:a1, Duration f8:a1, Query v160:1/39",
    "TABLE STATUS": (
        "Name v256, Engine v256?, Version l21:1020, Row_format v40?, Rows l21:1020, Avg_row_length l21:1020, "
        "Data_length l21:1020, Max_data_length l21:1020, Index_length l21:1020, Data_free l21:1020, "
        "Auto_increment l21:1020, Create_time d19:1080, Update_time d19:1080, Check_time d19:1080, Collation "
        "v256?, Checksum l21:1020, Create_options v8192?, Comment v8192, Max_index_length l21:1020, Temporary "
        "v4?"
    ),
    "OPEN TABLES": "Database v256, Table v256, In_use l1, Name_locked l4",
    "TRIGGERS": (
        "Trigger v256, Event v24, Table v256, Statement t786420:1010, Timing v24, Created d22:1080/2, "
        "sql_mode v32768, Definer v1536?, character_set_client v128, collation_connection v256, Database "
        "Collation v256"
    ),
    "EVENTS": (
        "Db v256, Name v256, Definer v1536, Time zone v256, Type v36, Execute at d19:1080, Interval value "
        "v1024?, Interval field v72?, Starts d19:1080, Ends d19:1080, Status v72, Originator l10, "
        "character_set_client v128, collation_connection v256, Database Collation v256"
    ),
    "PROCEDURE STATUS": (
        "Db v256, Name v256, Type v52, Definer v1536, Modified d19:1081, Created d19:1081, Security_type v28, "
        "Comment t786420:1011, character_set_client v128, collation_connection v256, Database Collation v256"
    ),
    "CREATE PROCEDURE": (
        "Procedure v256:1/39, sql_mode v1024:1/39, Create Procedure v4096:0/39, character_set_client v128:1/39, "
        "collation_connection v256:1/39, Database Collation v128:1/39"
    ),
    "CREATE TRIGGER": (
        "Trigger v768:1/39, sql_mode v1024:1/39, SQL Original Statement v4096:0/39, character_set_client v128:1/39, "
        "collation_connection v256:1/39, Database Collation v256:1/39, Created d22:80/2"
    ),
    "CREATE EVENT": (
        "Event v256:1/39, sql_mode v1024:1/39, time_zone v256:1/39, Create Event v4096:1/39, character_set_client "
        "v128:1/39, collation_connection v256:1/39, Database Collation v256:1/39"
    ),
    "ENGINE": "Type v40:1/39, Name v2048:1/39, Status v40:1/39",
    "SLAVE STATUS": (
        "Slave_IO_State v256?, Master_Host v1020?, Master_User v1536?, Master_Port s5:1021, Connect_Retry "
        "i10:1021, Master_Log_File v2048, Read_Master_Log_Pos l20:1021, Relay_Log_File v2048, Relay_Log_Pos "
        "l20:1021, Relay_Master_Log_File v2048, Slave_IO_Running v40, Slave_SQL_Running v12, Replicate_Do_DB "
        "v87376, Replicate_Ignore_DB v87376, Replicate_Do_Table v87376, Replicate_Ignore_Table v87376, "
        "Replicate_Wild_Do_Table v87376, Replicate_Wild_Ignore_Table v87376, Last_Errno s4:1021, Last_Error "
        "v4096?, Skip_Counter i10:1021, Exec_Master_Log_Pos l20:1021, Relay_Log_Space l20:1021, "
        "Until_Condition v24, Until_Log_File v2048?, Until_Log_Pos l20:1021, Master_SSL_Allowed v28?, "
        "Master_SSL_CA_File v2048?, Master_SSL_CA_Path v2048?, Master_SSL_Cert v2048?, Master_SSL_Cipher "
        "v2048?, Master_SSL_Key v2048?, Seconds_Behind_Master l20:1020, Master_SSL_Verify_Server_Cert v12, "
        "Last_IO_Errno s4:1021, Last_IO_Error v4096?, Last_SQL_Errno s4:1021, Last_SQL_Error v4096?, "
        "Replicate_Ignore_Server_Ids v87376, Master_Server_Id i10:1021, Master_SSL_Crl v2048?, "
        "Master_SSL_Crlpath v2048?, Using_Gtid v44?, Gtid_IO_Pos v87376, Replicate_Do_Domain_Ids v87376, "
        "Replicate_Ignore_Domain_Ids v87376, Parallel_Mode v48, SQL_Delay i10:1021, SQL_Remaining_Delay "
        "i10:1020, Slave_SQL_Running_State v87376?, Slave_DDL_Groups l20:1021, Slave_Non_Transactional_Groups "
        "l20:1021, Slave_Transactional_Groups l20:1021, Replicate_Rewrite_DB v87376"
    ),
    "ALL SLAVES STATUS": (
        "Connection_name v256, Slave_SQL_State v256?, Slave_IO_State v256?, Master_Host v1020?, Master_User "
        "v1536?, Master_Port s5:1021, Connect_Retry i10:1021, Master_Log_File v2048, Read_Master_Log_Pos "
        "l20:1021, Relay_Log_File v2048, Relay_Log_Pos l20:1021, Relay_Master_Log_File v2048, "
        "Slave_IO_Running v40, Slave_SQL_Running v12, Replicate_Do_DB v87376, Replicate_Ignore_DB v87376, "
        "Replicate_Do_Table v87376, Replicate_Ignore_Table v87376, Replicate_Wild_Do_Table v87376, "
        "Replicate_Wild_Ignore_Table v87376, Last_Errno s4:1021, Last_Error v4096?, Skip_Counter i10:1021, "
        "Exec_Master_Log_Pos l20:1021, Relay_Log_Space l20:1021, Until_Condition v24, Until_Log_File v2048?, "
        "Until_Log_Pos l20:1021, Master_SSL_Allowed v28?, Master_SSL_CA_File v2048?, Master_SSL_CA_Path "
        "v2048?, Master_SSL_Cert v2048?, Master_SSL_Cipher v2048?, Master_SSL_Key v2048?, "
        "Seconds_Behind_Master l20:1020, Master_SSL_Verify_Server_Cert v12, Last_IO_Errno s4:1021, "
        "Last_IO_Error v4096?, Last_SQL_Errno s4:1021, Last_SQL_Error v4096?, Replicate_Ignore_Server_Ids "
        "v87376, Master_Server_Id i10:1021, Master_SSL_Crl v2048?, Master_SSL_Crlpath v2048?, Using_Gtid "
        "v44?, Gtid_IO_Pos v87376, Replicate_Do_Domain_Ids v87376, Replicate_Ignore_Domain_Ids v87376, "
        "Parallel_Mode v48, SQL_Delay i10:1021, SQL_Remaining_Delay i10:1020, Slave_SQL_Running_State "
        "v87376?, Slave_DDL_Groups l20:1021, Slave_Non_Transactional_Groups l20:1021, "
        "Slave_Transactional_Groups l20:1021, Replicate_Rewrite_DB v87376, Retried_transactions i10:1021, "
        "Max_relay_log_size i10:1021, Executed_log_entries i10:1021, Slave_received_heartbeats i10:1021, "
        "Slave_heartbeat_period r9/3, Gtid_Slave_Pos v87376, Master_last_event_time d19:1080, "
        "Slave_last_event_time d19:1080, Master_Slave_time_diff i10:1020"
    ),
    "CONTRIBUTORS": "Name v160:1/39, Location v160:1/39, Comment v2048:1/39",
    "DATABASES": "Database v256",
    "CREATE DATABASE": "Database v256:1/39, Create Database v4096:1/39",
    "CREATE TABLE": "Table v256:1/39, Create Table v4096:1/39",
    "CREATE VIEW": (
        "View v256:1/39, Create View v4096:1/39, character_set_client v128:1/39, collation_connection v256:1/39"
    ),
    "COLUMNS": "Field v256, Type t786420:1011, Null v12, Key v12, Default t786384:1010, Extra v320",
    "FULL COLUMNS": (
        "Field v256, Type t786420:1011, Collation v256?, Null v12, Key v12, Default t786384:1010, Extra v320, "
        "Privileges v320, Comment v4096"
    ),
    "INDEX": (
        "Table v256, Non_unique l1, Key_name v256, Seq_in_index i2:1021, Column_name v256, Collation v4?, "
        "Cardinality l21?, Sub_part l3?, Packed v40?, Null v12, Index_type v64, Comment v64, Index_comment "
        "v4096, Ignored v12"
    ),
}
