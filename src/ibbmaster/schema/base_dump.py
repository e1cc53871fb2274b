"""The schema before the log: CREATE statements, or a dump with rows and its GTID position."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType

from ibbmaster.errors import ConfigurationError, GtidError
from ibbmaster.gtid import GtidPosition
from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.quoting import unescaped
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import tokens
from .catalog import KnownTable, SchemaCatalog
from .ddl import HARMLESS
from .dump_text import SHOWN, statements_of
from .folding import SchemaFold
from .model import TableKind, TableVersion, UnknownTable

Literal = str | bytes | None  # a text or a number as written, bytes of _binary and 0x…, NULL

_POSITION = re.compile(r"SET\s+GLOBAL\s+gtid_slave_pos\s*=\s*'([^']*)'", re.IGNORECASE)
_HEAD_SIZE = 1 << 12
_DEFINES = ("CREATE", "ALTER", "DROP", "RENAME")
_VERBS = HARMLESS | {*_DEFINES, "STOP", "TRUNCATE"}
_VALUE = re.compile(
    r"""\s*+(?: (?P<binary>_binary\s*+)?'(?P<text>[^'\\]*+(?>(?:(?:\\.|'')[^'\\]*+)*))'
      | 0x(?P<hex>[0-9a-fA-F]*+) | [xX]'(?P<hex2>[0-9a-fA-F]*+)' | (?P<word>[-+.\w]++) )\s*+(?P<end>[,)])""",
    re.VERBOSE | re.DOTALL,
)
_OPEN = re.compile(r"\s*+,?\s*+\(")
_VALUES = re.compile(r"VALUES\s*+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseSchema:
    """The schema a log begins with; `position`: the dump's content, if it says so."""

    catalog: SchemaCatalog
    position: GtidPosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRows:
    table: TableName
    columns: tuple[str, ...] | None
    rows: Iterator[tuple[Literal, ...]]


def expect_statement(head: str) -> None:
    """Raises ConfigurationError: a text does not begin as one that `read_base` takes; its first 4 KiB are enough."""
    _look(head[:_HEAD_SIZE], "")


def read_base(pieces: Iterable[str], *, database: str = "") -> BaseSchema:
    """The schema of a dump, or of CREATE statements; `database` is the one they begin in. Bytes that are no UTF-8 must
    be surrogates, as with `errors="surrogateescape"`. Raises ConfigurationError: the text is something else, or ends
    inside a statement; a table has no database, or uncertain columns."""
    fold = SchemaFold(lambda *_: None)
    position = None
    for statement in statements_of(pieces):
        head = statement[:_HEAD_SIZE]
        if (found := _POSITION.search(head)) is not None:
            position = _position(found[1])
        word, database = _look(head, database)
        if word not in _DEFINES:
            continue
        reason = fold.apply(LoggedStatement(statement, database, 0, 0, True))
        if reason is not None:
            raise ConfigurationError(reason)
    for table in fold.tables.values():
        if isinstance(table, UnknownTable):
            raise ConfigurationError(f"table {table.full_name}: {table.reason}")
        if not table.database:
            raise ConfigurationError(f"table {table.name!r}: expected database.table, or USE before it")
    if not any(isinstance(one, TableVersion) and one.kind is TableKind.BASE for one in fold.tables.values()):
        raise ConfigurationError("no CREATE TABLE: expected what mariadb-dump or SHOW CREATE TABLE writes")
    tables: dict[TableName, KnownTable] = dict(fold.tables)
    catalog = SchemaCatalog(databases=MappingProxyType(fold.databases), tables=MappingProxyType(tables))
    return BaseSchema(catalog=catalog, position=position)


def _look(head: str, database: str) -> tuple[str, str]:
    cursor = Cursor(tokens(head))
    word = cursor.peek().text.upper()
    if cursor.takes_words("USE"):
        return word, cursor.name() or database
    if not cursor.is_at_end and word not in _VERBS:
        raise ConfigurationError(f"{' '.join(head.split())[:SHOWN]!r}: expected a statement of SQL")
    return word, database


def _position(text: str) -> GtidPosition:
    try:
        return GtidPosition.parse(text)
    except GtidError as error:
        raise ConfigurationError(f"gtid_slave_pos: {error}") from error


def read_rows(pieces: Iterable[str]) -> Iterator[BaseRows]:
    """INSERT by INSERT, each to be read before the next. Raises ConfigurationError: one is no list of literals, or ends
    early."""
    database = ""
    for statement in statements_of(pieces):
        word, database = _look(statement[:_HEAD_SIZE], database)
        if word in ("INSERT", "REPLACE"):
            yield _rows_of(statement, database)


def _rows_of(statement: str, database: str) -> BaseRows:
    cursor = Cursor(tokens(statement))
    cursor.take()
    cursor.pass_words("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO")
    table, columns = cursor.table(database), None
    if cursor.peek().is_sign("("):
        columns = tuple(token.text for token in cursor.bracketed() if not token.is_sign(","))
    values = next((match for match in _VALUES.finditer(statement) if statement.startswith("(", match.end())), None)
    if table is None or not cursor.peek().is_word("VALUES", "VALUE") or values is None:
        raise ConfigurationError(f"{' '.join(statement[: 4 * SHOWN].split())[:SHOWN]!r}: expected INSERT … VALUES (…)")
    return BaseRows(table=table, columns=columns, rows=_literals(statement, values.end(), table))


def _literals(statement: str, at: int, table: TableName) -> Iterator[tuple[Literal, ...]]:
    while (opening := _OPEN.match(statement, at)) is not None:
        at = opening.end()
        row: list[Literal] = []
        while True:
            match = _VALUE.match(statement, at)
            if match is None:
                shown = " ".join(statement[at : at + 4 * SHOWN].split())[:SHOWN]
                raise ConfigurationError(f"INSERT INTO {table}: {shown!r} where a literal was expected")
            row.append(_literal(match))
            at = match.end()
            if match["end"] == ")":
                break
        yield tuple(row)
    if statement[at:].strip():
        raise ConfigurationError(f"INSERT INTO {table}: {statement[at:].strip()[:SHOWN]!r} behind its rows")


def _literal(match: re.Match[str]) -> Literal:
    if (word := match["word"]) is not None:
        return None if word.upper() == "NULL" else word
    digits = match["hex"] if match["hex"] is not None else match["hex2"]
    if digits is not None:
        return bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")
    text = unescaped(match["text"], "'")
    return text.encode("utf-8", "surrogateescape") if match["binary"] is not None else text
