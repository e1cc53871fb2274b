"""A user's declarations: columns of CREATE TABLE statements, name to type as written."""

import contextlib
import re
from collections.abc import Iterable, Iterator

from ibbmaster.replication.event.rows.attributes import KEY_MARK, attributes_of, is_primary_key, named_charset
from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.token import TokenKind
from .clause import Definition, IndexDefinition, NotUnderstoodError, PeriodDefinition
from .ddl import statement_cursor
from .definition import begins_column, parse_definition
from .dump_text import statements_of
from .model import IndexKind
from .reading import expect_table

_CONDITION = re.compile(r"/\*M?!\d*\s*\Z")  # in front of what only some servers run
_TEXT = re.compile(r"(?:(?:tiny|medium|long)?text|(?:var)?char)\b", re.IGNORECASE)


def parse_declarations(script: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Every table that a script creates with columns, as `database.table`, and these, name to type.

    A table is in the database of the last USE. Columns of LIKE and SELECT are unknown; system versioning adds
    `row_start` and `row_end`. Columns without a character set get the table's, unless it is utf8mb4, the default; those
    of the table's key get KEY_MARK. Raises ConfigurationError: the script ends inside a statement."""
    database = ""
    for statement in statements_of([script], ends_in_routines=True):
        cursor = statement_cursor(statement)
        while cursor.takes_words("USE"):  # its line may end it, too
            database = _used(statement, cursor)
        if (found := _declared(statement, cursor, database)) is not None:
            yield found


def _used(sql: str, cursor: Cursor) -> str:
    """The name after USE: without quotes all up to the next space, as a client takes it."""
    first = last = cursor.take()
    if first.kind is TokenKind.NAME:
        return first.text
    while not cursor.is_at_end and not cursor.peek().is_spaced:
        last = cursor.take()
    return sql[first.start : last.end]


def _declared(sql: str, cursor: Cursor, database: str) -> tuple[str, dict[str, str]] | None:
    if _CONDITION.search(sql, 0, cursor.peek().start) or not cursor.takes_words("CREATE"):
        return None
    cursor.takes_words("OR", "REPLACE")
    cursor.takes_words("TEMPORARY")
    if not cursor.takes_words("TABLE"):
        return None
    cursor.pass_condition()
    try:
        table = expect_table(cursor, database)
    except NotUnderstoodError:
        return None
    if not cursor.peek().is_sign("(") or cursor.peek(1).is_word("LIKE", "SELECT", "WITH", "VALUES"):
        return None
    columns: dict[str, str] = {}
    others: list[Definition] = []
    for part in parts_of(cursor.bracketed()):
        own = Cursor(part)
        if not begins_column(own):
            with contextlib.suppress(NotUnderstoodError):
                others.append(parse_definition(own, table.database))
        elif (name := own.name()) is not None and len(part) > 1:
            columns[name] = "".join(" " * one.is_spaced + sql[one.start : one.end] for one in part[1:]).strip()
    if not columns:
        return None
    _complete(columns, others, "" if cursor.is_at_end else sql[cursor.peek().start :])
    return str(table), columns


def _complete(columns: dict[str, str], others: Iterable[Definition], options: str) -> None:
    charset = named_charset(options)
    if charset not in (None, "utf8mb4"):
        for name, declared in columns.items():
            if _TEXT.match(declared) and named_charset(declared) is None:
                columns[name] = f"{declared} CHARACTER SET {charset}"
    names = {name.lower(): name for name in columns}
    has_period = False
    for other in others:
        if isinstance(other, IndexDefinition) and other.kind is IndexKind.PRIMARY:
            for part in other.parts:
                key = names.get(part.name.lower())
                if key is not None and not is_primary_key(columns[key]):
                    columns[key] += KEY_MARK
        has_period |= isinstance(other, PeriodDefinition) and other.name.upper() == "SYSTEM_TIME"
    if "with system versioning" in " ".join(attributes_of(options)) and not has_period:
        has_key = any(map(is_primary_key, columns.values()))
        columns |= {"row_start": "timestamp(6)", "row_end": "timestamp(6)" + KEY_MARK * has_key}
