"""Other names for databases and tables: in TABLE_MAP events, and where statements use them. Where a word may be a
column or an alias as well, a statement is not understood."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ibbmaster.errors import ConfigurationError, EventError, StageError
from ibbmaster.replication.event.group import EventGroup, is_ending_query
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, EventHeader, HeaderFields, encode_event
from ibbmaster.replication.event.query import Query, decode_query, encode_query, status_variables
from ibbmaster.replication.event.statement import logged
from ibbmaster.replication.event.table_map import NAME_SIZE_MAX, decode_table_map
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema import clause
from ibbmaster.schema.ddl import parse_ddl, statement_cursor
from ibbmaster.schema.name_case import NameCase, lower_name
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.table_name import TableName, divided, parse_name, parse_table_name, printed_name
from ibbmaster.sqltext.token import Token, TokenKind, tokens
from ibbmaster.storage.codec.buffer import Buffer
from .event_stream import NAMES_OFFSET, EventStream, mapped_table
from .stage import GroupTransform
from .statement_tables import touched_by

#: Words before the name of a table.
_BEFORE_TABLE = frozenset(
    (
        *("FROM", "JOIN", "INTO", "UPDATE", "TABLE", "TABLES", "EXISTS", "LIKE", "REFERENCES", "IGNORE", "TO", "VIEW"),
        *("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "INSERT", "REPLACE", "QUICK", "TRUNCATE", "SEQUENCE", "USING"),
    )
)
_LISTS = ("DROP", "RENAME", "TRUNCATE")  # whose commas divide tables
_ON_TABLE = ("CREATE", "DROP")  # … INDEX … ON, TRIGGER … ON
_AROUND = Token(TokenKind.SIGN, "")


@dataclass(frozen=True, slots=True)
class _Word:
    before: Token
    token: Token
    after: Token
    second: Token  # after `after`
    earlier: Token  # before `before`

    @property
    def is_qualifier(self) -> bool:
        return self.after.is_sign(".") and not self.before.is_sign(".")


class NameMap:
    """New names by old ones: of databases, or of tables as `database.table`. Threads share it; `find_case` says how the
    log's server compares names. Raises ConfigurationError: a pair mixes table and database, or two names become one."""

    def __init__(self, pairs: Sequence[tuple[str, str]], find_case: Callable[[], NameCase]) -> None:
        self._find_case = functools.cache(find_case)
        self.databases: dict[str, str] = {}
        self.tables: dict[TableName, TableName] = {}
        for old, new in pairs:
            old_name, new_name = _name(old), _name(new)
            if isinstance(old_name, TableName) and isinstance(new_name, TableName):
                self.tables[old_name] = new_name
            elif isinstance(old_name, str) and isinstance(new_name, str):
                self.databases[old_name] = new_name
            else:
                raise ConfigurationError(f"--rename {old}={new}: give two databases, or two tables as database.table")
        new_names = [*map(printed_name, self.databases.values()), *map(str, self.tables.values())]
        if len(set(new_names)) < len(new_names):
            twice = next(name for name in new_names if new_names.count(name) > 1)
            raise ConfigurationError(f"--rename: two would be called {twice}")

    def database(self, name: str) -> str:
        """Raises NotUnderstoodError: another one is to get the new name."""
        found = next((new for old, new in self.databases.items() if self._same(old, name)), None)
        if found is None and any(self._same(one, name) for one in self.databases.values()):
            raise clause.NotUnderstoodError(
                f"database {printed_name(name)} is in the log, and another one is to be called so"
            )
        return name if found is None else found

    def table(self, name: TableName) -> TableName:
        """Raises as `database`."""
        for old, new in self.tables.items():
            if self._same(old.database, name.database) and self._same(old.name, name.name):
                return new
        found = TableName(self.database(name.database), name.name)
        for new in self.tables.values():
            if self._same(new.database, found.database) and self._same(new.name, found.name):
                raise clause.NotUnderstoodError(f"table {name} is in the log, and another one is to be called {new}")
        return found

    def _same(self, one: str, other: str) -> bool:
        if one == other:
            return True
        return lower_name(one) == lower_name(other) and self._find_case().folds

    def text(self, statement: logged.LoggedStatement) -> str:
        """With other names. Raises NotUnderstoodError: a name may be a renamed one, or another."""
        words = list(_words(statement))
        self._expect_free(words, statement)
        changes: dict[tuple[int, int], str] = {}
        for old, new in self.databases.items():
            found = [word for word in words if word.token.is_name and self._same(old, word.token.text)]
            for word in self._databases_among(found, old, statement):
                changes[word.token.start, word.token.end] = quoted_name(new)
        for full_name, new_name in self.tables.items():
            for start, end, text in self._tables_among(words, full_name, new_name, statement):
                changes = {place: one for place, one in changes.items() if place[1] <= start or place[0] >= end}
                changes[start, end] = text
        if self.databases or self.tables:
            self._expect_no_hidden_names(words, statement)
        parts, at = [], 0
        for (start, end), text in sorted(changes.items()):
            parts += [statement.text[at:start], text]
            at = end
        return "".join([*parts, statement.text[at:]])

    def _databases_among(self, found: list[_Word], old: str, statement: logged.LoggedStatement) -> list[_Word]:
        qualifiers = [word for word in found if word.is_qualifier]
        bare = [word for word in found if not word.is_qualifier]
        if _is_about_database(statement, self, old):
            if len(bare) != 1:
                raise clause.NotUnderstoodError(f"{old} is a database here, and something else")
            return [*qualifiers, *bare]
        if qualifiers and bare and not _defines_tables(statement, old):
            raise clause.NotUnderstoodError(f"{old} may be a database here, or a table or column of that name")
        return qualifiers

    def _tables_among(
        self, words: list[_Word], old: TableName, new: TableName, statement: logged.LoggedStatement
    ) -> Iterator[tuple[int, int, str]]:
        is_here = self._same(old.database, statement.database)
        database = self.database(statement.database)
        written = new.sql
        for word in words:
            if not (word.token.is_name and self._same(old.name, word.token.text)):
                continue
            if word.before.is_sign("."):
                if not word.earlier.is_name or not self._same(old.database, word.earlier.text):
                    continue
                yield word.earlier.start, word.token.end, written
            elif not is_here:
                continue
            elif word.after.is_sign("."):
                yield word.token.start, word.token.end, quoted_name(new.name)
            elif _names_table(word, words):
                is_same = database == new.database
                yield word.token.start, word.token.end, quoted_name(new.name) if is_same else written
            else:
                raise clause.NotUnderstoodError(f"{old.name} may be the table here, or a column or an alias")

    def _expect_free(self, words: list[_Word], statement: logged.LoggedStatement) -> None:
        for word in words:
            if word.token.is_name and word.is_qualifier:
                self.database(word.token.text)
                if word.second.is_name:
                    self.table(TableName(word.token.text, word.second.text))

    def _expect_no_hidden_names(self, words: list[_Word], statement: logged.LoggedStatement) -> None:
        hidden = [word.token.text for word in words if word.token.kind is TokenKind.TEXT]
        names = [*self.databases, *(table.name for table in self.tables)]
        if any(lower_name(name) in lower_name(text) for text in hidden for name in names) and _is_program(statement):
            raise clause.NotUnderstoodError("a program has a text in which a name may be that is renamed")


