"""Rows folded out of a log: every capture's tables at its end, and the same whichever way a position is reached."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import lzma
import random
from pathlib import Path

import pytest
from lanes.answers import SESSIONS, OurTables, values_of
from lanes.capture import Capture, load_captures

import ibbmaster
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.errors import IbbMasterError
from ibbmaster.log.schema_history import LoggedSchema
from ibbmaster.position import LOG_START
from ibbmaster.schema.model import TableVersion
from ibbmaster.sql.folding import RowFold
from ibbmaster.sql.kept_rows import KeptRows
from ibbmaster.sql.row_file import RowFile

AS_STORED = SESSIONS[3]
REFUSED = {  # tables whose rows the log does not tell, and why
    "shop.child": "its foreign key to shop.parent deletes or changes rows without an event",
    "shop.parts": "DROP PARTITION changes or removes rows",
    "stmt.l": "in statement format: LOAD DATA",
    "stmt.t": "in statement format: INSERT",
    "types.generated": "generated column c|column c has a value that the server has filled in",
}
CAPTURES = [
    pytest.param(one, id=one.id, marks=[pytest.mark.slow] if "big" in one.name else [])
    for one in load_captures()
    if not one.is_encrypted
]


def unpacked(capture: Capture, folder: Path) -> Path:
    for name in capture.file_names:
        plain = capture.folder / name
        data = plain.read_bytes() if plain.exists() else lzma.decompress((capture.folder / f"{name}.xz").read_bytes())
        (folder / name).write_bytes(data)
    return folder


def as_sql(table: TableVersion, names: list[str], row: list[bytes | None]) -> tuple[str | None, ...]:
    """What HEX(CAST(column AS BINARY)) gives for each value."""
    found: list[str | None] = []
    for name, value in zip(names, row, strict=True):
        column = table.column(name)
        assert column is not None
        if value is None:
            found.append(None)
        elif column.type.word == "uuid":
            found.append(value.decode().replace("-", "").upper())
        elif column.type.word in ("inet4", "inet6"):
            found.append(ipaddress.ip_address(value.decode()).packed.hex().upper())
        else:
            found.append(value.hex().upper())
    return tuple(found)


def content_of(ours: OurTables, table: TableVersion) -> tuple[int, str]:
    """Number of rows, and the hash that fixtures/classic/README.md defines."""
    names = [column.name for column in table.columns if not column.is_hidden]
    quoted = ", ".join(f"`{name}`" for name in names)
    answered = ours.answer(f"SELECT {quoted} FROM `{table.database}`.`{table.name}`", AS_STORED)
    rows = sorted(repr(as_sql(table, names, values_of(row, len(names)))) for row in answered.rows)
    return len(rows), hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


@pytest.mark.parametrize("capture", CAPTURES)
def test_tables_have_the_rows_that_the_server_had_or_are_refused(capture: Capture, tmp_path: Path) -> None:
    ours = OurTables(ibbmaster.open(unpacked(capture, tmp_path)).engine)
    snapshot = ours.snapshot()
    for name, facts in capture.facts["tables"].items():
        table = ours.table(name, snapshot)
        try:
            found: object = content_of(ours, table)
        except RefusedError as refused:
            found = refused.err.text
        reasons = REFUSED.get(name, "nothing").split("|")
        is_refused = isinstance(found, str) and any(reason in found for reason in reasons)
        assert is_refused or found == (facts["rows"], facts["content"]), name


def test_tables_that_are_dropped_take_no_room() -> None:
    engine = ibbmaster.open(Path(__file__).parents[2] / "fixtures/classic/11.8/ddl-trx-xa").engine
    history = LoggedSchema(engine).history()
    fold = RowFold(engine, history, KeptRows(RowFile()), LOG_START)

    fold.advance(engine.end())

    alive = {table.generation for table in history.at().tables.values() if isinstance(table, TableVersion)}
    assert set(fold.tables) <= alive
    assert set(fold.kept.numbers()) <= alive
    assert len(list(history.names())) > len(alive)


@pytest.mark.parametrize("name", ["types-minimal-none", "ddl-trx-xa-none-compressed"])
def test_a_damaged_log_gives_rows_or_errors_of_ours(tmp_path: Path, name: str) -> None:
    whole = (Path(__file__).parents[2] / "fixtures/classic/11.8" / name / "binlog.000001").read_bytes()
    for _ in range(8):
        damaged = bytearray(whole)
        for _ in range(random.choice([1, 3])):
            damaged[random.randrange(300, len(damaged))] = random.choice([0, 1, 128, 255])
        (tmp_path / "binlog.000001").write_bytes(damaged)
        with contextlib.suppress(IbbMasterError):
            ours = OurTables(ibbmaster.open(tmp_path).engine)
            snapshot = ours.snapshot()
            for table in ours.base_tables(snapshot):
                with contextlib.suppress(RefusedError):
                    ours.answer(f"SELECT * FROM `{table.database}`.`{table.name}`", snapshot=snapshot)
