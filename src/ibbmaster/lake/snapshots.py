"""Tables as the changes of a log leave them: their rows now (type 1), or each row with when it held (type 2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ibbmaster.errors import ConfigurationError
from ibbmaster.spark.options import parse_options
from ibbmaster.spark.plan import find_table
from ibbmaster.spark.shape import ABSENT_FIELD, CHANGE_FIELDS, GROUP_FIELDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

EMPTIES = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*(?:truncate(?:\s+table)?|drop\s+table(?:\s+if\s+exists)?|create\s+or\s+replace\s+table)\s+"
    r"(?P<names>.+)",
    re.IGNORECASE | re.DOTALL,
)
DROPS_DATABASE = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*drop\s+(?:database|schema)(?:\s+if\s+exists)?\s+"
    r"(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[\w$]+))",
    re.IGNORECASE | re.DOTALL,
)
NAME = re.compile(r"(?:`(?P<q1>(?:[^`]|``)+)`|(?P<p1>[\w$]+))(?:\s*\.\s*(?:`(?P<q2>(?:[^`]|``)+)`|(?P<p2>[\w$]+)))?")


def snapshot(
    session: SparkSession,
    path: str,
    table: str,
    *,
    key: Sequence[str] = (),
    with_history: bool = False,
    at: str | None = None,
    schema: str | None = None,
    zero_dates: str = "null",
) -> DataFrame:
    """The rows of a table, at a GTID position or at the end; with history each version, and when it held.

    Raises:
        ConfigurationError: the table is not in the log, its columns have no names, or it has no key.
        PositionError: the position is not in the log.
    """
    from pyspark.sql import functions as f

    options = {"path": path, "table": table, "zeroDates": zero_dates} | ({"schema": schema} if schema else {})
    found = find_table(parse_options(options), table)
    keys = list(key) or [found.columns[number].name for number in found.primary_key]
    names = [column.name for column in found.columns]
    missing = [name for name in keys if name not in names]
    if not keys or missing:
        problem = f"no column {missing[0]}" if missing else "no primary key that the log tells: name its key columns"
        raise ConfigurationError(f"{table}: {problem}")
    if at:
        options["endingGtid"] = at
    columns = [*(field.name for field in (*GROUP_FIELDS, *CHANGE_FIELDS[1:], ABSENT_FIELD)), *names]
    changes = session.read.format("ibb").options(**options, columns=",".join(columns)).load()
    statements = _statements(session, path, at)
    emptied = _emptied(statements, table)
    versions = _versions(_effective(changes, completions(statements)), names, keys)
    if with_history:
        return _history(versions, names, emptied)
    if emptied:
        file_no, offset = emptied[-1][:2]
        versions = versions.where(f.expr(f"struct(_file_no, _offset) > struct({file_no}L, {offset}L)"))
    folded = versions.groupBy("_key").agg(
        f.expr("max_by(_op, _order)").alias("_op"),
        *(
            f.expr(f"max_by(named_struct('v', {_quoted(name)}), _order) FILTER (WHERE {_present(name)})").alias(name)
            for name in names
        ),
    )
    alive = folded.where("_op != 'delete'")
    return alive.select(*(f.expr(f"{_quoted(name)}.v").alias(name) for name in names))


def _versions(changes: DataFrame, names: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """One row a change of a key: what it is, its key, its order; an update of the key is a delete and an insert."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    own_key = "struct(" + ", ".join(f"{_quoted(name)} AS {_quoted(name)}" for name in keys) + ")"
    by_group = Window.partitionBy("_file_no", "_offset").orderBy("_change_no")
    marked = (
        changes.withColumn("_own_key", f.expr(own_key))
        .withColumn("_before_key", f.lag("_own_key").over(by_group))
        .withColumn("_order", f.expr("struct(_file_no, _offset, _change_no)"))
    )
    key_is_absent = " OR ".join(f"array_contains(_absent, '{_escaped(name)}')" for name in keys)
    plain = marked.where("_change_type IN ('insert', 'delete')").selectExpr(
        "*", "_own_key AS _key", "_change_type AS _op"
    )
    updates = marked.where("_change_type = 'update_postimage'").withColumn(
        "_key", f.expr(f"IF({key_is_absent}, _before_key, _own_key)")
    )
    moved = updates.where("_key != _before_key")
    problem = "concat(_gtid, ': the key of a row changes, and its image is not whole')"
    is_whole = f"IF(size(_absent) = 0, 'insert', raise_error({problem}))"
    return (
        plain.unionByName(updates.where("_key = _before_key").withColumn("_op", f.lit("update")))
        .unionByName(moved.withColumn("_key", f.col("_before_key")).withColumn("_op", f.lit("delete")))
        .unionByName(moved.withColumn("_op", f.expr(is_whole)))
    )


def _present(name: str) -> str:
    return f"_op != 'update' OR NOT array_contains(_absent, '{_escaped(name)}')"


