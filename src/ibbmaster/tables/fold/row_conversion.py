"""Images of rows for a new version of their table, where ALTER TABLE makes stored values wrong.

Mostly they can stay: a stored value is shown in the type that its column has now.
"""

import re
from collections.abc import Callable

from ibbmaster.replication.event.column_types.floating import FLOAT
from ibbmaster.replication.event.column_types.kind import TextSettings
from ibbmaster.replication.event.column_types.registry import BY_NAME, kind_of
from ibbmaster.replication.event.rows.column import Column, ValueKind
from ibbmaster.rows.expr.column_casts import Convert, as_text, cast_of
from ibbmaster.rows.expr.stored_values import stored_value
from ibbmaster.rows.shape import by_ids, keeps_values
from ibbmaster.schema.altering import made_of_null
from ibbmaster.schema.column_text import kept_literal
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.schema.session import SchemaSession
from ibbmaster.sqltext.literals import literal_value
from ibbmaster.sqltext.moment import DAY_S, SECOND_US, date_text, moment_text, parse_moment
from .stored import InexactRowsError, StoredColumn, StoredLayout, own_columns

Restore = Callable[[bytes], bytes]
"""Takes the stored bytes of a value, gives those of another column. Raises ValueError where that does not have it."""

TIMESTAMP_END_S = (1 << 31) - 1
_PLAIN_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d{1,6})?)?", re.ASCII)


def is_shown_alike(old: StoredColumn, new: StoredColumn) -> bool:
    """Whether stored values can stay: `shown` makes those of the new column of them."""
    if old.type == new.type:
        return True
    if old.column.kind is not new.column.kind or not keeps_values(old.type, new.type):
        return False
    return kind_of(old.column).shows_alike(old.column, old.type, new.type)


def restoring(old: StoredColumn, new: StoredColumn, time_zone_s: int | None = None) -> Restore | None:
    """Makes a stored value that of another column, as ALTER TABLE does; None if that is unknown."""
    if _are_stored_alike(old, new):
        return bytes
    own = kind_of(old.column)
    cast, read = cast_of(old.column, new.column), own.convert(old.column)
    if cast is None:
        cast = _moment_cast(old.column, new.column, time_zone_s)
    if cast is None and own.is_number and new.column.kind is ValueKind.TEXT:
        shown, cast = own.shown(old.column, old.type, TextSettings("utf8mb4")), as_text(new.column)
        read = lambda data: shown(data).decode()  # noqa: E731 - one of two ways
    if cast is None:
        return None

    def restore(data: bytes) -> bytes:
        found = stored_value(new.column, new.type, cast(read(data)))  # type: ignore[arg-type]
        assert found is not None
        return found

    return restore


def _moment_cast(old: Column, new: Column, time_zone_s: int | None) -> Convert | None:
    """Between local and UTC moments; and from texts that every server reads as the same date."""
    before, after = kind_of(old), kind_of(new)
    if old.kind is ValueKind.TEXT and after.has_day and not after.is_zoned:
        return lambda value: _shifted(_plain_moment(str(value)), new, 0)
    has_both = before.has_day and before.is_clock and after.has_day and after.is_clock
    if time_zone_s is None or not has_both or before.is_zoned is after.is_zoned:
        return None
    seconds = time_zone_s if before.is_zoned else -time_zone_s
    return lambda value: _shifted(str(value), new, seconds)


def _plain_moment(text: str) -> str:
    if _PLAIN_MOMENT.fullmatch(text) is None:
        raise ValueError(f"{text[:60]!r} is no plain date")
    return text


def _shifted(text: str, new: Column, seconds: int) -> str:
    kind = kind_of(new)
    if not text.strip("0-: ."):
        return "0000-00-00 00:00:00" if kind.is_clock else "0000-00-00"
    moment = parse_moment(text)
    if moment is None:
        raise ValueError(f"{text} is no day of the calendar")
    moment += seconds * SECOND_US
    if moment % 10 ** (6 - new.scale):
        raise ValueError(f"{text} has more than {new.scale} digits of a second")
    if kind.is_zoned and not SECOND_US <= moment < TIMESTAMP_END_S * SECOND_US:
        raise ValueError(f"{text} is beyond what every server has as TIMESTAMP")
    if kind.is_clock:
        return moment_text(moment, new.scale)
    if moment % (DAY_S * SECOND_US):
        raise ValueError(f"{text} is no date alone")
    return date_text(moment)


def _are_stored_alike(old: StoredColumn, new: StoredColumn) -> bool:
    if not is_shown_alike(old, new) or old.column.charset != new.column.charset:
        return False
    if old.fixed is None and new.fixed is None:
        return old.column.is_compressed is new.column.is_compressed
    return (old.fixed, old.column.type, old.column.scale) == (new.fixed, new.column.type, new.column.scale)


