"""A table over its versions in one shape: columns keep their identity through renames; older rows have the value that
ALTER TABLE gave; types widen."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ibbmaster.errors import EventError
from ibbmaster.replication.event.column_types.floating import Floating
from ibbmaster.replication.event.column_types.geometry import GEOMETRY
from ibbmaster.replication.event.column_types.kind import Grammar
from ibbmaster.replication.event.column_types.labels import SetLabels
from ibbmaster.replication.event.column_types.registry import BY_NAME, BY_TYPE, kind_of
from ibbmaster.replication.event.column_types.strings import bytes_max
from ibbmaster.replication.event.rows.changes import ABSENT, Image, RawValue
from ibbmaster.replication.event.rows.column import Column, TableSchema, ValueKind
from ibbmaster.replication.event.rows.value import Value
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion
from ibbmaster.schema.names import column_of, key_numbers
from .expr.column_casts import Convert, cast_of, converted

if TYPE_CHECKING:
    from .expr.formulas import Evaluate


def keeps_values(old: SqlType, new: SqlType) -> bool:
    """Whether every value of one type is the same in the other, as a server converts it."""
    if old == new:
        return True
    kind = BY_NAME.get(old.word)
    if kind is not None and kind.grammar is Grammar.SPATIAL:
        return new.word in (old.word, GEOMETRY.word)
    try:
        columns = [column_of(TableColumn(id=0, name="", type=one)) for one in (old, new)]
        return has_every_value(*columns)
    except ValueError:
        return False  # of types of which nothing is known


def has_every_value(old: Column, new: Column) -> bool:
    """As `keeps_values`, of columns."""
    return kind_of(old).keeps_values(old, new)


class SchemaMode(enum.Enum):
    LATEST = "latest"
    AS_WRITTEN = "asWritten"  # each row by the names it was written with
    AT = "at"  # the one of a place


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """The source of a column's values in rows of one version."""

    number: int | None = None  # of the column in that version; None without one like it
    convert: Convert | None = None  # to a value of the shape's column; None: it is one already
    fill: Value = None  # the value in rows without the column
    is_unknown: bool = False  # it cannot be known
    inputs: tuple[tuple[str, ColumnOrigin], ...] = ()  # of a generated column: the sources of `compute`
    compute: Evaluate | None = None  # its value where an image lacks it

    def value(self, image: Image) -> Value:
        """ABSENT if unknown."""
        if self.number is None and self.compute is None:
            return ABSENT if self.is_unknown else self.fill
        value = ABSENT if self.number is None else image[self.number]
        if value is ABSENT and self.compute is not None:
            return self.computed({name: origin.value(image) for name, origin in self.inputs})
        return value if self.convert is None else converted(self.convert, value)

    def computed(self, values: Mapping[str, Value]) -> Value:
        from .expr.formulas import NotSimpleError

        assert self.compute is not None
        if any(value is ABSENT or isinstance(value, RawValue) for value in values.values()):
            return ABSENT
        try:
            return self.compute(values)
        except NotSimpleError:
            return ABSENT

    def is_absent(self, image: Image) -> bool:
        if self.compute is not None:
            return self.value(image) is ABSENT
        return self.is_unknown if self.number is None else image[self.number] is ABSENT

    def is_told(self, present: int) -> bool:
        """Whether images with these columns, a bit each, have its value."""
        if self.number is not None and present >> self.number & 1:
            return True
        if self.compute is not None:
            return all(origin.is_told(present) for _, origin in self.inputs)
        return self.number is None and not self.is_unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """The columns of `version`, that a table is read with. None: names of a TABLE_MAP identify them, and those that
    rows lack have unknown values."""

    schema: TableSchema
    version: TableVersion | None = None
    mode: SchemaMode = SchemaMode.LATEST

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.schema.columns

    def origins(self, schema: TableSchema, version: TableVersion | None) -> tuple[ColumnOrigin, ...]:
        """The source of each column in rows of a TABLE_MAP of this version."""
        if self.mode is SchemaMode.AS_WRITTEN:
            found = self._by_name(schema, ColumnOrigin())
        elif self.version is None or version is None:
            found = self._by_name(schema, ColumnOrigin(is_unknown=True))  # it may have had another name, or a default
        elif not {column.id for column in version.columns} & {column.id for column in self.version.columns}:
            found = self._by_name(schema, ColumnOrigin())  # another table was called so
        else:
            found = self._by_identity(schema, version, self.version)
        if version is None:
            return tuple(found)
        return tuple(self._with_formula(origin, schema, version) for origin in found)

    def untold(self, version: TableVersion) -> set[int]:
        """The ids of current columns whose values are unknown in rows of a version."""
        if self.version is None:
            return set()
        origins = self.origins(version_shape(version.full_name, version).schema, version)
        return {
            column.id
            for column, origin in zip(self.version.columns, origins, strict=True)
            if origin.number is None and origin.is_unknown and origin.compute is None
        }

    def _by_name(self, schema: TableSchema, missing: ColumnOrigin) -> list[ColumnOrigin]:
        numbers = {column.name: number for number, column in enumerate(schema.columns)}
        return [
            self._taken(schema, numbers[column.name], column) if column.name in numbers else missing
            for column in self.columns
        ]

    def _by_identity(self, schema: TableSchema, version: TableVersion, own: TableVersion) -> list[ColumnOrigin]:
        numbers = {column.id: number for number, column in enumerate(version.columns)}
        is_older = _is_before(version, own)
        found: list[ColumnOrigin] = []
        for known, column in zip(own.columns, self.columns, strict=True):
            if known.id in numbers:
                found.append(self._taken(schema, numbers[known.id], column, known.filled_size))
            elif not is_older:
                found.append(ColumnOrigin())  # dropped since
            elif known.expression is not None:
                found.append(ColumnOrigin(is_unknown=True))
            else:
                found.append(added(known, column))
        return [
            self._computed_later(known, column, found) if origin.is_unknown and known.expression is not None else origin
            for known, column, origin in zip(own.columns, self.columns, found, strict=True)
        ]

    def _computed_later(self, known: TableColumn, column: Column, origins: Sequence[ColumnOrigin]) -> ColumnOrigin:
        assert self.version is not None
        assert known.expression is not None
        own = {one.name.lower(): origin for one, origin in zip(self.version.columns, origins, strict=True)}
        return _generated(
            ColumnOrigin(is_unknown=True), known.expression, column, _inputs(self.version, self.columns), own
        )

    def _with_formula(self, origin: ColumnOrigin, schema: TableSchema, version: TableVersion) -> ColumnOrigin:
        if origin.number is None:
            return origin
        expression = version.columns[origin.number].expression
        if expression is None:
            return origin
        own = {column.name.lower(): ColumnOrigin(number=number) for number, column in enumerate(version.columns)}
        made = _generated(origin, expression, schema.columns[origin.number], _inputs(version, schema.columns), own)
        if made.compute is None or origin.convert is None:
            return made
        compute, convert = made.compute, origin.convert
        return dataclasses.replace(made, compute=lambda values: converted(convert, compute(values)))

    def _taken(self, schema: TableSchema, number: int, column: Column, filled_size: int = 0) -> ColumnOrigin:
        return ColumnOrigin(number=number, convert=widening(schema.columns[number], column, filled_size))


