"""A primary that Spark reads: its ranges are positions, and a dump that ends early is an error of the batch, too."""

import dataclasses
import json

import pytest

from ibbmaster.errors import ConfigurationError, SourceError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.spark import live as followed
from ibbmaster.spark.live import LiveTracker
from ibbmaster.spark.tracking import Limits
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.tables.arrow import live
from ibbmaster.tables.arrow.live import (
    LiveSource,
    decode_offset,
    encode_offset,
    live_range,
    position_of_option,
    read_history,
    tables_of,
)
from ibbmaster.tables.arrow.options import parse_options
from tests.machinery.events import make_gtid_event
from tests.table_versions import ddl

LOGGED = ("0-1-1", "5-1-7", "0-1-2")
ADDRESS = {"host": "primary.example", "port": "3307", "user": "reader", "password": "x"}
OPTIONS = parse_options(ADDRESS | {"granularity": "groups"})


@pytest.fixture
def asked(monkeypatch):
    found = []

    def groups_between(primary, start, end):
        found.append((str(primary), primary.user, str(start), str(end)))
        for gtid in map(Gtid.parse, LOGGED):
            yield EventGroup(gtid=gtid, gtid_event=make_gtid_event(gtid), body=iter(()), start=NOWHERE, end=NOWHERE)
        raise SourceError("the primary ended the stream")

    monkeypatch.setattr(live, "groups_between", groups_between)
    monkeypatch.setattr(followed, "groups_between", groups_between)
    monkeypatch.setattr(followed, "logged_position", lambda primary: GtidPosition.parse("0-2-3,5-1-7"))
    return found


def test_a_range_is_a_dump_from_one_position_to_another(asked):
    groups = LiveSource(OPTIONS).groups_in(live_range("0-1-1", "5-1-7"))
    assert [str(next(groups).gtid) for _ in LOGGED] == list(LOGGED)
    assert asked == [("primary.example:3307", "reader", "0-1-1", "5-1-7")]


def test_a_batch_that_is_counted_meets_the_early_end_too(asked):
    tracker = LiveTracker(OPTIONS)
    start = encode_offset(GtidPosition(), NOWHERE)
    assert tracker.next(start, Limits(groups_max=2, bytes_max=None, files_max=None))["gtid"] == "0-1-1,5-1-7"
    with pytest.raises(SourceError):
        tracker.next(start, Limits(groups_max=9, bytes_max=None, files_max=None))


def test_a_primary_that_sends_other_groups_than_when_the_read_was_planned_is_an_error(asked):
    log_range = dataclasses.replace(live_range("", "5-1-7"), landmarks=((2, "0-1-2"),))
    with pytest.raises(SourceError, match=r"primary.example:3307: sends 5-1-7, and has sent 0-1-2 there: try again"):
        list(LiveSource(OPTIONS).groups_in(log_range))


def test_a_history_is_that_of_its_range_and_of_what_was_declared(monkeypatch):
    folded = []

    def groups_between(primary, start, end):
        folded.append((str(start), str(end)))
        gtid, place = Gtid.parse("0-1-1"), LogPosition(0, 1)
        head = encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.STANDALONE | GtidFlag.DDL))
        body = iter(ddl(f"ALTER TABLE t ADD at_{end.get(0).seq_no} INT"))
        yield EventGroup(gtid=gtid, gtid_event=head, body=body, start=place, end=place)

    monkeypatch.setattr(live, "groups_between", groups_between)

    def columns(declared, end):
        options = dataclasses.replace(OPTIONS, declarations={"db.t": {declared: "int"}})
        (version,) = read_history(options, live_range("", end)).versions("db", "t")[-1:]
        return [column.name for column in version.columns]

    for declared, end in [("a", "0-1-1"), ("a", "0-1-1"), ("b", "0-1-1"), ("b", "0-1-2"), ("a", "0-1-1")]:
        assert columns(declared, end) == [declared, f"at_{end[-1]}"]
    assert len(folded) == 4


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
