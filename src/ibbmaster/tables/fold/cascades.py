"""What foreign keys do to children when rows of a parent go or change: no event shows it.

A server applies ON DELETE and ON UPDATE inside its engine, row by row, also to children of children. Where it may find
texts alike that differ in bytes, the child becomes unknown.
"""

import re
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.rows.certainty import MERGED, SchemaTimeline, engine_of
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import ForeignConstraint, RowPeriod, SchemaPlace, TableVersion
from .contents import TableContents
from .kept_rows import temporary_database
from .row_doubts import UnknownRows
from .row_events import MappedTable
from .stored import InexactRowsError, StoredColumn, StoredLayout, StoredRow, is_padded, is_text, own_columns, values_of
from .whole_rows import RowImages

CASCADING = frozenset(("CASCADE", "SET NULL", "SET DEFAULT"))
SCANNED_MAX = 1 << 24

Children = Sequence[tuple[TableVersion, ForeignConstraint]]
Values = dict[str, bytes | None]  # by names in lower case

_CASE_ALONE = re.compile(  # collations that compare ASCII by its letters, of whatever case
    r"(?:latin1_(?:swedish|general)|ascii_general|(?:utf8mb[34]_)?(?:general|unicode|unicode_520|uca1400))"
    r"_(?:nopad_)?(?:a[is]_)?ci"
)

AlikePart = Callable[[bytes], bytes | None]
"""Makes stored values that compare as equal the same bytes; None where others may be equal, too."""


class MissingTablesError(Exception):
    """Rows of other tables, not kept from the start, decide about kept ones."""

    def __init__(self, generations: frozenset[int]) -> None:
        super().__init__(generations)
        self.generations = generations


class FollowedTables:
    """The tables a fold follows: the wanted ones, and those whose foreign keys change their rows. `wanted` are
    generations; None: all."""

    def __init__(self, timeline: SchemaTimeline, wanted: frozenset[int] | None) -> None:
        self.wanted = wanted
        self._timeline = timeline
        self._children: dict[tuple[str, str], list[tuple[TableVersion, ForeignConstraint]]] | None = None
        self._followed: dict[tuple[str, str], Children] = {}

    def forget(self) -> None:
        self._children = None
        self._followed.clear()

    def keeps(self, table: TableVersion) -> bool:
        return self.wanted is None or table.generation in self.wanted

    def follows(self, table: TableVersion, place: SchemaPlace) -> bool:
        """Whether row events of a table matter for kept rows. Raises MissingTablesError: they do, and its own rows are
        not kept."""
        if self.keeps(table) or engine_of(table) in MERGED:
            return True
        if needed := self._leading_to_wanted(table, place, frozenset()):
            raise MissingTablesError(needed)
        return False

    def _leading_to_wanted(self, table: TableVersion, place: SchemaPlace, passed: frozenset[int]) -> frozenset[int]:
        found: frozenset[int] = frozenset()
        passed |= {table.generation}
        for child, _ in self._children_named(table.database, table.name, place):
            if self.keeps(child):
                found |= {table.generation}
            elif child.generation not in passed and (more := self._leading_to_wanted(child, place, passed)):
                found |= more | {table.generation}
        return found

    def children_of(self, database: str, name: str, place: SchemaPlace) -> Children:
        """The kept tables with foreign keys to a table, and these keys. Raises MissingTablesError: rows of others must
        be kept."""
        found = self._followed.get((database, name))
        if found is None:
            found = [one for one in self._children_named(database, name, place) if self.follows(one[0], place)]
            self._followed[database, name] = found
        return found

    def _children_named(self, database: str, name: str, place: SchemaPlace) -> Children:
        if self._children is None:
            self._children = {}
            for child in self._timeline.at(place).tables.values():
                if not isinstance(child, TableVersion):
                    continue
                for key in child.foreign_keys:
                    if CASCADING & {key.on_delete, key.on_update}:
                        self._children.setdefault((key.parent_database, key.parent_table), []).append((child, key))
        return self._children.get((database, name), [])


# Changes of rows ------------------------------------------------------------------------------


class ForeignChange(NamedTuple):
    """A parent's row that goes or changes: its values in referred columns."""

    before: Values
    after: Values | None


class FoldedTables(Protocol):
    def children_of(self, table: TableVersion) -> Children: ...

    def contents_now(self, table: TableVersion) -> TableContents: ...

    def doubt(self, contents: TableContents, reason: str) -> None: ...


def referred_columns(children: Children) -> set[str]:
    return {name.lower() for _, key in children for name in key.parent_columns}


