"""A session that asks anything of the tables of a recorded log."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from lanes.answers import FOLDER, VERSION, OurTables

import ibbmaster
from ibbmaster.dialogue.log_tables import AnyQuery
from ibbmaster.dialogue.refusal import unknown_table
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.statement import TableName
from ibbmaster.query.engine import QueryRun
from ibbmaster.schema.model import TableVersion
from ibbmaster.sqltext.token import tokenize
from tests.sessions import session_evaluator


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[..., QueryRun]:
    """Makes the run of a query over a recorded log of 11.8, whose tables stand in the database `cond`."""
    shutil.copy(FOLDER / "11.8" / "tables" / "binlog.000001", tmp_path)
    tables = OurTables(ibbmaster.open(tmp_path).engine)
    snapshot = tables.snapshot()
    evaluator = session_evaluator()

    def find(name: TableName) -> TableVersion:
        try:
            return tables.table(f"{name.database or 'cond'}.{name.name}", snapshot)
        except AssertionError:
            raise unknown_table(name.database or "cond", name.name) from None

    def make(sql: str, *, is_binary: bool = False) -> QueryRun:
        query = AnyQuery(
            snapshot=snapshot,
            tokens=tokenize(sql),
            find=find,
            evaluator=evaluator,
            text_charset="utf8mb4",
            text_collation_id=45,
            is_binary=is_binary,
            version=VERSION,
        )
        return QueryRun(query, lambda table, ids: tables.reader.rows_of(snapshot, table, ids))

    return make


@pytest.fixture
def rows_of(run_of: Callable[..., QueryRun]) -> Callable[[str], list[tuple[str | None, ...]]]:
    """The rows of a query, as texts."""

    def rows(sql: str) -> list[tuple[str | None, ...]]:
        found: Relation = run_of(sql).answer()
        return [tuple(None if value is None else bytes(value).decode() for value in row) for row in found.rows]  # type: ignore[arg-type]

    return rows
