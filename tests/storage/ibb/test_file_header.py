import struct

import pytest

from ibbmaster.errors import ChecksumError, HeaderError
from ibbmaster.storage.codec.crc32c import crc32c
from ibbmaster.storage.ibb.file_header import FileHeader, decode_file_header, encode_file_header, encode_page_of_fields
from ibbmaster.storage.ibb.file_name import parse_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.machinery.tables import rows_of

HEADER = FileHeader(
    file_no=5, size_pages=4, start_lsn=916389, state_interval_pages=1, oob_file_no=3, xa_file_no=4, minor_version=9
)


def altered(offset, size, number):
    page = bytearray(encode_file_header(HEADER)[:512])
    page[offset : offset + size] = number.to_bytes(size, "little")
    struct.pack_into("<I", page, 508, crc32c(page[:508]))
    return bytes(page)


def test_the_headers_that_mariadb_wrote_are_encoded_to_the_same_pages(mariadb_files):
    for path, data in mariadb_files.items():
        header = decode_file_header(data, file_no=parse_file_name(path.name))
        assert encode_file_header(header) == data[:PAGE_SIZE]
        assert encode_page_of_fields(data[:64]) == data[:PAGE_SIZE]
        assert header.size_pages >= len(data) // PAGE_SIZE  # FLUSH may have cut the file since
        assert 0 <= header.oob_file_no <= header.file_no


def test_a_header_reads_back_as_it_was_given():
    assert decode_file_header(encode_file_header(HEADER), file_no=5) == HEADER
    assert decode_file_header(altered(56, 8, 2**64 - 1), file_no=5).xa_file_no is None
    assert decode_file_header(bytes(512), file_no=5) is None, "it is not used yet"


def test_a_cut_header_is_refused():
    page = encode_file_header(HEADER)
    for size in range(0, 512, 7):
        with pytest.raises(HeaderError, match=f"{size} bytes are no file header: expected at least 512"):
            decode_file_header(page[:size], file_no=5)


def test_a_flipped_bit_is_seen():
    page = encode_file_header(HEADER)[:512]
    for bit in range(0, 512 * 8, 5):
        damaged = bytearray(page)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ChecksumError, match="header checksum is"):
            decode_file_header(damaged, file_no=5)


@pytest.mark.parametrize("row", rows_of(__file__, "wrong_headers"), ids=lambda row: row[3])
def test_a_wrong_field_is_named_with_what_was_expected(row):
    with pytest.raises(HeaderError, match=row[3]):
        decode_file_header(altered(*map(int, row[:3])), file_no=5)