def _name(text: str) -> str | TableName:
    try:
        return parse_table_name(text) if len(divided(text, ".")) > 1 else parse_name(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"--rename: {error}") from None


def _words(statement: logged.LoggedStatement) -> Iterator[_Word]:
    found = list(tokens(statement.text, statement.sql_mode, statement.server_version))
    for index, token in enumerate(found):
        yield _Word(
            before=found[index - 1] if index else _AROUND,
            token=token,
            after=found[index + 1] if index + 1 < len(found) else _AROUND,
            second=found[index + 2] if index + 2 < len(found) else _AROUND,
            earlier=found[index - 2] if index > 1 else _AROUND,
        )


def _names_table(word: _Word, words: list[_Word]) -> bool:
    first = words[0].token
    if word.before.is_sign(","):
        return first.is_word(*_LISTS)
    if word.before.is_word("ON"):
        return first.is_word(*_ON_TABLE)
    return word.before.word in _BEFORE_TABLE


def _is_about_database(statement: logged.LoggedStatement, names: NameMap, old: str) -> bool:
    try:
        found = _ddl(statement)
    except clause.NotUnderstoodError:
        return False
    return (
        isinstance(found, clause.CreateDatabase | clause.RemoveDatabase)
        and names.database(found.name) == names.databases[old]
    )


