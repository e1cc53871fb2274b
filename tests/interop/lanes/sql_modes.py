"""What statements mean under each sql_mode, to be asked of a real primary and of ours."""

MODES = (
    *("", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "ANSI_QUOTES", "HIGH_NOT_PRECEDENCE", "IGNORE_SPACE"),
    *("EMPTY_STRING_IS_NULL", "ORACLE", "MSSQL", "DB2", "MAXDB", "POSTGRESQL", "MYSQL40", "MYSQL323", "TRADITIONAL"),
    *("ANSI", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "pipes_as_concat,,High_Not_Precedence", "ANSI,foo", " ANSI"),
)
STATEMENTS = (
    "SELECT @@sql_mode",
    *(r"SELECT 'a\n'", r"SELECT 'a\'", r"SELECT 'a''b'", r"SELECT 'a\'b'", r"SELECT 'a\%\_\q'", r"SELECT 'a\\''b'"),
    *('SELECT "a"', 'SELECT "a""b"', 'SELECT 1 AS "x y"', "SELECT 1 AS 'x y'", "SELECT 'a' \"b\"", "SELECT 'a' 'b'"),
    *("SELECT 1 AS [x y]", "SELECT 1 AS [x]]y]", "SELECT 1 AS `a``b`"),
    *("SELECT 'a'||'b'", "SELECT 1||0", "SELECT 1||2+3", "SELECT 2*3||4", "SELECT -1||2"),
    *("SELECT 'a'||NULL", "SELECT NULL||NULL", "SELECT 'a'||'b'||'c'", "SELECT 1 OR 0 || 1"),
    *("SELECT NOT 1 BETWEEN -5 AND 5", "SELECT NOT 0 = 0", "SELECT NOT 2 + 1", "SELECT !2+1", "SELECT NOT NOT 5"),
    *("SELECT NOW () > 0", "SELECT UPPER ('a')", "SELECT CONCAT ('a','b')", "SELECT SUBSTRING ('abc', 2)"),
    *("SELECT IF (1,2,3)", "SELECT CAST ('1' AS SIGNED)"),
    *("SELECT COALESCE('', 'x')", "SELECT '' IS NULL", "SELECT 'a%' LIKE 'a\\%'", "SELECT 'ab' LIKE 'a\\%'"),
    *("SELECT 1 --\n+1", "SELECT 1 --2", "SELECT 2*/* x */3", "SELECT 1 */", "SELECT 1 /* x", "SELECT 1 -- x"),
    *("SELECT 1 /*! + 1 */", "SELECT 1 /*!99999 + 1 */", "SELECT 1 /*!50701 + 1 */", "SELECT 1 /*M!50701 + 1 */"),
    *("SELECT 1 /*!100500 + 1 */", "SELECT 1 /*!! + 1 */", "SELECT 1 /*!!130000 + 1 */", "SELECT 1 /*! + 1"),
    *("SELECT 1 /*!999999 + /* 2 */ 1 */ + 3", "SELECT 1 /*! + /* 2 */ 1 */ + 3"),
    *("SELECT x'4'", "SELECT 0X41", "SELECT N'a'", "SELECT 1.5a", "SELECT 1e", "SELECT .5", "SELECT 1."),
    *("SELECT 'a", "SELECT `a", "SELECT 1 \x01", "SELECT 5 DIV 2, 5 MOD 2", "SELECT 5 % 2"),
    *("SET @`a``b` = 1, @'it''s' = 2, @a.b = 3", "SELECT @`a``b`", "SELECT @'it''s'", "SELECT @a.b"),
)
