"""Tables as the changes of a log leave them: their rows now (type 1), or each row with when it held (type 2).

What no change of rows tells is not in them: `doubts` says of which rows that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, TypeGuard

from ibbmaster.arrow.plan import end_of, find_shape, find_versions, history_of, open_log
from ibbmaster.arrow.shape import ABSENT_FIELD, CHANGE_FIELDS, GROUP_FIELDS, ShapeField, column_type, field_name
from ibbmaster.errors import ConfigurationError, InexactError
from ibbmaster.event.rows.column import TableSchema
from ibbmaster.gtid import GtidPosition
from ibbmaster.lake.doubts import find_doubts
from ibbmaster.lake.maintain.rows import CurrentRows, rows_of
from ibbmaster.lake.maintain.source import UncertainRowsError
from ibbmaster.lake.pasts import START, Doubt, Truncation, past_of
from ibbmaster.lake.spark_changes import SparkChanges
from ibbmaster.lake.statements import Logged, completions, read_statements
from ibbmaster.lake.text import named, struct_of, text_literal
from ibbmaster.log.interface import LogEngine
from ibbmaster.position import LogPosition
from ibbmaster.rows.shape import TableShape
from ibbmaster.schema.catalog import KnownTable
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.spark.options import listed, parse_options, schema_options
from ibbmaster.sqltext.table_name import parse_table_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONTRADICTION = "an INSERT of a key that is there already, or a change of a row that is not there"


def snapshot(
    session: SparkSession,
    path: str,
    table: str,
    *,
    key: Sequence[str] = (),
    with_history: bool = False,
    at: str | None = None,
    schema: str | None = None,
    name_case: int | None = None,
    zero_dates: str = "null",
    on_doubt: Callable[[str], object] | None = None,
) -> DataFrame:
    """The rows of a table, at a GTID position or at the end; with history each version, and when it held.

    `name_case` is `lower_case_table_names` of the log's server; without it that is found out as far as the log says it.

    Without `on_doubt` rows must be those that the table had; else it hears, in words, from which
    GTID on they may not be, and why.

    Raises:
        ConfigurationError: the table is not in the log, its columns have no names, or it has no key.
        InexactError: rows have changed in ways that the log does not tell.
        PositionError: the position is not in the log.
    """
    from pyspark.sql import functions as f

    declared = schema_options(schema or None, name_case)
    case = find_versions(parse_options({"path": path, **declared})).case
    given = {"path": path, "table": case.key(table), "zeroDates": zero_dates, **declared}
    if at:
        given["endingGtid"] = at
    options = parse_options(given)
    table = options.table or ""
    shape = find_shape(options, table)
    keys = key_of(shape.schema, key)
    fields = [ShapeField(field_name(one.name), column_type(one, options.zero_dates)) for one in shape.columns]
    names = [field.name for field in fields]
    columns = [*(field.name for field in (*GROUP_FIELDS, *CHANGE_FIELDS[1:], ABSENT_FIELD)), *names]
    changes = session.read.format("ibb").options(**given, columns=listed(columns)).load()
    statements = read_statements(session, path, at)
    changes = _effective(changes, dict(completions(statements)))
    with closing(open_log(options)) as log:
        history = history_of(options, log)
        end = None if options.ending_gtid is None else end_of(options.ending_gtid, options, log)
        past = past_of(history, parse_table_name(table), None if end is None else SchemaPlace(end, 0), statements)
        found = SparkChanges(session, options, changes)
        doubts = find_doubts(options, found, past, shape, keys, with_history=with_history)
        if doubts and not with_history and is_place(log, end) and is_of(past.state, shape):
            try:
                return session.createDataFrame(rows_of(options, past.state, CurrentRows))
            except UncertainRowsError as error:
                doubts = [Doubt(START, *error.args)]
    texts = [str(doubt) for doubt in doubts]
    if texts and on_doubt is None:
        raise InexactError(table, texts)
    for text in texts:
        assert on_doubt is not None
        on_doubt(f"{table}: {text}")
    cells = {name: f"c{number}" for number, name in enumerate(names)}  # so that no name is that of a helper here
    changes = changes.select(*columns[: -len(names)], *(f.col(named(name)).alias(cells[name]) for name in names))
    if with_history:
        return _history(_versions(changes, cells, keys), cells, past.cuts)
    versions = _versions(_behind(changes, past.cuts[-1:]), cells, keys)
    return _current(versions, cells, None if texts or key else table)


def is_place(log: LogEngine, end: LogPosition | None) -> bool:
    """Whether a position with this end is one place of the log: one of several domains may be none."""
    return end is None or len(log.state().position().values()) == 1


def is_of(state: KnownTable | None, shape: TableShape) -> TypeGuard[TableVersion]:
    """Whether statements define a table, and it has the columns of a shape."""
    return (
        isinstance(state, TableVersion)
        and not state.undefined_because
        and [one.name for one in shape.columns] == [one.name for one in state.shown.columns]
    )


def domains_left_out(path: str, at: str) -> list[int]:
    """Domains of a log that a position does not name: a snapshot there has nothing of them.

    Raises:
        StoreError: there is no log.
    """
    with closing(open_log(parse_options({"path": path, "endingGtid": at}))) as log:
        logged = {gtid.domain_id for gtid in log.state().position().values()}
    return sorted(logged - {gtid.domain_id for gtid in GtidPosition.parse(at).values()})


def key_of(table: TableSchema, key: Iterable[str]) -> list[str]:
    """The columns of the key, called as in a DataFrame; `key` may call them so, or as the table does.

    Raises:
        ConfigurationError: the table has no such column, or no key.
    """
    names = [field_name(column.name) for column in table.columns]
    keys = [name if name in names else field_name(name) for name in key]
    keys = keys or [names[number] for number in table.primary_key]
    missing = [name for name in keys if name not in names]
    if not keys or missing:
        problem = f"no column {missing[0]}" if missing else "no primary key that the log tells: name its key columns"
        raise ConfigurationError(f"{table.name}: {problem}")
    return keys


def _behind(changes: DataFrame, cuts: Sequence[Truncation]) -> DataFrame:
    """The changes behind a place where the table was emptied, if there is one."""
    for cut in cuts:
        changes = changes.where(f"struct(_file_no, _offset) > {struct_of(cut.place)}")
    return changes


def _current(versions: DataFrame, cells: Mapping[str, str], checked: str | None) -> DataFrame:
    """The last version of each row that is there.

    `checked` names a table of which the log has all changes: an INSERT of a key that is there, or a change of a row
    that is not, is an error of the job.
    """
    from pyspark.sql import functions as f

    last = "max_by(_op, _order)"
    if checked is not None:
        count = "count_if(_op = 'insert') - count_if(_op = 'delete')"
        problem = text_literal(f"{checked}: the log contradicts itself: {CONTRADICTION}")
        last = f"IF({count} = IF({last} = 'delete', 0, 1), {last}, raise_error({problem}))"
    folded = versions.groupBy("_key").agg(
        f.expr(last).alias("_op"),
        *(
            f.expr(f"max_by(named_struct('v', {cell}), _order) FILTER (WHERE {_present(name)})").alias(cell)
            for name, cell in cells.items()
        ),
    )
    alive = folded.where("_op != 'delete'")
    return alive.select(*(f.expr(f"{cell}.v").alias(name) for name, cell in cells.items()))


def _versions(changes: DataFrame, cells: Mapping[str, str], keys: Sequence[str]) -> DataFrame:
    """One row a change of a key: what it is, its key, its order; an update of the key is a delete and an insert.

    `cells` are the columns as they are called here, by their names in the table.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    own_key = f"struct({', '.join(cells[name] for name in keys)})"
    by_group = Window.partitionBy("_file_no", "_offset").orderBy("_change_no")
    marked = (
        changes.withColumn("_own_key", f.expr(own_key))
        .withColumn("_before_key", f.lag("_own_key").over(by_group))
        .withColumn("_order", f.expr("struct(_file_no, _offset, _change_no)"))
    )
    plain = marked.where("_change_type IN ('insert', 'delete')").selectExpr(
        "*", "_own_key AS _key", "_change_type AS _op"
    )
    after_key = ", ".join(
        f"IF(array_contains(_absent, {text_literal(name)}), _before_key.{cells[name]}, {cells[name]}) AS {cells[name]}"
        for name in keys
    )
    updates = marked.where("_change_type = 'update_postimage'").withColumn("_key", f.expr(f"struct({after_key})"))
    moved = updates.where("NOT _key <=> _before_key")
    problem = "concat(_gtid, ': the key of a row changes, and its image is not whole')"
    is_whole = f"IF(size(_absent) = 0, 'insert', raise_error({problem}))"
    return (
        plain.unionByName(updates.where("_key <=> _before_key").withColumn("_op", f.lit("update")))
        .unionByName(moved.withColumn("_key", f.col("_before_key")).withColumn("_op", f.lit("delete")))
        .unionByName(moved.withColumn("_op", f.expr(is_whole)))
    )


