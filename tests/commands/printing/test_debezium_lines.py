"""Values in Debezium's forms; its own connector is the judge in tests/interop/test_debezium.py."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from ibbmaster.commands.printing.debezium_lines import DebeziumLines, connect_value
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.replication.event.rows.encoding import written_table
from tests.written_log import inserted, updated, write_log

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic" / "11.8"


def column(kind, **given):
    return Column(name="c", type=given.pop("type", ColumnType.BLOB), metadata=0, kind=kind, **given)


FORMS = [
    *json.loads(Path(__file__).with_suffix(".json").read_text()),
    ("BINARY", {"size": 3, "type": ColumnType.STRING}, b"ab", "YWIA"),
    ("BINARY", {"size": 20}, b"\0\xff'", "AP8n"),
    ("GEOMETRY", {}, b"\0\0\0\0ab", {"srid": None, "wkb": "YWI="}),
    ("VECTOR", {}, (0.5, 1.0), (0.5, 1.0)),
]


@pytest.mark.parametrize(("kind", "given", "value", "wanted"), FORMS)
def test_a_value_has_the_form_of_the_connector(kind, given, value, wanted):
    value = Decimal(value) if kind == "DECIMAL" else value
    assert connect_value(column(ValueKind[kind], **given), value) == wanted


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
