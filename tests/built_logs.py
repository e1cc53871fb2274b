"""Logs in memory, built with the appender, and traditional files, built event by event."""

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.packet import PacketReader
from ibbmaster.storage.ibb.appender import Appender, FileShape, References
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.commit import CommitHeader, encode_commit_header
from ibbmaster.storage.ibb.file_header import FileHeader, encode_file_header
from ibbmaster.storage.ibb.oob import OobForest, encode_oob_node
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE, seal_page
from tests.machinery.disk import MemoryDisk
from tests.machinery.dump_sessions import session_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
CLASSIC = FIXTURES / "classic"
OVERHEAD = 3 + 1 + 38  # chunk header, commit header, GTID event


def captures(*left_out: str) -> list[str]:
    """The captures of real servers, as `11.8/domains`, but for those of some names."""
    found = (path.parent for path in CLASSIC.glob("*/*/expected.json") if path.parent.name not in left_out)
    return sorted(path.relative_to(CLASSIC).as_posix() for path in found)


def sealed_page(content: bytes) -> bytes:
    page = bytearray(content.ljust(PAGE_SIZE, b"\0"))
    seal_page(page)
    return bytes(page)


def header_of(file_no: int, *, size_pages: int, interval_pages: int, start_lsn: int = 0) -> bytes:
    """The header page of a file that needs no other one."""
    shape = {"start_lsn": start_lsn, "size_pages": size_pages, "state_interval_pages": interval_pages}
    return encode_file_header(FileHeader(file_no=file_no, **shape, oob_file_no=file_no, xa_file_no=None))


