"""The header page of a file. Layout: protocol/ibb/file-header.md."""

import struct
from dataclasses import dataclass

from ibbmaster.errors import ChecksumError, HeaderError
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer, is_zero
from ibbmaster.storage.codec.crc32c import crc32c
from .page import PAGE_SIZE, seal_page

FIELDS = struct.Struct("<IIIIQQQQQQ")
MAGIC = 0x010DFEFE
PAGE_SIZE_LOG2 = 14
MAJOR_VERSION = 1
MINOR_VERSION = 0
SHORT_SIZE = 512  # enough to judge a file before its page size is known
SHORT_CHECKSUM_OFFSET = SHORT_SIZE - 4
SHORT_CHECKSUM = struct.Struct("<I")
NO_FILE = 2**64 - 1  # in the field of the XA reference: nothing is pending
SIZE_PAGES_MIN = 4
SIZE_PAGES_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHeader:
    """Fixed at the first use of the file. `size_pages`: at creation, FLUSH does not change it. `state_interval_pages`:
    between pages that may begin with a differential GTID state; 0: none. `oob_file_no`: the oldest file that commit
    records here may point into; `xa_file_no`: the oldest with a pending XA transaction."""

    file_no: int
    size_pages: int
    start_lsn: int
    state_interval_pages: int
    oob_file_no: int
    xa_file_no: int | None
    major_version: int = MAJOR_VERSION
    minor_version: int = MINOR_VERSION


def decode_file_header(data: Buffer, *, file_no: int) -> FileHeader | None:
    """Judge the first 512 bytes of a file; None means pre-allocated and not used yet. Raises ChecksumError: the short
    checksum does not match; HeaderError: fewer than 512 bytes, another magic, major version, page size or file number.
    Source: MariaDB 12.3, innodb_binlog.cc, fsp_binlog_open() and get_binlog_header()."""
    here = LogPosition.on_page(file_no, 0)
    short = bytes(data[:SHORT_SIZE])
    if len(short) < SHORT_SIZE:
        raise HeaderError(here, f"{len(short)} bytes are no file header: expected at least {SHORT_SIZE}")
    if is_zero(short):
        return None
    (stored,) = SHORT_CHECKSUM.unpack_from(short, SHORT_CHECKSUM_OFFSET)
    computed = crc32c(short[:SHORT_CHECKSUM_OFFSET])
    if stored != computed:
        raise ChecksumError(
            LogPosition.on_page(file_no, 0, SHORT_CHECKSUM_OFFSET),
            f"header checksum is {stored:08x}, its bytes give {computed:08x}",
        )
    magic, page_size_log2, major, minor, stored_no, size_pages, start_lsn, interval, oob_no, xa_no = FIELDS.unpack_from(
        short
    )
    if magic != MAGIC:
        raise HeaderError(here, f"magic number is {magic:08x}, expected {MAGIC:08x}")
    if major > MAJOR_VERSION:
        raise HeaderError(here, f"format version {major}.{minor} is newer than {MAJOR_VERSION}.x, which this reads")
    if page_size_log2 != PAGE_SIZE_LOG2:
        raise HeaderError(here, f"page size is 2^{page_size_log2}, expected 2^{PAGE_SIZE_LOG2}")
    if stored_no != file_no:
        raise HeaderError(here, f"file number is {stored_no}, but the name says {file_no}")
    if not 1 <= size_pages <= SIZE_PAGES_MAX:
        raise HeaderError(here, f"size is {size_pages} pages, expected 1 to {SIZE_PAGES_MAX}")
    if oob_no > file_no:
        raise HeaderError(here, f"out-of-band reference names the later file {oob_no}")
    if xa_no > file_no and xa_no != NO_FILE:
        raise HeaderError(here, f"XA reference names the later file {xa_no}")
    return FileHeader(
        file_no=file_no,
        size_pages=size_pages,
        start_lsn=start_lsn,
        state_interval_pages=interval,
        oob_file_no=oob_no,
        xa_file_no=None if xa_no == NO_FILE else xa_no,
        major_version=major,
        minor_version=minor,
    )


def encode_file_header(header: FileHeader) -> bytes:
    fields = FIELDS.pack(
        MAGIC,
        PAGE_SIZE_LOG2,
        header.major_version,
        header.minor_version,
        header.file_no,
        header.size_pages,
        header.start_lsn,
        header.state_interval_pages,
        header.oob_file_no,
        NO_FILE if header.xa_file_no is None else header.xa_file_no,
    )
    return encode_page_of_fields(fields)


def encode_page_of_fields(fields: Buffer) -> bytes:
    """The whole header page that begins with these 64 bytes."""
    assert len(fields) == FIELDS.size
    page = bytearray(PAGE_SIZE)
    page[: FIELDS.size] = fields
    SHORT_CHECKSUM.pack_into(page, SHORT_CHECKSUM_OFFSET, crc32c(page[:SHORT_CHECKSUM_OFFSET]))
    seal_page(page)
    return bytes(page)
