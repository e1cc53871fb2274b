"""Every type of column beside every kind of literal, and every function over every kind of value: the grid that says
which SELECTs are answered. `python -m lanes.select_grid` in tests/interop asks real servers, and keeps their answers.
"""

import argparse
import hashlib
import itertools
import lzma
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pymysql

from ibbmaster.testkit.mariadb_programs import find_programs
from ibbmaster.testkit.mariadb_server import RealPrimary, ServerTemplate

FOLDER = Path(__file__).parents[3] / "fixtures" / "answers" / "grid"
VERSIONS = ("10.11", "11.8")
SESSION = (
    "SET time_zone = '+00:00', @i = 7, @j = -24, @d = 7.5, @e = 24.0, @r = 5e-1, @q = 24e0, @s = '24', @t = 'a', "
    "@b = x'61', @c = x'07', NAMES utf8mb4 COLLATE utf8mb4_general_ci"
)
OPERATORS = ("=", "<", ">=", "<>", "<=>", "IN", "BETWEEN", "LIKE")
UUIDS = "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", "'6ba7b811-9dad-41d1-80b4-00c04fd430c8'"
WHOLE = "0 1 2 7 24 -1 100 99 2024 NULL"
EXACT = "0 1 7.5 -1 24 7 0.1 2024.5 -7.25 NULL"
TEXTS = r"'' 'a' 'A' '7' '24' '7abc' ' 7' '2024' 'DE ' 'Ä' 'Å' '2024-06-01' 'b%' '1e1' 'é' '0' NULL"
BYTES = "'' 'a' 'A' x'07' '7' '24' 'a ' x'0061' x'ff' NULL"
MOMENTS = (
    "'2024-06-01 00:00:00' '2024-06-01 10:00:00' '1970-01-02 00:00:01' '2037-12-31 23:59:59' '2007-01-24 07:24:01'"
)

