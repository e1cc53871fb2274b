"""The tables of protocol/schema.md, streaming.md and versions.md against the code."""

import importlib
import json
import re
from pathlib import Path

from ibbmaster.kernel.entries import kernel_names
from ibbmaster.logs.log.group_content import MAY_HOLD_DDL
from ibbmaster.logs.log.history_cache import CACHE_FILE
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.query import STATUS_ALTER_FLAGS, STATUS_COLLATIONS, STATUS_INVOKER, STATUS_TIME_ZONE
from ibbmaster.replication.event.statement.logged import STATUS_CHARSET, STATUS_FLAGS, STATUS_SQL_MODE
from ibbmaster.schema.building import HASH_COLUMN
from ibbmaster.schema.column_type import VARCHAR_BYTES_MAX
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.indexing import BYTES_MAX
from ibbmaster.schema.saved_history import FORMAT, HEADER, LastFolded, encode_history
from ibbmaster.schema.session import EXPLICIT_TIMESTAMPS
from ibbmaster.storage.codec.crc32c import crc32c
from ibbmaster.versions import END, Difference, version_number
from tests.protocol.documents import read_tables

TEXT = (Path(__file__).parents[2] / "protocol" / "schema.md").read_text()


def table(heading, *, index=0):
    return read_tables("protocol/schema.md", heading)[index]


def test_statements_have_the_status_variables_of_the_table():
    assert [int(row["Code"]) for row in table("What is read")] == [
        *(STATUS_FLAGS, STATUS_SQL_MODE, STATUS_CHARSET, STATUS_TIME_ZONE, STATUS_INVOKER),
        *(STATUS_ALTER_FLAGS, STATUS_COLLATIONS),
    ]
    assert f"bit {EXPLICIT_TIMESTAMPS.bit_length() - 1}: `explicit_defaults_for_timestamp`" in TEXT
    assert MAY_HOLD_DDL == 32 | 1


def test_a_cache_has_the_fields_of_the_tables():
    data = encode_history(SchemaHistory(), LastFolded(LogPosition(1, 2), "0-1-1", "", "", ""))
    rows = table("The cache")
    assert sum(int(row["Size"]) for row in rows if row["Size"]) == HEADER.size == int(rows[-1]["Offset"])
    assert f"`{data[:8].decode()}`" == rows[0]["Field"]
    numbers = [int.from_bytes(data[at : at + 4], "little") for at in (8, 12, 16)]
    assert numbers == [FORMAT, len(data) - HEADER.size, crc32c(data[HEADER.size :])]
    assert rows[1]["Field"] == f"format: {FORMAT}"
    assert [row["Key"].strip("`") for row in table("The cache", index=1)] == list(json.loads(data[HEADER.size :]))
    assert f"`{CACHE_FILE}`" in TEXT


def test_limits_are_those_of_the_text():
    assert f"{VARCHAR_BYTES_MAX:,} bytes a TEXT" in " ".join(TEXT.split())
    assert all(f"{size:,} " in TEXT for size in BYTES_MAX.values())
    assert f"`{HASH_COLUMN}n`" in TEXT


STREAMING = Path(__file__).parents[2] / "protocol" / "streaming.md"


def test_every_kernel_is_told_and_has_a_slow_twin():
    section = STREAMING.read_text().partition("\n## Kernels\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:4] for line in section.splitlines() if line.startswith("| `")]
    assert {name for kernels, _, _ in rows for name in re.findall(r"`(\w+)`", kernels)} == set(kernel_names())
    for kernels, _, twins in rows:
        for twin in re.findall(r"`([\w.]+)`", twins):
            importlib.import_module(f"ibbmaster.{twin}")
        assert twins.strip() in ("the same", "framing once more") or "`" in twins, kernels


VERSIONS = (Path(__file__).parents[2] / "protocol" / "versions.md").read_text()


def test_versions_differ_as_the_table_says():
    rows = re.findall(r"^\| ([A-Z][A-Z0-9_]+) \| ([0-9.]+) \|\s*([0-9.]*)\s*\| (.+) \|$", VERSIONS, flags=re.MULTILINE)

    assert [(name, version_number(since), version_number(until) or END, what) for name, since, until, what in rows] == [
        (one.name, one.since, one.until, one.meaning) for one in Difference
    ]
