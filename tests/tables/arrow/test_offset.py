import json

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import GtidPosition
from ibbmaster.position import LogPosition
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.tables.arrow.offset import decode_offset, encode_offset, position_of_option, tables_of

POSITION = GtidPosition.parse("0-1-100,1-2-7")
OFFSET = {"v": 1, "gtid": "0-1-100,1-2-7", "file": 12, "offset": 14303233}


def test_an_offset_is_the_position_and_a_hint_where_it_is():
    assert encode_offset(POSITION, LogPosition(12, 14303233)) == OFFSET
    assert encode_offset(POSITION, LogPosition(0, 4), file_name="binlog.000007")["file"] == "binlog.000007"
    assert decode_offset(OFFSET | {"lag": {"groups": 1}}) == decode_offset(OFFSET) == POSITION
    assert decode_offset({"v": 1, "gtid": ""}) == GtidPosition()


def test_the_tables_of_an_offset_have_their_own_names():
    tables = {TableName("shop", "orders"): "CREATE TABLE a", TableName("shop.eu", "a,b"): None}
    offset = encode_offset(POSITION, LogPosition(0, 4), tables)
    assert list(offset["tables"]) == ["shop.orders", "`shop.eu`.`a,b`"]
    assert tables_of(json.loads(json.dumps(offset))) == tables
    assert tables_of({"tables": {"shop.a,b": "x"}}) == {("shop", "a,b"): "x"}  # as older versions wrote it
    with pytest.raises(ConfigurationError, match=r"'shop\.eu\.orders' is not .* begin the stream anew$"):
        tables_of({"tables": {"shop.eu.orders": "x"}})


@pytest.mark.parametrize("offset", [{}, {"v": 2, "gtid": ""}, {"v": 1}, {"v": 1, "gtid": 5}])
def test_another_offset_is_refused(offset):
    with pytest.raises(ConfigurationError, match=r"is not one of this source \(version 1\)"):
        decode_offset(offset)


@pytest.mark.parametrize("text", ["0-1-100,1-2-7", json.dumps(OFFSET)])
def test_a_stream_begins_at_a_position_or_an_offset(text):
    assert position_of_option(text) == POSITION


@pytest.mark.parametrize("text", ["nonsense", "{", '{"v": 2}', "[" * 5000, "{" * 5000, '{"a":' * 100_000])
def test_what_is_neither_is_refused_in_one_line(text):
    with pytest.raises(ConfigurationError, match="expected earliest, latest, a GTID position or an offset") as caught:
        position_of_option(text)
    assert len(str(caught.value)) < 500
