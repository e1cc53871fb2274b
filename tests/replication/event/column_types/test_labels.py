import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.column_types.kind import read_declared
from ibbmaster.replication.event.column_types.registry import BY_WORD, value_reader
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind
from tests.replication.event.conftest import column_of, written


def column(kind: ColumnType, labels=None, charset=None, size=1) -> Column:
    value_kind = ValueKind.ENUM if kind == ColumnType.ENUM else ValueKind.SET
    return column_of(kind, value_kind, size=size, labels=labels, charset=charset)


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (ColumnType.ENUM, b"\0", ""),  # the error value
        (ColumnType.ENUM, b"\2", "b"),
        (ColumnType.SET, b"\0", ""),
        (ColumnType.SET, b"\5", "a,c"),
    ],
)
def test_a_number_stands_for_its_labels(kind, data, value):
    assert value_reader(column(kind, ("a", "b", "c")))(data, 0) == (value, 1)


@pytest.mark.parametrize("kind", [ColumnType.ENUM, ColumnType.SET])
def test_without_labels_the_number_is_the_value(kind):
    assert value_reader(column(kind, size=2))(b"\1\2", 0) == (513, 2)


@pytest.mark.parametrize(
    ("kind", "data", "problem"), [(ColumnType.ENUM, b"\4", "label 4 of 3"), (ColumnType.SET, b"\x08", "set 0x8 of 3")]
)
def test_a_number_without_a_label_is_refused(kind, data, problem):
    with pytest.raises(ValueError, match=problem):
        value_reader(column(kind, ("a", "b", "c")))(data, 0)


def test_declared_labels_count_where_the_event_has_none_that_can_be_read():
    declared = read_declared("column a", "ENUM('x', 'it''s','a,b')")
    found = {"labels": ("x", "it's", "a,b")}

    assert BY_WORD["enum"].declare(column(ColumnType.ENUM), declared) == found
    assert BY_WORD["enum"].declare(column(ColumnType.ENUM, ("?",)), declared) == found  # nobody knows its character set
    assert BY_WORD["enum"].declare(column(ColumnType.ENUM, ("y",), "utf8mb4"), declared) == {}


def test_a_set_is_no_enum():
    with pytest.raises(ConfigurationError, match="but the binlog has it as ENUM"):
        BY_WORD["set"].declare(column(ColumnType.ENUM), read_declared("column a", "set('x')"))


@pytest.mark.parametrize("declared", ["enum()", "set(" + ",".join(f"'{n}'" for n in range(65)) + ")"])
def test_a_number_of_labels_that_no_column_has_is_refused(declared):
    with pytest.raises(ConfigurationError, match="labels, expected 1 to"):
        written(declared)
