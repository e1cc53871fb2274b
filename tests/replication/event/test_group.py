import pytest

from ibbmaster.replication.event.group import GroupBoundary
from ibbmaster.replication.event.gtid_event import GtidFlag
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.types import EventType
from tests.replication.event.conftest import event_of, query


def ends(flags: int, event: bytes) -> bool:
    return GroupBoundary(flags).ends_with(decode_event_header(event), event)


@pytest.mark.parametrize(
    ("event", "is_end"),
    [
        (event_of(EventType.XID, bytes(8)), True),
        (event_of(EventType.XA_PREPARE), True),
        (query(b"COMMIT"), True),
        (query(b"ROLLBACK", status=b"\1" * 300), True),
        (query(b"commit"), False),  # servers log it in capitals
        (query(b"ROLLBACK TO `s`"), False),
        (query(b"COMMIT" + b" " * 70_000), False),
        (query(b"INSERT INTO t VALUES (1)"), False),
        (event_of(EventType.QUERY, b"COMMIT"), False),  # too short for a QUERY
        (event_of(EventType.QUERY), False),
        (event_of(EventType.TABLE_MAP), False),
        (event_of(200), False),
    ],
)
def test_a_transaction_ends_with_its_commit_or_rollback(event, is_end):
    assert ends(GtidFlag.TRANSACTIONAL, event) is is_end


@pytest.mark.parametrize(
    ("event", "is_end"),
    [
        (query(b"CREATE TABLE t (a INT)"), True),
        (event_of(EventType.WRITE_ROWS_V1), True),
        (event_of(EventType.EXECUTE_LOAD_QUERY), True),
        *((event_of(kind), False) for kind in (EventType.INTVAR, EventType.RAND, EventType.USER_VAR)),
        *((event_of(kind), False) for kind in (EventType.TABLE_MAP, EventType.ANNOTATE_ROWS, EventType.APPEND_BLOCK)),
    ],
)
def test_a_group_that_stands_alone_ends_with_what_it_is_about(event, is_end):
    assert ends(GtidFlag.STANDALONE | GtidFlag.DDL, event) is is_end


def test_a_commit_is_seen_in_a_part_of_any_buffer():
    event = memoryview(bytearray(query(b"COMMIT")))
    assert ends(0, event)
    assert not any(ends(0, event[:size]) for size in range(19, len(event)))