#: Name, type, values; what of them is a key of its own table.
COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("ti", "TINYINT", "0 1 2 7 24 -1 100 99 20 NULL"),
    ("tu", "TINYINT UNSIGNED", "0 1 2 7 24 255 100 99 20 NULL"),
    ("si", "SMALLINT", WHOLE),
    ("mi", "MEDIUMINT", WHOLE),
    ("i", "INT", f"{WHOLE} 20240601"),
    ("iu", "INT UNSIGNED", "0 1 2 7 24 4294967295 100 99 2024 20240601 NULL"),
    ("zf", "INT(6) ZEROFILL", "0 1 2 7 24 4294967295 100 99 2024 20240601 NULL"),
    ("bi", "BIGINT", f"{WHOLE} 20240601 9223372036854775807 9007199254740993 -9223372036854775808"),
    ("bu", "BIGINT UNSIGNED", "0 1 2 7 24 18446744073709551615 100 9007199254740993 2024 20240601 NULL"),
    ("bo", "BOOLEAN", "0 1 NULL"),
    ("d1", "DECIMAL(10,2)", f"{EXACT} 20240601"),
    ("d2", "DECIMAL(30,10)", f"{EXACT} 0.3333333333 20240601"),
    ("d3", "DECIMAL(20,0) UNSIGNED", "0 1 2 7 24 18446744073709551615 100 9007199254740993 2024 20240601 NULL"),
    ("f", "FLOAT", f"{EXACT} 1e10"),
    ("d", "DOUBLE", f"{EXACT} 0.3333333333333333 1e15 20240601"),
    ("f2", "FLOAT(7,3)", EXACT),
    ("b1", "BIT(1)", "0 1 NULL"),
    ("b13", "BIT(13)", "0 1 7 24 55 97 2024 NULL"),
    ("b64", "BIT(64)", "0 1 7 24 55 18446744073709551615 2024 NULL"),
    ("y", "YEAR", "0 2000 2001 2007 2024 1901 1999 2155 NULL"),
    ("da", "DATE", "'2024-06-01' '2007-01-24' '0000-00-00' '2024-00-00' '1970-01-02' '9999-12-31' '2020-10-10' NULL"),
    ("dt", "DATETIME", f"{MOMENTS} '0000-00-00 00:00:00' '2024-06-00 10:00:00' '9999-12-31 23:59:59' NULL"),
    ("dt6", "DATETIME(6)",
     f"{MOMENTS} '0000-00-00 00:00:00' '2024-06-01 10:00:00.5' '2024-06-01 10:00:00.000001' NULL"),
    ("ts", "TIMESTAMP NULL", f"{MOMENTS} '0000-00-00 00:00:00' NULL"),
    ("ts3", "TIMESTAMP(3) NULL", f"{MOMENTS} '0000-00-00 00:00:00' '2024-06-01 10:00:00.500' NULL"),
    ("t", "TIME", "'10:00:00' '00:00:00' '00:00:07' '-00:00:01' '838:59:59' '00:00:24' '20:24:00' NULL"),
    ("t2", "TIME(2)", "'10:00:00' '00:00:00' '00:00:07.5' '-00:00:01.25' '838:59:59' '00:00:24' '00:00:00.10' NULL"),
    ("c", "CHAR(10) CHARACTER SET ascii COLLATE ascii_general_ci", TEXTS.replace("'Ä' 'Å' ", "").replace("'é' ", "")),
    ("v", "VARCHAR(40) COLLATE utf8mb4_general_ci", f"{TEXTS} 'a ' 'small'"),
    ("vb", "VARCHAR(40) COLLATE utf8mb4_bin", f"{TEXTS} 'a ' 'small'"),
    ("vu", "VARCHAR(40) COLLATE utf8mb4_unicode_ci", TEXTS),
    ("vl", "VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_swedish_ci", f"{TEXTS} 'a ' 'Z' '['"),
    ("vn", "VARCHAR(40) COLLATE utf8mb4_nopad_bin", f"{TEXTS} 'a ' 'DE'"),
    ("tx", "TEXT COLLATE utf8mb4_general_ci", TEXTS),
    ("bn", "BINARY(4)", BYTES),
    ("vbn", "VARBINARY(12)", f"{BYTES} '2024-06-01'"),
    ("bl", "BLOB", BYTES),
    ("e", "ENUM('small','7','a','24','x-large','DE') COLLATE utf8mb4_general_ci",
     "'small' '7' 'a' '24' 'x-large' 'DE' NULL"),
    ("s", "SET('red','blue','7','a','24') COLLATE utf8mb4_general_ci",
     "'' 'red' 'red,blue' '7' 'a' '24' 'blue,a,24' NULL"),
    ("j", "JSON", "'{}' '[1]' '7' '\"a\"' '24' 'null' NULL"),
    ("u", "UUID",
     f"{UUIDS[0]} {UUIDS[1]} '00000000-0000-0000-0000-000000000000' '01890a5d-ac96-774b-bcce-b302099a8057' "
     "'0fffffff-0000-1000-8000-000000000000' 'f47ac10b-58cc-4372-a567-0e02b2c3d479' NULL"),
    ("ip", "INET6", "'::' '::1' '2001:db8::7' '::ffff:1.2.3.4' NULL"),
    ("ip4", "INET4", "'0.0.0.0' '1.2.3.4' '255.255.255.255' NULL"),
)  # fmt: skip
#: Literals that are alike, the next of which ends BETWEEN and is in IN.
LITERALS: tuple[tuple[str, ...], ...] = (
    ("0", "1", "24", "2024", "20240601", "-1", "18446744073709551615", "9007199254740993", "20240601100000"),
    ("TRUE", "FALSE"),
    ("0.1", "7.5", "-7.25", "24.0", "2024.5"),
    ("0.5e0", "1e0", "1e1", "2.4e1"),
    ("''", "'7'", "'24'", "'2024'", "'7.50'", "'1e1'", "' 7'", "'0'", "'-1'"),
    ("'a'", "'7abc'", "'A'", "'DE '", "'small'", "'red,blue'", "'Ä'", "'b%'", "'%a%'"),
    ("'2024-06-01'", "'2024-6-1'", "'24-06-01'", "'20240601'", "'2024-00-00'"),
    ("'2024-06-01 10:00:00'", "'2024-06-01 10:00'", "'2024-06-01T10:00:00'", "'2024-06-01 10:00:00.5'"),
    ("'10:00:00'", "'00:00:07.5'", "'-00:00:01'"),
    UUIDS,
    ("'::1'", "'2001:DB8::7'", "'1.2.3.4'"),
    ("x'07'", "x'61'", "X'2024'"),
    ("0x07", "0x61", "0x18"),
    ("b'1'", "b'111'", "b'1100001'"),
    ("NULL", "NULL"),
    ("DATE'2024-06-01'", "DATE'2024-12-31'"),
    ("TIME'10:00:00'", "TIME'12:00:00.5'"),
    ("TIMESTAMP'2024-06-01 10:00:00'", "TIMESTAMP'2025-01-01 00:00:00.5'"),
    ("1/3", "15/2", "24/1"),
    ("ROUND(6.5e0)", "ROUND(0.5e0)"),
    ("@n", "@n"),
    ("@i", "@j"),
    ("@d", "@e"),
    ("@r", "@q"),
    ("@s", "@t"),
    ("@b", "@c"),
    ("@@wait_timeout", "@@autocommit"),
    ("@@max_statement_time", "@@long_query_time"),
    ("@@character_set_client", "@@collation_connection"),
)
#: Functions and operators; $ is a column or a literal.
SCALARS: tuple[str, ...] = (
    "$", "-$", "$ + 1", "$ - 1", "$ * 2", "$ / 3", "$ DIV 2", "$ % 3", "$ + 0.5", "$ + 1e0", "$ + '1'", "NOT $",
    "$ IS NULL", "$ IS TRUE", "$ IS FALSE", "$ AND 1", "$ OR 0", "$ = $", "NOT ($ = $)", "NOT ($ IS NULL)",
    "$ = $ OR $ IS NULL", "$ = $ AND 1 = 1", "$ = $ IS TRUE", "CASE WHEN $ = $ THEN $ END", "IF($ IS NULL, 1, 0)",
    "($ = $) + 1", "CASE WHEN $ IS NULL THEN 1 ELSE 0 END", "$ || 'x'", "BINARY $", "CASE WHEN $ THEN 1 ELSE 0 END",
    "CASE $ WHEN 7 THEN 'x' ELSE 'y' END", "ABS($)", "ROUND($)", "ROUND($, 1)", "MOD($, 3)", "LEAST($, 5)",
    "LEAST($, 'm')", "CONCAT($)", "CONCAT($, 'x')", "UPPER($)", "LOWER($)", "LEFT($, 2)", "SUBSTRING($, 2)",
    "SUBSTRING($, 2, 3)", "LOCATE('a', $)", "SUBSTRING_INDEX($, '-', 1)", "CRC32($)", "CHARSET($)", "COLLATION($)",
    "IF($, 'x', 'y')", "IF(1, $, NULL)", "IFNULL($, 0)", "IFNULL($, 'x')", "COALESCE($, 0)", "ISNULL($)",
    "CAST($ AS SIGNED)", "CAST($ AS UNSIGNED)", "CAST($ AS CHAR)", "CAST($ AS CHAR(3))", "CAST($ AS BINARY)",
    "CAST($ AS DECIMAL)", "CAST($ AS DECIMAL(10,2))", "CAST($ AS DOUBLE)", "CAST($ AS FLOAT)", "CAST($ AS DATE)",
    "CAST($ AS DATETIME)", "CONVERT($, CHAR)", "CONVERT($ USING utf8mb4)", "DATE($)", "TIMEDIFF($, '01:00:00')",
    "TIMEDIFF($, '2024-01-01 00:00:01')", "TIMEDIFF('2024-01-01 00:00:01', $)",
)  # fmt: skip
COMPOSED: tuple[str, ...] = (
    "UPPER(CONCAT($, 'x'))", "LEFT(UPPER($), 2)", "CONCAT(LEFT($, 2), 'x')", "CONCAT($, '-', $)", "ROUND($ / 3, 2)",
    "ABS($ - 5)", "($ + 1) * 2", "$ * $", "$ / ($ + 1)", "$ * 2 > 5", "$ / 3 < 2", "$ % 4 = 1",
    "ABS(MOD(CRC32(CAST($ AS CHAR)), 8))", "IF($ = $, $, NULL)", "IFNULL($ + 1, 0)",
    "CASE WHEN $ IS NULL THEN 'none' ELSE $ END", "CASE WHEN $ > 7 THEN 'x' WHEN $ < 2 THEN 'y' END",
    "COALESCE($, $, 'none')", "DATE($) = '2024-06-01'", "DATE($) >= DATE'2024-01-01'", "LOWER($) LIKE 'a%'",
    "LOWER($) = 'a'", "UPPER($) LIKE '%A%'", "LEFT($, 1) = 'a'", "$ BETWEEN $ AND $", "$ IN ($, $)", "$ <=> $",
    "$ != $", "$ < $", "CAST($ AS CHAR) = '7'", "CAST($ AS CHAR) LIKE '%7'", "CRC32($) % 3 = 1",
    "LOWER($) LIKE LOWER('A%')", "-($ + 1)", "-ROUND($, 1)", "'a' COLLATE utf8mb4_bin = $", "$ BETWEEN 1 AND 9",
    "$ IN (1, 7)", "$ BETWEEN 'a' AND 'd'", "$ IN ('a', '7')", "$ < CURRENT_DATE", "POSITION('a' IN $)",
    "CONCAT(UPPER(LEFT($, 1)), LOWER(SUBSTRING($, 2)))", "COALESCE($ + 0, 0)", "ROUND($ * 1.5, 1)", "ABS(ROUND($))",
    "MOD($ + 1, 3)", "-ABS($)", "ABS(-$)", "NOT ($ > 1)", "NOT ($ IN (1, 7))", "$ IS NOT NULL AND $ > 1",
    "($ > 1) + ($ > 7)", "$ > 1 AND $ < 24", "NOT $ > 7", "$ = 7 IS TRUE", "DATE(NOW()) > DATE($)",
    "$ < CAST('2024-06-02' AS DATETIME)", "CONCAT(CAST($ AS CHAR), 'x')", "NOW() > $", "ISNULL(CONCAT($, 'x'))",
    "IF(CONCAT($, 'x') = 'ax', 1, 2)", "CAST(CONCAT($, '1') AS SIGNED)", "CHARSET(CONCAT($, ''))",
    "IF($ LIKE 'a%', $, 'x')", "CASE $ WHEN 'a' THEN -7 WHEN '7' THEN 91 ELSE 1111 END",
    "IF(ISNULL($ + 1), 10, $ + 1)", "IF($ = 'a' OR $ = 'A', 'x', IF($ = '7', 'y', $))",
    "IF(LEFT($, 1) = 'a', LEFT($, 1), NULL)", "TIMEDIFF($, NOW()) IS NULL", "TIMEDIFF(NOW(), $) IS NULL",
)  # fmt: skip
AGGREGATES = (
    "COUNT($)", "COUNT(DISTINCT $)", "MIN($)", "MAX($)", "SUM($)", "AVG($)", "SUM(DISTINCT $)",
    "AVG(IF($ > 3, 1, 0.5))", "MAX(IF($ > 3, $, 7))", "SUM($ + 0.5)", "AVG($ + 1)", "MAX($ * 2)", "MIN(DATE($))",
    "MAX(CONCAT($, 'x'))", "SUM($ * 2)", "SUM($ = $)", "COUNT($ = $)", "COALESCE(MAX($), 0)", "IFNULL(SUM($), 0)",
    "MAX($) IS NULL", "SUM($) > 5", "ROUND(AVG($), 2)", "SUM($) / COUNT(*)", "MIN($) + 1", "SUM($) * 2",
    "COUNT($) > 5", "COUNT(*) * 2", "MAX($) - MIN($)", "SUM(IF($ > 7, 1, 0))",
    "SUM(CASE WHEN $ = 7 THEN 1 ELSE 0 END)", "MAX($) > 7", "MAX($) = 7", "AVG($) > 7", "CONCAT(MAX($), 'x')",
    "100 * COUNT($) / COUNT(*)", "ROUND(100.0 * SUM($ > 7) / COUNT(*), 1)", "DATE(MAX($))",
)  # fmt: skip
CLOCK = "NOW()"
COMPUTED = (
    "i + 0", "bi + 0", "bu + 0", "d1 + 0", "d + 0", "f + 0", "y + 0", "CONCAT(v, '')", "CONCAT(vb, '')",
    "CONCAT(vl, '')", "CAST(v AS BINARY)", "DATE(dt)", "IFNULL(y, y)", "IFNULL(e, e)", CLOCK, "CRC32(v)", "d1 * 1.5",
)  # fmt: skip
QUERIES = (  # of the tables of one column, and of that with all
    "SELECT id FROM grid.g ORDER BY $, id", "SELECT id FROM grid.g ORDER BY $ DESC, id",
    "SELECT COUNT(DISTINCT $) FROM grid.g", "SELECT $, COUNT(*) FROM grid.g GROUP BY $ ORDER BY $",
    "SELECT DISTINCT $ FROM grid.g ORDER BY $",
    "SELECT AVG(n), MAX(n), SUM(n), MIN(n) FROM (SELECT COUNT(*) AS n FROM grid.g GROUP BY $) AS t",
    "SELECT COUNT(*) FROM grid.g GROUP BY $ HAVING COUNT(*) > 1 ORDER BY 1",
    "SELECT MAX(s), MIN(s), SUM(s), AVG(s) FROM (SELECT SUM($) AS s FROM grid.g GROUP BY id % 3) AS t",
    "SELECT MAX(s), MIN(s) FROM (SELECT MAX($) AS s FROM grid.g GROUP BY id % 3) AS t",
    "SELECT id FROM (SELECT id, $ AS s FROM grid.g) AS t WHERE s > 1 AND s < 99 ORDER BY 1",
    "SELECT id % 2 AS k, MAX($) FROM grid.g GROUP BY k HAVING MAX($) > 7 ORDER BY k",
    "SELECT v FROM grid.k_$ ORDER BY v", "SELECT v FROM grid.k_$ ORDER BY v DESC LIMIT 3",
    "SELECT MIN(v), MAX(v) FROM grid.k_$", "SELECT MAX(v) FROM (SELECT v FROM grid.k_$ ORDER BY v LIMIT 4) AS t",
)  # fmt: skip
PAIRED = ("=", "<", "<=>", "LIKE")
NO_KEY = ("j",)  # columns that no key of its own table is made of
BLOBS = (249, 250, 251, 252)
MISSING = "E"  # before the number of an error


