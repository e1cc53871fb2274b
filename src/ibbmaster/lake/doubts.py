"""Whether a snapshot is the table that the server had, and from which GTID on, and why, it may not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

from ibbmaster.arrow.plan import find_versions, open_log
from ibbmaster.arrow.read_options import ReadOptions, ZeroDates
from ibbmaster.arrow.shape import field_name, own_name
from ibbmaster.event.rows.column import TableSchema, ValueKind
from ibbmaster.lake.stories import START, Cascade, Doubt, Place, Stories, Story
from ibbmaster.lake.text import array_of, named, struct_of, text_literal
from ibbmaster.rows.shape import TableShape, changed_columns
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.versions import TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACE = "struct(_file_no, _offset)"
OF_DATES = (ValueKind.DATE, ValueKind.DATETIME, ValueKind.TIMESTAMP)


def find_doubts(
    session: SparkSession,
    options: ReadOptions,
    changes: DataFrame,
    stories: Stories,
    shape: TableShape,
    keys: Sequence[str],
    *,
    with_history: bool = False,
) -> list[str]:
    """All that makes the rows of a table uncertain, in the order of the log.

    `changes` are those of the table that have taken effect. With history rows count that are gone now, too.
    """
    table = shape.schema
    story = stories.of(table.name)
    begin = START if with_history else story.begin
    doubts = [*(story.past_doubts if with_history else ()), *story.doubts]
    known = _known_versions(find_versions(options).of(table.database, table.table), shape, begin)
    if known and shape.version is not None:
        of_columns = list(_column_doubts(known, shape, shape.version))
        doubts = [*(doubt for doubt in doubts if doubt.column is None), *of_columns]
    added = {doubt.column: doubt.place for doubt in doubts if doubt.column is not None}
    seen = _first_places(changes, begin, story, table, keys, options, added)
    if not story.is_whole and (start := _start_of(options)):
        place = f"the log begins behind {start} and does not tell what the table held before"
        doubts.insert(0, Doubt(place=START, gtid=start, reason=place))
    begun = seen.pop("rows", None)
    doubts += [Doubt(place=place, gtid=gtid, reason=reason) for reason, (place, gtid) in seen.items()]
    rows = _Rows(session, options, {table.name: begun})
    certain = [doubt for doubt in doubts if doubt.rows_of is None or rows.are_before(doubt)]
    if begun is not None:
        certain += _cascaded(session, options, stories.ancestors(table.name), max(begin, begun[0]))
    if story.is_versioned and begun is not None:
        reason = "system versioned: the rows of its past are among those of the log"
        certain.append(Doubt(place=begun[0], gtid=begun[1], reason=reason))
    certain.sort(key=lambda doubt: doubt.place)
    return list(dict.fromkeys(f"not sure since {doubt.gtid}: {doubt.reason}" for doubt in certain))


def _known_versions(versions: Sequence[TableState], shape: TableShape, begin: Place) -> list[TableVersion]:
    """The versions that a table had since a place; none if one of them is not known."""
    lived = [
        one for one, following in zip_longest(versions, versions[1:]) if following is None or _place(following) > begin
    ]
    known = [one for one in lived if isinstance(one, TableVersion)]
    return known if shape.version is not None and len(known) == len(lived) else []


def _place(table: TableState) -> Place:
    return START if table.since is None else (table.since.position.file_no, table.since.position.offset)


def _column_doubts(versions: Sequence[TableVersion], shape: TableShape, newest: TableVersion) -> Iterator[Doubt]:
    """Where an ALTER TABLE gave a column values in rows that were there, and no statement tells which."""
    lasting = {column.id for column in newest.columns}
    name = newest.full_name
    for old, new in pairwise(versions):
        before = {column.id: column for column in old.columns}
        if not before.keys() & {column.id for column in new.columns}:
            continue  # another table is called so now
        untold, changed = shape.untold(old), changed_columns(old, new)
        for column in (column for column in new.columns if column.id in lasting):
            why = None
            if column.id not in before:
                if column.id in untold:
                    why = f"ADD COLUMN {column.name} gives it a value in old rows"
            elif column.id in changed:
                why = f"MODIFY or CHANGE of column {column.name} may change its values"
            if why is not None:
                yield Doubt(place=_place(new), gtid=new.gtid or "", reason=why, rows_of=name, column=column.name)


def _start_of(options: ReadOptions) -> str:
    """Where the log begins; empty if at its very beginning."""
    with closing(open_log(options)) as log:
        return str(log.start_of_file().state.position())


Seen = tuple[Place, str]


def _first_places(
    changes: DataFrame,
    begin: Place,
    story: Story,
    table: TableSchema,
    keys: Sequence[str],
    options: ReadOptions,
    added: Mapping[str, Place],
) -> dict[str, Seen]:
    """The first change of rows, and the first image that lacks what only the server knew; place and GTID by reason.

    `added` has columns about whose values there is a doubt, and where that is.
    """
    names = {column.name: field_name(column.name) for column in table.columns}
    columns = {names[name]: definition for name, definition in (story.columns or {}).items() if name in names}
    lower = {name.lower(): field for name, field in names.items()}
    told = [field for field, definition in columns.items() if definition.is_null_at_first]
    untold = [name for name in names.values() if name not in told]
    lacks = [f"arrays_overlap(_absent, {array_of(name for name in untold if own_name(name) not in added)})"]
    for name in (name for name in untold if own_name(name) in added):  # rows from before it are another doubt
        place = struct_of(added[own_name(name)])
        lacks.append(f"(array_contains(_absent, {text_literal(name)}) AND {PLACE} > {place})")
    conditions = {
        "rows": "true",
        "an INSERT has no value for some columns, which the server has filled in": (
            f"_change_type = 'insert' AND ({' OR '.join(lacks)})"
        ),
        "an image has no value for columns of the key": (
            f"_change_type IN ('delete', 'update_preimage') AND arrays_overlap(_absent, {array_of(keys)})"
        ),
    }
    for field, definition in columns.items():
        if definition.made_of is None:
            continue
        sources = [lower[name] for name in definition.made_of if name in lower]
        reason = f"an UPDATE has no value for the generated column {own_name(field)}"
        conditions[reason] = (
            f"_change_type = 'update_postimage' AND array_contains(_absent, {text_literal(field)}) "
            f"AND size(array_except({array_of(sources)}, _absent)) > 0"
        )
    dates = [names[column.name] for column in table.columns if column.kind in OF_DATES]
    dates = [name for name in dates if name in keys]
    if options.zero_dates is ZeroDates.NULL:
        for name in dates:
            reason = f"a value of the key column {own_name(name)} is no date: --zero-dates text keeps it"
            conditions[reason] = f"{named(name)} IS NULL AND NOT array_contains(_absent, {text_literal(name)})"
    found = (
        changes.where(f"{PLACE} > {struct_of(begin)}")
        .selectExpr(
            *(
                f"min(struct({PLACE}, _gtid)) FILTER (WHERE {condition}) AS c{number}"
                for number, condition in enumerate(conditions.values())
            )
        )
        .first()
    )
    assert found is not None
    return {
        reason: ((cell[0][0], cell[0][1]), cell[1])
        for reason, cell in zip(conditions, found, strict=True)
        if cell is not None
    }


class _Rows:
    """Whether tables had changes of rows before some place; each table is looked at once."""

    def __init__(self, session: SparkSession, options: ReadOptions, first: dict[str, Seen | None]) -> None:
        self._session = session
        self._options = options
        self._first = first
        self._places: dict[str, list[Place]] = {}

    def are_before(self, doubt: Doubt) -> bool:
        assert doubt.rows_of is not None
        first = self._first.get(doubt.rows_of)
        if first is not None and doubt.since < first[0] <= doubt.place:
            return True
        return any(doubt.since < place <= doubt.place for place in self._of(doubt.rows_of))

    def _of(self, table: str) -> list[Place]:
        """Every group that changes rows of a table."""
        if table not in self._places:
            frame = _rows_of(self._session, self._options, table, "_file_no,_offset").distinct()
            self._places[table] = sorted((row[0], row[1]) for row in frame.collect())
        return self._places[table]


def _rows_of(session: SparkSession, options: ReadOptions, table: str, columns: str) -> DataFrame:
    given = {"path": options.path, "columns": columns, "tables": "`" + _exactly(table).replace("`", "``") + "`"}
    if options.ending_gtid is not None:
        given["endingGtid"] = options.ending_gtid
    return session.read.format("ibb").options(**given).load()


def _exactly(table: str) -> str:
    """A pattern for one table."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in table)


