"""ALTER TABLE applied to a table."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.replication.event.column_types.strings import filled_size
from ibbmaster.sqltext.moment import SECOND_US, moment_text, parse_moment
from ibbmaster.sqltext.quoting import quoted
from ibbmaster.sqltext.table_name import TableName
from . import clause as ddl
from .building import SYSTEM_TIME, WITH_FOREIGN_KEYS, NewId, TableDraft, hidden_period, table_options
from .collations import character_sets, charset_of_collation
from .column_text import kept_literal
from .column_type import converted
from .indexing import as_definitions
from .model import UNKNOWN_VALUE, RowPeriod, TableColumn, TableVersion
from .partition_text import altered_partitions
from .reading import named_in, with_new_names
from .session import SchemaSession

Clause = TypeVar("Clause", bound=ddl.AlterClause)
PAGE_CHECKSUM = "PAGE_CHECKSUM"
_LITERAL = re.compile(
    r"""\(*(?:[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|NULL|TRUE|FALSE
    |(?:_\w+\s*|[xbn]|(?:date|time|timestamp)\s*)?'(?:[^'\\]|\\.|'')*'|0x[0-9a-f]+|0b[01]+)\)*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def is_literal(sql: str) -> bool:
    return _LITERAL.fullmatch(sql) is not None


def altered(
    table: TableVersion, clauses: Iterable[ddl.AlterClause], collation: str, session: SchemaSession, new_id: NewId
) -> TableVersion:
    """The table after clauses, which all refer to its state before; `collation` is its database's. Raises
    NotUnderstoodError: they do not fit it. Source: MariaDB 11.8, sql_table.cc, mysql_prepare_alter_table()."""
    return _Alteration(table, list(clauses), collation, session, new_id).run()


class _Alteration:
    """One ALTER TABLE; names of columns as keys are in lower case."""

    def __init__(
        self, table: TableVersion, clauses: list[ddl.AlterClause], collation: str, session: SchemaSession, new_id: NewId
    ) -> None:
        self._old = table
        self._checks = table.checks
        self._names = {column.name.lower(): column for column in table.columns}
        parts: dict[str, tuple[Any, ...]] = {"index": table.indexes, "check": table.checks}
        parts["foreign key"] = table.foreign_keys
        old_names = {what: {one.name.lower() for one in those} for what, those in parts.items()}
        old_names |= {"column": set(self._names), "constraint": set().union(*old_names.values())}
        self._old_names = old_names | {"period": {name.lower() for name, *_ in table.periods}}
        self._clauses = [clause for clause in clauses if self._takes_effect(clause)]
        options = _inherited(table)
        self._default = table.collation  # of the table
        converts_to, is_chosen = None, False
        self._versioned = table.is_versioned
        self._partitioning = table.partitioning
        for clause in self._clauses:
            match clause:
                case ddl.SetOptions():
                    options = table_options(clause.options.named, options)
                    if clause.options.charset != ddl.NO_CHARSET:
                        base = collation if clause.options.charset.charset else self._default
                        self._default, is_chosen = session.resolve(clause.options.charset, base), True
                    if clause.options.partitioning is not None:
                        self._partitioning = clause.options.partitioning
                case ddl.ConvertCharset():
                    converts_to = _converted_to(clause.charset, collation, session)
                    if not is_chosen:
                        self._default = converts_to
                case ddl.AlterVersioning():
                    self._versioned = clause.is_versioned
                case ddl.AlterPartitions():
                    self._partitioning = altered_partitions(self._partitioning, clause)
        self._options = options
        self._converts_to = converts_to
        self._draft = TableDraft(
            name=TableName(table.database, table.name),
            session=session,
            new_id=new_id,
            collation=self._default if converts_to is None else converts_to,
            converts_to=converts_to,
            engine=options.get("ENGINE", WITH_FOREIGN_KEYS),
            periods=list(table.periods),
        )

    def _takes_effect(self, clause: ddl.AlterClause) -> bool:
        if not getattr(clause, "is_conditional", False):
            return True
        match clause:
            case ddl.AddDefinition(definition=ddl.NewColumn(name=name)):
                what = "column"
            case ddl.AddDefinition(definition=ddl.IndexDefinition(name=own, parts=parts)):
                what, name = "index", own or parts[0].name
            case ddl.AddDefinition(definition=ddl.ForeignDefinition(name=own, index_name=index_name)):
                what, name = "foreign key", own or index_name or ""
            case ddl.AddDefinition(definition=ddl.CheckDefinition(name=own)):
                what, name = "check", own or ""
            case ddl.RemovePart(what=what, name=name):
                pass
            case ddl.RedefineColumn(name=name) | ddl.SetColumnDefault(name=name):
                what = "column"
            case ddl.RenamePart(is_column=is_column, name=name):
                what = "column" if is_column else "index"
            case ddl.IgnoreIndex(name=name):
                what = "index"
            case _:
                return True
        return (name.lower() in self._old_names[what]) is not isinstance(clause, ddl.AddDefinition)

    def run(self) -> TableVersion:
        self._change_columns()
        self._keep_indexes()
        for clause in self._clauses:
            if isinstance(clause, ddl.AddDefinition):
                self._draft.add(clause.definition)
            elif isinstance(clause, ddl.RedefineColumn):
                self._draft.add_keys_of(clause.definition)
        found = self._draft.finish(
            replace(
                self._old,
                charset=charset_of_collation(self._default),
                collation=self._default,
                options=self._options,
                is_versioned=self._versioned,
                partitioning=self._partitioning,
            )
        )
        known = {column.id: column for column in self._old.columns}
        return replace(found, columns=tuple(self._filled(known.get(column.id), column) for column in found.columns))

    def _filled(self, old: TableColumn | None, column: TableColumn) -> TableColumn:
        if column.first_value != "NULL" or old is None or not old.is_nullable or column.is_nullable:
            return column
        return replace(column, first_value=made_of_null(old, column, self._draft.session) or UNKNOWN_VALUE)

    def _of(self, kind: type[Clause]) -> Iterator[Clause]:
        return (one for one in self._clauses if isinstance(one, kind))

    def _change_columns(self) -> None:
        dropped = {one.name.lower() for one in self._of(ddl.RemovePart) if one.what == "column"}
        redefined = {one.name.lower(): one for one in self._of(ddl.RedefineColumn)}
        names = {one.name.lower(): one.to for one in self._of(ddl.RenamePart) if one.is_column}
        defaults = {one.name.lower(): one.default for one in self._of(ddl.SetColumnDefault)}
        columns = (one.definition for one in self._of(ddl.AddDefinition))
        added = {one.name.lower() for one in columns if isinstance(one, ddl.NewColumn)}
        again = {key for key, one in redefined.items() if key in added and one.definition.name.lower() == key}
        again -= self._names.keys() - dropped
        self._expect_columns([*dropped, *(redefined.keys() - again), *names, *(defaults.keys() - added)])
        new_names = names | {key: one.definition.name for key, one in redefined.items()}
        new_names = {key: name for key, name in new_names.items() if name.lower() != key}
        loses_period = self._old.is_versioned and not self._versioned
        draft = self._draft
        moving: list[tuple[ddl.AlterClause, TableColumn]] = []
        hidden: list[TableColumn] = []
        for column in self._old.columns:
            key = column.name.lower()
            if key in dropped or (loses_period and column.period is not None):
                continue
            if column.is_hidden:
                hidden += [column] * (not column.is_internal)
                continue
            clause = redefined.get(key)
            if clause is not None:
                new = draft.column_of(clause.definition, id_=column.id)
                filled = max(column.filled_size, filled_size(column.type))
                new = replace(new, first_value=column.first_value, filled_size=filled)
                if clause.after is not None:
                    moving.append((clause, new))
                    continue
                draft.columns.append(new)
                continue
            if self._converts_to is not None:
                column = replace(column, type=converted(column.type, self._converts_to))
            if key in names:
                column = replace(column, name=names[key])
            column = _with_new_names(column, new_names)
            draft.columns.append(_with_default(column, key, defaults))
        waiting = {id(one): column for one, column in moving}
        for one in self._clauses:
            if id(one) in waiting:
                assert isinstance(one, ddl.RedefineColumn)
                self._insert(waiting[id(one)], one.after)
            elif isinstance(one, ddl.AddDefinition) and isinstance(one.definition, ddl.NewColumn):
                if (key := one.definition.name.lower()) not in again:
                    column = draft.column_of(one.definition)
                    has_none = key in defaults and defaults[key] is None
                    column = replace(column, default=None) if has_none else _with_default(column, key, defaults)
                    self._insert(column, one.after)
            elif isinstance(one, ddl.RedefineColumn) and one.name.lower() in again:
                self._insert(draft.column_of(one.definition), one.after)
        draft.complete_timestamps()
        old = {column.id for column in self._old.columns}
        draft.columns = [one if one.id in old else self._as_new(one) for one in draft.columns]
        draft.columns += hidden
        if self._versioned and not self._old.is_versioned and not self._has_system_period():
            draft.columns += map(self._as_new, hidden_period(draft.new_id))
        if loses_period:
            draft.periods = [period for period in draft.periods if period[0].upper() != SYSTEM_TIME]
        self._rename_parts(new_names)

    def _as_new(self, column: TableColumn) -> TableColumn:
        is_unversioned = column.is_unversioned and self._versioned
        is_told = self._draft.session.tells_timestamps or not self._draft.is_bare(column)
        first_value = _first_value(column, self._draft.session) if is_told else UNKNOWN_VALUE
        return replace(column, first_value=first_value, is_unversioned=is_unversioned)

    def _has_system_period(self) -> bool:
        added = [one.definition for one in self._of(ddl.AddDefinition)]
        names = [one.name for one in added if isinstance(one, ddl.PeriodDefinition)]
        names += [name for name, *_ in self._draft.periods]
        return any(name.upper() == SYSTEM_TIME for name in names)

    def _expect_columns(self, names: Iterable[str]) -> None:
        missing = next((name for name in names if name not in self._names), None)
        if missing is not None:
            raise ddl.NotUnderstoodError(f"column {missing[:64]!r}, which there is not")

    def _insert(self, column: TableColumn, after: str | None) -> None:
        columns = self._draft.columns
        if after is None:
            columns.append(column)
        elif not after:
            columns.insert(0, column)
        else:
            place = next((n for n, one in enumerate(columns) if one.name.lower() == after.lower()), None)
            if place is None:
                raise ddl.NotUnderstoodError(f"AFTER column {after[:64]!r}, which there is not")
            columns.insert(place + 1, column)

    def _rename_parts(self, names: Mapping[str, str]) -> None:
        if names:
            self._draft.periods = [
                (name, names.get(start.lower(), start), names.get(end.lower(), end))
                for name, start, end in self._draft.periods
            ]
            self._checks = tuple(
                replace(check, expression=with_new_names(check.expression, names)) for check in self._old.checks
            )

    def _keep_indexes(self) -> None:
        """Also constraints, except dropped ones."""
        draft = self._draft
        gone: dict[str, set[str]] = {"index": set(), "foreign key": set(), "constraint": set(), "period": set()}
        for clause in self._of(ddl.RemovePart):
            if clause.what != "column":
                gone[clause.what].add(clause.name.lower())
        renames = {one.name.lower(): one.to for one in self._of(ddl.RenamePart) if not one.is_column}
        ignored = {one.name.lower(): one.is_ignored for one in self._of(ddl.IgnoreIndex)}
        checks = {check.name.lower() for check in self._old.checks}
        keys = {key.name.lower() for key in self._old.foreign_keys}
        gone["foreign key"] |= gone["constraint"] & keys
        gone["index"] |= gone["constraint"] - checks - keys
        names = {column.id: column.name for column in draft.columns}
        for index in as_definitions(self._old.indexes, names, draft.engine):
            name = (index.name or "").lower()
            if name in gone["index"]:
                continue
            if name in renames:
                index = replace(index, name=renames[name], is_of_foreign_key=False)
            if name in ignored:
                index = replace(index, is_ignored=ignored[name])
            draft.indexes.append(index)
        draft.foreign_keys = [
            key
            for key in self._old.foreign_keys
            if draft.engine == WITH_FOREIGN_KEYS
            and key.name.lower() not in gone["foreign key"]
            and all(one in names for one in key.column_ids)
        ]
        dropped = {one.name.lower() for one in self._of(ddl.RemovePart) if one.what == "column"}
        draft.checks = [
            check
            for old, check in zip(self._old.checks, self._checks, strict=True)
            if check.name.lower() not in gone["constraint"] and not (dropped and dropped & named_in(old.expression))
        ]
        draft.periods = [period for period in draft.periods if period[0].lower() not in gone["period"]]


def _inherited(table: TableVersion) -> Mapping[str, str]:
    """The options that ALTER TABLE leaves unless it sets them: only an Aria table passes on PAGE_CHECKSUM."""
    options = dict(table.options)
    if options.get("ENGINE") != "Aria" or table.partitioning is not None:
        options.pop(PAGE_CHECKSUM, None)
    else:
        options.setdefault(PAGE_CHECKSUM, "1")
    return MappingProxyType(options)


def _with_new_names(column: TableColumn, names: Mapping[str, str]) -> TableColumn:
    if not names:
        return column
    default = column.default
    return replace(
        column,
        expression=column.expression and with_new_names(column.expression, names),
        check=column.check and with_new_names(column.check, names),
        default=default if default is None or is_literal(default) else with_new_names(default, names),
    )


def _converted_to(clause: ddl.CharsetClause, collation: str, session: SchemaSession) -> str:
    """DEFAULT of CONVERT TO is the database's character set with its old collation."""
    if (clause.charset or "").upper() == "DEFAULT":
        charset = charset_of_collation(collation)
        return session.resolve(replace(clause, charset=None), character_sets()[charset].old_default)
    return session.resolve(clause, collation)


def _with_default(column: TableColumn, key: str, defaults: Mapping[str, str | None]) -> TableColumn:
    if key not in defaults:
        return column
    follows = column.on_update is not None and column.on_update == column.default
    default = _new_default(column, defaults[key])
    return replace(column, default=default, on_update=None if follows else column.on_update)


def _new_default(column: TableColumn, default: str | None) -> str | None:
    if default is None:
        return "NULL" if column.is_nullable else None
    return "NULL" if default.upper() == "NULL" else default


def made_of_null(old: TableColumn, new: TableColumn, session: SchemaSession) -> str | None:
    """The value, as SQL, that replaces NULL in a column that becomes NOT NULL; None where uncertain: a server that need
    not write the table anew takes the old default. Source: MariaDB 10.11 and 11.8, under any sql_mode."""
    if new.is_auto_increment or old.default not in (None, "NULL"):
        return None
    if BY_NAME[new.type.word].is_zoned:
        return session.now(new.type.scale or 0)
    return "''" if new.type.labels else BY_NAME[new.type.word].zero_of(new.type)


def _first_value(column: TableColumn, session: SchemaSession) -> str | None:
    if column.expression is not None:
        return None
    if column.period is not None and BY_NAME[column.type.word].is_zoned:
        now = session.now(column.type.scale or 0)
        return (now if column.period is RowPeriod.START else session.end_of_time) or UNKNOWN_VALUE
    if column.is_auto_increment or column.period is not None:
        return UNKNOWN_VALUE
    if column.default is None:
        return "NULL" if column.is_nullable else BY_NAME[column.type.word].zero_of(column.type)
    digits = column.type.scale or 0
    if BY_NAME[column.type.word].is_zoned and column.default == f"current_timestamp({digits or ''})":
        return session.now(digits) or UNKNOWN_VALUE
    if not is_literal(column.default):
        return UNKNOWN_VALUE
    kept = kept_literal(column.type, column.default)
    return _in_utc(kept, digits, session) if BY_NAME[column.type.word].is_zoned and kept != "NULL" else kept


def _in_utc(written: str, digits: int, session: SchemaSession) -> str:
    text = written.strip("'")
    if not text.strip("0-: ."):
        return written
    moment = parse_moment(text)
    if moment is None or session.time_zone_s is None:
        return UNKNOWN_VALUE
    return quoted(moment_text(moment - session.time_zone_s * SECOND_US, digits))
