"""Logs without names in them, of a real server whose tables are altered between changes: rows come to its tables.

`--ddl-steps=20000` is a longer campaign; a failure prints the seed, and `--interop-seed` brings it back.
"""

import dataclasses
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from lanes.random_ddl import DATABASE, IMAGES, REFUSED, TYPES, Campaign, Make, content_of
from lanes.replay import cells_of, read_by_both
from lanes.sql import copy_binlogs

import ibbmaster
from ibbmaster.replication.event.rows.column import Column, ColumnType
from ibbmaster.rows.shape import version_shape
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.table_name import TableName, parse_table_name
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, find_shape
from ibbmaster.tables.arrow.shape import table_fields
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.case_table import data_beside
from tests.table_versions import versions_of

STEPS_PART = 3  # the campaign of test_random_ddl takes the most


IMPOSSIBLE = (1054, 1091, 1060, 1553, 1901, 1906, 1846, 3106, 1292, 1072)  # as to drop what a generated column takes
#: Types of columns: constants for DEFAULT, and wider types of the same values.
CHAINS: dict[str, tuple[list[str], list[str]]] = data_beside(__file__)
MAKERS: dict[str, Make] = TYPES | {
    "FLOAT": lambda rng: rng.randint(-1000, 1000) / 4,
    "CHAR(9) CHARACTER SET latin1": lambda rng: "".join(rng.choices("aZé ", k=rng.randint(0, 9))).strip(),
    "BINARY(3)": lambda rng: rng.randbytes(rng.randint(0, 3)),
}
GENERATED = ("BIGINT AS ({n} * 2 + 1)", "BIGINT AS (-{n}) STORED", "VARCHAR(90) AS (CONCAT({n}, '-', {n}))")


class AlteredTables(Campaign):
    """Columns are added, dropped, renamed, moved and widened at random; `tables` has their first types."""

    refusals = (*REFUSED, *IMPOSSIBLE)

    def __init__(self, server: RealPrimary, rng: random.Random, images: Sequence[str]) -> None:
        self._names: list[str] = []
        self._wider: dict[tuple[str, str], list[str]] = {}  # what a column may be widened to
        self._generated: defaultdict[str, list[str]] = defaultdict(list)
        super().__init__(server, rng, images)
        for table in self.tables:
            self.insert_into(table)

    def step(self) -> None:
        self._do_one_of(
            "insert=30 update=20 delete=8 add_column=4 add_generated=3 drop_column=3 rename_column=4 widen=4 move=2 "
            "set_image=3 several=1"
        )

    def _inserted(self, table: str) -> list[str]:
        return [*self.tables[table]]

    def _value(self, table: str, column: str) -> object:
        return MAKERS[self.tables[table][column]](self._rng)

    def _all(self, table: str) -> list[str]:
        return [*self.tables[table], *self._generated[table]]

    def _name(self, table: str) -> str:
        """A new name; sometimes that of a column that is no more."""
        old = [name for name in self._names if name not in self._all(table)]
        if old and self._rng.random() < 0.4:
            return self._rng.choice(old)
        self._names.append(self._new_name("c"))
        return self._names[-1]

    def _know(self, table: str, name: str, kind: str) -> None:
        self.tables[table][name] = kind
        self._wider[table, name] = [*CHAINS[kind][1]]

    def create(self) -> None:
        table = self._new_name("t")
        self.tables[table] = {}
        for kind in self._rng.sample([*CHAINS], 4):
            self._know(table, self._name(table), kind)
        parts = ", ".join(f"{name} {kind}" for name, kind in self.tables[table].items())
        self._run(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, {parts})")

    def _place(self, table: str, *others: str) -> str:
        names = [name for name in self._all(table) if name not in others]
        return self._rng.choice(["", "FIRST", "AFTER id", *(f"AFTER {name}" for name in names[:2])])

    def _addition(self, table: str) -> tuple[str, str]:
        """A type, and what makes a column of it; one of tables that have rows."""
        kind = self._rng.choice([*CHAINS])
        default = self._rng.choice(["", "NOT NULL", *(f"DEFAULT {one}" for one in CHAINS[kind][0])])
        if default.startswith("DEFAULT"):
            default = self._rng.choice(["", "NOT NULL "]) + default
        return kind, f"{kind} {default} {self._place(table)}"

    def add_column(self) -> None:
        table = self._table()
        name, (kind, clause) = self._name(table), self._addition(table)
        if len(self._all(table)) < 11 and self._run(f"ALTER TABLE {table} ADD COLUMN {name} {clause}"):
            self._know(table, name, kind)

    def add_generated(self) -> None:
        table = self._table()
        numbers = [name for name, kind in self.tables[table].items() if kind in ("TINYINT", "SMALLINT UNSIGNED")]
        if len(self._all(table)) > 11 or not numbers:
            return
        number, name = self._rng.choice(numbers), self._name(table)
        is_whole = self.tables[table][number] == "SMALLINT UNSIGNED"  # others get a point, also in texts
        expression = self._rng.choice(GENERATED[: 3 if is_whole else 2]).format(n=number)
        if self._run(f"ALTER TABLE {table} ADD COLUMN {name} {expression} {self._place(table)}"):
            self._generated[table].append(name)

    def drop_column(self) -> None:
        table = self._table()
        name = self._rng.choice(self._all(table))
        if len(self.tables[table]) > 1 and self._run(f"ALTER TABLE {table} DROP COLUMN {name}"):
            self.tables[table].pop(name, None)
            self._generated[table] = [one for one in self._generated[table] if one != name]

    def rename_column(self) -> None:
        table = self._table()
        old, new = self._rng.choice(self._all(table)), self._name(table)
        if self._run(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}"):
            self.tables[table] = {new if name == old else name: kind for name, kind in self.tables[table].items()}
            self._generated[table] = [new if name == old else name for name in self._generated[table]]
            self._wider[table, new] = self._wider.pop((table, old), [])

    def widen(self) -> None:
        table = self._table()
        for name in self._rng.sample([*self.tables[table]], len(self.tables[table])):
            if self._wider[table, name]:
                wider = self._wider[table, name].pop(0)
                self._run(f"ALTER TABLE {table} MODIFY {name} {wider} {self._place(table, name)}")
                return

    def move(self) -> None:
        table = self._table()
        name = self._rng.choice(self._all(table))
        lines = map(str.strip, self._asked(f"SHOW CREATE TABLE {table}")[0][1].splitlines())
        (definition,) = [line.rstrip(",") for line in lines if line.startswith(f"{name} ")]
        self._run(f"ALTER TABLE {table} MODIFY {definition} {self._rng.choice(['FIRST', 'AFTER id'])}")

    def several(self) -> None:
        """Drop a column, and add another one of its name at once."""
        table = self._table()
        name, (kind, clause) = self._rng.choice([*self.tables[table]]), self._addition(table)
        if name in clause or len(self.tables[table]) < 2 or self._generated[table]:
            return  # what a generated column takes would be a label of an ENUM, say
        if self._run(f"ALTER TABLE {table} DROP COLUMN {name}, ADD COLUMN {name} {clause}"):
            self._know(table, name, kind)


