"""A session that asks anything of the tables of a recorded log."""

import dataclasses
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from lanes.answers import FOLDER, OurTables, payloads_of, values_of

import ibbmaster
from ibbmaster.position import LogPosition
from ibbmaster.primary.dialogue.log_tables import TableQuery
from ibbmaster.primary.dialogue.sql import parse
from ibbmaster.primary.select.engine import QueryRun
from ibbmaster.primary.select.table_reader import FoundRows, RowRange
from ibbmaster.replication.wire.refusal import not_supported, unknown_table
from ibbmaster.replication.wire.response import BlockResultSet
from ibbmaster.schema.model import TableVersion
from ibbmaster.sqltext.expression import GivenTable, SqlQuery
from ibbmaster.sqltext.token import UnreadSqlError
from tests.sessions import session_evaluator


def query_of(sql: str) -> SqlQuery:
    (statement,) = parse(sql)
    if statement.query is None:
        problem = statement.problem
        raise not_supported(problem.what) if isinstance(problem, UnreadSqlError) else problem
    return statement.query


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[..., QueryRun]:
    """Makes the run of a query over a recorded log of 11.8, whose tables stand in the database `cond`.

    `run_of.loads` are the tables that were read for all of them, each with the names of the columns and the rows.
    """
    shutil.copy(FOLDER / "11.8" / "tables" / "binlog.000001", tmp_path)
    tables = OurTables(ibbmaster.open(tmp_path).engine)
    snapshot = tables.snapshot()
    evaluator = session_evaluator()

    def find(name: GivenTable) -> TableVersion:
        try:
            return tables.table(f"{name.database or 'cond'}.{name.name}", snapshot)
        except AssertionError:
            raise unknown_table(name.database or "cond", name.name) from None

    loads: list[tuple[str, list[str], int]] = []

    def make(sql: str, *, is_binary: bool = False, end: LogPosition = snapshot.end, **kept: Any) -> QueryRun:
        def rows_of(table: TableVersion, ids: Sequence[int], wanted: RowRange) -> FoundRows:
            found = tables.reader.rows_of(snapshot, table, ids, wanted)
            loads.append((table.name, [column.name for column in table.columns if column.id in ids], found.count))
            return found

        query = TableQuery(
            snapshot=dataclasses.replace(snapshot, end=end),
            query=query_of(sql),
            sql_mode=0,
            find=find,
            session=evaluator.query_session(is_binary=is_binary),
        )
        return QueryRun(query, rows_of, **kept)

    make.loads = loads  # type: ignore[attr-defined]
    return make


@pytest.fixture
def rows_of(run_of: Callable[..., QueryRun]) -> Callable[[str], list[tuple[str | None, ...]]]:
    def rows(sql: str) -> list[tuple[str | None, ...]]:
        found = run_of(sql).answer()
        if isinstance(found, BlockResultSet):
            return [
                tuple(value and value.decode() for value in values_of(row, len(found.columns)))
                for row in payloads_of(found.blocks)
            ]
        return [tuple(None if value is None else bytes(value).decode() for value in row) for row in found.rows]  # type: ignore[arg-type]

    return rows


@pytest.fixture
def evaluator():
    return session_evaluator()
