"""A table over its versions in one shape: the columns of one version, and what they are in rows of the others.

Columns are the same by identity, through renames; a column that was dropped and added again is
another one. A column that rows do not have yet holds there what its ALTER TABLE gave it. Types
widen: an old value is given as the same value of the newer type.
"""

from __future__ import annotations

import dataclasses
import decimal
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from ibbmaster.errors import EventError
from ibbmaster.event.rows.changes import ABSENT, Image, RawValue
from ibbmaster.event.rows.column import Column, ColumnType, TableSchema, ValueKind
from ibbmaster.event.rows.kinds.decimals import DIGITS_MAX
from ibbmaster.event.rows.kinds.integer import INTEGER_SIZES
from ibbmaster.event.rows.value import Value
from ibbmaster.schema.collations import character_size
from ibbmaster.schema.expression import Evaluate, NotSimpleError, constant, formula
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.schema.names import column_of, key_numbers
from ibbmaster.schema.reading import with_new_names

Convert = Callable[[Value], Value]
ZERO_CLOCK = " 00:00:00"
UNICODE = frozenset(("utf8mb4", "utf16", "utf16le", "utf32"))
_EXACT = decimal.Context(prec=4 * DIGITS_MAX)


class SchemaMode(enum.Enum):
    """Which shape a table is read in."""

    LATEST = "latest"
    AS_WRITTEN = "asWritten"  # each row by the names it was written with
    AT = "at"  # that of one place


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """Where the values of a column come from, in rows of one version.

    Attributes:
        number: of the column among those of the version; None where it has none like it.
        convert: makes a value one of the shape's column; None: it is that already.
        fill: what rows without the column hold in it.
        is_unknown: nobody can tell what they hold.
        inputs, compute: of a generated column, how its value is told where an image leaves it out.
    """

    number: int | None = None
    convert: Convert | None = None
    fill: Value = None
    is_unknown: bool = False
    inputs: tuple[tuple[str, ColumnOrigin], ...] = ()
    compute: Evaluate | None = None

    def value(self, image: Image) -> Value:
        """The value in an image; ABSENT if nothing tells it."""
        if self.number is None and self.compute is None:
            return ABSENT if self.is_unknown else self.fill
        value = ABSENT if self.number is None else image[self.number]
        if value is ABSENT and self.compute is not None:
            return self.computed({name: origin.value(image) for name, origin in self.inputs})
        return value if self.convert is None else converted(self.convert, value)

    def computed(self, values: Mapping[str, Value]) -> Value:
        """The value that those of the inputs make; ABSENT if they make none."""
        assert self.compute is not None
        if any(value is ABSENT or isinstance(value, RawValue) for value in values.values()):
            return ABSENT
        try:
            return self.compute(values)
        except NotSimpleError:
            return ABSENT

    def is_absent(self, image: Image) -> bool:
        """Whether nothing tells the value in an image."""
        if self.compute is not None:
            return self.value(image) is ABSENT
        return self.is_unknown if self.number is None else image[self.number] is ABSENT

    def is_told(self, present: int) -> bool:
        """Whether images with these columns, a bit each, tell its value."""
        if self.number is not None and present >> self.number & 1:
            return True
        if self.compute is not None:
            return all(origin.is_told(present) for _, origin in self.inputs)
        return self.number is None and not self.is_unknown


