"""Triggers, routines and events that a real server logs, and statements about them that ours must answer alike."""

DDL = (
    "CREATE DATABASE r1 CHARACTER SET latin1",
    "CREATE DATABASE r2",
    "USE r1",
    "CREATE TABLE t (a INT PRIMARY KEY, b TEXT)",
    "CREATE TABLE `u u` (a INT)",
    "CREATE TABLE gone (a INT)",
    "CREATE TRIGGER tr1 BEFORE INSERT ON r1 . t   FOR EACH ROW   SET NEW.b = 'x'  ; ",
    "create or replace definer=`root`@`localhost` trigger r1.`tr 2`  after  update on r1.t for each row "
    "precedes_x: begin -- note\n set @a = 1;\n end",
    "CREATE TRIGGER tr3 BEFORE INSERT ON t FOR EACH ROW  FOLLOWS   tr1   SET @z = 3",
    "CREATE TRIGGER tr4 BEFORE INSERT ON t FOR EACH ROW PRECEDES tr1 SET @z = 'é'",
    "CREATE TRIGGER tr6 BEFORE INSERT ON t FOR EACH ROW SET @z = 6",
    "CREATE OR REPLACE TRIGGER tr3 BEFORE INSERT ON t FOR EACH ROW SET @z = 7",
    "CREATE TRIGGER IF NOT EXISTS tr3 BEFORE INSERT ON t FOR EACH ROW SET @z = 8",
    "DROP TRIGGER tr6",
    "CREATE DEFINER=CURRENT_USER TRIGGER IF NOT EXISTS tr5 AFTER DELETE ON `u u` FOR EACH ROW "
    "DELETE FROM t WHERE a = 1",
    "CREATE TRIGGER tg AFTER DELETE ON gone FOR EACH ROW SET @a = 1",
    "DROP TABLE gone",
    "CREATE PROCEDURE p1 (IN a INT, OUT b VARCHAR(20), INOUT c DECIMAL(10,2)) COMMENT 'it''s' SELECT 1",
    "CREATE PROCEDURE r2.p2() MODIFIES SQL DATA SQL SECURITY INVOKER BEGIN DECLARE x INT DEFAULT 1; SELECT x; END",
    "CREATE OR REPLACE PROCEDURE   p3(a INT,b ENUM('a','b') )\n NOT DETERMINISTIC\n SELECT a, b /* last */",
    "CREATE PROCEDURE IF NOT EXISTS p4() SELECT 1 /* hi */",
    "CREATE PROCEDURE IF NOT EXISTS p4() SELECT 2",
    "CREATE FUNCTION f1(x INT, y VARCHAR(10) CHARACTER SET utf8mb4) RETURNS VARCHAR(20) DETERMINISTIC "
    "RETURN concat(x,y)",
    "CREATE FUNCTION f2() RETURNS INT UNSIGNED NO SQL RETURN 1",
    "CREATE FUNCTION f3(a TEXT) RETURNS ENUM('a','b') CHARACTER SET utf8mb4 READS SQL DATA SQL SECURITY INVOKER "
    "COMMENT 'c' RETURN 'a'",
    "CREATE FUNCTION r2.f4(a INT) RETURNS DATETIME(3) NO SQL RETURN now()",
    "CREATE FUNCTION f5() RETURNS INT NO SQL RETURN 1",
    "DROP FUNCTION f5",
    "ALTER FUNCTION r2.f4 READS SQL DATA COMMENT 'a\\\\b\\n'",
    "ALTER PROCEDURE r2.P2 COMMENT 'new' SQL SECURITY DEFINER",
    "CREATE EVENT e1 ON SCHEDULE EVERY 1 DAY DO SELECT 1",
    "CREATE EVENT IF NOT EXISTS e3 ON SCHEDULE EVERY '1:30' MINUTE_SECOND STARTS '2030-01-01 01:02:03' "
    "ENDS '2031-01-01' ENABLE DO SELECT 3",
    "CREATE EVENT r2.e4 ON SCHEDULE EVERY 2 HOUR STARTS NOW() + INTERVAL 1 DAY DISABLE ON SLAVE DO SELECT 4",
    "ALTER EVENT r2.E4 ENABLE",
    "CREATE EVENT e5 ON SCHEDULE AT NOW() + INTERVAL 3 DAY DO SELECT 5",
    "ALTER EVENT e5 RENAME TO r2.e6 COMMENT 'renamed' DO SELECT 55",
    "CREATE EVENT past ON SCHEDULE AT '2001-01-01' DO SELECT 1",
    "CREATE EVENT kept ON SCHEDULE AT '2001-01-01' ON COMPLETION PRESERVE DO SELECT 1",
    "CREATE DEFINER=x@y EVENT r2.s5 ON SCHEDULE EVERY 1 HOUR DISABLE DO SELECT 1",
    "SET sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    'CREATE PROCEDURE "p q"() SELECT "a", \'b\\\' FROM "t"',
    'CREATE TRIGGER "x y" AFTER INSERT ON "u u" FOR EACH ROW SET @q = \'a\\\'',
    'CREATE EVENT "e q" ON SCHEDULE EVERY 1 DAY STARTS \'2030-01-01 00:00:00\' DO SELECT "a" FROM "t"',
    "SET sql_mode=ORACLE",
    "CREATE PROCEDURE po AS x INT; BEGIN SELECT 1; END",
    "CREATE PROCEDURE po2(a IN INT, b OUT VARCHAR2) COMMENT 'k' SQL SECURITY INVOKER IS BEGIN SELECT 1; END po2",
    "CREATE FUNCTION fo(a INT) RETURN VARCHAR(10) NO SQL AS BEGIN RETURN a; END",
    "CREATE PACKAGE pk AS PROCEDURE a; END",
    "CREATE PACKAGE BODY pk AS PROCEDURE a AS BEGIN SELECT 1; END; END",
    "CREATE PACKAGE pc COMMENT 'k' SQL SECURITY INVOKER AS PROCEDURE a; END",
    "SET sql_mode=''",
    "SET NAMES latin1",
    "SET time_zone='+03:00'",
    "ALTER EVENT r2.s5 ON SCHEDULE EVERY 2 HOUR STARTS '2030-01-01 00:00:00'",
    "CREATE EVENT e7 ON SCHEDULE EVERY 1 WEEK STARTS '2030-05-05 05:05:05' DO SELECT 'x'",
    "CREATE EVENT ea ON SCHEDULE EVERY 3 DAY STARTS '2030-01-01' DO BEGIN END",
    "DROP EVENT ea",
    "CREATE PROCEDURE pl() SELECT 'abc'",
    "SET NAMES utf8mb4",
    "SET collation_connection=utf8mb4_bin",
    "ALTER TABLE `u u` RENAME TO `v v`",
    "CREATE TRIGGER tb BEFORE DELETE ON `v v` FOR EACH ROW SET @a=1",
    "CREATE DATABASE r3",
    "CREATE PROCEDURE r3.p() SELECT 1",
    "DROP DATABASE r3",
)

