"""What ALTERs do to rows written before: other names, wider types, columns of NULLs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ibbmaster.rows.shape import changed_columns, widening
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.schema.names import column_of, key_numbers
from ibbmaster.tables.arrow.shape import ShapeField, field_name

WIDER = {("int", "bigint"), ("float", "double")}  # every value of one is one of the other


@dataclass(frozen=True, slots=True)
class Reshape:
    """How old columns become those of now; false if they are the same."""

    renamed: Mapping[str, str] = field(default_factory=dict)  # new names by old ones
    widened: tuple[str, ...] = ()  # columns of now whose type has all values of the old one
    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()  # columns of now, NULL in all old rows

    def __bool__(self) -> bool:
        return bool(self.renamed or self.widened or self.dropped or self.added)


def reshape_of(
    then: TableVersion, now: TableVersion, fields_of: Callable[[TableVersion], tuple[ShapeField, ...]]
) -> Reshape | None:
    """The step between two versions; None if rows must be written anew. `fields_of` gives a version's columns as
    written."""
    then, now = then.shown, now.shown
    if then.generation != now.generation or _key_of(then) != _key_of(now) or changed_columns(then, now):
        return None
    before, after = ({column.id: column for column in one.columns} for one in (then, now))
    names = {column.name: field_name(column.name) for column in (*then.columns, *now.columns)}
    types = [{one.name: one.type for one in fields_of(version)} for version in (then, now)]
    widened, renamed = [], {}
    for number in before.keys() & after.keys():
        old, new = before[number], after[number]
        types_of = types[0][names[old.name]], types[1][names[new.name]]
        if not _stays(old, new, *types_of):
            return None
        if old.name != new.name:
            renamed[names[old.name]] = names[new.name]
        if types_of[0] != types_of[1]:
            widened.append(names[new.name])
    added = [column for column in now.columns if column.id not in before]
    if any(column.first_value != "NULL" or column.is_computed for column in added):
        return None
    dropped = (names[column.name] for column in then.columns if column.id not in after)
    return Reshape(renamed, tuple(widened), tuple(dropped), tuple(names[column.name] for column in added))


def _key_of(table: TableVersion) -> set[int]:
    return {table.columns[number].id for number in key_numbers(table)}


def _stays(old: TableColumn, new: TableColumn, type_then: str, type_now: str) -> bool:
    if old.is_computed or new.is_computed:
        return (old.name, old.type, old.expression) == (new.name, new.type, new.expression)
    if old.type == new.type:
        return type_then == type_now
    before, after = column_of(old), column_of(new)
    is_as_it_stands = before.kind is after.kind and widening(before, after) is None
    is_wider = (type_then, type_now) in WIDER or type_then[:8] == type_now[:8] == "decimal("
    return is_as_it_stands and (type_then == type_now or is_wider)
