import pytest

from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.replication.event.gtid_event import (
    GtidEvent,
    GtidExtraFlag,
    GtidFlag,
    GtidXid,
    decode_gtid,
    decode_gtid_event,
    encode_gtid_event,
    is_event_of,
)
from ibbmaster.replication.event.header import decode_event_header, encode_event
from ibbmaster.replication.event.types import EventType

GTID = Gtid(domain_id=3, server_id=1, seq_no=258)
XID = GtidXid(format_id=1, gtrid=b"ab", bqual=b"c")
CASES = {  # by protocol/event/gtid.md: fields, and the body
    "no optional field": (GtidEvent(gtid=GTID, flags=GtidFlag(0x0D), padding=6), "0D" + "00" * 6),
    "a commit id": (GtidEvent(gtid=GTID, flags=GtidFlag(0x0E), commit_id=5), "0E 0500000000000000"),
    "an XID": (GtidEvent(gtid=GTID, flags=GtidFlag.PREPARED_XA, xid=XID), "40 01000000 02 01 616263"),
    "the number of engines": (
        GtidEvent(gtid=GTID, flags=GtidFlag(0), extra_flags=GtidExtraFlag.MULTI_ENGINE, engine_count=255, padding=4),
        "00 01 FF 00000000",
    ),
    "an ALTER that ends": (
        GtidEvent(gtid=GTID, flags=GtidFlag(0), extra_flags=GtidExtraFlag.COMMIT_ALTER, alter_seq_no=2),
        "00 04 0200000000000000",
    ),
    "a thread": (
        GtidEvent(gtid=GTID, flags=GtidFlag(0), extra_flags=GtidExtraFlag.THREAD_ID, thread_id=7, padding=1),
        "00 10 07000000 00",
    ),
}


def event_of(rest: str) -> bytes:
    body = bytes.fromhex("0201000000000000 03000000" + rest)
    return encode_event(event_type=EventType.GTID, body=body, server_id=1, flags=8)


@pytest.mark.parametrize(("value", "rest"), CASES.values(), ids=CASES)
def test_decoding_and_encoding_agree(value, rest):
    event = event_of(rest)

    assert decode_gtid_event(event) == value
    assert encode_gtid_event(value) == event
    assert decode_gtid(decode_event_header(event), event) == (GTID, value.flags)


def test_an_event_that_needs_no_decoding_decodes_to_its_gtid():
    taken = 0
    for flags in range(256):
        for rest in ("", "00", "01", "0400", "00" * 7, "00" * 8, "00" * 9, "05" * 8, "05" * 8 + "00", "05" * 8 + "10"):
            event = event_of(f"{flags:02x}{rest}")
            if is_event_of(event, GTID):
                taken += 1
                assert decode_gtid_event(event).gtid == GTID
                assert decode_gtid_event(event).extra_flags is None
    assert taken > 200


@pytest.mark.parametrize("name", ["no optional field", "a commit id"])
def test_an_event_of_most_servers_needs_no_decoding_if_the_gtid_is_its_own(name):
    event = event_of(CASES[name][1])
    assert is_event_of(event, GTID)
    for other in ("3-1-259", "3-2-258", "4-1-258"):
        assert not is_event_of(event, Gtid.parse(other))


@pytest.mark.parametrize("rest", [rest for _, rest in CASES.values()], ids=CASES)
def test_a_cut_event_is_refused(rest):
    event = event_of(rest)
    for size in range(len(event)):
        with pytest.raises(EventError):
            decode_gtid_event(event[:size])
        with pytest.raises(EventError):
            decode_gtid(decode_event_header(event), event[: min(size, 37)])


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("40 01000000 02 03 616263", "GTID event ends 2 bytes before a field its flags announce"),
        ("02 0100000000000000 04 0000000000", "ends 3 bytes before"),
        ("80 01000000 41 00" + "61" * 65, "XID parts of 65 and 0 bytes, at most 64 each"),
    ],
)
def test_a_body_that_ends_before_a_field_its_flags_announce_or_has_a_long_xid_is_refused(rest, problem):
    with pytest.raises(EventError, match=problem):
        decode_gtid_event(event_of(rest))


def test_a_gtid_is_found_in_each_of_a_real_server(events):
    for event in events:
        if event[4] == EventType.GTID:
            found = decode_gtid_event(event)
            assert decode_gtid(decode_event_header(event), event) == (found.gtid, found.flags)


def test_an_xid_reads_as_xa_statements_name_it():
    assert str(XID) == "X'6162',X'63',1"