class Asked(NamedTuple):
    """One SELECT, and what of the grid it is about."""

    sql: str
    cell: tuple[str, str, str]  # operator or function, column or literal, literal


def statements() -> Iterator[str]:
    """Makes the tables: `g` of all columns; `g_…`, `x_…` and `k_…` of each, without an index, with one, as the key."""
    yield "CREATE DATABASE grid DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    yield "USE grid"
    yield "SET binlog_format = ROW, time_zone = '+00:00', sql_mode = '', NAMES utf8mb4 COLLATE utf8mb4_general_ci"
    columns = ", ".join(f"{name} {kind}" for name, kind, _ in COLUMNS)
    yield f"CREATE TABLE g (id INT PRIMARY KEY, {columns})"
    given = [
        values.replace("' 7'", "'\0'").replace("'DE '", "'\1'").replace("'a '", "'\2'") for _, _, values in COLUMNS
    ]
    lists = [[_spaced(value) for value in _split(values)] for values in given]
    for number in range(max(map(len, lists))):
        row = ", ".join(one[number] if number < len(one) else "NULL" for one in lists)
        yield f"INSERT INTO g VALUES ({number + 1}, {row})"
    for name, kind, _ in COLUMNS:
        part = "v(10)" if kind.split()[0] in ("TEXT", "BLOB") else "v"
        yield f"CREATE TABLE g_{name} (id INT PRIMARY KEY, v {kind})"
        yield f"INSERT INTO g_{name} SELECT id, {name} FROM g"
        if name not in NO_KEY:
            yield f"CREATE TABLE x_{name} (id INT PRIMARY KEY, v {kind}, KEY ({part}))"
            yield f"INSERT INTO x_{name} SELECT id, {name} FROM g"
            yield f"CREATE TABLE k_{name} (id INT, v {kind.replace(' NULL', '')} NOT NULL, PRIMARY KEY ({part}))"
            yield f"INSERT IGNORE INTO k_{name} SELECT id, {name} FROM g WHERE {name} IS NOT NULL"


