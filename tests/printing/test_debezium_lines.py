"""Values in Debezium's forms; its own connector is the judge in tests/interop/test_debezium.py."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.printing.debezium_lines import DebeziumLines, connect_value
from tests.written_log import inserted, updated, write_log

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic" / "11.8"


def column(kind, **given):
    return Column(name="c", type=given.pop("type", ColumnType.BLOB), metadata=0, kind=kind, **given)


@pytest.mark.parametrize(
    ("kind", "given", "value", "wanted"),
    [
        (ValueKind.INTEGER, {}, 2**64 - 1, 2**64 - 1),
        (ValueKind.TEXT, {}, None, None),
        (ValueKind.TEXT, {}, "é", "é"),
        (ValueKind.BIT, {"size": 1}, 1, True),
        (ValueKind.BIT, {"size": 10}, 0x201, "AQI="),
        (ValueKind.DECIMAL, {}, Decimal("9.90"), "A94="),
        (ValueKind.DECIMAL, {}, Decimal("0.00"), "AA=="),
        (ValueKind.DECIMAL, {}, Decimal("-1.50000"), "/bYQ"),
        (ValueKind.DECIMAL, {}, Decimal("1.28"), "AIA="),
        (ValueKind.DECIMAL, {}, Decimal("-1.28"), "gA=="),
        (ValueKind.DATE, {}, "2020-02-29", 18321),
        (ValueKind.DATE, {}, "0000-00-00", None),
        (ValueKind.DATE, {"is_nullable": False}, "2020-02-00", 0),
        (ValueKind.DATETIME, {"scale": 3}, "2020-01-01 00:00:00.000", 1577836800000),
        (ValueKind.DATETIME, {"scale": 6}, "1969-12-31 23:59:59.999999", -1),
        (ValueKind.DATETIME, {}, "0000-00-00 00:00:00", None),
        (ValueKind.TIMESTAMP, {"scale": 6}, "2020-01-02 03:04:05.678000", "2020-01-02T03:04:05.678000Z"),
        (ValueKind.TIMESTAMP, {"is_nullable": False}, "0000-00-00 00:00:00", "1970-01-01T00:00:00Z"),
        (ValueKind.TIME, {"scale": 2}, "-12:30:45.25", -45045250000),
        (ValueKind.TIME, {}, "838:59:59", 3020399000000),
        (ValueKind.BINARY, {"size": 3, "type": ColumnType.STRING}, b"ab", "YWIA"),
        (ValueKind.BINARY, {"size": 20}, b"\0\xff'", "AP8n"),
        (ValueKind.GEOMETRY, {}, b"\0\0\0\0ab", {"srid": None, "wkb": "YWI="}),
        (ValueKind.VECTOR, {}, (0.5, 1.0), (0.5, 1.0)),
    ],
)
def test_a_value_has_the_form_of_the_connector(kind, given, value, wanted):
    assert connect_value(column(kind, **given), value) == wanted


def test_a_line_is_an_envelope(printed, tmp_path):
    table = written_table("d.t", {"id": "int", "c": "varchar(9)"}, table_id=1)
    log = write_log(
        tmp_path / "log", "CREATE TABLE x (a INT)", [inserted(table, [1, "a"]), updated(table, ([1, "a"], [1, None]))]
    )
    first, second = map(json.loads, printed(log, DebeziumLines(str)).splitlines())
    assert (first["op"], first["before"], first["after"]) == ("c", None, {"id": 1, "c": "a"})
    assert (second["op"], second["before"], second["after"]) == ("u", {"id": 1, "c": "a"}, {"id": 1, "c": None})
    source = second["source"]
    assert (source["gtid"], source["db"], source["table"], source["row"], source["file"]) == ("0-1-2", "d", "t", 1, "0")


def test_every_type_of_a_capture_has_a_line(printed):
    found = printed(CLASSIC / "types-full-crc32", DebeziumLines(str)).splitlines()
    assert len(found) > 300
    assert {json.loads(line)["op"] for line in found} == {"c", "u", "d"}