def _cascaded(session: SparkSession, options: ReadOptions, cascades: Sequence[Cascade], begin: Place) -> list[Doubt]:
    """Changes of parents whose foreign keys may have changed rows without an event."""
    found = []
    for cascade in cascades:
        key = cascade.key
        changed = " OR ".join(
            f"(map_contains_key(after, {name}) AND NOT after[{name}] <=> before[{name}])"
            for name in map(text_literal, key.parent_columns)
        )
        nameless = "map_contains_key(before, '@1') OR map_contains_key(after, '@1')"
        kinds = []
        if key.cascades_deletes:
            kinds.append("_change_type = 'delete'")
        if key.cascades_updates:
            kinds.append(f"_change_type = 'update_postimage' AND ({changed or 'true'} OR {nameless})")
        frame = _rows_of(session, options, key.parent, "_file_no,_offset,_gtid,_change_type,before,after")
        place = max(begin, cascade.place)
        first = (
            frame.where(f"{PLACE} > {struct_of(place)}")
            .where(" OR ".join(f"({kind})" for kind in kinds))
            .selectExpr(f"min(struct({PLACE}, _gtid)) AS first")
            .first()
        )
        if first is not None and first[0] is not None:
            (file_no, offset), gtid = first[0]
            reason = f"its foreign key to {key.parent} deletes or changes rows without an event"
            found.append(Doubt(place=(file_no, offset), gtid=gtid, reason=reason))
    return found