def _split(values: str) -> list[str]:
    """At spaces outside of quotes."""
    found, quoted = [""], False
    for letter in values:
        if letter == " " and not quoted:
            found.append("")
            continue
        quoted ^= letter == "'"
        found[-1] += letter
    return found


def _spaced(value: str) -> str:
    return value.replace("\0", " 7").replace("\1", "DE ").replace("\2", "a ")


def conditions() -> Iterator[tuple[str, str, str]]:
    """Operator, literal, and what stands after the column."""
    for group in LITERALS:
        for one, other in zip(group, (*group[1:], group[0]), strict=True):
            for operator in OPERATORS:
                rest = {"IN": f"IN ({one}, {other})", "BETWEEN": f"BETWEEN {one} AND {other}"}
                yield operator, one, rest.get(operator, f"{operator} {one}")


def asked_of(table: str, value: str = "v") -> list[Asked]:
    """All conditions on a value, in one table."""
    return [
        Asked(f"SELECT id FROM grid.{table} WHERE {value} {rest}", (operator, value, one))
        for operator, one, rest in conditions()
    ]


def in_brackets(sql: str) -> str:
    """The same as no plain form: the table is a query of its own."""
    table = sql.split()[3]
    return sql.replace(f"FROM {table}", f"FROM (SELECT * FROM {table}) AS q")


