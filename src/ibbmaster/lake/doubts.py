"""What may make a snapshot another table than the server had: found over all cores, so that most tables need no more.

Each doubt is one that a fold of the table, row by row, may have no need of; none is left out that it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from ibbmaster.arrow.plan import open_log
from ibbmaster.arrow.read_options import ReadOptions, ZeroDates
from ibbmaster.arrow.shape import field_name, own_name
from ibbmaster.fold.contents import LIKE_A_REPLACE
from ibbmaster.lake.pasts import START, Doubt, Past
from ibbmaster.lake.text import array_of, named, struct_of, text_literal
from ibbmaster.rows.shape import TableShape, holds_dates
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.reading import named_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACE = "struct(_file_no, _offset)"


def find_doubts(
    session: SparkSession,
    options: ReadOptions,
    changes: DataFrame,
    past: Past,
    shape: TableShape,
    keys: Sequence[str],
    *,
    with_history: bool = False,
) -> list[Doubt]:
    """All that may make the rows of a table uncertain, in the order of the log.

    `changes` are those of the table that have taken effect. With history rows count that are gone now, too.
    """
    doubts = [*(past.past_doubts if with_history else ()), *past.doubts]
    begin = START if with_history else past.begin
    seen = _first_places(changes.where(f"{PLACE} > {struct_of(begin)}"), past, shape, keys, options)
    begun = seen.pop("rows", None)
    doubts += seen.values()
    if not past.is_whole:
        reason = "the log does not begin with its CREATE TABLE; give a base"
        doubts.append(Doubt(START, _start_of(options), reason))
    if begun is not None:
        doubts += _cascaded(session, options, past)
    return sorted(set(doubts))


def _start_of(options: ReadOptions) -> str:
    """Where the log begins; empty if at its very beginning."""
    with closing(open_log(options)) as log:
        return str(log.start_of_file().state.position())


def _first_places(
    changes: DataFrame, past: Past, shape: TableShape, keys: Sequence[str], options: ReadOptions
) -> dict[str, Doubt]:
    """The first change of rows, and the first image of each kind that lacks what only the server knew."""
    conditions = {"rows": "true"} | dict(_conditions(past, shape, keys, options))
    found = changes.selectExpr(
        *(
            f"min(struct({PLACE}, _gtid)) FILTER (WHERE {condition}) AS c{number}"
            for number, condition in enumerate(conditions.values())
        )
    ).first()
    assert found is not None
    return {
        reason: Doubt((cell[0][0], cell[0][1]), cell[1], reason)
        for reason, cell in zip(conditions, found, strict=True)
        if cell is not None
    }


def _conditions(past: Past, shape: TableShape, keys: Sequence[str], options: ReadOptions) -> Iterator[tuple[str, str]]:
    """Reasons, and which changes are so, in Spark's SQL."""
    names = {column.name: field_name(column.name) for column in shape.columns}
    known = past.state.columns if isinstance(past.state, TableVersion) else ()
    told = {
        names.get(one.name)
        for one in known
        if one.default == "NULL" and one.expression is None and not one.is_auto_increment and one.period is None
    }
    untold = [name for name in names.values() if name not in told]
    yield (
        "an INSERT has no value for some columns, which the server has filled in",
        f"_change_type = 'insert' AND arrays_overlap(_absent, {array_of(untold)})",
    )
    yield (
        "an image has no value for columns of the key",
        f"_change_type IN ('delete', 'update_preimage') AND arrays_overlap(_absent, {array_of(keys)})",
    )
    plain = [names[column.name] for column in shape.columns if not column.is_blob and names[column.name] not in keys]
    yield (
        LIKE_A_REPLACE,
        f"_change_type = 'update_postimage' AND arrays_overlap(_absent, {array_of(plain)}) "
        f"AND NOT arrays_overlap(_absent, {array_of(keys)})",
    )
    lower = {name.lower(): field for name, field in names.items()}
    for column in known:
        if column.expression is None or column.name not in names:
            continue
        sources = [lower[name] for name in named_in(column.expression) if name in lower]
        yield (
            f"an UPDATE has no value for the generated column {column.name}",
            f"_change_type = 'update_postimage' AND array_contains(_absent, {text_literal(names[column.name])}) "
            f"AND size(array_except({array_of(sources)}, _absent)) > 0",
        )
    if options.zero_dates is ZeroDates.NULL:
        for name in (names[column.name] for column in shape.columns if holds_dates(column)):
            if name in keys:
                yield (
                    f"a value of the key column {own_name(name)} is no date: --zero-dates text keeps it",
                    f"{named(name)} IS NULL AND NOT array_contains(_absent, {text_literal(name)})",
                )


def _cascaded(session: SparkSession, options: ReadOptions, past: Past) -> Iterator[Doubt]:
    """Changes of parents whose foreign keys may have changed rows without an event, also in several steps."""
    for database, name in sorted(past.ancestors):
        table = f"{database}.{name}"
        frame = _rows_of(session, options, table, "_file_no,_offset,_gtid,_change_type")
        first = (
            frame.where(f"{PLACE} > {struct_of(past.begin)} AND _change_type IN ('delete', 'update_postimage')")
            .selectExpr(f"min(struct({PLACE}, _gtid)) AS first")
            .first()
        )
        if first is not None and first[0] is not None:
            (file_no, offset), gtid = first[0]
            reason = f"its foreign key to {table} deletes or changes rows without an event"
            yield Doubt((file_no, offset), gtid, reason)


def _rows_of(session: SparkSession, options: ReadOptions, table: str, columns: str) -> DataFrame:
    given = {"path": options.path, "columns": columns, "tables": "`" + _exactly(table).replace("`", "``") + "`"}
    if options.ending_gtid is not None:
        given["endingGtid"] = options.ending_gtid
    return session.read.format("ibb").options(**given).load()


def _exactly(table: str) -> str:
    """A pattern for one table."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in table)
