"""A window on the bytes of one traditional binlog file, which moves from event to event.

Every event must have a possible size, an end where `log_pos` says it is, and the checksum if the file has them."""

import struct
import zlib
from mmap import PAGESIZE

from ibbmaster.errors import ClassicFormatError
from ibbmaster.replication.event.header import CHECKSUM_SIZE, EVENT_HEADER_SIZE, HEADER, SIZE_OFFSET, TYPE_OFFSET
from ibbmaster.replication.event.types import type_name
from ibbmaster.storage.codec.buffer import Buffer, is_zero
from ibbmaster.storage.disk.page_memory import is_free, page_map
from .series import ClassicFile, ClassicSource

BLOCK_SIZE = 1 << 20
FIRST_BLOCK_SIZE = 1 << 14  # at each new place: perhaps for an event or two
EVENT_SIZE_MAX = (1 << 30) + (1 << 16)  # bytes: max_allowed_packet ends at 1 GiB
SIZE_AND_LOG_POS = struct.Struct("<II")
CHECKSUM_RESIDUE = 0x2144DF1C  # CRC-32 of any bytes with their own CRC-32 after them


class Truncated(Exception):  # noqa: N818  # the reader of the file decides whether that is an error
    """The file ends inside what was to be read."""


class BlockWindow:
    """The bytes around the next event: `view` of `block`, `position` in it, and `block_offset`, that of the block in
    the file. This class itself holds all of a small file: a log may have ten thousand. Reading the head sets
    `checksum_size` and `is_in_use`: the server has not closed the file, which may end inside a group."""

    def __init__(self, file: ClassicFile, data: Buffer) -> None:
        """`data` is the content of the file; it must not change meanwhile."""
        self.block = data
        self.view = memoryview(data)
        self.position = 0
        self.block_offset = 0
        self.checksum_size = 0
        self.packet_no = self.head_bytes = 0  # where events come in packets: of the next one; before each event
        self.is_in_use = False
        self.file = file

    @property
    def offset(self) -> int:
        return self.block_offset + self.position

    def has_more(self) -> bool:
        return self.position < len(self.block) or self.extend()

    def extend(self) -> bool:
        """Append one more block to the rest of this one; False at the end of the file."""
        return False

    def require(self, size: int) -> None:
        """Have at least `size` bytes from the next event on in the block. Raises Truncated: the file ends before."""
        while len(self.block) - self.position < size:
            if not self.extend():
                raise Truncated

    def is_known_before_other_than(self, event_type: int) -> bool:
        at = self.position + TYPE_OFFSET
        return at < len(self.block) and self.block[at] != event_type

    def peek_type(self) -> int:
        self.require(EVENT_HEADER_SIZE)
        return self.block[self.position + 4]

    def peek_size(self) -> int:
        """The size of the next event as its header states it. Raises ClassicFormatError: no event can have that size;
        Truncated: only zeros follow in a file that was not closed."""
        self.require(EVENT_HEADER_SIZE)
        _, event_type, _, size, _, _ = HEADER.unpack_from(self.block, self.position)
        if EVENT_HEADER_SIZE + self.checksum_size <= size <= EVENT_SIZE_MAX:
            return int(size)
        problem = self.error(self.offset, f"{type_name(event_type)} event of {size} bytes")
        if self.is_in_use and self._rest_is_zero():  # file systems may store the length before the data
            raise Truncated
        raise problem

    def read_event(self, size_max: int, *, is_stored: bool = False) -> tuple[int, bytes]:
        """Type and bytes of the next event, verified, as an engine binlog would have it; or as it is stored. Raises
        ClassicFormatError: it is damaged, or larger than `size_max`; Truncated: the file ends inside it."""
        block, position = self.block, self.position
        if len(block) - position >= EVENT_HEADER_SIZE:
            _, event_type, _, size, log_pos, _ = HEADER.unpack_from(block, position)
        else:
            size = 0
        if not self.checksum_size + EVENT_HEADER_SIZE <= size <= min(size_max, len(block) - position):
            size = self.peek_size()
            if size > size_max:
                name = type_name(self.peek_type())
                raise self.error(self.offset, f"{name} event of {size} bytes outside of an event group")
            self.require(size)
            block, position = self.block, self.position
            _, event_type, _, size, log_pos, _ = HEADER.unpack_from(block, position)
        event = bytearray(self.view[position : position + size])
        if log_pos:
            self.check_log_pos(log_pos, size)
        if self.checksum_size:
            if zlib.crc32(event) != CHECKSUM_RESIDUE:
                raise self.checksum_error(memoryview(event))
            if not is_stored:
                del event[-CHECKSUM_SIZE:]
        if not is_stored:
            SIZE_AND_LOG_POS.pack_into(event, SIZE_OFFSET, len(event), 0)
        self.position = position + size
        return event_type, bytes(event)

    def check_log_pos(self, log_pos: int, size: int) -> None:
        """Compare the end of the next event with the stated one, if any. Raises ClassicFormatError: they differ."""
        end = self.offset + size & 0xFFFFFFFF  # the field has 32 bits, a file may be longer
        if log_pos and log_pos != end:
            raise self.error(self.offset, f"this event ends at offset {end}, but says {log_pos}")

    def checksum_error(self, event: memoryview) -> ClassicFormatError:
        computed = zlib.crc32(event[:-CHECKSUM_SIZE])
        return self.wrong_checksum(self.offset, event[-CHECKSUM_SIZE:], computed)

    def wrong_checksum(self, offset: int, stored: Buffer, computed: int) -> ClassicFormatError:
        found = int.from_bytes(stored, "little")
        return self.error(offset, f"event checksum is {found:08x}, its bytes give {computed:08x}")

    def error(self, offset: int, problem: str) -> ClassicFormatError:
        return ClassicFormatError(self.file.name, offset, problem)

    def _rest_is_zero(self) -> bool:
        while is_zero(self.block[self.position :]):
            self.position = len(self.block)
            if not self.extend():
                return True
        return False


