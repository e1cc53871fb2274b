import random
import struct

import pytest

from ibbmaster.errors import ChecksumError, HeaderError
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.crc32c import crc32c
from ibbmaster.storage.ibb.file_header import FileHeader, decode_file_header, encode_file_header, encode_page_of_fields
from ibbmaster.storage.ibb.file_name import FILE_NO_MAX, format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import BLANK, DATA_SIZE, PAGE_SIZE, is_blank, seal_page, verify_page
from tests.case_table import rows_of

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


def test_a_number_has_one_name():
    some = (random.randrange(2 ** random.randrange(1, 64)) for _ in range(300))
    for file_no in (0, 7, 999_999, 1_000_000, 2**32, FILE_NO_MAX, *some):
        assert parse_file_name(format_file_name(file_no)) == file_no


@pytest.mark.parametrize(
    "name",
    [
        *("binlog-00001.ibb", "binlog-0000001.ibb", "binlog-000001.ibb.tmp", "binlog-000001.IBB", "xbinlog-000001.ibb"),
        *("binlog--00001.ibb", "binlog-000001.ibb\n", ""),
        "binlog-00000١.ibb",  # a digit, but of another script
        *(f"binlog-{FILE_NO_MAX + 1}.ibb", "binlog-99999999999999999999.ibb"),
    ],
)
def test_another_spelling_is_no_file_of_the_log(name):
    assert parse_file_name(name) is None


HERE = LogPosition.on_page(3, 17)


def test_each_page_that_mariadb_wrote_is_sound_and_sealed_again_the_same(mariadb_files):
    for data in mariadb_files.values():
        for start in range(0, len(data), PAGE_SIZE):
            verify_page(data[start : start + PAGE_SIZE], HERE)
        page = bytearray(data[PAGE_SIZE : 2 * PAGE_SIZE])
        page[DATA_SIZE:] = bytes(4)
        seal_page(page)
        assert page == data[PAGE_SIZE : 2 * PAGE_SIZE]


def test_a_flipped_bit_is_seen_wherever_it_is_and_a_page_that_was_never_written_is_sound(mariadb_files):
    page = next(iter(mariadb_files.values()))[PAGE_SIZE : 2 * PAGE_SIZE]
    for bit in (0, PAGE_SIZE * 8 - 1, *random.sample(range(PAGE_SIZE * 8), 60)):
        damaged = bytearray(page)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ChecksumError, match=r"page 17.*page checksum is [0-9a-f]{8}, its bytes give [0-9a-f]{8}"):
            verify_page(bytes(damaged), HERE)
    verify_page(bytes(PAGE_SIZE), HERE)

    assert is_blank(bytearray(PAGE_SIZE))
    assert not is_blank(BLANK[:-1] + b"\1")
    with pytest.raises(ChecksumError):
        verify_page(BLANK[:-1] + b"\1", HERE)
