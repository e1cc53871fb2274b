import zlib

import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.query import Query, decode_query, decompress, encode_query, status_variables
from ibbmaster.replication.event.types import EventType

STATUS = b"\x00\x01\x00\x00\x00\x06\x03std\x04\x08\x00\x08\x00\x08\x00"
QUERY = Query(thread_id=9, seconds=1, error_code=2, status=STATUS, database=b"shop", text=b"DROP TABLE t")
BODY = bytes.fromhex("09000000 01000000 04 0200 1100") + STATUS + b"shop\0DROP TABLE t"
EVENT = encode_event(event_type=EventType.QUERY, body=BODY, server_id=3)


def compressed(text: bytes, size: int | None = None) -> bytes:
    return b"\x84" + (len(text) if size is None else size).to_bytes(4, "big") + zlib.compress(text)


def test_decoding_and_encoding_agree():
    assert decode_query(EVENT) == QUERY
    assert encode_query(QUERY, server_id=3) == EVENT


def test_a_cut_event_is_refused():
    for size in range(len(EVENT)):
        with pytest.raises(EventError):
            decode_query(EVENT[:size])


def test_an_event_cut_before_its_text_is_refused_although_its_size_fits():
    for size in range(len(BODY) - len(QUERY.text)):
        with pytest.raises(EventError, match="QUERY"):
            decode_query(encode_event(event_type=EventType.QUERY, body=BODY[:size], server_id=3))


def test_another_type_is_refused():
    with pytest.raises(EventError, match="event type 3, expected a QUERY"):
        decode_query(encode_event(event_type=EventType.STOP, body=BODY, server_id=3))


def test_a_compressed_text_is_unpacked_and_sent_as_it_was():
    body = BODY[: -len(QUERY.text)] + compressed(QUERY.text)
    query = decode_query(encode_event(event_type=EventType.QUERY_COMPRESSED, body=body, server_id=3))

    assert query.is_compressed
    assert encode_query(query, server_id=3) == EVENT


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        *((b"", "without its head"), (b"\x04\0\0\0\1x", "without its head"), (b"\x80", "claims 0 bytes")),
        *((b"\x85" + bytes(9), "claims 0 bytes"), (compressed(b"a", 2**31), "claims 2147483648 bytes")),
        (compressed(b"abc", 2), "of 3 bytes or more, expected 2"),
        *((compressed(b"abc", 4), "of 3 bytes or more, expected 4"), (compressed(b"abc")[:-1], "expected 3")),
        (b"\x81\x03no zlib", "does not unpack"),
    ],
)
def test_what_does_not_unpack_to_its_size_is_refused(data, problem):
    with pytest.raises(EventError, match=problem):
        decompress(data)


def test_a_bomb_is_unpacked_no_further_than_it_claims():
    with pytest.raises(EventError, match="of 11 bytes or more, expected 10"):
        decompress(compressed(bytes(50_000_000), 10))


VARIABLES = {  # by protocol/event/others.md: the whole, code and value
    "flags": b"\x00\x01\x02\x03\x04",
    "sql_mode": b"\x01" + bytes(8),
    "character sets": b"\x04" + bytes(6),
    "time zone": b"\x05\x03UTC",
    "catalog": b"\x06\x03std",
    "invoker": b"\x0b\x01a\x02bc",
    "microseconds": b"\x80\x01\x02\x03",
    "ALTER that begins": b"\x82\x02",
    "ALTER that commits": b"\x82\x04" + bytes(8),
    "collations": b"\x83\x02" + bytes(8),
    "one of a later server": b"\xc8and all that follows",
}


def test_status_variables_are_cut_where_they_end():
    assert list(status_variables(b"".join(VARIABLES.values()))) == [(one[0], one[1:]) for one in VARIABLES.values()]


@pytest.mark.parametrize("name", [name for name in VARIABLES if "later" not in name])
def test_a_cut_status_variable_is_refused(name):
    whole = VARIABLES[name]
    for size in range(1, len(whole)):
        with pytest.raises(EventError, match="status variable"):
            list(status_variables(whole[:size]))
