import pytest

from ibbmaster.errors import ChunkError, RecordError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.other_records import check_other_record, check_rest
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.commit import NO_STREAMS, CommitHeader, OobStream, encode_commit_header
from ibbmaster.storage.ibb.gtid_state import encode_gtid_state
from ibbmaster.storage.ibb.oob import OobNode, encode_oob_node
from ibbmaster.storage.ibb.page import PAGE_SIZE
from ibbmaster.storage.ibb.xa import XaComplete, XaPrepare, Xid, encode_xa_complete, encode_xa_prepare
from tests.machinery.events import make_gtid_event

GTID = Gtid(domain_id=0, server_id=1, seq_no=7)
HERE, INSIDE_PAGE = LogPosition(0, 4 * PAGE_SIZE), LogPosition(0, 4 * PAGE_SIZE + 100)
STREAM = OobStream(node_count=2, first=LogPosition(0, PAGE_SIZE), last=LogPosition(0, 2 * PAGE_SIZE))
XID = Xid(format_id=1, gtrid=b"a", bqual=b"b")
SOUND = [
    (RecordType.GTID_STATE, encode_gtid_state(GtidState([GTID]), 0)),
    (RecordType.OOB_DATA, encode_oob_node(OobNode(node_index=0, left=None, right=None)) + b"x"),
    (RecordType.OOB_DATA, encode_oob_node(OobNode(node_index=1, left=None, right=STREAM.first)) + b"x"),
    (RecordType.DUMMY, b"\xff" * 20),
    (RecordType.XA_PREPARE, encode_xa_prepare(XaPrepare(engine_count=1, xid=XID, stream=STREAM))),
    (RecordType.XA_COMPLETE, encode_xa_complete(XaComplete(xid=XID, is_rollback=False))),
]


@pytest.mark.parametrize(("record_type", "data"), SOUND)
def test_what_writers_write_is_sound(record_type, data):
    check_other_record(record_type, data, HERE, True)
    check_rest(data, HERE)


@pytest.mark.parametrize("fill", [b"i", b"\0", b"\xff"], ids=["text", "zeros", "ones"])
@pytest.mark.parametrize("server_id", [38, 77, 255])
def test_a_part_that_looks_like_a_gtid_event_by_its_time_and_server_is_none(fill, server_id):
    when = 0x6B00B3A2  # its lowest byte is the type of a GTID event
    event = encode_event(event_type=EventType.ANNOTATE_ROWS, body=fill * 400, server_id=server_id, timestamp=when)
    data = encode_oob_node(OobNode(node_index=0, left=None, right=None)) + event
    check_other_record(RecordType.OOB_DATA, data, INSIDE_PAGE, True)
    check_rest(data, INSIDE_PAGE)


@pytest.mark.parametrize("record_type", sorted({record_type for record_type, _ in SOUND}))
@pytest.mark.parametrize(
    "header", [NO_STREAMS, CommitHeader(streams=(STREAM,)), CommitHeader(streams=(STREAM, STREAM))]
)
@pytest.mark.parametrize("payload", [b"", b"more events"])
def test_a_commit_record_under_another_type_is_known_by_its_gtid(record_type, header, payload):
    data = encode_commit_header(header) + make_gtid_event(GTID) + payload
    with pytest.raises(RecordError, match=r"holds the commit record of group 0-1-7: its type was changed"):
        check_other_record(record_type, data, INSIDE_PAGE, True)
    with pytest.raises(ChunkError, match=r"continues with the commit record of group 0-1-7"):
        check_rest(data, INSIDE_PAGE)


@pytest.mark.parametrize(
    ("record_type", "data", "problem"),
    [
        (RecordType.GTID_STATE, SOUND[0][1], "does not begin a page"),
        (RecordType.OOB_DATA, SOUND[1][1][:-1], "an out-of-band record without data"),
        (RecordType.DUMMY, b"\xff\xff\xfe", "a dummy record with other bytes than ff"),
        (RecordType.XA_COMPLETE, b"\x05" + SOUND[-1][1][1:], "unknown flags"),
    ],
)
def test_what_no_writer_writes_is_told(record_type, data, problem):
    with pytest.raises(RecordError, match=problem):
        check_other_record(record_type, data, INSIDE_PAGE, True)