def _present(name: str) -> str:
    return f"_op != 'update' OR NOT array_contains(_absent, {text_literal(name)})"


def _history(versions: DataFrame, cells: Mapping[str, str], cuts: Sequence[Truncation]) -> DataFrame:
    """Every version of each row, with the moments and GTIDs between which it held."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    by_key = Window.partitionBy("_key").orderBy("_order")
    folded = versions
    for name, cell in cells.items():
        value = f.expr(f"IF({_present(name)}, named_struct('v', {cell}), NULL)")
        folded = folded.withColumn(cell, f.last(value, ignorenulls=True).over(by_key))
    end = "struct(struct(_file_no AS col1, _offset AS col2) AS place, _commit_ts AS ts, _gtid AS gtid)"
    places = ", ".join(
        f"struct({struct_of(cut.place)} AS place, timestamp_seconds({cut.timestamp}) AS ts, '{cut.gtid}' AS gtid)"
        for cut in cuts
    )
    ends = f"least(_next, get(filter(array({places}), e -> e.place >= struct(_file_no, _offset)), 0))"
    return (
        folded.withColumn("_next", f.lead(f.expr(end)).over(by_key))
        .withColumn("_end", f.expr(ends if cuts else "_next"))
        .where("_op != 'delete'")
        .select(
            *(f.expr(f"{cell}.v").alias(name) for name, cell in cells.items()),
            f.col("_commit_ts").alias("_valid_from"),
            f.expr("_end.ts").alias("_valid_to"),
            f.col("_gtid").alias("_gtid_from"),
            f.expr("_end.gtid").alias("_gtid_to"),
            f.expr("_end IS NULL").alias("_is_current"),
        )
    )


def _effective(changes: DataFrame, prepared: dict[tuple[int, int], Logged | None]) -> DataFrame:
    """The changes that have taken effect, each at the group that made it do so."""
    from pyspark.sql import functions as f

    if not prepared:
        return changes
    places = changes.sparkSession.createDataFrame(
        [
            (*place, *((one.file_no, one.file_offset, one.timestamp, one.gtid) if one else (None,) * 4))
            for place, one in prepared.items()
        ],
        "_file_no BIGINT, _offset BIGINT, _to_file BIGINT, _to_offset BIGINT, _to_seconds BIGINT, _to_gtid STRING",
    )
    places = places.withColumn("_to_ts", f.expr("timestamp_seconds(_to_seconds)")).withColumn("_is_xa", f.lit(True))
    joined = changes.join(f.broadcast(places), ["_file_no", "_offset"], "left")
    moved = {"_file_no": "_to_file", "_offset": "_to_offset", "_commit_ts": "_to_ts", "_gtid": "_to_gtid"}
    return joined.where("_is_xa IS NULL OR _to_file IS NOT NULL").select(
        *(
            f.coalesce(moved[name], name).alias(name) if name in moved else f.col(named(name))
            for name in changes.columns
        )
    )
