"""Types of columns with the values at their edges, and tables whose columns get every other type."""

from collections.abc import Iterator

from tests.case_table import cases_beside

#: A type, and values that it takes as they are.
TYPES = {kind: tuple(values) for kind, values in cases_beside(__file__).items()}

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
