import pytest

from ibbmaster.errors import RecordError
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.commit import (
    HEADER_SIZE_MAX,
    HEADER_SIZE_USUAL,
    NO_STREAMS,
    CommitHeader,
    OobStream,
    decode_commit_header,
    encode_commit_header,
)

HERE = LogPosition.on_page(4, 2, 9)
ONE = OobStream(node_count=1, first=LogPosition(0, 16389), last=LogPosition(0, 16389))
SEVEN = OobStream(node_count=7, first=LogPosition(0, 16389), last=LogPosition(1, 16475))
CASES = {  # bytes by the table of protocol/ibb/commit.md: compressed integers, 3 bits of tag
    "nothing out of band": (NO_STREAMS, "00"),
    "one stream of one node": (CommitHeader(streams=(ONE,)), "08 00 2a0002 00 2a0002 00"),
    "two streams": (CommitHeader(streams=(ONE, SEVEN)), "08 00 2a0002 00 2a0002 38 00 2a0002 08 da0202"),
}


@pytest.mark.parametrize(("header", "encoded"), CASES.values(), ids=CASES)
def test_decoding_and_encoding_agree(header, encoded):
    encoded = bytes.fromhex(encoded)

    assert encode_commit_header(header) == encoded
    assert decode_commit_header(encoded + b"payload", HERE) == (header, len(encoded))


@pytest.mark.parametrize("encoded", [encoded for _, encoded in CASES.values()], ids=CASES)
def test_a_cut_header_is_refused(encoded):
    encoded = bytes.fromhex(encoded)
    for size in range(len(encoded)):
        with pytest.raises(RecordError, match="page 2 offset 9: commit header"):
            decode_commit_header(encoded[:size], HERE)


def test_the_headers_that_mariadb_wrote_are_encoded_to_the_same_bytes(mariadb_records):
    records = mariadb_records[RecordType.COMMIT]
    headers = [decode_commit_header(data, HERE) for data in records]

    assert [encode_commit_header(header) for header, _ in headers] == [
        data[:size] for data, (_, size) in zip(records, headers, strict=True)
    ]
    assert {len(header.streams) for header, _ in headers} >= {0, 1}
    assert max(size for _, size in headers) <= HEADER_SIZE_USUAL


@pytest.mark.parametrize(("first", "last", "node_count"), [(1, 1, 2), (1, 2, 1)])
def test_one_node_is_where_first_and_last_are_the_same(first, last, node_count):
    stream = OobStream(node_count=node_count, first=LogPosition(0, first), last=LogPosition(0, last))
    with pytest.raises(RecordError, match=f"commit header: {node_count} nodes from"):
        decode_commit_header(encode_commit_header(CommitHeader(streams=(stream,))), HERE)


def test_no_header_is_longer_than_the_maximum():
    far = LogPosition(2**64 - 1, 2**64 - 1)
    stream = OobStream(node_count=2**64 - 1, first=far, last=LogPosition(2**64 - 1, 2**64 - 2))
    assert len(encode_commit_header(CommitHeader(streams=(stream, stream)))) == HEADER_SIZE_MAX
