"""Pages: 16 KiB, the last 4 bytes a CRC-32C of the rest. Layout: protocol/ibb/page.md."""

import struct

from ibbmaster.errors import ChecksumError
from ibbmaster.position import PAGE_SIZE as PAGE_SIZE
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.codec.crc32c import crc32c

DATA_SIZE = PAGE_SIZE - 4  # the data area; the checksum takes the rest
CHECKSUM = struct.Struct("<I")
BLANK = bytes(PAGE_SIZE)  # never written, and valid as it is


def is_blank(page: Buffer) -> bool:
    return page == BLANK


def verify_page(page: bytes, location: LogPosition) -> None:
    computed = crc32c(page[:DATA_SIZE])
    (stored,) = CHECKSUM.unpack_from(page, DATA_SIZE)
    if stored != computed and page != BLANK:
        raise ChecksumError(location, f"page checksum is {stored:08x}, its bytes give {computed:08x}")


def seal_page(page: bytearray) -> None:
    CHECKSUM.pack_into(page, DATA_SIZE, crc32c(memoryview(page)[:DATA_SIZE]))
