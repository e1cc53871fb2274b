"""Every type is of one kind; what a kind writes it reads again, and a value that ends early is an error."""

import datetime
from decimal import Decimal

import pytest

from ibbmaster.replication.event.column_types.registry import BY_TYPE, BY_WORD, KINDS, kind_of, value_reader
from ibbmaster.replication.event.rows.column import ColumnType
from ibbmaster.replication.event.rows.declared import declare
from ibbmaster.replication.event.rows.encoding import written_table
from tests.replication.event.conftest import schema_of, written

UNREADABLE = {ColumnType.DECIMAL, ColumnType.NULL}  # never in a binlog that MariaDB writes today

ROUND_TRIPS = [  # a type as CREATE TABLE has it, values, and how they read
    ("tinyint", [-128, 0, 127], None),
    ("tinyint unsigned", [0, 255], None),
    ("smallint", [-32768, 32767], None),
    ("mediumint", [-(2**23), 2**23 - 1], None),
    ("mediumint unsigned", [2**24 - 1], None),
    ("int", [-(2**31), 2**31 - 1], None),
    ("bigint unsigned", [0, 2**64 - 1], None),
    ("year", [0, 1901, 2155], None),
    ("float", [0.5, -1.25], None),
    ("double", [0.1, -1e300], None),
    *(
        (f"decimal({digits},{scale})", [Decimal((0, (9,) * digits, -scale)), Decimal((1, (1,), -scale))], None)
        for digits, scale in [(1, 0), (1, 1), (9, 0), (10, 2), (18, 9), (19, 10), (38, 38), (65, 30)]
    ),
    ("date", ["0001-01-01", "9999-12-31"], None),
    *((f"time({digits})", ["-838:59:59.123456", "00:00:00.000001", "12:34:56"], digits) for digits in range(7)),
    *((f"datetime({digits})", ["1000-01-01 00:00:00.123456", "9999-12-31 23:59:59"], digits) for digits in range(7)),
    *((f"timestamp({digits})", ["1970-01-01 00:00:01.999999", "2105-01-01 00:00:00"], digits) for digits in range(7)),
    ("char(3)", ["", "aé"], None),
    ("varchar(300)", ["", "x" * 300], None),
    ("tinytext", ["x" * 255], None),
    ("longtext", ["", "x" * 70000], None),
    ("binary(4)", [b"\0\1\2\3"], None),
    ("varbinary(5)", [b"", b"\0\xff"], None),
    ("blob", [b"x" * 300], None),
    ("enum('a','it''s','')", ["a", "it's", ""], None),
    ("enum(" + ",".join(f"'m{number}'" for number in range(300)) + ")", ["m0", "m299"], None),
    *(
        (f"set({','.join(repr(f'k{number}') for number in range(count))})", ["", "k0", f"k0,k{count - 1}"], None)
        for count in (2, 9, 17, 25, 33, 64)
    ),
    ("bit", [0, 1], None),
    ("bit(10)", [0, 1023], None),
    ("bit(64)", [2**64 - 1], None),
]
DECLARED_TRIPS = [  # of which TABLE_MAP events say nothing
    ("uuid", ["123e4567-e89b-12d3-a456-426655440000", "ffffffff-ffff-ffff-ffff-ffffffffff00",
              "018f0000-0000-7000-8000-000000000000", "00000000-0000-0000-0000-000000000000"]),
    ("inet4", ["127.0.0.1", "10.0.0.0"]),
    ("inet6", ["::", "2001:db8::ff00:42:8329", "::ffff:192.0.2.1", "fe80::"]),
]  # fmt: skip


def shown(value: object, digits: int | None) -> object:
    """What comes back of a value: of a moment, as many digits of its second as its type has."""
    if digits is None:
        return value
    whole, _, fraction = str(value).partition(".")
    return f"{whole}.{fraction.ljust(6, '0')[:digits]}" if digits else whole


def read_back(declared: str):
    return schema_of(written_table("d.t", {"a": declared}, table_id=1)).columns[0]


@pytest.mark.parametrize(("declared", "values"), DECLARED_TRIPS, ids=[trip[0] for trip in DECLARED_TRIPS])
def test_what_only_a_declared_type_tells_is_read_again(declared, values):
    table = schema_of(written_table("d.t", {"a": declared}, table_id=1))
    read, encode = value_reader(declare(table, {"a": declared}).columns[0]), written(declared).encode

    assert [read(encode(value), 0)[0] for value in values] == values


@pytest.mark.parametrize(
    ("declared", "value", "problem"),
    [
        ("enum('a')", "b", "'b' is no label"),
        ("enum('a')", 2, "2 is no label"),
        ("set('a','b')", "a,c", "'a,c' is no label"),
        ("set('a','b')", 4, "4 is no label"),
        ("bit(3)", 8, "does not fit into 3 bits"),
        ("uuid", "x", "badly formed"),
        ("inet4", "1.2.3", "Expected 4 octets"),
    ],
)
def test_what_is_no_value_of_a_column_is_refused(declared, value, problem):
    with pytest.raises(ValueError, match=problem):
        written(declared).encode(value)


@pytest.mark.parametrize("column_type", list(ColumnType), ids=lambda column_type: column_type.name)
def test_each_type_is_of_exactly_one_kind(column_type):
    classes = {kind.convert.__func__ for kind in KINDS if column_type in kind.values}

    assert len(classes) == (column_type not in UNREADABLE)
    assert (column_type in BY_TYPE) == (column_type not in UNREADABLE)


def test_no_two_kinds_are_called_alike():
    assert len(BY_WORD) == sum(1 + len(kind.names) for kind in KINDS)


@pytest.mark.parametrize(("declared", "values", "digits"), ROUND_TRIPS, ids=[trip[0] for trip in ROUND_TRIPS])
def test_what_is_written_is_read_again_and_has_the_size_that_its_kind_says(declared, values, digits):
    column, encode = read_back(declared), written(declared).encode
    read, kind = value_reader(column), kind_of(column)
    size, prefix = kind.fixed_size(column), kind.length_size(column)
    for value in values:
        data = encode(value)

        assert read(b"before" + data + b"behind", 6) == (shown(value, digits), 6 + len(data))
        assert len(data) == (prefix + int.from_bytes(data[:prefix], "little") if size is None else size)


@pytest.mark.parametrize(("declared", "values", "_"), ROUND_TRIPS, ids=[trip[0] for trip in ROUND_TRIPS])
def test_a_value_that_ends_early_is_an_error(declared, values, _):
    data = written(declared).encode(values[-1])
    for size in range(min(len(data), 300)):
        with pytest.raises(ValueError, match="runs over the end of the rows"):
            value_reader(read_back(declared))(data[:size], 0)


def test_moments_of_python_are_written_as_their_texts_are():
    moment = datetime.datetime(2026, 5, 10, 3, 48, 16, 500000)
    for declared in ("datetime(3)", "timestamp(3)"):
        assert written(declared).encode(moment) == written(declared).encode("2026-05-10 03:48:16.5")
