"""Rows of several versions of a table in one shape: the kernels and the reference read the same."""

import dataclasses
import random
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import ibbmaster
from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.loading import load
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LogPosition
from ibbmaster.rows.shape import SchemaMode, TableShape, united, version_shape
from ibbmaster.schema.model import SchemaPlace, SqlType, TableVersion, UnknownTable
from ibbmaster.schema.versions import TableVersions
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.tables.arrow.fast_reading import fast_batches
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import plan_tasks
from ibbmaster.tables.arrow.read_options import ZeroDates
from ibbmaster.tables.arrow.reading import batches, rows_of
from ibbmaster.tables.arrow.shape import generic_shape, table_fields
from tests.machinery.crash import make_event, make_gtid_event
from tests.table_versions import BIGINT, INT, TEXT, column, inserts, nameless_map, rows_event, version

DECIMAL = SqlType(word="decimal", length=6, scale=2)
WIDE = SqlType(word="decimal", length=30, scale=4)
ENUM = SqlType(word="enum", labels=("a", "b"), charset="utf8mb4")


@pytest.fixture
def kernels():
    return load()


class VersionedLog:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.versions: list[TableVersion | UnknownTable] = []
        self._number = 0

    def write(self, *events: list[bytes]) -> SchemaPlace:
        self._number += 1
        gtid = Gtid(domain_id=0, server_id=1, seq_no=self._number)
        body = [*(event for some in events for event in some), make_event(16, 1, bytes(8))]
        with closing(RealDisk(self.directory)) as disk, BinlogWriter(disk, is_sparse=True) as writer:
            writer.write_group(gtid, make_gtid_event(gtid), body)
        with ibbmaster.open(self.directory) as log:
            *_, last = log.groups()
        return SchemaPlace(last.start, 0)


@pytest.fixture
def log(tmp_path):
    return VersionedLog(tmp_path)


LATER = SchemaPlace(LogPosition(1 << 20, 0), 0)


def read(log, kernels, shape=None, *, columns=(), zero_dates="null"):
    given = {"path": str(log.directory), "zeroDates": zero_dates} | ({"table": "db.t"} if shape else {})
    options = parse_options(given)
    fields = generic_shape(options.granularity)
    if shape is not None:
        fields = table_fields(shape, ZeroDates(zero_dates), columns)
    versions = TableVersions({("db", "t"): log.versions})
    tasks = [dataclasses.replace(task, versions=versions) for task in plan_tasks(options, fields)]
    found = []
    for task in tasks:
        tables = []
        for make in (lambda task: batches(task.fields, rows_of(task)), lambda task: fast_batches(task, kernels)):
            try:
                tables.append(pa.Table.from_batches(make(task)).combine_chunks())
            except EventError as error:
                tables.append(str(error))
        careful, fast = tables
        if isinstance(careful, str):
            assert careful == fast
            raise EventError(careful)
        assert not isinstance(fast, str), fast
        assert careful.schema == fast.schema
        assert careful.to_pylist() == fast.to_pylist()
        found += careful.to_pylist()
    return found


