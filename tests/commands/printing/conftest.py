"""Logs to be printed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.printing.content import GroupContent, Printer
from ibbmaster.replication.event.rows.encoding import written_table
from tests.written_log import inserted, write_log


@pytest.fixture
def half_readable(tmp_path: Path) -> Path:
    table = written_table("d.t", {"id": "int", "c": "varchar(36)"}, table_id=1)
    rows = [event.replace(b"zz", b"\xff\xfe") for event in inserted(table, [1, "ok"], [2, "zz"])]
    return write_log(tmp_path / "half", "CREATE TABLE d.t (id INT, c VARCHAR(36))", [rows])


@pytest.fixture
def contents() -> Callable[[Path], Iterator[GroupContent]]:
    def read(path: Path, **given) -> Iterator[GroupContent]:
        with ibbmaster.open(path) as log:
            for group in log.groups(asks_statements=True):
                yield GroupContent(group, **given)

    return read


@pytest.fixture
def printed() -> Callable[..., str]:
    def print_log(path: Path, printer: Printer, **given) -> str:
        with ibbmaster.open(path) as log:
            groups = [b"".join(printer.group(group)) for group in log.groups(asks_statements=True, **given)]
            return b"".join((printer.begin(), *groups, printer.end())).decode()

    return print_log