class LogBuilder:
    def __init__(
        self, *, size_pages: int = 4, interval_pages: int = 2, state: str = "", first_file_no: int = 0
    ) -> None:
        self.disk = MemoryDisk()
        self.size_pages = size_pages
        self.groups: list[tuple[Gtid, bytes]] = []  # GTID and all bytes of each committed group
        self.oldest_open: int | None = None
        shape = FileShape(size_pages=size_pages, state_interval_pages=interval_pages, start_lsn=1)
        self.appender = Appender(
            file_no=first_file_no,
            next_shape=lambda file_no: shape,
            references=lambda: References(self.oldest_open, None),
            state=GtidState.parse(state),
        )

    def append(self, record_type: RecordType, data: bytes, gtid: Gtid | None = None):
        ref, changes = self.appender.append(record_type, data, gtid)
        self.disk.place(changes, size_pages=self.size_pages)
        return ref

    def commit(self, gtid: str, body: bytes = b"", *, forest: OobForest | None = None, oob: bytes = b"") -> Gtid:
        """Commit a group; with a forest, its events are those that were written out of band."""
        parsed = Gtid.parse(gtid)
        event = encode_gtid_event(GtidEvent(gtid=parsed, flags=GtidFlag.TRANSACTIONAL))
        header = encode_commit_header(CommitHeader(streams=() if forest is None else (forest.stream(),)))
        self.append(RecordType.COMMIT, header + event + (b"" if forest else body), parsed)
        self.groups.append((parsed, event + (oob if forest else body)))
        self.oldest_open = None
        return parsed

    def out_of_band(self, forest: OobForest, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            if self.oldest_open is None:
                self.oldest_open = self.appender.file_no
            forest.add(self.append(RecordType.OOB_DATA, encode_oob_node(forest.next_node()) + piece))

    def commit_all(self, numbers: Iterable[int], body: bytes) -> None:
        for seq_no in numbers:
            self.commit(f"0-1-{seq_no}", body)

    def page(self, page_no: int, file_no: int = 0) -> bytes:
        return bytes(self.disk.files[f"binlog-{file_no:06d}.ibb"][page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE])

    def put(self, page_no: int, page: bytes, file_no: int = 0) -> None:
        self.disk.files[f"binlog-{file_no:06d}.ibb"][page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE] = page

    def flush(self) -> None:
        file_no = self.appender.file_no
        kept, changes = self.appender.flush()
        self.disk.place(changes, size_pages=self.size_pages)
        self.disk.truncate(f"binlog-{file_no:06d}.ibb", kept * PAGE_SIZE)


class ClassicFileBuilder:
    """Makes the bytes of a traditional file: the head of a real one, and events that say where they end."""

    def __init__(self, *, with_checksums: bool = True) -> None:
        number = 5 if with_checksums else 4
        head = (CLASSIC / f"11.8/checksum-switch/binlog.{number:06d}").read_bytes()
        self.data = bytearray(head[: 4 + struct.unpack_from("<I", head, 4 + 9)[0]])
        self.with_checksums = with_checksums

    def add(
        self,
        event_type: int,
        body: bytes,
        *,
        flags: int = 0,
        size: int | None = None,
        log_pos: int | None = None,
        server_id: int = 1,
    ) -> None:
        size = 19 + len(body) + 4 * self.with_checksums if size is None else size
        end = (len(self.data) + size) & 0xFFFFFFFF if log_pos is None else log_pos
        event = struct.pack("<IBIIIH", 1700000000, event_type, server_id, size, end, flags) + body
        self.data += event + (struct.pack("<I", zlib.crc32(event)) if self.with_checksums else b"")

    def begin_group(self, seq_no: int, flags: int = 0) -> None:
        self.add(EventType.GTID, struct.pack("<QIB", seq_no, 0, flags) + bytes(6))


def some_event(size: int, fill: int = 7) -> bytes:
    return encode_event(event_type=EventType.ANNOTATE_ROWS, body=bytes([fill]) * (size - 19), server_id=1)


def dump(directory, position, **wishes) -> tuple[list[bytes], str | None]:
    """The events that a replica at a position gets until the end, and why it gets no more."""
    request = DumpRequest(replica_server_id=9, position=position, capability=4, **wishes)
    session, place = session_of(directory, request)
    source = BlockSource(directory.groups(place), session, SharedBlocks())
    session.start()
    packets = PacketReader(limit=1 << 26, next_sequence=1)
    packets.receive_data(session.data_to_send())
    block = None
    while block is None or len(block) or not (source.is_at_end or session.is_finished):
        block = source.next_block(1, may_wait=True)
        packets.receive_data(block.data())
    error = None if session.error is None else str(session.error)
    return [payload[1:] for payload in iter(packets.next_payload, None) if payload[0] == 0], error


@pytest.fixture
def dumped():
    return dump


@pytest.fixture
def new_log():
    return LogBuilder


@pytest.fixture
def new_classic_file():
    return ClassicFileBuilder


@pytest.fixture
def new_paged_log():
    """Makes a log of two files with four groups on every page, each of which ends on the page it begins on."""

    def make(**shape: int) -> LogBuilder:
        log, seq_no = LogBuilder(**shape), 0
        while log.appender.file_no < 2:
            for size in (4000, 4000, 4000, None):
                seq_no += 1
                log.commit(f"0-1-{seq_no}", some_event((size or DATA_SIZE - log.appender.page_offset) - OVERHEAD))
        return log

    return make


@pytest.fixture
def event():
    return some_event


@pytest.fixture
def long_log():
    """Three files of four pages with two domains: plain groups, out-of-band groups over a file border, a flush."""
    log = LogBuilder()
    log.commit("0-1-1", some_event(100))
    forest = OobForest()
    large = [some_event(20000, 1), some_event(5000, 2), some_event(3000, 3)]
    log.out_of_band(forest, large[:1])
    log.commit("0-1-2", some_event(9000))
    log.out_of_band(forest, large[1:2])
    log.commit("1-2-1", some_event(16000))
    log.out_of_band(forest, large[2:])
    log.commit("0-1-3", forest=forest, oob=b"".join(large))
    log.flush()
    log.commit("0-1-4", some_event(50))
    return log