def scalars() -> Iterator[Asked]:
    """Every function over every column, and over every literal."""
    for form in (*SCALARS, *COMPOSED, *AGGREGATES):
        for name in (*(name for name, _, _ in COLUMNS), *(COMPUTED if form in SCALARS else ())):
            if name == CLOCK:
                continue  # the servers were asked at another time
            order = "" if form in AGGREGATES else " ORDER BY id"
            yield Asked(f"SELECT {form.replace('$', name)} FROM grid.g{order}", (form, name, ""))
    for form, group in itertools.product((*SCALARS, *COMPOSED), LITERALS):
        for literal in group:
            yield Asked(f"SELECT {form.replace('$', literal)}", (form, literal, ""))
    for form, (name, _, _) in itertools.product(QUERIES, COLUMNS):
        if name not in NO_KEY:
            yield Asked(form.replace("$", name), (form, name, ""))
    firsts = [literal for group in LITERALS for literal in group[:4]]
    for operator, one, other in itertools.product(("=", "<", "<=>", "LIKE"), firsts, firsts):
        yield Asked(f"SELECT {one} {operator} {other}", (operator, one, other))


def told(fields: Iterable[Any], rows: Iterable[Sequence[bytes | None]]) -> str:
    """Types and values, short."""
    types = [(252 if field.type_code in BLOBS else field.type_code, field.charsetnr) for field in fields]
    digest = hashlib.sha256(repr((types, [*rows])).encode()).hexdigest()
    return digest[:10]


