"""Random DDL between random changes: kernels, the careful path, `mariadb-binlog`, a replica and snapshots agree.

`--ddl-steps=20000` is a longer campaign; a failure prints the seed, and `--interop-seed` brings it back.
"""

import random
import re
from pathlib import Path

import pytest
from lanes.answers import OurTables, expect_rows
from lanes.described import expect_history
from lanes.printed_rows import printed_changes, printed_image
from lanes.random_ddl import DATABASE, IMAGES, Campaign, content_of
from lanes.replay import as_sql, raw_events, read_by_both
from lanes.sql import copy_binlogs, position_of

import ibbmaster
from ibbmaster.errors import ConfigurationError, InexactError
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.group_content import RowReader
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, find_shape
from ibbmaster.testkit.mariadb_server import RealPrimary

REFUSALS = (  # of other kinds than those that are told beforehand
    "the DataFrame has",  # a column changed its type
    "no group in",  # no row since the table got its name
    "the key of a row changes, and its image is not whole",
)
SCHEMA_LOOKS = 20  # at how many places the tables are compared
METADATA = ("FULL", "MINIMAL", "NO_LOG")


def expect_twins_agree(directory: Path, tables: list[str]) -> None:
    """The careful path and the kernels read the same rows, or find the same fault."""
    for given in [{}, *({"table": table} for table in tables)]:
        read_by_both(parse_options({"path": str(directory), "partitionBytes": "64k", **given}))


def changed_tables(directory: Path) -> set[str]:
    """The names under which the log has row changes: a table that was renamed, or is new, has none under its own."""
    return {schema.name for schema, _ in RowReader().changes(raw_events(directory))}


def expect_refused_without_changes(directory: Path, names: set[str]) -> None:
    for name in sorted(names):
        with pytest.raises(ConfigurationError, match=f"changes rows of table {re.escape(name)}$"):
            find_fields(parse_options({"path": str(directory), "table": name}))


def expect_printed_alike(files: list[Path]) -> int:
    """`mariadb-binlog -vv` prints the values that the reader finds."""
    ours = []
    for schema, change in RowReader().changes(raw_events(files[0].parent)):
        # `printed_changes` has names without quotes
        images = [image for image in (change.before, change.after) if image is not None]
        ours += [
            (".".join((schema.database, schema.table)), change.kind.value, printed_image(schema.columns, image))
            for image in images
        ]
    printed = [change for path in files for change in printed_changes(path)]
    for got, wanted in zip(ours, printed, strict=True):
        assert got == wanted
    return len(ours)


def expect_snapshots(server: RealPrimary, directory: Path, tables: list[str], changed: set[str]) -> tuple[int, int]:
    """Each snapshot is the table of the server, or is refused; how many were which."""
    exact = refused = 0
    for table in tables:
        name = str(TableName(DATABASE, table.strip("`")))
        options = parse_options({"path": str(directory), "table": name})
        columns = [row[0] for row in server.sql(f"SHOW COLUMNS FROM {DATABASE}.{table}")]
        try:
            schema = find_shape(options, name).schema
            with ibbmaster.open(directory) as log:
                rows = log.snapshot(name, zero_dates="text").to_pylist()
        except InexactError:
            refused += 1
            continue
        except Exception as error:
            if not any(reason in str(error) for reason in REFUSALS) or (
                "no group in" in str(error) and name in changed
            ):
                raise
            refused += 1
            continue
        kinds = {column.name: column for column in schema.columns}
        found = [[as_sql(kinds[one], row[one]) if one in kinds else None for one in columns] for row in rows]
        assert sorted(map(tuple, found), key=repr) == content_of(server, table), name
        exact += 1
    return exact, refused


def test_random_ddl_between_random_changes_is_read_alike_by_all(
    request, seed, tmp_path, new_server, new_ibb_primary, new_replica, import_files, watch_log, version
):
    rng = random.Random(f"{seed} {version}")
    metadata = rng.choice(METADATA) if version == "11.8" else "FULL"
    server = new_server(version, f"--binlog-row-metadata={metadata}", "--binlog-format=ROW")
    steps = request.config.getoption("--ddl-steps")
    campaign = Campaign(server, rng, IMAGES if version == "10.11" else (*IMAGES, "FULL_NODUP"))
    watch_log("last statements", campaign.last_statements)
    campaign.run(steps, SCHEMA_LOOKS)
    files = sorted(copy_binlogs(server, tmp_path / "classic").iterdir())
    directory = tmp_path / "log"
    import_files(files, directory, "--max-file-size", "1M")

    log = ClassicBinlog(files)
    assert expect_history(log, LoggedSchema(log).history(), campaign.seen)
    names = {str(TableName(DATABASE, table.strip("`"))) for table in campaign.tables}
    changed = changed_tables(files[0].parent)
    expect_twins_agree(directory, sorted(names & changed))
    expect_refused_without_changes(directory, names - changed)
    assert expect_printed_alike(files) > steps / 2
    expect_rows(
        OurTables(ClassicBinlog(files)), server, *(f"SELECT * FROM {DATABASE}.{one}" for one in campaign.tables)
    )
    exact, refused = expect_snapshots(server, directory, list(campaign.tables), changed)
    watch_log("snapshots", lambda: f"{exact} exact, {refused} refused")
    print(f"{exact} snapshots exact, {refused} refused")
    replica = new_replica(version)
    replica.follow(new_ibb_primary(directory))
    replica.wait_for_gtid(position_of(server))
    for table in campaign.tables:
        assert content_of(replica, table) == content_of(server, table), table
