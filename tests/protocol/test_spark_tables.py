"""The tables of docs/spark-reference.md against the code."""

import dataclasses
import functools
import re

import pytest
from lanes.replay import CLASSIC, changes_of, created_table, raw_events

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.rows.attributes import is_unsigned
from ibbmaster.replication.event.rows.changes import ABSENT
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.replication.event.rows.declared import declare
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.types import EventType
from ibbmaster.spark import write_options
from ibbmaster.spark.write_options import parse_write_options
from ibbmaster.tables.arrow import options as read_options
from ibbmaster.tables.arrow.cell import cell_reader, text_of
from ibbmaster.tables.arrow.column_reading import reading_of
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.read_options import Granularity, Undecodable, ZeroDates
from ibbmaster.tables.arrow.shape import CHANGE_FIELDS, GROUP_FIELDS, arrow_type, column_type
from tests.case_table import data_beside
from tests.protocol.documents import read_tables

DATA = data_beside(__file__)

OLD = "types.old_temporal"  # nothing but a declaration tells the digits of its columns
FULL = ["10.11/types-full-crc32", "11.8/types-full-crc32", "11.8/types-full_nodup", "11.8/vectors"]
MINIMAL = ["10.11/types-noblob-compressed", "11.8/types-noblob-compressed"]
NO_LOG = ["10.11/types-minimal-none", "11.8/types-minimal-none"]
NOT_TOLD_BY_FULL = {"UUID", "INET4", "INET6", "VECTOR"}


def table(heading):
    return read_tables("docs/spark-reference.md", heading)[0]


def quoted(cell):
    return re.findall(r"`([^`]*)`", cell)


def test_the_columns_of_every_change_are_those_of_the_table():
    rows = [(quoted(row["Column"])[0], row["Type"]) for row in table("Rows")]
    assert rows == [(field.name, field.type) for field in (*GROUP_FIELDS, *CHANGE_FIELDS)]


# Options ------------------------------------------------------------------------------------------

READ = {quoted(row["Option"])[0]: row["Values, default"] for row in table("Options of a reader")}
WRITE = {quoted(row["Option"])[0]: row["Values, default"] for row in table("Writing")}
OF_PRIMARIES = {"host", "port", "user", "password", "tls", "serverId"}


def read(name, value=None):
    given = {"host": "here"} if name in OF_PRIMARIES else {"path": "/x"}
    return parse_options(given | ({} if value is None else {name: value}))


def write(name, value=None):
    given = {"path": "/x", "table": "a.b"}
    return parse_write_options(given | ({} if value is None else {name: value}), {"id": "int"})


def default_of(cell):
    found = re.search(r"; default `([^`]+)`", cell)
    return found[1] if found else None


@pytest.mark.parametrize(
    ("documented", "names"), [(READ, read_options.NAMES), (WRITE, write_options.NAMES)], ids=["read", "write"]
)
def test_the_options_that_are_accepted_are_those_of_the_table(documented, names):
    assert sorted(documented) == sorted(names)


BOTH = pytest.mark.parametrize(
    ("documented", "options_of", "samples"),
    [(READ, read, DATA["read_samples"]), (WRITE, write, DATA["write_samples"])],  # not what holds without the option
    ids=["read", "write"],
)


@BOTH
def test_an_option_does_what_only_it_does(documented, options_of, samples):
    assert [name for name in documented if options_of(name, samples[name]) == options_of(name)] == []


@BOTH
def test_a_default_is_what_holds_without_the_option(documented, options_of, samples):
    defaults = {name: default_of(cell) for name, cell in documented.items() if default_of(cell)}
    assert [name for name, value in defaults.items() if options_of(name, value) != options_of(name)] == []


@BOTH
def test_an_option_without_a_default_leaves_nothing_set(documented, options_of, samples):
    needed = {"path", "host", "table", "schema"} if options_of is write else {"path", "host"}
    for name in [name for name, cell in documented.items() if not default_of(cell) and name not in needed]:
        without = dataclasses.asdict(options_of(name))
        given = dataclasses.asdict(options_of(name, samples[name]))
        changed = [field for field in without if without[field] != given[field]]
        assert changed, name
        assert not any(without[field] for field in changed), name


