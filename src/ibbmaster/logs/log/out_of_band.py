"""Reads the out-of-band part of a group, piece by piece in the order of writing."""

from collections.abc import Iterator
from typing import NamedTuple

from ibbmaster.errors import FormatError, RecordError
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.chunk import Chunk, RecordType
from ibbmaster.storage.ibb.commit import OobStream
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.oob import HEADER_SIZE_MAX, OobNode, decode_oob_node, walk_oob
from .cursor import ChunkCursor
from .pages import PageReader


class FoundNode(NamedTuple):
    """Where a node is, and the bytes of its header, before its data."""

    position: LogPosition
    header_size: int


class OutOfBandReader:
    """Reads the nodes that commit records refer to; holds a block of pages, never a whole node."""

    def __init__(self, disk: ReadDisk) -> None:
        self._disk = disk
        self._data_pages = PageReader(disk)  # in the order of the files ...
        self._node_pages = PageReader(disk, readahead_pages_max=1)  # ... but inner nodes are looked at before

    def data(self, stream: OobStream, commit_ref: LogPosition) -> Iterator[Buffer]:
        """The bytes of one stream of the group at `commit_ref`. Raises FormatError: the nodes do not form it."""
        check_stream(stream, commit_ref)
        for node in self.nodes(stream):
            yield from self.node_data(node.position)

    def nodes(self, stream: OobStream) -> Iterator[FoundNode]:
        """The nodes of one stream, in the order of their data; reads only headers. Raises FormatError: as `data`."""
        sizes: dict[LogPosition, int] = {}  # of nodes not given yet

        def read_node(ref: LogPosition) -> OobNode:
            node, _, _, _, sizes[ref] = self._open_node(ref, self._node_pages)
            return node

        for ref in walk_oob(stream, read_node):
            yield FoundNode(ref, sizes.pop(ref))

    def node_data(self, ref: LogPosition) -> Iterator[Buffer]:
        """Raises FormatError: as `data`."""
        _, data, is_last, chunks, _ = self._open_node(ref, self._data_pages)
        yield data
        for chunk in chunks:
            yield chunk.data
            is_last = chunk.is_last
        if not is_last:
            raise RecordError(ref, "an out-of-band record has no end")

    def _open_node(self, ref: LogPosition, pages: PageReader) -> tuple[OobNode, Buffer, bool, Iterator[Chunk], int]:
        first, cursor = self._first_chunk(ref, pages)
        chunks = cursor.chunks_of(first)
        data = bytearray()
        is_last = False
        for chunk in chunks:
            data += chunk.data
            is_last = chunk.is_last
            if len(data) >= HEADER_SIZE_MAX:
                break
        node, size = decode_oob_node(data, ref)
        return node, memoryview(data)[size:], is_last, chunks, size

    def _first_chunk(self, ref: LogPosition, pages: PageReader) -> tuple[Chunk, ChunkCursor]:
        if ref.page_no < 1:
            raise RecordError(ref, "an out-of-band reference into a header page")
        page = pages.page(ref.file_no, ref.page_no)
        if page is None:
            name = format_file_name(ref.file_no)
            raise RecordError(ref, f"an out-of-band reference to what is not there; was {name} purged?")
        cursor = ChunkCursor.at(pages, ref)
        problem = "an out-of-band reference to something else"
        try:
            first = cursor.next_chunk()
        except FormatError as error:
            raise RecordError(ref, f"{problem}: {error}") from error
        if first is None or cursor.ref_of(first) != ref:
            raise RecordError(ref, problem)
        if first.record_type != RecordType.OOB_DATA or not first.is_first:
            raise RecordError(ref, f"{problem}: a chunk of record type {first.record_type}")
        return first, cursor


def check_stream(stream: OobStream, commit_ref: LogPosition) -> None:
    """Raises RecordError: the stream of the group at `commit_ref` does not precede it."""
    if stream.last >= commit_ref or stream.first > stream.last:
        problem = f"commit record refers to nodes from {stream.first} to {stream.last}, not before itself"
        raise RecordError(commit_ref, problem)