#: What a server has as ours: the log has all that it says.
SHOWN = (
    *(
        f"SHOW CREATE TRIGGER r1.`{name}`"
        for name in ("tr1", "tr 2", "tr3", "tr4", "tr5", "tr6", "tg", "x y", "tb", "TB")
    ),
    *(f"SHOW CREATE PROCEDURE r1.`{name}`" for name in ("p1", "p3", "p4", "p q", "po", "po2", "pl", "no")),
    *(f"SHOW CREATE FUNCTION r1.`{name}`" for name in ("f1", "f2", "f3", "f5", "fo")),
    *(f"SHOW CREATE EVENT r1.`{name}`" for name in ("e5", "ea", "past")),
    "SHOW CREATE PACKAGE r1.pk",
    "SHOW CREATE PACKAGE BODY r1.pk",
    "SHOW CREATE PACKAGE r1.pc",
    "SHOW CREATE PROCEDURE r3.p",
    "SHOW TRIGGERS FROM r1 LIKE 't'",
    "SHOW TRIGGERS FROM r1 LIKE 'v%'",
    "SHOW TRIGGERS FROM r1 WHERE `Trigger` = 'tb'",
    "SHOW TRIGGERS FROM r2",
    "SHOW TRIGGERS FROM r3",
    "SHOW TRIGGERS",
    "SHOW EVENTS FROM r3",
    "SHOW EVENTS",
    "SELECT * FROM information_schema.triggers WHERE trigger_schema IN ('r1', 'r2', 'r3') ORDER BY trigger_name",
)
#: What a server has as ours but for columns that are NULL, because only a declaration says what is in them.
LISTED = (
    *(f"SHOW {kind} STATUS WHERE Db = 'r1'" for kind in ("PROCEDURE", "FUNCTION", "PACKAGE", "PACKAGE BODY")),
    "SHOW PROCEDURE STATUS LIKE 'p_'",
    "SHOW EVENTS FROM r2",
    "SHOW EVENTS FROM r1 LIKE 'e%'",
    *(f"SHOW CREATE EVENT r1.`{name}`" for name in ("E1", "e3", "e7", "e q", "kept")),
    *(
        f"SELECT * FROM information_schema.{table}s WHERE {table}_schema IN ('r1', 'r2') ORDER BY {table}_name"
        for table in ("routine", "event")
    ),
)
#: What an ALTER has changed, or a declaration of parameters says: refused.
REFUSED = (
    "SHOW CREATE PROCEDURE r2.P2",
    "SHOW CREATE FUNCTION r2.f4",
    *(f"SHOW CREATE EVENT r2.{name}" for name in ("e4", "E6", "s5")),
    "SELECT * FROM information_schema.parameters WHERE specific_schema = 'r1'",
)