def converted(convert: Convert, value: Value) -> Value:
    """A value converted; what is none stays what it is."""
    return value if value is None or value is ABSENT or isinstance(value, RawValue) else convert(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """The columns that a table is read with.

    `version` is the one they are of; None where nothing but a TABLE_MAP tells them: columns are
    then the same by name.
    """

    schema: TableSchema
    version: TableVersion | None = None
    mode: SchemaMode = SchemaMode.LATEST

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.schema.columns

    def origins(self, schema: TableSchema, version: TableVersion | None) -> tuple[ColumnOrigin, ...]:
        """Where each column comes from in rows of a TABLE_MAP, which has these names, and is of this version."""
        if self.version is None or version is None or self.mode is SchemaMode.AS_WRITTEN:
            found = self._by_name(schema)
        elif not {column.id for column in version.columns} & {column.id for column in self.version.columns}:
            found = self._by_name(schema)  # another table was called so
        else:
            found = self._by_identity(schema, version, self.version)
        if version is None:
            return tuple(found)
        return tuple(self._with_formula(origin, schema, version) for origin in found)

    def untold(self, version: TableVersion) -> set[int]:
        """The ids of its columns whose values in rows of a version nobody can tell, though rows of now have them."""
        if self.version is None:
            return set()
        origins = self.origins(version_shape(version.full_name, version).schema, version)
        return {
            column.id
            for column, origin in zip(self.version.columns, origins, strict=True)
            if origin.number is None and origin.is_unknown and origin.compute is None
        }

    def _by_name(self, schema: TableSchema) -> list[ColumnOrigin]:
        numbers = {column.name: number for number, column in enumerate(schema.columns)}
        return [
            self._taken(schema, numbers[column.name], column) if column.name in numbers else ColumnOrigin()
            for column in self.columns
        ]

    def _by_identity(self, schema: TableSchema, version: TableVersion, own: TableVersion) -> list[ColumnOrigin]:
        numbers = {column.id: number for number, column in enumerate(version.columns)}
        is_older = _is_before(version, own)
        found: list[ColumnOrigin] = []
        for known, column in zip(own.columns, self.columns, strict=True):
            if known.id in numbers:
                found.append(self._taken(schema, numbers[known.id], column))
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
        """A generated column of the shape in rows from before it was added."""
        assert self.version is not None
        assert known.expression is not None
        own = {one.name.lower(): origin for one, origin in zip(self.version.columns, origins, strict=True)}
        return _generated(
            ColumnOrigin(is_unknown=True), known.expression, column, self._plain_columns(self.version), own
        )

    def _with_formula(self, origin: ColumnOrigin, schema: TableSchema, version: TableVersion) -> ColumnOrigin:
        """A generated column of the rows themselves, for images that leave it out."""
        if origin.number is None:
            return origin
        expression = version.columns[origin.number].expression
        if expression is None:
            return origin
        own = {column.name.lower(): ColumnOrigin(number=number) for number, column in enumerate(version.columns)}
        columns = {
            known.name.lower(): column
            for known, column in zip(version.columns, schema.columns, strict=True)
            if _is_input(known)
        }
        made = _generated(origin, expression, schema.columns[origin.number], columns, own)
        if made.compute is None or origin.convert is None:
            return made
        compute, convert = made.compute, origin.convert
        return dataclasses.replace(made, compute=lambda values: converted(convert, compute(values)))

    def _plain_columns(self, version: TableVersion) -> dict[str, Column]:
        return {
            known.name.lower(): column
            for known, column in zip(version.columns, self.columns, strict=True)
            if _is_input(known)
        }

    def _taken(self, schema: TableSchema, number: int, column: Column) -> ColumnOrigin:
        found = schema.columns[number]
        return ColumnOrigin(number=number, convert=widening(found, column))


def _is_input(column: TableColumn) -> bool:
    """Whether an expression may take the column here: the zeros before a ZEROFILL are part of its text."""
    return column.expression is None and not column.type.is_zerofill


def _generated(
    origin: ColumnOrigin,
    expression: str,
    column: Column,
    columns: Mapping[str, Column],
    own: Mapping[str, ColumnOrigin],
) -> ColumnOrigin:
    try:
        names, compute = formula(expression, columns, column)
    except NotSimpleError:
        return origin
    return dataclasses.replace(origin, inputs=tuple((name, own[name]) for name in sorted(names)), compute=compute)


def added(known: TableColumn, column: Column) -> ColumnOrigin:
    """A column in rows from before ALTER TABLE added it."""
    if known.first_value is None:
        return ColumnOrigin(is_unknown=True)
    try:
        return ColumnOrigin(fill=constant(known.first_value, column))
    except NotSimpleError:
        return ColumnOrigin(is_unknown=True)


def _is_before(one: TableVersion, other: TableVersion) -> bool:
    if one.since is None or other.since is None:
        return one.since is None and other.since is not None
    return one.since < other.since


def version_shape(name: str, version: TableVersion, mode: SchemaMode = SchemaMode.LATEST) -> TableShape:
    """The shape of one version of a table.

    Raises:
        EventError: it has columns of a type of which nothing is known.
    """
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
    """The columns of several versions by name, those of the newest first; of two that differ the wider one."""
    columns = {column.name: column for column in newest.columns}
    for column in (column for other in others for column in other.columns):
        known = columns.setdefault(column.name, column)
        if known != column and is_wider(known, column):
            columns[column.name] = column
    schema = dataclasses.replace(newest.schema, columns=tuple(columns.values()))
    return TableShape(schema=schema, mode=newest.mode)


def widening(old: Column, new: Column) -> Convert | None:
    """What makes a value of one column the same value of another; None if it is so as it stands, or there is no way.

    Whether there is one, the types of cells tell: those of columns whose values are the same are the same, or wider.
    """
    match old.kind, new.kind:
        case (ValueKind.DECIMAL, ValueKind.DECIMAL) if new.scale > old.scale:
            return _rescaled(new.scale)
        case (ValueKind.INTEGER, ValueKind.DECIMAL):
            return _rescaled(new.scale)
        case (ValueKind.DATE, ValueKind.DATETIME):
            return lambda value: f"{value}{ZERO_CLOCK}" + ("." + "0" * new.scale if new.scale else "")
        case (ValueKind.TIME | ValueKind.DATETIME | ValueKind.TIMESTAMP, kind) if kind is old.kind:
            return _with_digits(old.scale, new.scale) if new.scale > old.scale else None
        case (ValueKind.BINARY, ValueKind.BINARY) if new.type == ColumnType.STRING and old != new:
            size = new.size
            return lambda value: value.ljust(size, b"\0")  # type: ignore[attr-defined]
        case (ValueKind.SET, ValueKind.SET) if old.labels and new.labels and not _is_prefix(old.labels, new.labels):
            return _in_order(new.labels)
    return None


def _rescaled(scale: int) -> Convert:
    unit = Decimal(1).scaleb(-scale)
    return lambda value: Decimal(value).quantize(unit, context=_EXACT)  # type: ignore[arg-type]


def _with_digits(old: int, new: int) -> Convert:
    zeros = ("" if old else ".") + "0" * (new - old)
    return lambda value: f"{value}{zeros}"


def _is_prefix(one: Sequence[str], other: Sequence[str]) -> bool:
    return tuple(other[: len(one)]) == tuple(one)


def _in_order(labels: tuple[str, ...]) -> Convert:
    """A SET's text lists its labels in the order of their definition."""

    def convert(value: Value) -> Value:
        held = str(value).split(",")
        return ",".join([*(label for label in labels if label in held), *(one for one in held if one not in labels)])

    return convert


def changed_columns(old: TableVersion, new: TableVersion) -> set[int]:
    """The ids of columns of both versions whose values ALTER TABLE may have changed."""
    before = {column.id: column for column in old.columns}
    pairs = [(before[column.id], column) for column in new.columns if column.id in before]
    found = {column.id for known, column in pairs if not keeps_values(known, column)}
    retyped = {column.id for known, column in pairs if known.type != column.type}
    for known, column in pairs:
        if column.expression is not None:
            one, other = _by_ids(known, old), _by_ids(column, new)
            if one != other or any(f"`#{number}`" in other for number in retyped):
                found.add(column.id)
    return found


def _by_ids(column: TableColumn, table: TableVersion) -> str:
    """An expression that names columns by their ids; empty if there is none."""
    return with_new_names(column.expression or "", {one.name.lower(): f"#{one.id}" for one in table.columns})


def keeps_values(old: TableColumn, new: TableColumn) -> bool:
    """Whether every value of a column is the same after ALTER TABLE has given it another type."""
    if old.is_nullable and not new.is_nullable:
        return False
    if old.type == new.type:
        return True
    try:
        return is_wider(column_of(old), column_of(new))
    except ValueError:
        return False  # of types of which nothing is known


def is_wider(old: Column, new: Column) -> bool:
    """Whether one column can hold every value of another, and hold it as the same."""
    match old.kind, new.kind:
        case ValueKind.INTEGER, ValueKind.INTEGER:
            (low, high), (new_low, new_high) = _range_of(old), _range_of(new)
            return new_low <= low and high <= new_high
        case ValueKind.INTEGER, ValueKind.DECIMAL:
            low, high = _range_of(old)
            limit = 10 ** (new.size - new.scale)
            return high < limit and -low < limit and (low == 0 or not new.is_unsigned)
        case ValueKind.DECIMAL, ValueKind.DECIMAL:
            has_sign = old.is_unsigned or not new.is_unsigned
            return bool(has_sign) and new.scale >= old.scale and new.size - new.scale >= old.size - old.scale
        case ValueKind.FLOAT, ValueKind.FLOAT:
            return new.type in (old.type, ColumnType.DOUBLE)
        case ValueKind.BIT, ValueKind.BIT:
            return new.size >= old.size
        case ValueKind.DATE, ValueKind.DATE | ValueKind.DATETIME:
            return True
        case ValueKind.ENUM | ValueKind.SET, kind if kind is old.kind:
            return set(old.labels or ()) <= set(new.labels or ())
        case ValueKind.TEXT, ValueKind.TEXT:
            is_same_set = old.charset == new.charset or new.charset in UNICODE
            return is_same_set and _bytes_needed(old, new) <= _bytes_max(new) and not _is_trimmed(old, new)
        case ValueKind.BINARY, ValueKind.BINARY:
            return _bytes_max(old) <= _bytes_max(new)
        case kind, same if kind is same and kind in (ValueKind.TIME, ValueKind.DATETIME, ValueKind.TIMESTAMP):
            return new.scale >= old.scale
    return dataclasses.replace(old, name=new.name, is_nullable=new.is_nullable) == new


def _range_of(column: Column) -> tuple[int, int]:
    bits = 8 * INTEGER_SIZES[ColumnType(column.type)]
    return (0, (1 << bits) - 1) if column.is_unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _bytes_max(column: Column) -> int:
    """Of a string as the column stores it."""
    is_blob = column.type in (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED)
    return (1 << 8 * column.size) - 1 if is_blob else column.size


def _bytes_needed(old: Column, new: Column) -> int:
    """For the longest text of one column in the character set of another."""
    if old.charset == new.charset:
        return _bytes_max(old)
    characters = _bytes_max(old)
    if old.type in (ColumnType.STRING, ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED):
        characters //= character_size(old.charset)
    return characters * character_size(new.charset)


def _is_trimmed(old: Column, new: Column) -> bool:
    """Whether spaces at the end go: CHAR has none."""
    return new.type == ColumnType.STRING and old.type != ColumnType.STRING
