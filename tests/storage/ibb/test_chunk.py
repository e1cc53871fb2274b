import pytest

from ibbmaster.errors import ChunkError
from ibbmaster.storage.ibb.chunk import CHUNK_DATA_MAX, ChunkEnd, RecordType, encode_chunk, next_chunk
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE

CASES = {  # name: (type, first, last, data, bytes)
    "a record in one chunk": (RecordType.COMMIT, True, True, b"abc", "41 0300 616263"),
    "the first of several": (RecordType.OOB_DATA, True, False, b"y", "03 0100 79"),
    "one in the middle": (RecordType.OOB_DATA, False, False, b"y", "83 0100 79"),
    "the last of several": (RecordType.XA_COMPLETE, False, True, b"y", "c6 0100 79"),
}


def on_page(data, offset=0):
    page = bytearray(PAGE_SIZE)
    page[offset : offset + len(data)] = data
    return memoryview(bytes(page))


def found(page, offset=0):
    return next_chunk(page, offset, file_no=2, page_no=5)


@pytest.mark.parametrize(("kind", "is_first", "is_last", "data", "encoded"), CASES.values(), ids=CASES)
def test_decoding_and_encoding_agree(kind, is_first, is_last, data, encoded):
    encoded = bytes.fromhex(encoded)

    chunk = found(on_page(encoded, 7), 7)

    assert encode_chunk(kind, data, is_first=is_first, is_last=is_last) == encoded
    assert (chunk.record_type, chunk.is_first, chunk.is_last, chunk.data) == (kind, is_first, is_last, data)
    assert (chunk.page_offset, chunk.end_offset) == (7, 7 + len(encoded))


def test_the_chunks_of_mariadbs_pages_are_found_and_encoded_again(mariadb_files, mariadb_chunks):
    again = []
    for data in mariadb_files.values():
        for start in range(PAGE_SIZE, len(data), PAGE_SIZE):
            page, offset = memoryview(data)[start : start + PAGE_SIZE], 0
            while not isinstance(chunk := found(page, offset), ChunkEnd):
                encoded = encode_chunk(chunk.record_type, chunk.data, is_first=chunk.is_first, is_last=chunk.is_last)
                assert page[offset : chunk.end_offset] == encoded
                again.append((encoded[0], bytes(chunk.data)))
                offset = chunk.end_offset
    assert again == mariadb_chunks


def test_a_chunk_may_fill_its_page_and_a_page_ends_where_none_fits():
    page = on_page(encode_chunk(RecordType.COMMIT, b"x" * CHUNK_DATA_MAX, is_first=True, is_last=True))
    assert found(page).end_offset == DATA_SIZE

    with pytest.raises(ChunkError, match="page 5 offset 1: 16377 data bytes leave the page, which has room for 16376"):
        found(on_page(bytes(page[:DATA_SIZE]), 1), 1)
    assert found(on_page(b""), 0) is ChunkEnd.NO_DATA
    assert found(on_page(b"\xff"), 0) is ChunkEnd.PAGE_FULL
    assert found(on_page(b"\x41\x01\0a", DATA_SIZE - 3), DATA_SIZE - 3) is ChunkEnd.PAGE_FULL
    assert found(on_page(b"\x41\x01\0a", DATA_SIZE - 4), DATA_SIZE - 4).data == b"a"


@pytest.mark.parametrize(
    ("encoded", "problem"),
    [("41 0000", "a chunk without data bytes"), ("47 0100 61", "record type 7 is unknown"), ("c0 0100 61", "type 0")],
)
def test_what_is_no_chunk_is_refused(encoded, problem):
    with pytest.raises(ChunkError, match=problem):
        found(on_page(bytes.fromhex(encoded)))


def test_every_type_byte_is_a_chunk_an_end_or_refused():
    known = {*RecordType}
    for type_byte in range(256):
        page = on_page(bytes([type_byte, 1, 0, 9]))
        if type_byte in (0x00, 0xFF):
            assert isinstance(found(page), ChunkEnd)
        elif type_byte & 0x3F in known:
            assert found(page).record_type == type_byte & 0x3F
        else:
            with pytest.raises(ChunkError):
                found(page)
