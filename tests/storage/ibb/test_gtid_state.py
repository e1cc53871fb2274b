import pytest

from ibbmaster.errors import RecordError
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec import compressed_int
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.gtid_state import decode_gtid_state, encode_gtid_state

HERE = LogPosition.on_page(0, 1)
PAIRS = (Gtid(domain_id=0, server_id=1, seq_no=2), Gtid(domain_id=0, server_id=2, seq_no=200))
ENCODED = bytes.fromhex("10 20 00 08 10 00 10 4106")


def numbers(*values):
    return b"".join(map(compressed_int.encode, values))


def test_decoding_and_encoding_agree():
    record = decode_gtid_state(ENCODED, HERE)

    assert (record.gtids, record.xa_file_no) == (PAIRS, 3)
    assert encode_gtid_state(PAIRS, 3) == ENCODED
    assert decode_gtid_state(encode_gtid_state((), None), HERE).xa_file_no is None


def test_the_states_that_mariadb_wrote_are_encoded_to_the_same_bytes(mariadb_records):
    records = mariadb_records[RecordType.GTID_STATE]
    assert len(records) > 20
    for data in records:
        state = decode_gtid_state(data, HERE)
        assert encode_gtid_state(state.gtids, state.xa_file_no) == data


def test_a_cut_record_is_refused_and_bytes_behind_it_are_not():
    for size in range(len(ENCODED)):
        with pytest.raises(RecordError, match="page 1 offset 0: GTID state"):
            decode_gtid_state(ENCODED[:size], HERE)
    assert decode_gtid_state(ENCODED + b"more", HERE).gtids == PAIRS


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (numbers(2**60, 0, 1, 1, 1), "pairs do not fit into 3 bytes"),  # before anything is kept
        (numbers(1, 0, 2**32, 1, 1), "4294967296-1-1 has an id of more than 32 bits"),
        (numbers(1, 0, 1, 2**32, 1), "1-4294967296-1 has an id"),
        (numbers(2, 0, 1, 1, 1, 1, 1, 2), "a pair of domain and server comes twice"),
    ],
)
def test_what_no_server_logs_is_refused(data, problem):
    with pytest.raises(RecordError, match=problem):
        decode_gtid_state(data, HERE)