def _defines_tables(statement: logged.LoggedStatement, name: str) -> bool:
    try:
        found = _ddl(statement)
        touched = touched_by(statement)
    except clause.NotUnderstoodError:
        return False
    if not isinstance(
        found, clause.CreateTable | clause.AlterTable | clause.DropTables | clause.TruncateTable
    ) or getattr(found, "selects", False):
        return False
    return all(lower_name(table.name) != lower_name(name) for table in touched.tables)


def _is_program(statement: logged.LoggedStatement) -> bool:
    """Whether a statement runs its texts, or makes something that does."""
    cursor = statement_cursor(statement.text, statement.sql_mode, statement.server_version)
    if cursor.takes_words("BEGIN", "NOT"):
        return True
    try:
        return isinstance(_ddl(statement), clause.NameProgram)
    except clause.NotUnderstoodError:
        return True


def _ddl(statement: logged.LoggedStatement) -> clause.DdlStatement | None:
    return parse_ddl(statement.text, statement.database, statement.sql_mode, statement.server_version)


class NameChange(GroupTransform):
    """Gives databases and tables other names. ANNOTATE_ROWS, which no server runs, keeps its text."""

    def __init__(self, names: NameMap) -> None:
        self._names = names
        self._known: dict[TableName, TableName] = {}

    def renamed(self, table: TableName) -> TableName:
        new = self._known.get(table)
        if new is None:
            new = self._known[table] = self._names.table(table)
        return new

    def pass_on(self, group: EventGroup) -> EventGroup | None:
        return replace(group, body=self._body(EventStream(group.body), group))

    def _body(self, events: EventStream, group: EventGroup) -> Iterator[Buffer]:
        while (header := events.next_event()) is not None:
            try:
                if header.event_type == EventType.TABLE_MAP:
                    yield self._table_map(header, events.whole())
                elif header.event_type in (EventType.QUERY, EventType.QUERY_COMPRESSED):
                    yield self._query(header, events.whole())
                elif header.event_type == EventType.EXECUTE_LOAD_QUERY:
                    yield self._load(header, events.whole())
                else:
                    yield from events.pieces()
            except clause.NotUnderstoodError as error:
                raise StageError(f"group {group.gtid} cannot be renamed: {error}") from None

    def _table_map(self, header: EventHeader, event: bytes) -> bytes:
        old = mapped_table(event)
        new = self.renamed(old)
        if new == old:
            return event
        found = decode_table_map(event)
        rest = event[NAMES_OFFSET + len(found.database) + len(found.table) + 4 :]
        names = b"".join(_sized(name) for name in (new.database, new.name))
        return encode_event(
            event_type=header.event_type, body=event[EVENT_HEADER_SIZE:NAMES_OFFSET] + names + rest, **_head(header)
        )

    def _query(self, header: EventHeader, event: bytes) -> bytes:
        if is_ending_query(event):
            return event
        query = decode_query(event)
        changed = self._changed(query, logged.decode_statement(event))
        return event if changed == query else encode_query(changed, **_head(header))

    def _load(self, header: EventHeader, event: bytes) -> bytes:
        load = logged.decode_load_data(event)
        changed = self._changed(load.query, logged.decode_statement(event))
        if changed == load.query:
            return event
        if changed.text[: load.end] != load.query.text[: load.end]:
            raise clause.NotUnderstoodError("a LOAD DATA with a name that changes before that of its file")
        return logged.encode_load_data(replace(load, query=changed), **_head(header))

    def _changed(self, query: Query, statement: logged.LoggedStatement) -> Query:
        database = self._names.database(statement.database) if statement.database else ""
        text = self._names.text(statement)
        if (database, text) == (statement.database, statement.text):
            return query
        encoded = query.text
        if text != statement.text:
            codec = logged.text_codec(dict(status_variables(query.status)).get(logged.STATUS_CHARSET))
            if statement.text.encode(codec, "replace") != query.text:
                raise clause.NotUnderstoodError(f"its text is not {codec}")
            encoded = text.encode(codec)
        return replace(query, database=database.encode(), text=encoded)


def _head(header: EventHeader) -> HeaderFields:
    return {
        "server_id": header.server_id,
        "timestamp": header.timestamp,
        "log_pos": header.log_pos,
        "flags": header.flags,
    }


def _sized(name: str) -> bytes:
    encoded = name.encode()
    if len(encoded) > NAME_SIZE_MAX:
        raise EventError(f"a name of {len(encoded)} bytes, at most {NAME_SIZE_MAX}")
    return bytes([len(encoded)]) + encoded + b"\0"