def parent_changes(mapped: MappedTable, event: bytes, names: set[str]) -> Iterator[ForeignChange]:
    """What a row event, not yet applied, changes in a parent's columns `names`. Raises EventError: the event is
    damaged; InexactRowsError: neither the event nor its row has the values."""
    layout, contents = mapped.layout, mapped.contents
    wanted = [(column.column.name.lower(), place) for place, column in enumerate(layout.columns)]
    wanted = [(name, place) for name, place in wanted if name in names]
    generated = mapped.generated_places()
    changed: set[bytes] = set()
    for before, present, after, told in mapped.images(event):
        values = values_of(*before)
        if not all(place in present for _, place in wanted):
            if contents.unknown is not None:
                raise InexactRowsError("an image does not have all columns, and the rows are not known")
            values = mapped.before_image(before)
            key = b"" if (plan := contents.key_plan(layout)) is None else plan.key(*layout.row(values))
            if contents.is_doubtful and contents.unknown_of(key) & {layout.columns[place].id for _, place in wanted}:
                raise InexactRowsError("the row's values are in doubt")
            if key in changed:
                raise InexactRowsError("a row changes more than once in an event")
            changed.add(key)
        if after is None:
            yield ForeignChange({name: values[place] for name, place in wanted}, None)
            continue
        new = values_of(*after)
        if generated & {place for _, place in wanted if place not in told}:
            made = mapped.updated(before, present, after, told)
            if {column.column.name.lower() for column in made.lost} & names:
                raise InexactRowsError("an image has no value for a generated column that it refers to")
            new, told = made.values, range(len(made.values))
        yield ForeignChange(
            {name: values[place] for name, place in wanted},
            {name: new[place] if place in told else values[place] for name, place in wanted},
        )


def cascade(tables: FoldedTables, parent: TableVersion, changes: Sequence[ForeignChange], gtid: str) -> None:
    """Apply changes of a parent to its children, and to theirs."""
    work = deque([(parent, changes)])
    while work:
        table, told = work.popleft()
        for child, key in tables.children_of(table):
            reaching = [change for change in told if _reaches(change, key)]
            if not reaching:
                continue
            contents = tables.contents_now(child)
            if contents.unknown is not None or contents.is_in_doubt(key.column_ids):
                tables.doubt(contents, _sentence(table))
                doubt_below(tables, child)
                continue
            try:
                more = _Cascade(contents, table, key, gtid).apply(reaching) if contents.has_rows else ()
            except InexactRowsError as error:
                tables.doubt(contents, f"{_sentence(table)}, and {error}")
                doubt_below(tables, child)
                continue
            if more:
                work.append((child, more))


def doubt_below(tables: FoldedTables, parent: TableVersion) -> None:
    work, seen = [parent], {parent.generation}
    while work:
        table = work.pop()
        for child, _ in tables.children_of(table):
            contents = tables.contents_now(child)
            if contents.has_rows:
                tables.doubt(contents, _sentence(table))
            if child.generation not in seen:
                seen.add(child.generation)
                work.append(child)


def _sentence(parent: TableVersion) -> str:
    return f"its foreign key to {parent.full_name} deletes or changes rows without an event"


def _reaches(change: ForeignChange, key: ForeignConstraint) -> bool:
    names = [name.lower() for name in key.parent_columns]
    old = [change.before.get(name) for name in names]
    if None in old:
        return False
    if change.after is None:
        return key.on_delete in CASCADING
    return key.on_update in CASCADING and old != [change.after.get(name) for name in names]