def _inputs(version: TableVersion, columns: Iterable[Column]) -> dict[str, Column]:
    """Those that an expression may read: the zeros of ZEROFILL would be part of their text."""
    pairs = zip(version.columns, columns, strict=True)
    return {one.name.lower(): column for one, column in pairs if one.expression is None and not one.type.is_zerofill}


def _generated(
    origin: ColumnOrigin,
    expression: str,
    column: Column,
    columns: Mapping[str, Column],
    own: Mapping[str, ColumnOrigin],
) -> ColumnOrigin:
    from .expr.formulas import NotSimpleError, formula

    try:
        names, compute = formula(expression, columns, column)
    except NotSimpleError:
        return origin
    return dataclasses.replace(origin, inputs=tuple((name, own[name]) for name in sorted(names)), compute=compute)


def added(known: TableColumn, column: Column) -> ColumnOrigin:
    if known.first_value is None:
        return ColumnOrigin(is_unknown=True)
    from .expr.formulas import NotSimpleError, constant

    try:
        return ColumnOrigin(fill=_filled_up(constant(known.first_value, column), known.filled_size))
    except NotSimpleError:
        return ColumnOrigin(is_unknown=True)


def _is_before(one: TableVersion, other: TableVersion) -> bool:
    if one.since is None or other.since is None:
        return one.since is None and other.since is not None
    return one.since < other.since


