"""A table built from its definitions: the result of CREATE TABLE, and what ALTER TABLE adds."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ibbmaster.facts import NULL, rows_of
from ibbmaster.replication.event.column_types.integer import BIGINT, INTEGERS
from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.replication.event.column_types.temporal import TIMESTAMP
from ibbmaster.replication.event.rows.column import HASH_COLUMN
from ibbmaster.sqltext.table_name import TableName
from . import clause as ddl
from .collations import charset_of_collation
from .column_type import resolve_type
from .indexing import arranged, is_by_hash
from .model import (
    AUTO_INCREMENT,
    CheckConstraint,
    ForeignConstraint,
    IndexKind,
    RowPeriod,
    SqlType,
    TableColumn,
    TableKind,
    TableVersion,
)
from .session import SchemaSession

COLUMN_COUNT_MAX, INDEX_COUNT_MAX = 4096, 256
SYSTEM_TIME = "SYSTEM_TIME"
WITH_FOREIGN_KEYS = "InnoDB"
_OPTION_ORDER = ("ENGINE", "AUTO_INCREMENT", "MIN_ROWS", "MAX_ROWS", "AVG_ROW_LENGTH", "ROW_FORMAT", "COMMENT")
# Values equal to the default, which are not kept.
_PLAIN_OPTIONS = {name: plain for name, plain, *_ in rows_of(__package__, "table_options") if plain != NULL}
# What a column takes from its definition.
_AS_DEFINED = (
    *("name", "default", "on_update", "is_auto_increment", "expression", "is_stored", "is_invisible"),
    *("is_unversioned", "period", "comment", "check"),
)

NewId = Callable[[], int]


@dataclass(slots=True, kw_only=True)
class TableDraft:
    """A table under construction: its indexes name columns. `collation` is that of columns that name none."""

    name: TableName
    session: SchemaSession
    new_id: NewId
    collation: str
    engine: str
    converts_to: str | None = None  # CONVERT TO: the collation of all texts
    _bare_timestamps: set[int] = field(default_factory=set)
    columns: list[TableColumn] = field(default_factory=list)
    indexes: list[ddl.IndexDefinition] = field(default_factory=list)
    foreign_keys: list[ForeignConstraint] = field(default_factory=list)
    checks: list[CheckConstraint] = field(default_factory=list)
    periods: list[tuple[str, str, str]] = field(default_factory=list)

    def column_of(self, definition: ddl.NewColumn, *, id_: int | None = None) -> TableColumn:
        """The column with what it implies. Raises NotUnderstoodError: its character set or length is impossible."""
        column = TableColumn(
            id=self.new_id() if id_ is None else id_,
            type=self._type_of(definition),
            is_nullable=definition.is_nullable is not False and IndexKind.PRIMARY not in definition.keys,
            **{name: getattr(definition, name) for name in _AS_DEFINED},
        )
        if definition.default is not None and definition.default.upper() == "NULL":
            column = replace(column, default="NULL")
        if BY_NAME[column.type.word].is_zoned and column.period is None and column.expression is None:
            column = self._implied_timestamp(column, is_plain=definition.is_nullable is None)
        has_value = column.default is not None or column.expression is not None or column.is_auto_increment
        if column.is_nullable and not has_value and column.period is None:
            column = replace(column, default="NULL")
        return column

    def _type_of(self, definition: ddl.NewColumn) -> SqlType:
        found = resolve_type(definition.type, self.collation, self.session)
        if self.converts_to is None or found.charset in (None, "binary"):
            return found
        return resolve_type(replace(definition.type, charset=ddl.NO_CHARSET), self.converts_to, self.session)

    def _implied_timestamp(self, column: TableColumn, *, is_plain: bool) -> TableColumn:
        """Without `explicit_defaults_for_timestamp`: NULL only where written, and a value by its place. With it: zero
        where only ON UPDATE is written. `is_plain`: neither NULL nor NOT NULL is."""
        is_explicit = self.session.has_explicit_timestamps
        if is_plain and not is_explicit:
            column = replace(column, is_nullable=False, default=None if column.default == "NULL" else column.default)
        if not column.is_nullable and column.default is None and (column.on_update is not None or not is_explicit):
            self._bare_timestamps.add(column.id)
        return column

    def is_bare(self, column: TableColumn) -> bool:
        return column.id in self._bare_timestamps

    def complete_timestamps(self) -> None:
        """The first follows changes, others begin at zero. Source: MariaDB 11.8, promote_first_timestamp_column()."""
        is_first = not self.session.has_explicit_timestamps
        for number, column in enumerate(self.columns):
            if not BY_NAME[column.type.word].is_zoned:
                continue
            if column.id in self._bare_timestamps:
                self.columns[number] = _bare_timestamp(column, follows=is_first and column.on_update is None)
            is_first = False

    def add(self, definition: ddl.Definition) -> None:
        """Add anything but a column. Raises NotUnderstoodError: it does not fit."""
        match definition:
            case ddl.IndexDefinition():
                self.indexes.append(definition)
            case ddl.ForeignDefinition():
                self._add_foreign(definition)
            case ddl.CheckDefinition():
                self.checks.append(CheckConstraint(name=definition.name or "", expression=definition.expression))
            case ddl.PeriodDefinition():
                self.periods.append((definition.name, definition.start, definition.end))
            case ddl.NewColumn():
                self.add_keys_of(definition)

    def add_keys_of(self, definition: ddl.NewColumn) -> None:
        for kind in definition.keys:
            name = "PRIMARY" if kind is IndexKind.PRIMARY else None
            part = ddl.PartDefinition(definition.name, None, False)
            self.indexes.append(ddl.IndexDefinition(kind=kind, name=name, parts=(part,)))
        if definition.reference is not None:
            self._add_foreign(definition.reference)

    def _add_foreign(self, definition: ddl.ForeignDefinition) -> None:
        parts = tuple(ddl.PartDefinition(name, None, False) for name in definition.columns)
        name = definition.name or definition.index_name
        self.indexes.append(ddl.IndexDefinition(kind=IndexKind.PLAIN, name=name, parts=parts, is_of_foreign_key=True))
        if self.engine != WITH_FOREIGN_KEYS:
            return
        by_name = {column.name.lower(): column.id for column in self.columns}
        if not all(name.lower() in by_name for name in definition.columns):
            raise ddl.NotUnderstoodError(f"a foreign key of column {definition.columns[0][:64]!r}, which there is not")
        self.foreign_keys.append(
            ForeignConstraint(
                name=definition.name or self._next_foreign_name(),
                column_ids=tuple(by_name[name.lower()] for name in definition.columns),
                parent_database=definition.parent.database,
                parent_table=definition.parent.name,
                parent_columns=definition.parent_columns,
                on_delete=definition.on_delete,
                on_update=definition.on_update,
            )
        )

    def _next_foreign_name(self) -> str:
        head = f"{self.name.name}_ibfk_"
        ends = [key.name.removeprefix(head) for key in self.foreign_keys if key.name.startswith(head)]
        return f"{head}{max((int(end) for end in ends if end.isdecimal() and len(end) < 10), default=0) + 1}"

    def _without_null(self, column: TableColumn) -> TableColumn:
        if not column.is_nullable:
            return column
        column = replace(column, is_nullable=False, default=None if column.default == "NULL" else column.default)
        is_bare = BY_NAME[column.type.word].is_zoned and column.default is None
        is_zero = is_bare and (column.on_update is not None or not self.session.has_explicit_timestamps)
        return _bare_timestamp(column, follows=False) if is_zero else column

    def finish(self, version: TableVersion) -> TableVersion:
        """Raises NotUnderstoodError: an index is of a missing column, or there are too many."""
        if len(self.columns) > COLUMN_COUNT_MAX or len(self.indexes) > INDEX_COUNT_MAX:
            raise ddl.NotUnderstoodError(f"{len(self.columns)} columns and {len(self.indexes)} indexes, too many")
        names = [column.name.lower() for column in self.columns]
        if len(set(names)) < len(names):
            raise ddl.NotUnderstoodError("two columns of one name")
        keys = {part.name.lower() for index in self.indexes if index.kind is IndexKind.PRIMARY for part in index.parts}
        keys |= {name.lower() for _, *ends in self.periods for name in ends}
        indexes = arranged(self.indexes, self.columns, self.engine)
        columns = tuple(self._without_null(one) if one.name.lower() in keys else one for one in self.columns)
        hashes = sum(is_by_hash(index, self.engine) for index in indexes)
        free = (name for number in itertools.count(1) if (name := f"{HASH_COLUMN}{number}").lower() not in names)
        counts = any(column.is_auto_increment for column in columns)
        return replace(
            version if counts else without_counter(version),
            columns=(*columns, *(_hash_column(name, self.new_id) for name in itertools.islice(free, hashes))),
            indexes=indexes,
            foreign_keys=tuple(self.foreign_keys),
            checks=_named_checks(self.checks),
            periods=tuple(self.periods),
        )


def _bare_timestamp(column: TableColumn, *, follows: bool) -> TableColumn:
    scale = column.type.scale
    if follows:
        now = f"current_timestamp({scale or ''})"
        return replace(column, default=now, on_update=now)
    fraction = f".{'0' * scale}" if scale else ""
    return replace(column, default=f"'0000-00-00 00:00:00{fraction}'")


def _named_checks(checks: Sequence[CheckConstraint]) -> tuple[CheckConstraint, ...]:
    names = {check.name.lower() for check in checks}
    free = (name for number in itertools.count(1) if (name := f"CONSTRAINT_{number}").lower() not in names)
    return tuple(check if check.name else replace(check, name=next(free)) for check in checks)


def _hash_column(name: str, new_id: NewId) -> TableColumn:
    type_ = SqlType(word=BIGINT.word, length=20, is_unsigned=True)
    return TableColumn(id=new_id(), name=name, type=type_, is_hidden=True)


def hidden_period(new_id: NewId) -> list[TableColumn]:
    """The columns that WITH SYSTEM VERSIONING adds itself."""
    type_ = SqlType(word=TIMESTAMP.word, scale=6)
    return [
        TableColumn(id=new_id(), name=name, type=type_, is_nullable=False, period=period, is_hidden=True)
        for name, period in (("row_start", RowPeriod.START), ("row_end", RowPeriod.END))
    ]


def table_options(named: Mapping[str, str], old: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """In the order of SHOW CREATE TABLE, without those that have no effect on it."""
    found = {"ENGINE": "InnoDB", **(old or {}), **named}
    found = {name: value for name, value in found.items() if value.upper() != _PLAIN_OPTIONS.get(name)}
    ordered = [name for name in _OPTION_ORDER if name in found] + sorted(found.keys() - set(_OPTION_ORDER))
    return MappingProxyType({name: found[name] for name in ordered})


def without_counter(table: TableVersion) -> TableVersion:
    if AUTO_INCREMENT not in table.options:
        return table
    left = {name: value for name, value in table.options.items() if name != AUTO_INCREMENT}
    return replace(table, options=MappingProxyType(left))


def create_table(
    statement: ddl.CreateTable, database_collation: str, session: SchemaSession, new_id: NewId
) -> TableVersion:
    """Raises NotUnderstoodError: its columns are uncertain."""
    options = table_options(statement.options.named)
    collation = session.resolve(statement.options.charset, database_collation)
    draft = TableDraft(
        name=statement.table, session=session, new_id=new_id, collation=collation, engine=options["ENGINE"]
    )
    for definition in statement.definitions:
        if isinstance(definition, ddl.NewColumn):
            draft.columns.append(draft.column_of(definition))
    draft.complete_timestamps()
    if not statement.options.is_versioned:
        draft.columns = [replace(one, is_unversioned=False) for one in draft.columns]
    for definition in statement.definitions:
        draft.add(definition)
    is_versioned = statement.options.is_versioned
    if is_versioned and not any(name.upper() == SYSTEM_TIME for name, *_ in draft.periods):
        draft.columns += hidden_period(new_id)
    return draft.finish(
        TableVersion(
            database=statement.table.database,
            name=statement.table.name,
            charset=charset_of_collation(collation),
            collation=collation,
            options=options,
            is_versioned=is_versioned,
            partitioning=statement.options.partitioning,
        )
    )


def copied_table(like: TableVersion, name: TableName, new_id: NewId) -> TableVersion:
    """CREATE TABLE … LIKE: columns of its own, no foreign keys."""
    ids = {column.id: new_id() for column in like.columns}
    return replace(
        without_counter(like),
        database=name.database,
        name=name.name,
        columns=tuple(replace(column, id=ids[column.id], first_value=None) for column in like.columns),
        indexes=tuple(
            replace(index, parts=tuple(replace(part, column_id=ids[part.column_id]) for part in index.parts))
            for index in like.indexes
        ),
        foreign_keys=(),
    )


def sequence_table(statement: ddl.CreateSequence, collation: str, new_id: NewId) -> TableVersion:
    """A sequence's table: one row with its state. `collation` is that of its database."""
    width = next(kind.widths[0] for kind in INTEGERS if kind.word == statement.word)
    own = SqlType(word=statement.word, length=width + 1, is_unsigned=statement.is_unsigned)
    columns = tuple(
        TableColumn(
            id=new_id(),
            name=name,
            type=own if word == NULL else SqlType(word=word, length=int(length), is_unsigned=sign == "unsigned"),
            is_nullable=False,
            comment=comment,
        )
        for name, word, length, sign, comment in rows_of(__package__, "sequence")
    )
    return TableVersion(
        database=statement.table.database,
        name=statement.table.name,
        kind=TableKind.SEQUENCE,
        columns=columns,
        charset=charset_of_collation(collation),
        collation=collation,
        options=table_options(statement.options.named),
        text=statement.text,
    )