class _Cascade:
    def __init__(self, contents: TableContents, parent: TableVersion, key: ForeignConstraint, gtid: str) -> None:
        table = contents.table
        self._contents, self._key, self._gtid = contents, key, gtid
        self._layout = contents.layouts.add(own_columns(table))
        self._places = [self._layout.places[column_id] for column_id in key.column_ids]
        self._names = [name.lower() for name in key.parent_columns]
        for other in table.foreign_keys:
            is_cascading = other is not key and {other.on_delete, other.on_update} & CASCADING
            if is_cascading and set(other.column_ids) & set(key.column_ids):
                raise InexactRowsError("another foreign key has a column of it")
        for place, name in zip(self._places, self._names, strict=True):
            known, column = parent.column(name), self._layout.columns[place]
            if known is None or not _are_alike(column, own_columns(parent)[parent.columns.index(known)]):
                raise InexactRowsError(f"column {column.column.name} has another type than {name} of its parent")
            if column.id in contents.unknown_columns:
                raise InexactRowsError(f"the values of its column {column.column.name} are not known")

    def apply(self, changes: Sequence[ForeignChange]) -> list[ForeignChange]:
        found = []
        for change in changes:
            rule = self._key.on_delete if change.after is None else self._key.on_update
            if rule == "SET DEFAULT":
                raise InexactRowsError("SET DEFAULT is not followed")
            for values in list(self._rows([change.before[name] or b"" for name in self._names])):
                new = None
                if change.after is not None or rule == "SET NULL":
                    told = change.after if rule == "CASCADE" else None
                    new = self._changed(values, [None if told is None else told[name] for name in self._names])
                found.append(self._replaced(values, new))
        return found

    def _changed(self, values: list[bytes | None], told: Sequence[bytes | None]) -> list[bytes | None]:
        new = list(values)
        for place, value in zip(self._places, told, strict=True):
            new[place] = value
        RowImages(self._contents, self._layout).compute_updated(new, self._places, self._gtid)
        return new

    def _replaced(self, old: list[bytes | None], new: list[bytes | None] | None) -> ForeignChange:
        contents, layout = self._contents, self._layout
        if new is None:
            contents.delete(layout, [layout.row(old)])
        else:
            contents.update(layout, [layout.row(old)], [layout.row(new)], self._key.column_ids)
            for column in contents.table.columns:
                if column.period is RowPeriod.START and contents.table.is_versioned:
                    reason = f"a foreign key changes rows, and no event tells when: {column.name}"
                    contents.lose_column(column.id, UnknownRows(self._gtid, reason))
        names = [column.column.name.lower() for column in layout.columns]
        return ForeignChange(
            dict(zip(names, old, strict=True)), None if new is None else dict(zip(names, new, strict=True))
        )

    def _rows(self, wanted: Sequence[bytes]) -> Iterator[list[bytes | None]]:
        contents = self._contents
        parts = [alike_part(self._layout.columns[place]) for place in self._places]
        value = _reference(parts, wanted)
        if row_key(contents.table) is None:
            places: Iterable[int] = self._all_places()
        else:
            places = self._index(parts).places(contents, value)
        for place in places:
            values = contents.values_at(place)
            held = [values[one] for one in self._places]
            if None in held:
                continue
            found = _reference(parts, [one or b"" for one in held])
            if found is None or value is None:
                raise InexactRowsError("its texts may be alike to others by their collation")
            if found == value:
                yield values

    def _all_places(self) -> list[int]:
        contents = self._contents
        found = list(contents.kept.places(contents.number))
        contents.scanned += len(found)
        if contents.scanned > SCANNED_MAX:
            raise InexactRowsError("it has too many rows without a key to look for them")
        return found

    def _index(self, parts: Sequence[AlikePart]) -> "ForeignIndex":
        contents = self._contents
        index = contents.references.get(self._key.name)
        if not isinstance(index, ForeignIndex):
            index = ForeignIndex(self._key.column_ids, parts)
            for key, place in list(contents.kept.all_rows(contents.number)):
                index.note(self._layout, [key], [self._layout.row(contents.values_at(place))])
            contents.references[self._key.name] = index
        return index


def _are_alike(one: StoredColumn, other: StoredColumn) -> bool:
    if BY_NAME[one.type.word].is_integer:
        return (one.type.word, one.type.is_unsigned) == (other.type.word, other.type.is_unsigned)
    if is_text(one):
        return (one.type.word, one.type.collation) == (other.type.word, other.type.collation)
    return one.type == other.type


def _reference(parts: Sequence[AlikePart], values: Sequence[bytes]) -> bytes | None:
    found = b""
    for part, value in zip(parts, values, strict=True):
        made = part(value)
        if made is None:
            return None
        found += len(made).to_bytes(4, "big") + made
    return found


class ForeignIndex:
    """Finds the rows of a child that may refer to a value; callers check them. It only grows: rows that are gone are
    left out when they are looked up."""

    def __init__(self, column_ids: Sequence[int], parts: Sequence[AlikePart]) -> None:
        self._column_ids = column_ids
        self._parts = parts
        self._database = temporary_database()
        weakref.finalize(self, self._database.close)
        self._database.execute("CREATE TABLE x (value BLOB, key BLOB, PRIMARY KEY (value, key)) WITHOUT ROWID")

    def note(self, layout: StoredLayout, keys: Sequence[bytes], rows: Sequence[StoredRow]) -> None:
        places = [layout.places[column_id] for column_id in self._column_ids]
        found = []
        for key, (image, spans) in zip(keys, rows, strict=True):
            held = [None if (span := spans[place]) is None else image[span[0] : span[1]] for place in places]
            if None not in held:
                found.append((_reference(self._parts, [one or b"" for one in held]) or b"", key))
        self._database.executemany("INSERT OR IGNORE INTO x VALUES (?, ?)", found)

    def places(self, contents: TableContents, value: bytes | None) -> Iterator[int]:
        """Among them are rows that are compared by more than their bytes."""
        some = "" if value is None else " WHERE value IN (:value, x'')"

        sql = f"SELECT DISTINCT key FROM x{some} ORDER BY key"
        for (key,) in self._database.execute(sql, {"value": value}).fetchall():
            place = contents.kept.place(contents.number, key)
            if place is not None:
                yield place


def alike_part(column: StoredColumn) -> AlikePart:
    """Makes equal values the same bytes. Raises InexactRowsError: the collation is unknown here."""
    if not is_text(column):
        return bytes
    collation = column.type.collation or ""
    trimmed = (lambda data: data.rstrip(b" ")) if is_padded(column.type) else bytes
    if collation.endswith("_bin"):
        return trimmed
    if _CASE_ALONE.fullmatch(collation) is None:
        raise InexactRowsError(f"texts of {collation} are compared")
    return lambda data: trimmed(data).upper() if data.isascii() and data.decode().isprintable() else None