def test_tables_are_created_unless_the_rows_have_their_groups():
    assert "with `_gtid` `false`" in WRITE["createTables"]
    assert not parse_write_options({"path": "/x", "table": "a.b"}, {"id": "int", "_gtid": "string"}).creates_tables


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("granularity", [one.value for one in Granularity]),
        ("zeroDates", [one.value for one in ZeroDates]),
        ("onUndecodable", [one.value for one in Undecodable]),
        *((name, ["true", "false"]) for name in ("failOnDataLoss", "completeKeys", "tls")),
    ],
)
def test_the_values_of_an_option_are_those_of_the_table(name, choices):
    assert quoted(READ[name].partition(";")[0]) == choices
    for choice in choices:
        read(name, choice)


@pytest.mark.parametrize("name", ["port", "serverId"])
def test_the_limits_of_an_option_are_those_of_the_table(name):
    first, last = re.match(r"(\d+) to (\d+)", READ[name]).groups()
    read(name, first)
    read(name, last)
    for value in (int(first) - 1, int(last) + 1):
        with pytest.raises(ConfigurationError, match=f"option {name} "):
            read(name, str(value))


# Types --------------------------------------------------------------------------------------------


def type_rows():
    for row in table("Types"):
        names = quoted(row["MariaDB type"])
        first, _, last = row["MariaDB type"].partition(" to ")
        if last:
            word, low = re.match(r"`(\w+)\((\d+)", first).groups()
            high, rest = re.match(r"`\w+\((\d+)(,s)?", last).groups()
            names = [f"{word}({number}{rest or ''})" for number in range(int(low), int(high) + 1)]
        for name in names:
            yield name, row


TYPES = dict(type_rows())


def key_of(declared):
    word = re.match(r"\w+", declared)[0].upper()
    if word == "DECIMAL":
        return re.sub(r"\((\d+),\d+\).*", r"(\1,s)", declared.upper())
    if word == "BIT":
        return declared.upper()
    return f"{word} UNSIGNED" if word.endswith("INT") and is_unsigned(declared) else word


def documented_type(key, column):
    return TYPES[key]["Spark type"].strip("`").replace("p,s", f"{column.size},{column.scale}")


@functools.cache
def declarations_of(capture):
    """The columns of each table as the CREATE TABLE statement in the capture has them."""
    return dict(filter(None, map(created_table, raw_events(CLASSIC / capture))))


def columns_of(capture):
    """Each column: how it was declared, as the log has it, and with its declaration."""
    for event in raw_events(CLASSIC / capture):
        if event[4] == EventType.TABLE_MAP:
            schema = decode_table_schema(event)
            declaration = declarations_of(capture)[schema.name]
            yield from zip(declaration.values(), schema.columns, declare(schema, declaration).columns, strict=True)


@functools.cache
def texts_of(captures, *, with_ddl):
    """Type of the table -> the texts of its values in some captures, in order."""
    found: dict[str, list[str]] = {}
    for capture in captures:
        for schema, change in changes_of(capture, with_ddl=with_ddl, without=OLD):
            keys = list(map(key_of, declarations_of(capture)[schema.name].values()))
            for image in (change.before, change.after):
                for key, value in zip(keys, image, strict=True) if image is not None else ():
                    if value is not None and value is not ABSENT:
                        found.setdefault(key, []).append(text_of(value))
    return found


def test_every_type_of_the_captures_is_in_the_table_and_no_other():
    found = {key_of(declared) for capture in (*FULL, *MINIMAL, *NO_LOG) for declared, _, _ in columns_of(capture)}

    assert found <= set(TYPES)
    never = {key.partition("(")[0] for key in set(TYPES) - found}
    assert never == {"DECIMAL", "BIT"}  # other lengths of them are there
    assert {"DECIMAL(38,s)", "DECIMAL(65,s)", "BIT(1)", "BIT(64)"} <= found


@pytest.mark.parametrize("capture", [*FULL, *MINIMAL, *NO_LOG])
def test_columns_of_each_declared_type_have_the_spark_type_of_the_table(capture):
    for declared, _, column in columns_of(capture):
        assert column_type(column, ZeroDates.NULL) == documented_type(key_of(declared), column), declared


