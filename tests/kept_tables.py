"""Tables that `lake maintain` keeps, as other programs read them: the same questions to each kind of target."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from ibbmaster.lake.maintain.target import directory_name
from ibbmaster.sqltext.table_name import parse_table_name

if TYPE_CHECKING:
    from pyiceberg.table import Table

KINDS = ("delta", "iceberg")


class KeptTables:
    """Those of one directory, which need not be there yet."""

    def __init__(self, kind: str, place: Path) -> None:
        self.kind = kind
        self.place = place
        if kind == "iceberg":
            pytest.importorskip("pyiceberg")

    @property
    def target(self) -> str:
        return f"{self.kind}://{self.place}"

    def directory(self, name: str = "d.t") -> Path:
        return self.place / directory_name(name)

    def delta(self, name: str = "d.t") -> DeltaTable:
        return DeltaTable(str(self.directory(name)))

    @contextmanager
    def iceberg(self, name: str = "d.t") -> Iterator[Table]:
        from pyiceberg.catalog.sql import SqlCatalog

        with closing(SqlCatalog("ibbmaster", uri=f"sqlite:///{self.place}/catalog.db")) as catalog:
            yield catalog.load_table(parse_table_name(name))

    def read(self, name: str = "d.t") -> pa.Table:
        if self.kind == "delta":
            return self.delta(name).to_pyarrow_table()
        with self.iceberg(name) as table:
            return table.scan().to_arrow()

    def data_files(self, name: str = "d.t") -> set[str]:
        if self.kind == "delta":
            return set(self.delta(name).file_uris())
        with self.iceberg(name) as table:
            return {task.file.file_path for task in table.scan().plan_files()}

    def rows(self, name: str = "d.t") -> list[tuple]:
        return sorted(tuple(row.values()) for row in self.read(name).to_pylist())

    def commits(self, name: str = "d.t") -> list[str]:
        """What each commit did, the first one first; Iceberg tables do not say it."""
        if self.kind == "delta":
            words = {"WRITE": "written", "MERGE": "patched", "ADD COLUMN": "patched"}
            operations = [commit["operation"] for commit in self.delta(name).history()][::-1]
            return [words[operation] for operation in operations if operation != "ADD FEATURE"]
        with self.iceberg(name) as table:
            return ["any" for _ in table.snapshots()]

    def expect_commits(self, wanted: list[str], name: str = "d.t") -> None:
        """One for each; which kind it is Delta tables say alone."""
        assert self.commits(name) == (wanted if self.kind == "delta" else ["any"] * len(wanted))

    def compact(self, name: str = "d.t") -> None:
        if self.kind == "delta":
            self.delta(name).optimize.compact()
            self.delta(name).create_checkpoint()
            return
        from pyiceberg.table import Transaction
        from pyiceberg.table.snapshots import Operation, Summary

        from ibbmaster.lake.maintain.iceberg import _written

        with self.iceberg(name) as table:
            change = Transaction(table)
            with change.update_snapshot().overwrite() as files:
                files._summary = lambda _: Summary(Operation.REPLACE)
                for task in table.scan().plan_files():
                    files.delete_data_file(task.file)
                for file in _written(change, table.scan().to_arrow_batch_reader()):
                    files.append_data_file(file)
            change.commit_transaction()