class EventWindow(BlockWindow):
    """Reads block by block; a block does not change while there are views of it."""

    def __init__(self, source: ClassicSource, *, block_size: int = BLOCK_SIZE, reads_on: bool = False) -> None:
        """Read a source, and close it; with `reads_on` the first block may be all of the file, not only its head."""
        file = source.file
        super().__init__(file, b"")
        self._buffer, self._spare = page_map(PAGESIZE), page_map(PAGESIZE)  # of `block`, and of the one before
        self.source = source
        self._block_size = block_size
        # Where a packed file is damaged must not depend on where reading began; it is unpacked in order anyway.
        first_size = max(FIRST_BLOCK_SIZE, file.size_bytes) if reads_on else FIRST_BLOCK_SIZE
        self._first_size = block_size if file.packing else min(first_size, block_size)
        self._next_size = self._first_size

    def close(self) -> None:
        self.source.close()

    def go_to(self, offset: int) -> None:
        if self.block_offset <= offset <= self.block_offset + len(self.block):
            self.position = offset - self.block_offset
        else:
            self.block, self.view, self.position = b"", memoryview(b""), 0
            self.block_offset = offset
            self._next_size = self._first_size

    def extend(self) -> bool:
        left, size = len(self.block) - self.position, self._next_size
        begin = self.offset % PAGESIZE  # each byte where it is in a page of the file, see `page_map`
        buffer = self._spare
        if len(buffer) < begin + left + size or not is_free(buffer):
            buffer = page_map(begin + (left + size) * 5 // 4 + PAGESIZE)  # perhaps enough next time, too
        target = memoryview(buffer)[begin:]
        found = self._read(self.block_offset + len(self.block), target[left : left + size])
        if not found:
            return False
        target[:left] = self.view[self.position :]
        self._next_size = min(2 * size, self._block_size)
        self.block_offset += self.position
        self.block = self.view = target[: left + found]
        self._buffer, self._spare = buffer, self._buffer
        self.position = 0
        return True

    def _read(self, offset: int, target: memoryview) -> int:
        if self.source.descriptor is not None:
            return self.source.read_into(offset, target)
        data = self.source.read(offset, len(target))
        target[: len(data)] = data
        return len(data)