class RowConversion:
    """Makes images of a table's new version.

    Attributes:
        unknown: by id, why a column's values are unknown.
        computed: by id, why a generated column is computed anew; it is NULL here.
        filled: columns, as they were, that can no longer be NULL.
    """

    def __init__(self, old: TableVersion, new: TableVersion, session: SchemaSession) -> None:
        self._session = session
        self.columns = own_columns(new)
        self.unknown: dict[int, str] = {}
        self.computed: dict[int, str] = {}
        self._known = {column.id: column for column in new.columns}
        self._known_old = {column.id: column for column in old.columns}
        self._old = {column.id: column for column in own_columns(old)}
        strict = {column.id for column in new.columns if not column.is_nullable}
        self.filled = [column for column in old.columns if column.is_nullable and column.id in strict]
        self._steps: dict[int, list[tuple[int | None, Restore | None]]] = {}
        self._find_recomputed(old, new)

    def retyped(self) -> list[StoredColumn]:
        return [one for one in self.columns if one.id in self._old and not is_shown_alike(self._old[one.id], one)]

    def _find_recomputed(self, old: TableVersion, new: TableVersion) -> None:
        """Generated columns change with their expression, and with the types of its columns."""
        known = {column.id: column for column in old.columns}
        marks = {f"`#{column.id}`" for column in self.retyped()}
        for column in new.columns:
            before = known.get(column.id)
            if column.expression is None:
                continue
            made = by_ids(column, new)
            if before is None:
                self.computed[column.id] = f"ADD COLUMN: column {column.name} has a value that the server has filled in"
            elif made != by_ids(before, old):
                self.computed[column.id] = f"the expression of column {column.name} changes"
            elif any(mark in made for mark in marks):
                self.computed[column.id] = f"what column {column.name} is made of changes"

    def values(self, stored: StoredLayout, image: bytes) -> list[bytes | None]:
        """In the columns of the new version; NULL where unknown."""
        steps = self._steps.get(stored.number)
        if steps is None:
            steps = self._steps[stored.number] = [self._step(stored, column) for column in self.columns]
        old = stored.values(image)
        found: list[bytes | None] = []
        for column, (place, restore) in zip(self.columns, steps, strict=True):
            value = None
            if column.id not in self.unknown and column.id not in self.computed:
                try:
                    value = self._value(column, None if place is None else old[place], place, restore)
                except ValueError as error:
                    self.unknown[column.id] = f"{_may_change(self._known[column.id].name)}: {error}"
            found.append(value)
        return found

    def _value(
        self, column: StoredColumn, value: bytes | None, place: int | None, restore: Restore | None
    ) -> bytes | None:
        if restore is None:
            return first_value(self._known[column.id], column)
        if place is None:
            value = first_value(self._known_old[column.id], self._old[column.id])
        return self._filling(column) if value is None else restore(value)

    def _step(self, stored: StoredLayout, column: StoredColumn) -> tuple[int | None, Restore | None]:
        place, own = stored.places.get(column.id), self._old.get(column.id)
        if own is None or column.id in self.unknown or column.id in self.computed:
            return place, None
        kept = own if place is None else stored.columns[place]
        first, second = restoring(kept, own), restoring(own, column, self._session.time_zone_s)
        if first is None or second is None:
            self.unknown[column.id] = _may_change(self._known[column.id].name)
            return place, None
        return place, second if first is bytes else lambda data: second(first(data))

    def _filling(self, column: StoredColumn) -> bytes | None:
        old, new = self._known_old[column.id], self._known[column.id]
        if not old.is_nullable or new.is_nullable:
            return None
        made = made_of_null(old, new, self._session)
        if made is None:
            raise ValueError("it was NULL")
        return stored_value(column.column, column.type, literal_value(made))


def _may_change(name: str) -> str:
    return f"MODIFY or CHANGE of column {name} may change its values"


# Values that rows do not store ----------------------------------------------------------------


def first_value(known: TableColumn, column: StoredColumn) -> bytes | None:
    """What rows store in a column added after them. Raises InexactRowsError: it is unknown."""
    return _constant(known, column, known.first_value)


def default_value(known: TableColumn, column: StoredColumn) -> bytes | None:
    """What an INSERT stores in a column it does not name; errors as `first_value`."""
    value = _constant(known, column, known.default)
    if value is not None and BY_NAME[known.type.word].is_zoned and any(value):
        raise InexactRowsError(f"column {known.name} has a default in a time zone that is not known")
    if value is not None and known.type.word == FLOAT.word:
        (number,) = FLOAT.binary.unpack(value)
        if FLOAT.narrowed(float(f"{number:.6g}")) != number:
            raise InexactRowsError(f"column {known.name} has a default of which any ALTER TABLE keeps six digits")
    return value


def _constant(known: TableColumn, column: StoredColumn, expression: str | None) -> bytes | None:
    if expression is None:
        if known.is_nullable and known.expression is None:
            return None
        raise InexactRowsError(f"column {known.name} has a value that the server has filled in")
    try:
        return stored_value(column.column, column.type, literal_value(kept_literal(known.type, expression)))
    except ValueError as error:
        raise InexactRowsError(f"column {known.name} has a value that is no constant: {error}") from None