@pytest.fixture
def altered(new_server, watch_log, request, seed, tmp_path):
    """A real server that has altered its tables at random, the campaign, and its binlog files."""
    version = request.param
    server = new_server(version, "--binlog-row-metadata=NO_LOG", "--binlog-format=ROW")
    images = (*IMAGES, "FULL_NODUP") if version != "10.11" else IMAGES
    rng = random.Random(f"versions {seed} {version}")
    print(f"seed {seed}")
    campaign = AlteredTables(server, rng, images)
    watch_log("last statements", campaign.last_statements)
    for _ in range(request.config.getoption("--ddl-steps") // STEPS_PART):
        campaign.step()
    campaign.close()
    return server, campaign, copy_binlogs(server, tmp_path / "classic")


def folded(
    changes: Iterable[tuple[str, dict[str, object] | None, dict[str, object] | None]],
) -> list[dict[str, object]]:
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
    kinds = {column.name: _with_size(column) for column in columns}
    names = [row[0] for row in server.sql(f"SHOW COLUMNS FROM {DATABASE}.{table}")]
    assert list(kinds) == names
    assert cells_of(rows, kinds.values()) == content_of(server, table), table


def _with_size(column: Column) -> Column:
    return dataclasses.replace(column, metadata=4 if column.type == ColumnType.FLOAT else 0)


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
    options = parse_options(
        {"path": str(directory), "table": table, "zeroDates": "text", "partitionBytes": "64k", **given}
    )
    columns = (*(field.name for field in find_fields(options)), "_absent")
    return read_by_both(dataclasses.replace(options, columns=columns))


@pytest.mark.parametrize("altered", ["10.11", "11.8"], indirect=True)
def test_rows_without_names_come_to_the_tables_of_the_server_that_altered_them(altered, import_files, tmp_path):
    server, campaign, files = altered
    directory = tmp_path / "log"
    import_files(sorted(files.iterdir()), directory, "--max-file-size", "1M")
    for table in campaign.tables:
        name = str(TableName(DATABASE, table.strip("`")))
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
                if f"`{schema.table}`" == table
            ]
            (columns,) = {
                schema.columns
                for group in log.groups(schema_mode="latest")
                for schema, _ in group.rows()
                if f"`{schema.table}`" == table
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
    rows = read_both(directory, table, schemaMode="asWritten", columns=",".join(map(quoted_name, plain)))
    assert len(rows) == count


def read_both_maps(directory: Path) -> int:
    """How many rows there are of all tables, with maps that the kernels and the reference read alike, by name."""
    rows = read_by_both(parse_options({"path": str(directory)}))
    images = [image for row in rows for image in (row["before"], row["after"])]
    assert not {name for image in images for name, _ in image or () if name.startswith("@")}
    return len(rows)