def told_rows(rows: Iterable[Sequence[bytes | None]]) -> str:
    """Which rows, as the bits of their ids."""
    return f"{sum(1 << int(row[0] or 0) for row in rows):x}"


class RealAsker:
    """Asks one real server."""

    def __init__(self, server: RealPrimary) -> None:
        self.connection: Any = pymysql.connect(
            unix_socket=str(server.socket), user="root", charset="utf8mb4", conv={}, use_unicode=False, autocommit=None
        )
        self.connection.query(SESSION)
        self.connection.query("SET autocommit = 1")

    def condition(self, sql: str) -> str:
        return self._ask(sql, lambda found: told_rows(found.rows))

    def scalar(self, sql: str) -> str:
        return self._ask(sql, lambda found: told(found.fields, found.rows))

    def _ask(self, sql: str, show: Any) -> str:
        try:
            self.connection.query(sql)
        except pymysql.Error as error:
            return f"{MISSING}{error.args[0]}"
        return str(show(self.connection._result))


def record(folder: Path) -> None:
    """Ask the servers, and keep what they say, and the log of the older one."""
    answers: list[dict[str, list[str]]] = []
    for version in VERSIONS:
        template = ServerTemplate.of_user(find_programs(version))
        with tempfile.TemporaryDirectory() as directory:
            server = RealPrimary(template, Path(directory) / "s", [])
            with server:
                asker = RealAsker(server)
                asker.connection.query("SET sql_log_bin = 1")
                for statement in statements():
                    asker.connection.query(statement)
                asker.connection.query(SESSION)
                found: dict[str, list[str]] = {}
                for name, questions in asked():
                    found[name] = [asker.condition(one.sql) for one in questions]
                found["scalars"] = [asker.scalar(one.sql) for one in scalars()]
                answers.append(found)
                if version == VERSIONS[-1]:
                    asker.connection.query("FLUSH BINARY LOGS")
                    asker.connection.query("SHOW BINARY LOGS")
                    names = [row[0].decode() for row in asker.connection._result.rows][:-1]
                    folder.mkdir(parents=True, exist_ok=True)
                    for name in names:
                        shutil.copy(server.data / name, folder / name)
    with lzma.open(folder / "answers.xz", "wt", preset=9) as file:
        for key in answers[0]:
            pairs = zip(*(one[key] for one in answers), strict=True)
            file.write(key + "\t" + " ".join(a if a == b else f"{a}|{b}" for a, b in pairs) + "\n")


def asked() -> Iterator[tuple[str, list[Asked]]]:
    """All conditions, by the tables they are asked of."""
    for name, _, _ in COLUMNS:
        for table in ("g", "x", "k") if name not in NO_KEY else ("g",):
            yield f"{table}_{name}", asked_of(f"{table}_{name}")
    for value in COMPUTED:
        yield f"g {value}", asked_of("g", value)
    names = [*(name for name, _, _ in COLUMNS), *COMPUTED]
    for one in names:
        yield (
            f"g {one} beside others",
            [
                Asked(f"SELECT id FROM grid.g WHERE {one} {operator} {other}", (operator, one, other))
                for operator, other in itertools.product(PAIRED, names)
            ],
        )


def load(folder: Path = FOLDER) -> dict[str, list[str]]:
    """Answers that were kept; where the servers differ, both with a line between."""
    with lzma.open(folder / "answers.xz", "rt") as file:
        lines = (line.rstrip("\n").split("\t") for line in file)
        return {key: text.split(" ") for key, text in lines}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER)
    record(parser.parse_args().to)
