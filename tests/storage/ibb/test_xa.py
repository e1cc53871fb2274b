import pytest

from ibbmaster.errors import RecordError
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.commit import OobStream
from ibbmaster.storage.ibb.xa import (
    XaComplete,
    XaPrepare,
    Xid,
    decode_xa_complete,
    decode_xa_prepare,
    encode_xa_complete,
    encode_xa_prepare,
)

HERE = LogPosition.on_page(0, 1)
XID = Xid(format_id=258, gtrid=b"abc", bqual=b"de")
STREAM = OobStream(node_count=1, first=LogPosition(0, 16389), last=LogPosition(0, 16389))
PREPARE = XaPrepare(engine_count=2, xid=XID, stream=STREAM)
PREPARED = bytes.fromhex("02 02010000 03 02 616263 6465 08 00 2a0002 00 2a0002")
ROLLED_BACK = bytes.fromhex("01 02010000 03 02 616263 6465")


def test_decoding_and_encoding_agree():
    assert decode_xa_prepare(PREPARED, HERE) == PREPARE
    assert encode_xa_prepare(PREPARE) == PREPARED
    for is_rollback, encoded in ((True, ROLLED_BACK), (False, b"\0" + ROLLED_BACK[1:])):
        record = XaComplete(xid=XID, is_rollback=is_rollback)
        assert (decode_xa_complete(encoded, HERE), encode_xa_complete(record)) == (record, encoded)


def test_the_records_that_mariadb_wrote_are_encoded_to_the_same_bytes(mariadb_records):
    prepares, completes = mariadb_records[RecordType.XA_PREPARE], mariadb_records[RecordType.XA_COMPLETE]

    assert [encode_xa_prepare(decode_xa_prepare(data, HERE)) for data in prepares] == prepares
    assert [encode_xa_complete(decode_xa_complete(data, HERE)) for data in completes] == completes


@pytest.mark.parametrize(("decode", "encoded"), [(decode_xa_prepare, PREPARED), (decode_xa_complete, ROLLED_BACK)])
def test_a_cut_record_is_refused(decode, encoded):
    for size in range(len(encoded)):
        with pytest.raises(RecordError):
            decode(encoded[:size], HERE)


@pytest.mark.parametrize("decode", [decode_xa_prepare, decode_xa_complete])
def test_a_part_of_an_xid_has_at_most_64_bytes(decode):
    for sizes in (b"\x41\x00", b"\x00\x41"):
        with pytest.raises(RecordError, match=r"XID parts of .* at most 64 each"):
            decode(b"\0" * 5 + sizes + bytes(300), HERE)


def test_a_prepared_transaction_without_events_is_refused():
    with pytest.raises(RecordError, match="XA prepare: no out-of-band data"):
        decode_xa_prepare(PREPARED[:12] + bytes(9), HERE)


def test_an_unknown_flag_is_refused():
    with pytest.raises(RecordError, match="unknown flags 0x03"):
        decode_xa_complete(b"\3" + ROLLED_BACK[1:], HERE)
