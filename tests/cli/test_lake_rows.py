"""A table of Arrow as the command shows and writes it."""

from __future__ import annotations

import datetime

import pyarrow as pa
from pyarrow import parquet

from ibbmaster.cli.lake_rows import SHOWN_ROWS, ArrowRows


def test_some_rows_are_shown_and_all_are_written(tmp_path):
    rows = ArrowRows(pa.table({"id": range(100)}))
    assert rows.names == ["id"]
    assert rows.some() == [(number,) for number in range(SHOWN_ROWS)]
    assert [row["id"] for row in rows] == list(range(100))
    assert rows.write(tmp_path / "to") == 100
    assert parquet.read_table(tmp_path / "to")["id"].to_pylist() == list(range(100))


def test_moments_do_not_say_that_they_are_in_utc():
    moment = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
    table = pa.table({"at": pa.array([moment, None], pa.timestamp("us", tz="UTC"))})
    assert list(ArrowRows(table)) == [{"at": datetime.datetime(2026, 1, 31, 12)}, {"at": None}]