def _history(versions: DataFrame, names: Sequence[str], emptied: list[tuple[int, int, int]]) -> DataFrame:
    """Every version of each row, with the moments and GTIDs between which it held."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    by_key = Window.partitionBy("_key").orderBy("_order")
    folded = versions
    for name in names:
        cell = f.expr(f"IF({_present(name)}, named_struct('v', {_quoted(name)}), NULL)")
        folded = folded.withColumn(f"_cell_{name}", f.last(cell, ignorenulls=True).over(by_key))
    ends = "CAST(NULL AS TIMESTAMP)"
    if emptied:
        literal = ", ".join(f"struct({a}L, {b}L, timestamp_seconds({c}))" for a, b, c in emptied)
        later = f"filter(array({literal}), e -> struct(e.col1, e.col2) > struct(_file_no, _offset))"
        ends = f"element_at({later}, 1).col3"
        ends = f"IF(size({later}) = 0, NULL, {ends})"
    result = folded.withColumn("_next_ts", f.lead("_commit_ts").over(by_key)).withColumn(
        "_gtid_to", f.lead("_gtid").over(by_key)
    )
    return (
        result.withColumn("_valid_to", f.expr(f"least(_next_ts, {ends})"))
        .where("_op != 'delete'")
        .select(
            *(f.expr(f"{_quoted(f'_cell_{name}')}.v").alias(name) for name in names),
            f.col("_commit_ts").alias("_valid_from"),
            "_valid_to",
            f.col("_gtid").alias("_gtid_from"),
            "_gtid_to",
            f.expr("_valid_to IS NULL").alias("_is_current"),
        )
    )


def _statements(session: SparkSession, path: str, at: str | None) -> list[Row]:
    """The groups of a log that empty or drop tables, or that prepare or complete XA transactions, in its order."""
    options = {"granularity": "groups", "columns": "_file_no,_offset,_commit_ts,_gtid,query,database,xid"}
    if at:
        options["endingGtid"] = at
    frame = session.read.format("ibb").options(**options).load(path)
    wanted = frame.where("xid IS NOT NULL OR lower(query) RLIKE '(truncate|drop|replace)'")
    return sorted(wanted.collect(), key=lambda row: (row._file_no, row._offset))


def completions(statements: Sequence[Row]) -> list[tuple[int, int, Row | None]]:
    """Where each XA transaction was prepared, and the group that committed it, if any."""
    prepared: dict[str, tuple[int, int]] = {}
    found: dict[tuple[int, int], Row | None] = {}
    for row in statements:
        verb = (row.query or "").lstrip()[:11].upper()
        if row.xid is None:
            continue
        if verb.startswith(("XA COMMIT", "XA ROLLBACK")):
            place = prepared.pop(row.xid, None)
            if place is not None and verb.startswith("XA COMMIT"):
                found[place] = row
        else:
            prepared[row.xid] = (row._file_no, row._offset)
            found[prepared[row.xid]] = None
    return [(*place, row) for place, row in found.items()]


def _effective(changes: DataFrame, prepared: list[tuple[int, int, Row | None]]) -> DataFrame:
    """The changes that have taken effect, each at the group that made it do so."""
    from pyspark.sql import functions as f

    if not prepared:
        return changes
    places = changes.sparkSession.createDataFrame(
        [
            (file_no, offset, *((row._file_no, row._offset, row._commit_ts, row._gtid) if row else (None,) * 4))
            for file_no, offset, row in prepared
        ],
        "_file_no BIGINT, _offset BIGINT, _to_file BIGINT, _to_offset BIGINT, _to_ts TIMESTAMP, _to_gtid STRING",
    ).withColumn("_is_xa", f.lit(True))
    joined = changes.join(f.broadcast(places), ["_file_no", "_offset"], "left")
    moved = {"_file_no": "_to_file", "_offset": "_to_offset", "_commit_ts": "_to_ts", "_gtid": "_to_gtid"}
    return joined.where("_is_xa IS NULL OR _to_file IS NOT NULL").select(
        *(
            f.coalesce(moved[name], name).alias(name) if name in moved else f.col(_quoted(name))
            for name in changes.columns
        )
    )


def _emptied(statements: Sequence[Row], table: str) -> list[tuple[int, int, int]]:
    """Where and when a statement has emptied or dropped the table, in the order of the log."""
    everything = table.partition(".")[0] + ".*"
    return [
        (row._file_no, row._offset, int(row._commit_ts.timestamp()))
        for row in statements
        if {table, everything} & emptied_tables(row.query or "", row.database or "")
    ]


def emptied_tables(statement: str, database: str) -> set[str]:
    """The tables that a statement empties or drops, as `database.table`; `database.*` for all of one."""
    whole = DROPS_DATABASE.match(statement)
    if whole is not None:
        return {(whole["quoted"].replace("``", "`") if whole["quoted"] else whole["plain"]) + ".*"}
    match = EMPTIES.match(statement)
    if match is None:
        return set()
    names = set()
    for part in match["names"].split(",") if "create" not in statement[:20].lower() else [match["names"]]:
        name = NAME.match(part.strip())
        if name is not None:
            first = name["q1"].replace("``", "`") if name["q1"] else name["p1"]
            second = name["q2"].replace("``", "`") if name["q2"] else name["p2"]
            names.add(f"{first}.{second}" if second else f"{database}.{first}")
    return names


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")
