"""Types of columns with the values at their edges, and tables whose columns get every other type."""

from collections.abc import Iterator

LATIN, UTF8, UCS2 = "CHARACTER SET latin1", "CHARACTER SET utf8mb4", "CHARACTER SET ucs2"
TEXTS = ("''", "'a'", "'Az9'", "'12'", "'a '", "' a'", "'2020-02-29'", "'äöü'")
LONG = ("REPEAT('x', 255)", "REPEAT('x', 256)")
WIDE = ("'€'", "'漢字'", "'😀'")
BYTES = ("''", "'a'", "x'00'", "x'6100'", "'a '", "x'FF80'", "'12'")
MOMENTS = ("'1970-01-01 00:00:01'", "'2020-02-29 13:14:15.123456'", "'2037-12-31 23:59:59'", "0")

#: A type, and values that it takes as they are.
TYPES: dict[str, tuple[str, ...]] = {
    "TINYINT": ("-128", "-1", "0", "1", "70", "127"),
    "TINYINT UNSIGNED": ("0", "99", "128", "255"),
    "SMALLINT": ("-32768", "0", "12", "1901", "32767"),
    "INT": ("-2147483648", "-129", "0", "255", "2020", "2147483647"),
    "INT UNSIGNED": ("0", "2147483648", "4294967295"),
    "INT(5) ZEROFILL": ("0", "42", "4294967295"),
    "BIGINT": ("-9223372036854775808", "0", "16777217", "9007199254740993", "9223372036854775807"),
    "BIGINT UNSIGNED": ("0", "9223372036854775808", "18446744073709551615"),
    "DECIMAL(5,2)": ("-999.99", "-0.01", "0", "1.50", "12", "999.99"),
    "DECIMAL(20,4) UNSIGNED": ("0", "0.0001", "9999999999999999.9999"),
    "FLOAT": ("0", "-1.5", "0.1", "16777216", "3.40282e38", "1e-38"),
    "FLOAT(7,2)": ("0", "-1.5", "0.1", "12345.67"),
    "DOUBLE": ("0", "-1.5", "0.1", "0.5", "12", "9007199254740993", "1.7976931348623157e308", "1e-300"),
    "DOUBLE(10,3)": ("0", "-1.5", "0.125", "1234567.125"),
    "BIT(12)": ("b'0'", "b'101'", "b'111111111111'"),
    "BIT(64)": ("b'0'", "b'1'", "18446744073709551615"),
    "YEAR": ("0", "1901", "1999", "2155"),
    "DATE": ("'0000-00-00'", "'2020-00-01'", "'1000-01-01'", "'2020-02-29'", "'9999-12-31'"),
    "TIME": ("'00:00:00'", "'-838:59:59'", "'13:14:15'", "'838:59:59'"),
    "TIME(6)": ("'00:00:00'", "'-838:59:59.999999'", "'13:14:15.123456'", "'13:14:15'"),
    "DATETIME": ("'0000-00-00 00:00:00'", "'1000-01-01 00:00:00'", "'2020-02-29 13:14:15'", "'9999-12-31 23:59:59'"),
    "DATETIME(3)": ("0", "'2020-02-29 00:00:00'", "'2020-02-29 13:14:15.123'", "'9999-12-31 23:59:59.999'"),
    "TIMESTAMP NULL": MOMENTS,
    "TIMESTAMP(6) NULL": MOMENTS,
    f"CHAR(5) {UTF8}": ("''", "'a'", "'äöü€漢'", "'a '", "'12'"),
    f"CHAR(5) {LATIN}": ("''", "'a'", "'äöü€'", "'12'"),
    f"VARCHAR(5) {UTF8}": (*TEXTS[:6], "'äöü€漢'", "'a    '"),
    f"VARCHAR(5) {LATIN}": (*TEXTS[:6], "'äöü€x'"),
    f"VARCHAR(300) {UTF8}": (*TEXTS, *LONG, *WIDE),
    f"VARCHAR(300) {LATIN}": (*TEXTS, *LONG),
    f"VARCHAR(20) {UCS2}": (*TEXTS, "'€'", "'漢字'"),
    f"TINYTEXT {UTF8}": (*TEXTS, *WIDE, "REPEAT('€', 85)"),
    f"TEXT {UTF8}": (*TEXTS, *LONG, *WIDE),
    f"TEXT {LATIN}": (*TEXTS, *LONG),
    f"LONGTEXT {UTF8}": (*TEXTS, *LONG, *WIDE),
    "BINARY(4)": ("''", "'a'", "x'00'", "x'61626364'", "x'0000FF80'"),
    "VARBINARY(4)": (*BYTES, "x'61626364'"),
    "VARBINARY(300)": (*BYTES, "REPEAT(x'FF', 300)"),
    "BLOB": (*BYTES, "REPEAT(x'FF', 300)"),
    f"ENUM('a','b','c') {UTF8}": ("'a'", "'b'", "'c'", "0"),
    f"ENUM('c','a','d','b') {UTF8}": ("'a'", "'b'", "'d'", "0"),
    f"ENUM('a','b') {LATIN}": ("'a'", "'b'"),
    f"SET('a','b','c') {UTF8}": ("''", "'a'", "'a,c'", "'a,b,c'"),
    f"SET('c','b','a','d') {UTF8}": ("''", "'a'", "'a,c'", "'d,b'"),
    "UUID": ("'00000000-0000-0000-0000-000000000000'", "'123e4567-e89b-12d3-a456-426655440000'"),
    "INET4": ("'0.0.0.0'", "'192.0.2.255'"),
    "INET6": ("'::'", "'::ffff:192.0.2.1'", "'2001:db8::ff00:42:8329'"),
}


#: A value of each type that most others take, too, by the beginning of the type.
COMMON = {
    **dict.fromkeys(("BIT", "INT(5)"), "b'1100'"),
    **dict.fromkeys(("DATE", "TIMESTAMP"), "'2020-02-29'"),
    **dict.fromkeys(("ENUM", "SET"), "'a'"),
    "YEAR": "1999",
    "TIME(": "'13:14:15'",
    "UUID": "'123e4567-e89b-12d3-a456-426655440000'",
    "INET4": "'192.0.2.255'",
    "INET6": "'2001:db8::1'",
}


def common(kind: str) -> str:
    """A value that most types take, or that of the type alone."""
    word = "TIME(" if kind == "TIME" else kind
    return next((value for begin, value in COMMON.items() if word.startswith(begin)), "'12'")


def name_of(old: int, new: int) -> str:
    """The column that is of one type, and will be of another, both by their number."""
    return f"c{old}_{new}"


def created(old: int) -> Iterator[str]:
    """Tables of columns of one type: with a row for each of its values, and one of NULLs; and with a common value."""
    kind, values = list(TYPES.items())[old]
    columns = ", ".join(f"{name_of(old, new)} {kind}" for new in range(len(TYPES)))
    for table, rows in (("t", (*values, "NULL")), ("s", (common(kind),))):
        yield f"CREATE TABLE types.{table}{old} (k INT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4"
        written = (f"({number}, {', '.join([value] * len(TYPES))})" for number, value in enumerate(rows))
        yield f"INSERT INTO types.{table}{old} VALUES {', '.join(written)}"


def altered(old: int) -> Iterator[str]:
    """What gives each column of these tables its other type."""
    kinds = list(enumerate(TYPES))
    changes = ", ".join(f"MODIFY {name_of(old, new)} {kind}" for new, kind in kinds if new != old)
    yield from (f"ALTER TABLE types.{table}{old} {changes}" for table in "ts")