def version_shape(name: str, version: TableVersion, mode: SchemaMode = SchemaMode.LATEST) -> TableShape:
    """Raises EventError: a column has an unknown type."""
    version = version.shown
    try:
        columns = tuple(column_of(column) for column in version.columns)
    except ValueError as error:
        raise EventError(f"{name}: {error}") from None
    schema = TableSchema(
        table_id=0,
        database=version.database,
        table=version.name,
        columns=columns,
        primary_key=key_numbers(version),
        has_names=True,
    )
    return TableShape(schema=schema, version=version, mode=mode)


def united(newest: TableShape, others: Iterable[TableShape]) -> TableShape:
    """The columns of several versions by name, the newest first, each with its widest type."""
    columns = {column.name: column for column in newest.columns}
    for column in (column for other in others for column in other.columns):
        known = columns.setdefault(column.name, column)
        if known != column and has_every_value(known, column):
            columns[column.name] = column
    schema = dataclasses.replace(newest.schema, columns=tuple(columns.values()))
    return TableShape(schema=schema, mode=newest.mode)


def widening(old: Column, new: Column, filled_size: int = 0) -> Convert | None:
    """From a value of one column to the same of another; None if it is so already, or there is no way."""
    if old.kind is new.kind is ValueKind.BINARY:
        size = new.size if new.is_fixed_length else filled_size if old.is_fixed_length else 0
        if (bytes_max(old), old.is_fixed_length) < (size, True):
            return partial(_filled_up, size=size)
    if not has_every_value(old, new):
        return None  # rows hold what they were written with
    is_as_it_was = old.kind is new.kind and old.scale == new.scale and not _is_reordered(old, new)
    return None if is_as_it_was or isinstance(kind_of(old), Floating) else cast_of(old, new)


def _filled_up(value: Value, size: int) -> Value:
    return value.ljust(size, b"\0") if isinstance(value, bytes) else value


def _is_reordered(old: Column, new: Column) -> bool:
    return isinstance(kind_of(new), SetLabels) and (new.labels or ())[: len(old.labels or ())] != (old.labels or ())


def holds_dates(column: Column) -> bool:
    kind = BY_TYPE.get(column.type)
    return kind is not None and kind.has_day


def changed_columns(old: TableVersion, new: TableVersion) -> set[int]:
    """The ids of columns of both versions whose values ALTER TABLE may have changed."""
    before = {column.id: column for column in old.columns}
    pairs = [(before[column.id], column) for column in new.columns if column.id in before]
    found = {
        column.id
        for known, column in pairs
        if (known.is_nullable and not column.is_nullable) or not keeps_values(known.type, column.type)
    }
    retyped = {column.id for known, column in pairs if known.type != column.type}
    for known, column in pairs:
        if column.expression is not None:
            one, other = by_ids(known, old), by_ids(column, new)
            if one != other or any(f"`#{number}`" in other for number in retyped):
                found.add(column.id)
    return found


def by_ids(column: TableColumn, table: TableVersion) -> str:
    from ibbmaster.schema.reading import with_new_names

    return with_new_names(column.expression or "", {one.name.lower(): f"#{one.id}" for one in table.columns})
