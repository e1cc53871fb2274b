"""Logs without names in them, of a real server whose tables are altered between changes: rows come to its tables.

`--ddl-steps=20000` is a longer campaign; a failure prints the seed, and `--interop-seed` brings it back.
"""

import dataclasses
import random
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from lanes.altered_tables import AlteredTables
from lanes.binlogs import copy_binlogs
from lanes.random_ddl import DATABASE, IMAGES, content_of
from lanes.replay import as_sql

import ibbmaster
from ibbmaster.arrow.fast_reading import fast_batches
from ibbmaster.arrow.plan import find_fields, find_shape, plan_tasks
from ibbmaster.arrow.reading import batches, rows_of
from ibbmaster.arrow.shape import table_fields
from ibbmaster.event.rows.column import Column, ColumnType
from ibbmaster.kernel.loading import load
from ibbmaster.rows.shape import version_shape
from ibbmaster.spark.options import parse_options
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.table_versions import versions_of

STEPS_PART = 3  # the campaign of test_random_ddl takes the most


@pytest.fixture
def altered(new_server, watch_log, request, seed, tmp_path):
    """A real server that has altered its tables at random, the campaign, and its binlog files."""
    version = request.param
    server = new_server(version, "--binlog-row-metadata=NO_LOG", "--binlog-format=ROW")
    images = (*IMAGES, "FULL_NODUP") if version != "10.11" else IMAGES
    rng = random.Random(f"versions {seed} {version}")
    print(f"seed {seed}")
    campaign = AlteredTables(server, rng, images=images)
    watch_log("last statements", lambda: "\n".join(campaign.statements[-60:]))
    for _ in range(request.config.getoption("--ddl-steps") // STEPS_PART):
        campaign.step()
    campaign.close()
    return server, campaign, copy_binlogs(server, tmp_path / "classic")


def folded(
    changes: Iterable[tuple[str, dict[str, object] | None, dict[str, object] | None]],
) -> list[dict[str, object]]:
    """The rows that changes come to, by the column `id`."""
    table: dict[object, dict[str, object]] = {}
    for kind, before, after in changes:
        if kind == "insert":
            table[after["id"]] = after
        elif kind == "delete":
            del table[before["id"]]
        else:
            row = table.pop(before["id"]) | after
            table[row["id"]] = row
    return list(table.values())


def expect_content(server: RealPrimary, table: str, columns: Iterable[Column], rows: list[dict[str, object]]) -> None:
    """The rows are those of the server, value by value."""
    kinds = {column.name: _with_size(column) for column in columns}
    names = [row[0] for row in server.sql(f"SHOW COLUMNS FROM {DATABASE}.{table}")]
    assert list(kinds) == names
    found = [tuple(as_sql(kinds[name], _plain(row[name])) for name in names) for row in rows]
    assert sorted(found, key=repr) == content_of(server, table), table


def _with_size(column: Column) -> Column:
    return dataclasses.replace(column, metadata=4 if column.type == ColumnType.FLOAT else 0)


def _plain(value: object) -> object:
    return bytes(value) if isinstance(value, bytearray) else value


def arrow_changes(rows: list[dict[str, object]], columns: list[str]) -> Iterable[tuple]:
    """Changes out of the rows of a DataFrame, those values left out that their images leave out."""
    before = None
    for row in rows:
        image = {name: row[name] for name in columns if name not in row["_absent"]}
        match row["_change_type"]:
            case "update_preimage":
                before = image
            case "update_postimage":
                yield "update", before, image
            case "insert":
                yield "insert", None, image
            case kind:
                yield kind, image, None


def read_both(directory: Path, table: str, **given: str) -> list[dict[str, object]]:
    """What the kernels and the reference read, which must be the same."""
    options = parse_options(
        {"path": str(directory), "table": table, "zeroDates": "text", "partitionBytes": "64k", **given}
    )
    columns = (*(field.name for field in find_fields(options)), "_absent")
    options = dataclasses.replace(options, columns=columns)
    found = []
    for task in plan_tasks(options, find_fields(options)):
        careful = pa.Table.from_batches(batches(task.fields, rows_of(task)))
        fast = pa.Table.from_batches(fast_batches(task, load()))
        for one, other in zip(careful.to_pylist(), fast.to_pylist(), strict=True):
            assert repr(one) == repr(other)
        found += careful.to_pylist()
    return found


@pytest.mark.parametrize("altered", ["10.11", "11.8"], indirect=True)
def test_rows_without_names_come_to_the_tables_of_the_server_that_altered_them(altered, import_files, tmp_path):
    server, campaign, files = altered
    directory = tmp_path / "log"
    import_files(sorted(files.iterdir()), directory, "--max-file-size", "1M")
    for table in campaign.tables:
        name = f"{DATABASE}.{table}"
        shape = find_shape(parse_options({"path": str(directory), "table": name}), name)
        rows = read_both(directory, name)
        columns = [column.name for column in shape.columns]
        expect_content(server, table, shape.columns, folded(arrow_changes(rows, columns)))
        expect_as_written(directory, name, len(rows))
    assert read_both_maps(directory)
    with ibbmaster.open(files) as log:
        for table in campaign.tables:
            changes = [
                (change.kind, change.before, change.after)
                for group in log.groups(schema_mode="latest")
                for schema, change in group.rows()
                if schema.table == table
            ]
            (columns,) = {
                schema.columns
                for group in log.groups(schema_mode="latest")
                for schema, _ in group.rows()
                if schema.table == table
            }
            expect_content(server, table, columns, folded(changes))


def expect_as_written(directory: Path, table: str, count: int) -> None:
    """Every row is there by the names of its time, but for columns whose name was that of another type, too."""
    names = {}
    options = parse_options({"path": str(directory), "table": table})
    for version in versions_of(options).of(*parse_table_name(table)):
        for field in table_fields(version_shape(table, version), options.zero_dates):
            names.setdefault(field.name, set()).add(field.type)
    plain = [name for name, types in names.items() if len(types) == 1]
    rows = read_both(directory, table, schemaMode="asWritten", columns=",".join(plain))
    assert len(rows) == count


def read_both_maps(directory: Path) -> int:
    """How many rows there are of all tables, with maps that the kernels and the reference read alike, by name."""
    options = parse_options({"path": str(directory)})
    count = 0
    for task in plan_tasks(options, find_fields(options)):
        careful = pa.Table.from_batches(batches(task.fields, rows_of(task)))
        fast = pa.Table.from_batches(fast_batches(task, load()))
        assert careful.to_pylist() == fast.to_pylist()
        count += careful.num_rows
        images = [*careful["before"].to_pylist(), *careful["after"].to_pylist()]
        assert not {name for image in images for name, _ in image or () if name.startswith("@")}
    return count
