"""What may make a snapshot another table than the server had: found over all cores, so that most tables need no more.

Each doubt is one that a fold of the table, row by row, may have no need of; none is left out that it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

from ibbmaster.arrow.plan import open_log
from ibbmaster.arrow.read_options import ReadOptions, ZeroDates
from ibbmaster.arrow.shape import field_name, own_name
from ibbmaster.fold.contents import LIKE_A_REPLACE
from ibbmaster.fold.folding import WITHOUT_BEGINNING
from ibbmaster.lake.pasts import START, Doubt, Past, Place
from ibbmaster.rows.shape import TableShape, holds_dates
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.reading import named_in

POST_IMAGE = "update_postimage"
IMAGES_BEFORE = ("delete", "update_preimage")
PARENT_CHANGES = ("delete", POST_IMAGE)


class Condition(NamedTuple):
    """What a change is like, of any kind if no `kinds` are named; columns are called as in a DataFrame.

    Attributes:
        lacks: its image leaves out one of these columns.
        has_all: it leaves out none of these.
        has_some: it has one of these.
        null: it has this column, and NULL there.
    """

    kinds: tuple[str, ...] = ()
    lacks: tuple[str, ...] | None = None
    has_all: tuple[str, ...] = ()
    has_some: tuple[str, ...] | None = None
    null: str | None = None


Seen = tuple[Place, str]  # a group: where it is, and its GTID


class Changes(Protocol):
    """The changes of a table that have taken effect, as an engine reads them."""

    def first(self, conditions: Mapping[str, Condition], begin: Place) -> dict[str, Seen]:
        """After a place the first change that is so, for each condition that one meets, by the condition's name."""

    def first_of(self, table: str, kinds: Sequence[str], begin: Place) -> Seen | None:
        """After a place the first group that changes rows of another table in one of these ways."""


def find_doubts(
    options: ReadOptions,
    changes: Changes,
    past: Past,
    shape: TableShape,
    keys: Sequence[str],
    *,
    with_history: bool = False,
) -> list[Doubt]:
    """All that may make the rows of a table uncertain, in the order of the log.

    With history rows count that are gone now, too.
    """
    doubts = [*(past.past_doubts if with_history else ()), *past.doubts]
    begin = START if with_history else past.begin
    conditions = {"rows": Condition()} | dict(_conditions(past, shape, keys, options))
    seen = changes.first(conditions, begin)
    begun = seen.pop("rows", None)
    doubts += [Doubt(*one, reason) for reason, one in seen.items()]
    if not past.cuts:
        doubts.append(Doubt(START, _start_of(options), WITHOUT_BEGINNING))
    if begun is not None:
        doubts += _cascaded(changes, past)
    return sorted(set(doubts))


def _start_of(options: ReadOptions) -> str:
    """Where the log begins; empty if at its very beginning."""
    with closing(open_log(options)) as log:
        return str(log.start_of_file().state.position())


def _conditions(
    past: Past, shape: TableShape, keys: Sequence[str], options: ReadOptions
) -> Iterator[tuple[str, Condition]]:
    """Reasons, and which changes are so: images of each kind that lack what only the server knew."""
    names = {column.name: field_name(column.name) for column in shape.columns}
    known = past.state.columns if isinstance(past.state, TableVersion) else ()
    with_default = past.nulls
    yield (
        "an INSERT has no value for some columns, which the server has filled in",
        Condition(("insert",), lacks=tuple(name for name in names.values() if name not in with_default)),
    )
    yield "an image has no value for columns of the key", Condition(IMAGES_BEFORE, lacks=tuple(keys))
    others = tuple(name for name in names.values() if name not in keys)
    yield LIKE_A_REPLACE, Condition((POST_IMAGE,), lacks=others, has_all=tuple(keys))
    lower = {name.lower(): field for name, field in names.items()}
    for column in known:
        if column.expression is None or column.name not in names:
            continue
        sources = tuple(lower[name] for name in named_in(column.expression) if name in lower)
        yield (
            f"an UPDATE has no value for the generated column {column.name}",
            Condition((POST_IMAGE,), lacks=(names[column.name],), has_some=sources),
        )
    if options.zero_dates is ZeroDates.NULL:
        for name in (names[column.name] for column in shape.columns if holds_dates(column)):
            if name in keys:
                reason = f"a value of the key column {own_name(name)} is no date: --zero-dates text keeps it"
                yield reason, Condition(null=name)


def _cascaded(changes: Changes, past: Past) -> Iterator[Doubt]:
    """Changes of parents whose foreign keys may have changed rows without an event, also in several steps."""
    for table in map(str, sorted(past.ancestors)):
        first = changes.first_of(table, PARENT_CHANGES, past.begin)
        if first is not None:
            yield Doubt(*first, f"its foreign key to {table} deletes or changes rows without an event")