@pytest.mark.parametrize("capture", [*FULL, *MINIMAL])
def test_metadata_tell_every_type_but_some_that_are_binary_and_minimal_ones_neither_names_nor_labels(capture):
    for declared, told, _ in columns_of(capture):
        key = key_of(declared)
        labels = {"ENUM": "int", "SET": "decimal(20,0)"}.get(key) if capture in MINIMAL else None
        expected = "binary" if key in NOT_TOLD_BY_FULL else labels or documented_type(key, told)
        assert column_type(told, ZeroDates.NULL) == expected, declared
        assert told.name.startswith("@") == (capture in MINIMAL)


@pytest.mark.parametrize("key", [key for key in TYPES if key.startswith(("DECIMAL", "BIT"))])
def test_numbers_of_each_length_have_the_spark_type_of_the_table(key):
    size = int(re.search(r"\d+", key)[0])
    is_decimal = key.startswith("DECIMAL")
    of_type, kind = (ColumnType.NEWDECIMAL, ValueKind.DECIMAL) if is_decimal else (ColumnType.BIT, ValueKind.BIT)
    column = Column(name="a", type=of_type, metadata=0, kind=kind, size=size)
    assert column_type(column, ZeroDates.NULL) == documented_type(key, column)


@pytest.mark.parametrize("capture", FULL)
def test_each_type_of_the_table_can_be_read_and_arrow_has_it(capture):
    for _, _, column in columns_of(capture):
        for zero_dates in ZeroDates:
            spark_type = column_type(column, zero_dates)
            arrow_type(spark_type)
            reading_of(column, spark_type)


def test_with_zero_dates_as_text_only_dates_are_strings():
    changed = set()
    for declared, _, column in columns_of("11.8/types-full-crc32"):
        if column_type(column, ZeroDates.TEXT) != column_type(column, ZeroDates.NULL):
            assert column_type(column, ZeroDates.TEXT) == "string"
            changed.add(key_of(declared))
    assert changed == {"DATE", "DATETIME", "TIMESTAMP"}


@pytest.mark.parametrize("row", table("Types"), ids=lambda row: row["MariaDB type"][:20])
def test_the_texts_of_the_table_are_those_of_real_values(row):
    keys = [key for key, one in TYPES.items() if one == row]
    found = texts_of(("11.8/types-full-crc32", "11.8/vectors"), with_ddl=True)
    untold = texts_of(("11.8/types-minimal-none", "11.8/vectors"), with_ddl=False)
    told = texts_of(("11.8/types-minimal-none", "11.8/vectors"), with_ddl=True)

    assert quoted(row["Text in the maps"])
    for text in quoted(row["Text in the maps"]):
        assert any(text in found.get(key, ()) for key in keys), text
    if row["Text if the type is unknown"] == "the same":
        assert any(key in untold for key in keys)
        assert [untold.get(key) for key in keys] == [told.get(key) for key in keys]
    else:
        (text,) = quoted(row["Text if the type is unknown"])
        assert any(text in untold.get(key, ()) for key in keys)
        assert any(untold.get(key) != told.get(key) for key in keys)


def packed(column, text):
    """The bytes of a moment that no calendar has."""
    year, month, day, hour, minute, second, *_ = (*map(int, re.split("[-: .]", text)), 0, 0, 0)
    if column.type == ColumnType.DATE:
        return (year << 9 | month << 5 | day).to_bytes(3, "little")
    clock = day << 17 | hour << 12 | minute << 6 | second
    return {
        ColumnType.DATETIME2: (1 << 39 | (year * 13 + month) << 22 | clock).to_bytes(5, "big") + bytes(3),
        ColumnType.TIMESTAMP2: bytes(7),
    }[column.type]


@pytest.mark.parametrize(("declared", "value"), DATA["null_there"])
def test_what_a_column_of_its_own_type_cannot_hold_is_null_there(declared, value):
    column = next(column for text, _, column in columns_of("11.8/types-full-crc32") if text == declared)
    data = packed(column, value)

    assert cell_reader(column, column_type(column, ZeroDates.NULL))(data, 0) == (None, len(data))
    assert cell_reader(column, column_type(column, ZeroDates.TEXT))(data, 0) == (value, len(data))
