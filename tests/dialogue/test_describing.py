"""The columns of results, as 11.8.6 described them to a client of utf8mb4."""

import pytest

RECORDED = {  # statement: name, type, length, flags, decimals
    "SELECT 1": ("1", 3, 1, 0x81, 0),
    "SELECT -1": ("-1", 3, 2, 0x81, 0),
    "SELECT 18446744073709551615": ("18446744073709551615", 8, 20, 0xA1, 0),
    "SELECT 18446744073709551616": ("18446744073709551616", 246, 21, 0x81, 0),
    "SELECT 1.5": ("1.5", 246, 4, 0x81, 1),
    "SELECT NULL": ("NULL", 6, 0, 0x80, 0),
    "SELECT 'abc'": ("abc", 253, 12, 0x01, 39),
    "SELECT _latin1'abc'": ("abc", 253, 12, 0x01, 39),
    "SELECT 0x41": ("0x41", 253, 1, 0xA1, 0),
    "SELECT 1=1": ("1=1", 3, 1, 0x81, 0),
    "SELECT 1/3": ("1/3", 246, 7, 0x80, 4),
    "SELECT 5 DIV 2": ("5 DIV 2", 3, 1, 0x80, 0),
    "SELECT NOT 1": ("NOT 1", 3, 1, 0x81, 0),
    "SELECT CASE WHEN 1 THEN 'a' ELSE 'b' END": ("CASE WHEN 1 THEN 'a' ELSE 'b' END", 253, 4, 0x01, 39),
    "SELECT IF(1,'a','b')": ("IF(1,'a','b')", 253, 4, 0x01, 39),
    "SELECT IFNULL(NULL,5)": ("IFNULL(NULL,5)", 3, 1, 0x81, 0),
    "SELECT COALESCE(NULL,NULL,7)": ("COALESCE(NULL,NULL,7)", 3, 1, 0x81, 0),
    "SELECT CONCAT('a',NULL)": ("CONCAT('a',NULL)", 253, 4, 0, 39),
    "SELECT NOW()": ("NOW()", 7, 19, 0x81, 0),
    "SELECT NOW(6)": ("NOW(6)", 7, 26, 0x81, 6),
    "SELECT UTC_TIMESTAMP": ("UTC_TIMESTAMP", 12, 19, 0x81, 0),
    "SELECT TIMEDIFF(NOW(), UTC_TIMESTAMP)": ("TIMEDIFF(NOW(), UTC_TIMESTAMP)", 11, 10, 0x80, 0),
    "SELECT CHARSET('a')": ("CHARSET('a')", 253, 256, 0, 39),
    "SELECT DATABASE()": ("DATABASE()", 253, 256, 0, 39),
    "SELECT USER()": ("USER()", 253, 1536, 0, 39),
    "SELECT CONNECTION_ID()": ("CONNECTION_ID()", 3, 10, 0xA1, 0),
    "SELECT UNIX_TIMESTAMP()": ("UNIX_TIMESTAMP()", 8, 17, 0x80, 0),
    "SELECT LAST_INSERT_ID()": ("LAST_INSERT_ID()", 8, 21, 0xA1, 0),
    "SELECT COUNT(*) FROM information_schema.tables": ("COUNT(*)", 8, 21, 0x81, 0),
    "SELECT BINLOG_GTID_POS('x',4)": ("BINLOG_GTID_POS('x',4)", 251, 67108864, 0, 39),
    "SELECT MASTER_GTID_WAIT('0-1-1', 0)": ("MASTER_GTID_WAIT('0-1-1', 0)", 3, 2, 0x81, 0),
    "SELECT @@autocommit": ("@@autocommit", 8, 1, 0x80, 0),
    "SELECT @@wait_timeout": ("@@wait_timeout", 8, 21, 0xA0, 0),
    "SELECT @@max_statement_time": ("@@max_statement_time", 5, 21, 0x80, 6),
    "SELECT @@timestamp": ("@@timestamp", 5, 21, 0x80, 6),
    "SELECT @@character_set_client": ("@@character_set_client", 253, 28, 0, 39),
    "SET @a=1.5; SELECT @a": ("@a", 246, 83, 0x80, 38),
    "SET @a=1e3; SELECT @a": ("@a", 5, 23, 0x80, 31),
    "SET @a=-7; SELECT @a": ("@a", 8, 20, 0x80, 0),
    "SET @a=0x41; SELECT @a": ("@a", 251, 16777215, 0x80, 39),
    "SET @a='x'; SELECT @a": ("@a", 251, 67108860, 0, 39),
    "SELECT domain_id FROM mysql.gtid_slave_pos": ("domain_id", 3, 10, 0x5023, 0),
    "SELECT engine e FROM information_schema.tables": ("e", 253, 256, 0x1000, 0),
    "SHOW COLLATION": ("Collation", 253, 256, 0x1001, 0),
    "SHOW TABLES FROM mysql": ("Tables_in_mysql", 253, 292, 0x1001, 0),
    "SHOW DATABASES LIKE 'm%'": ("Database (m%)", 253, 256, 0x1001, 0),
    "SHOW MASTER STATUS": ("File", 253, 2048, 0x01, 39),
    "SHOW WARNINGS": ("Level", 253, 28, 0x01, 39),
    "SHOW GRANTS": ("Grants for repl@%", 253, 4096, 0x01, 39),
}


@pytest.mark.parametrize(("sql", "expected"), RECORDED.items(), ids=list(RECORDED))
def test_a_column_is_described_as_a_real_server_does(new_dialog, sql, expected):
    column = new_dialog("classic-11.8").query(sql.encode())[-1].columns[0]
    assert (column.name, column.column_type, column.length, column.flags, column.decimals) == expected


def test_now_was_a_datetime_up_to_10_11(new_dialog):
    (column,) = new_dialog("classic-10.11").query(b"SELECT NOW()")[0].columns
    assert column.column_type == 12