def picked(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def test_two_versions_whose_table_maps_have_the_same_bytes_are_told_apart(log, kernels) -> None:
    events = inserts({"a": "int", "b": "int"}, [(1, 2)])
    log.write(events)
    second = log.write(events)
    old = version(column(1, "id"), column(2, "a"))
    new = version(column(1, "id"), column(3, "a", first_value="9"), since=second)  # dropped, and added again
    log.versions = [old, new]

    assert picked(read(log, kernels, version_shape("db.t", new)), "id", "a") == [(1, 9), (1, 2)]
    assert [row["after"] for row in read(log, kernels)] == [[("id", "1"), ("a", "2")]] * 2


def test_a_version_may_begin_inside_a_group(log, kernels) -> None:
    events = inserts({"a": "int"}, [(1,)])
    start = log.write(events, events)
    log.versions = [version(column(1, "a")), version(column(1, "b"), since=SchemaPlace(start.position, 3))]

    assert [row["after"] for row in read(log, kernels)] == [[("a", "1")], [("b", "1")]]


def test_types_widen_and_added_columns_have_their_first_values(log, kernels) -> None:
    log.write(inserts({"id": "int", "d": "decimal(6,2)", "n": "int unsigned"}, [(-1, "1.50", 7), (2, None, None)]))
    second = log.write(
        inserts(
            {"d": "decimal(30,4)", "n": "bigint unsigned", "id": "bigint", "e": "int", "t": "varchar(20)"},
            [("3.1234", 2**64 - 1, 2**40, 5, "x")],
        )
    )
    unsigned = SqlType(word="int", length=10, is_unsigned=True)
    log.versions = [
        version(column(1, "id"), column(2, "d", DECIMAL), column(3, "n", unsigned)),
        version(
            column(2, "price", WIDE),
            column(3, "n", SqlType(word="bigint", length=20, is_unsigned=True)),
            column(1, "id", BIGINT),
            column(4, "e", first_value="3"),
            column(5, "t", TEXT, first_value="'it''s'"),
            since=second,
        ),
    ]

    rows = read(log, kernels, version_shape("db.t", log.versions[-1]))
    assert picked(rows, "id", "price", "n", "e", "t") == [
        (-1, Decimal("1.5000"), Decimal(7), 3, "it's"),
        (2, None, None, 3, "it's"),
        (2**40, Decimal("3.1234"), Decimal(2**64 - 1), 5, "x"),
    ]
    only = read(log, kernels, version_shape("db.t", log.versions[-1]), columns=("e", "_absent"))
    assert picked(only, "e", "_absent") == [(3, []), (3, []), (5, [])]


@pytest.mark.parametrize("zero_dates", ["null", "text"])
def test_dates_become_moments(log, kernels, zero_dates) -> None:
    log.write(inserts({"id": "int", "w": "date", "m": "datetime(1)"}, [(1, "2020-01-02", "2020-01-02 03:04:05.6")]))
    log.versions = [
        version(
            column(1, "id"), column(2, "w", SqlType(word="date")), column(3, "m", SqlType(word="datetime", scale=1))
        )
    ]
    moments = [column(number, name, SqlType(word="datetime", scale=3)) for number, name in ((2, "w"), (3, "m"))]
    newest = version(column(1, "id"), *moments, since=LATER)

    ((day, moment),) = picked(read(log, kernels, version_shape("db.t", newest), zero_dates=zero_dates), "w", "m")
    assert str(day).startswith("2020-01-02 00:00:00")
    assert str(moment).startswith("2020-01-02 03:04:05.600")
    assert zero_dates == "null" or (day, moment) == ("2020-01-02 00:00:00.000", "2020-01-02 03:04:05.600")


def test_labels_are_those_of_the_version(log, kernels) -> None:
    from ibbmaster.schema.names import column_of

    assert column_of(column(1, "e", ENUM)).size == 1
    log.write(inserts({"id": "int", "t": "varchar(20)"}, [(1, "b")]))
    log.versions = [version(column(1, "id"), column(2, "t", TEXT))]
    newest = version(column(1, "id"), column(2, "t", SqlType(word="text", charset="utf8mb4")))

    assert picked(read(log, kernels, version_shape("db.t", newest)), "t") == [("b",)]


def test_a_generated_column_is_computed_where_images_leave_it_out(log, kernels) -> None:
    columns = {"id": "int", "a": "int", "g": "bigint", "h": "int"}
    log.write(
        [
            nameless_map(columns),
            rows_event(columns, [(1, 5, 11, 0)]),
            rows_event(columns, [(2, 6, None, None), (3, None, None, None)], present=[0, 1]),
            rows_event(columns, [(4, None, None, None)], present=[0]),
            rows_event(columns, [(5, 2**31 - 1, None, None)], present=[0, 1]),
        ]
    )
    log.versions = [
        version(
            column(1, "id"),
            column(2, "a"),
            column(3, "g", BIGINT, expression="`a` * 2"),
            column(4, "h", INT, expression="a + 1"),
        )
    ]

    rows = read(log, kernels, version_shape("db.t", log.versions[0]), columns=("id", "g", "h", "_absent"))
    assert picked(rows, "id", "g", "h", "_absent") == [
        (1, 11, 0, []),
        (2, 12, 7, []),
        (3, None, None, []),
        (4, None, None, ["a", "g", "h"]),
        (5, 2**32 - 2, None, ["h"]),  # what INT cannot hold
    ]
    assert picked(read(log, kernels, version_shape("db.t", log.versions[0]), columns=("_absent",)), "_absent")[-1] == (
        ["h"],
    )


def test_a_generated_column_of_later_is_computed_for_rows_from_before(log, kernels) -> None:
    log.write(inserts({"id": "int", "t": "varchar(20)"}, [(1, "x"), (2, None)]))
    log.versions = [version(column(1, "id"), column(2, "t", TEXT))]
    newest = version(
        column(1, "id"),
        column(2, "name", TEXT),
        column(3, "k", first_value="3"),
        column(4, "both", TEXT, expression="concat(name, k)"),
        column(5, "never", TEXT, expression="uuid()"),
        since=LATER,
    )

    rows = read(log, kernels, version_shape("db.t", newest), columns=("both", "never", "_absent"))
    assert picked(rows, "both", "never", "_absent") == [("x3", None, ["never"]), (None, None, ["never"])]


def test_rows_of_another_type_are_refused_by_both(log, kernels) -> None:
    log.write(inserts({"id": "bigint"}, [(1,)]))
    log.versions = [version(column(1, "id", BIGINT))]

    with pytest.raises(EventError, match=r"group 0-1-1 at .*: db\.t column id is bigint here, the DataFrame has int"):
        read(log, kernels, version_shape("db.t", version(column(1, "id"))))


def test_rows_of_an_unknown_table_are_read_by_position_and_refused_by_name(log, kernels) -> None:
    start = log.write(inserts({"id": "int"}, [(1,)]))
    log.versions = [UnknownTable(database="db", name="t", since=start, gtid="0-1-1", reason="it came before; give it")]

    assert [row["after"] for row in read(log, kernels)] == [[("@1", "1")]]
    with pytest.raises(EventError, match=r"db\.t: its columns are not known since GTID 0-1-1: it came before; give it"):
        read(log, kernels, version_shape("db.t", version(column(1, "id"))))


def test_a_table_map_that_contradicts_its_version_is_refused_by_both(log, kernels) -> None:
    log.write(inserts({"id": "int"}, [(1,)]))
    log.versions = [version(column(1, "id"), column(2, "a"))]

    with pytest.raises(EventError, match=r"db\.t: rows of 1 columns, by its DDL it has 2 since the"):
        read(log, kernels)


def test_random_versions_are_read_alike(log, kernels, monkeypatch) -> None:
    from ibbmaster.tables.arrow import row_columns

    monkeypatch.setattr(row_columns, "ROWS_MAX", 7)
    rng = random.Random(random.randrange(2**32))
    known = [column(1, "id"), column(2, "a")]
    number, total, since = 2, 0, None
    for turn in range(25):
        types = {f"c{index}": "varchar(20)" if one.type is TEXT else "int" for index, one in enumerate(known)}
        images = [
            [("x" * rng.randrange(4) if one.type is TEXT else rng.randrange(100)) for one in known]
            for _ in range(rng.randrange(1, 6))
        ]
        present = sorted(rng.sample(range(len(known)), rng.randint(1, len(known))))
        start = log.write([nameless_map(types), rows_event(types, images, present=present)])
        total += len(images)
        log.versions.append(version(*known, since=start if turn else since))
        match rng.choice(["add", "drop", "rename", "move", "nothing"]):
            case "add":
                number += 1
                told = rng.choice([INT, TEXT])
                known.insert(rng.randrange(len(known)), column(number, f"n{number}", told, first_value="'7'"))
            case "drop" if len(known) > 2:
                known.remove(rng.choice([one for one in known if one.id != 1]))
            case "rename":
                index = rng.randrange(len(known))
                if known[index].id != 1:
                    known[index] = dataclasses.replace(known[index], name=f"r{turn}")
            case "move":
                rng.shuffle(known)
    newest = log.versions[-1]
    assert isinstance(newest, TableVersion)
    for one in (version_shape("db.t", newest), as_written(log.versions)):
        assert len(read(log, kernels, one, columns=[*(column.name for column in one.columns), "_absent"])) == total
    assert len(read(log, kernels)) == total


def as_written(versions) -> TableShape:
    newest = version_shape("db.t", versions[-1], SchemaMode.AS_WRITTEN)
    return united(newest, [version_shape("db.t", one) for one in reversed(versions)])
