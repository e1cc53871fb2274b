import random

import pytest

from ibbmaster.errors import RecordError
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec import compressed_int
from ibbmaster.storage.ibb import commit, xa
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.commit import CommitHeader, OobStream, decode_commit_header, encode_commit_header
from ibbmaster.storage.ibb.gtid_state import GtidStateRecord, decode_gtid_state, encode_gtid_state

HERE = LogPosition.on_page(4, 2, 9)
ONE = OobStream(node_count=1, first=LogPosition(0, 16389), last=LogPosition(0, 16389))
SEVEN = OobStream(node_count=7, first=LogPosition(0, 16389), last=LogPosition(1, 16475))
PAIRS = (Gtid(domain_id=0, server_id=1, seq_no=2), Gtid(domain_id=0, server_id=2, seq_no=200))
XID = xa.Xid(format_id=258, gtrid=b"abc", bqual=b"de")
COMMIT, STATE = RecordType.COMMIT, RecordType.GTID_STATE
PREPARE, COMPLETE = RecordType.XA_PREPARE, RecordType.XA_COMPLETE
CODECS = {  # what is behind a commit header is its payload
    COMMIT: (lambda data: decode_commit_header(data, HERE)[0], encode_commit_header),
    STATE: (lambda data: decode_gtid_state(data, HERE), lambda state: encode_gtid_state(state.gtids, state.xa_file_no)),
    PREPARE: (lambda data: xa.decode_xa_prepare(data, HERE), xa.encode_xa_prepare),
    COMPLETE: (lambda data: xa.decode_xa_complete(data, HERE), xa.encode_xa_complete),
}
PREPARED = "02 02010000 03 02 616263 6465 08 00 2a0002 00 2a0002"
RECORDS = {  # bytes by the tables of protocol/ibb: compressed integers, 3 bits of tag
    "a commit with nothing out of band": (COMMIT, commit.NO_STREAMS, "00"),
    "a commit of one node": (COMMIT, CommitHeader(streams=(ONE,)), "08 00 2a0002 00 2a0002 00"),
    "a commit of two streams": (
        *(COMMIT, CommitHeader(streams=(ONE, SEVEN)), "08 00 2a0002 00 2a0002 38 00 2a0002 08 da0202"),
    ),
    "a state": (STATE, GtidStateRecord(gtids=PAIRS, xa_file_no=3), "10 20 00 08 10 00 10 4106"),
    "an empty state": (STATE, GtidStateRecord(gtids=(), xa_file_no=None), "00 00"),
    "a prepared transaction": (PREPARE, xa.XaPrepare(engine_count=2, xid=XID, stream=ONE), PREPARED),
    "a rollback": (COMPLETE, xa.XaComplete(xid=XID, is_rollback=True), "01 02010000 03 02 616263 6465"),
    "a commit by its XID": (COMPLETE, xa.XaComplete(xid=XID, is_rollback=False), "00 02010000 03 02 616263 6465"),
}


@pytest.mark.parametrize(("kind", "value", "encoded"), RECORDS.values(), ids=RECORDS)
def test_decoding_and_encoding_agree_and_what_is_cut_is_refused(kind, value, encoded):
    (decode, encode), encoded = CODECS[kind], bytes.fromhex(encoded)
    assert (encode(value), decode(encoded)) == (encoded, value)
    for size in range(len(encoded)):
        with pytest.raises(RecordError, match="page 2 offset 9: "):
            decode(encoded[:size])


@pytest.mark.parametrize("kind", CODECS)
def test_the_records_that_mariadb_wrote_are_encoded_to_the_same_bytes(mariadb_records, kind):
    decode, encode = CODECS[kind]
    records = [(data, encode(decode(data))) for data in mariadb_records[kind]]
    assert [encoded for _, encoded in records] == [
        data[: len(encoded)] if kind is COMMIT else data for data, encoded in records
    ]
    assert max(len(encoded) for _, encoded in records) <= (commit.HEADER_SIZE_USUAL if kind is COMMIT else 100_000)
    assert len({len(encoded) for _, encoded in records}) > 1


@pytest.mark.parametrize(("first", "last", "node_count"), [(1, 1, 2), (1, 2, 1)])
def test_one_node_is_where_first_and_last_are_the_same(first, last, node_count):
    stream = OobStream(node_count=node_count, first=LogPosition(0, first), last=LogPosition(0, last))
    with pytest.raises(RecordError, match=f"commit header: {node_count} nodes from"):
        decode_commit_header(encode_commit_header(CommitHeader(streams=(stream,))), HERE)


def test_no_commit_header_is_longer_than_the_maximum():
    far = LogPosition(2**64 - 1, 2**64 - 1)
    stream = OobStream(node_count=2**64 - 1, first=far, last=LogPosition(2**64 - 1, 2**64 - 2))
    assert len(encode_commit_header(CommitHeader(streams=(stream, stream)))) == commit.HEADER_SIZE_MAX


def numbers(*values):
    return b"".join(map(compressed_int.encode, values))


REFUSED = [
    (STATE, numbers(2**60, 0, 1, 1, 1), "pairs do not fit into 3 bytes"),  # before anything is kept
    (STATE, numbers(1, 0, 2**32, 1, 1), "4294967296-1-1 has an id of more than 32 bits"),
    (STATE, numbers(1, 0, 1, 2**32, 1), "1-4294967296-1 has an id"),
    (STATE, numbers(2, 0, 1, 1, 1, 1, 1, 2), "a pair of domain and server comes twice"),
    *((kind, b"\0" * 5 + b"\x41\x00" + bytes(300), r"XID parts of .* at most 64 each") for kind in (PREPARE, COMPLETE)),
    *((kind, b"\0" * 5 + b"\x00\x41" + bytes(300), r"XID parts of .* at most 64 each") for kind in (PREPARE, COMPLETE)),
    (PREPARE, bytes.fromhex(PREPARED)[:12] + bytes(9), "XA prepare: no out-of-band data"),
    (COMPLETE, b"\3" + bytes.fromhex("02010000 03 02 616263 6465"), "unknown flags 0x03"),
]


@pytest.mark.parametrize(("kind", "data", "problem"), REFUSED)
def test_what_no_server_writes_is_refused(kind, data, problem):
    with pytest.raises(RecordError, match=problem):
        CODECS[kind][0](data)


def test_a_reference_is_file_and_offset_and_after_headers_and_states_there_may_be_more():
    assert commit.encode_ref(LogPosition(1, 16475)) == bytes.fromhex("08 da0202")
    assert commit.decode_ref(b"..\x08\xda\x02\x02..", 2) == (LogPosition(1, 16475), 6)
    header, size = decode_commit_header(bytes.fromhex("00") + b"payload", HERE)
    assert (header, size) == (commit.NO_STREAMS, 1)
    assert decode_gtid_state(bytes.fromhex("10 20 00 08 10 00 10 4106") + b"more", HERE).gtids == PAIRS


def test_any_reference_reads_back_and_no_cut_one_does():
    for _ in range(200):
        ref = LogPosition(random.randrange(2**64), random.randrange(2 ** random.randrange(1, 65)))
        encoded = commit.encode_ref(ref)
        assert commit.decode_ref(encoded, 0) == (ref, len(encoded))
        for size in range(len(encoded)):
            with pytest.raises(ValueError, match="data"):
                commit.decode_ref(encoded[:size], 0)
