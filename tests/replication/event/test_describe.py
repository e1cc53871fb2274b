import pytest

from ibbmaster.gtid import Gtid
from ibbmaster.replication.event.control import GtidList, encode_gtid_list, encode_xid
from ibbmaster.replication.event.describe import TEXT_MAX, describe_event, event_type_name
from ibbmaster.replication.event.format_description import describe_format, encode_format_description
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.types import EventType
from tests.replication.event.conftest import event_of, query

GTID = Gtid(domain_id=0, server_id=1, seq_no=5)


ROWS = bytes.fromhex("070000000000 0100 01 01")
LINES = [
    (encode_gtid_event(GtidEvent(gtid=GTID, flags=GtidFlag.TRANSACTIONAL)), "BEGIN GTID 0-1-5"),
    (encode_gtid_event(GtidEvent(gtid=GTID, flags=GtidFlag.STANDALONE)), "GTID 0-1-5"),
    (query(b"DROP TABLE t", b"shop"), "use `shop`; DROP TABLE t"),
    (query(b"COMMIT"), "COMMIT"),
    (query(b"\xff"), "\ufffd"),
    (encode_xid(7, server_id=1), "COMMIT /* xid=7 */"),
    (event_of(EventType.TABLE_MAP, bytes.fromhex("070000000000 0100 01 64 00 01 74 00 00")), "table_id: 7 (d.t)"),
    (event_of(EventType.ANNOTATE_ROWS, b"INSERT INTO t"), "INSERT INTO t"),
    (encode_gtid_list(GtidList(gtids=(GTID, GTID)), server_id=1), "[0-1-5,0-1-5]"),
    (
        encode_format_description(describe_format("11.8.6-MariaDB", type_count=171), server_id=1),
        "Server ver: 11.8.6-MariaDB, Binlog ver: 4",
    ),
    (event_of(EventType.WRITE_ROWS_V1, ROWS), "table_id: 7 flags: STMT_END_F"),
    (event_of(EventType.WRITE_ROWS_V1, ROWS.replace(b"\1\0\1", b"\0\0\1")), "table_id: 7"),
    (event_of(EventType.STOP, b""), ""),
    (event_of(200, b"of a later server"), ""),
    (event_of(EventType.XID, b"short"), ""),  # nothing can be said of what cannot be read
]


@pytest.mark.parametrize(("event", "line"), LINES, ids=[line or "nothing" for _, line in LINES])
def test_an_event_is_described_in_a_line(event, line):
    assert describe_event(event) == line


def test_a_long_statement_is_cut():
    assert describe_event(query(b"x" * 10_000)) == "x" * TEXT_MAX


@pytest.mark.parametrize(
    ("event_type", "name"),
    [
        *((EventType.FORMAT_DESCRIPTION, "Format_desc"), (EventType.QUERY, "Query")),
        *((EventType.WRITE_ROWS_V1, "Write_rows_v1"), (EventType.USER_VAR, "User var"), (200, "Type 200")),
    ],
)
def test_a_type_has_the_name_of_show_binlog_events(event_type, name):
    assert event_type_name(event_type) == name
