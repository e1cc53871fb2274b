"""The header of a commit record, and references to records. Layout: protocol/ibb/commit.md, protocol/ibb/record.md."""

from dataclasses import dataclass

from ibbmaster.errors import RecordError
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.storage.codec import compressed_int
from ibbmaster.storage.codec.buffer import Buffer

NO_RECORD = LOG_START  # file 0 begins with a header page, so no record can begin there
STREAM_COUNT_MAX = 2  # the statement cache's and the transaction cache's
HEADER_SIZE_MAX = STREAM_COUNT_MAX * 5 * compressed_int.SIZE_MAX
HEADER_SIZE_USUAL = 45  # as MariaDB's reader takes it; writers stay within


@dataclass(frozen=True, slots=True, kw_only=True)
class OobStream:
    """The out-of-band part of a group: a forest of `node_count` nodes, read from `last`."""

    node_count: int
    first: LogPosition
    last: LogPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitHeader:
    """No stream, one, or the statement's and the transaction's."""

    streams: tuple[OobStream, ...] = ()


NO_STREAMS = CommitHeader()


def decode_ref(data: Buffer, offset: int) -> tuple[LogPosition, int]:
    """The reference at `offset`, and the offset after it. Raises ValueError: it runs over the end."""
    file_no, offset = compressed_int.decode(data, offset)
    in_file, offset = compressed_int.decode(data, offset)
    return LogPosition(file_no, in_file), offset


def encode_ref(ref: LogPosition) -> bytes:
    return compressed_int.encode(ref.file_no) + compressed_int.encode(ref.offset)


def decode_stream(data: Buffer, offset: int) -> tuple[OobStream | None, int]:
    """The stream at `offset`, None for a 0, and the offset after it. Raises ValueError: it runs over the end."""
    node_count, offset = compressed_int.decode(data, offset)
    if not node_count:
        return None, offset
    first, offset = decode_ref(data, offset)
    last, offset = decode_ref(data, offset)
    return OobStream(node_count=node_count, first=first, last=last), offset


def encode_stream(stream: OobStream) -> bytes:
    return compressed_int.encode(stream.node_count) + encode_ref(stream.first) + encode_ref(stream.last)


def decode_commit_header(data: Buffer, location: LogPosition) -> tuple[CommitHeader, int]:
    """The header and its size; the payload follows. `data` holds the record's first `HEADER_SIZE_MAX` bytes, or all if
    it is shorter. Raises RecordError: the header runs over the end of the record, or a stream names nothing. Source:
    MariaDB 12.3, innodb_binlog.cc, ha_innodb_binlog_reader::read_data()."""
    if data and data[0] == 0:
        return NO_STREAMS, 1
    streams: list[OobStream] = []
    offset = 0
    try:
        while len(streams) < STREAM_COUNT_MAX:
            stream, offset = decode_stream(data, offset)
            if stream is None:
                break
            streams.append(stream)
    except ValueError as error:
        raise RecordError(location, f"commit header: {error}") from None
    for stream in streams:
        if (stream.node_count == 1) != (stream.first == stream.last):
            raise RecordError(
                location, f"commit header: {stream.node_count} nodes from {stream.first} to {stream.last}"
            )
    return CommitHeader(streams=tuple(streams)), offset


def encode_commit_header(header: CommitHeader) -> bytes:
    """One 0 without streams, a closing 0 after one, none after two."""
    assert len(header.streams) <= STREAM_COUNT_MAX
    end = compressed_int.encode(0) if len(header.streams) < STREAM_COUNT_MAX else b""
    return b"".join(map(encode_stream, header.streams)) + end
