"""References to records: file number and offset of the first chunk. Rules: protocol/ibb/record.md."""

from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.storage.codec import compressed_int
from ibbmaster.storage.codec.buffer import Buffer

NO_RECORD = LOG_START  # file 0 begins with a header page, so no record can begin there


def decode_ref(data: Buffer, offset: int) -> tuple[LogPosition, int]:
    """The reference at `offset`, and the offset after it. Raises ValueError: it runs over the end."""
    file_no, offset = compressed_int.decode(data, offset)
    in_file, offset = compressed_int.decode(data, offset)
    return LogPosition(file_no, in_file), offset


def encode_ref(ref: LogPosition) -> bytes:
    return compressed_int.encode(ref.file_no) + compressed_int.encode(ref.offset)
