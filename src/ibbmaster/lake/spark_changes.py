"""The changes of a table as Spark reads them, and what is asked of them before a table is folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.lake.doubts import Condition, Seen
from ibbmaster.lake.pasts import Place
from ibbmaster.lake.text import array_of, named, struct_of, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACE = "struct(_file_no, _offset)"


class SparkChanges:
    """Those of `frame`, as `lake.doubts` asks for them."""

    def __init__(self, session: SparkSession, options: ReadOptions, frame: DataFrame) -> None:
        self._session = session
        self._options = options
        self._frame = frame

    def first(self, conditions: Mapping[str, Condition], begin: Place) -> dict[str, Seen]:
        found = (
            self._frame.where(f"{PLACE} > {struct_of(begin)}")
            .selectExpr(
                *(
                    f"min(struct({PLACE}, _gtid)) FILTER (WHERE {' AND '.join(_parts(condition))}) AS c{number}"
                    for number, condition in enumerate(conditions.values())
                )
            )
            .first()
        )
        assert found is not None
        return {
            name: ((cell[0][0], cell[0][1]), cell[1])
            for name, cell in zip(conditions, found, strict=True)
            if cell is not None
        }

    def first_of(self, table: str, kinds: Sequence[str], begin: Place) -> Seen | None:
        options = self._options
        given = {
            "path": options.path,
            "columns": "_file_no,_offset,_gtid,_change_type",
            "tables": table,
        }
        if options.ending_gtid is not None:
            given["endingGtid"] = options.ending_gtid
        found = (
            self._session.read.format("ibb")
            .options(**given)
            .load()
            .where(f"{PLACE} > {struct_of(begin)} AND _change_type IN ({', '.join(map(text_literal, kinds))})")
            .selectExpr(f"min(struct({PLACE}, _gtid)) AS first")
            .first()
        )
        if found is None or found[0] is None:
            return None
        (file_no, offset), gtid = found[0]
        return (file_no, offset), gtid


def _parts(condition: Condition) -> Iterator[str]:
    """Spark's SQL of it, to be joined by AND."""
    yield "true"
    if condition.kinds:
        yield f"_change_type IN ({', '.join(map(text_literal, condition.kinds))})"
    if condition.lacks is not None:
        yield f"arrays_overlap(_absent, {array_of(condition.lacks)})"
    if condition.has_all:
        yield f"NOT arrays_overlap(_absent, {array_of(condition.has_all)})"
    if condition.has_some is not None:
        yield f"size(array_except({array_of(condition.has_some)}, _absent)) > 0"
    if condition.null is not None:
        yield f"{named(condition.null)} IS NULL AND NOT array_contains(_absent, {text_literal(condition.null)})"
