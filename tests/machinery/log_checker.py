"""A second opinion on what a directory holds, written from the format alone.

It shares nothing with the readers of the store but the checksum: a mistake there is not
made here, too. Slow, whole files in memory, and no mercy: anything unexpected is a fault.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from ibbmaster.storage.codec.buffer import is_zero
from ibbmaster.storage.codec.crc32c import crc32c

PAGE = 16384
DATA = 16380
NONE = 2**64 - 1


class CheckError(Exception):
    """The directory does not hold a sound log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGroup:
    gtid: tuple[int, int, int]
    events: bytes
    file_no: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLog:
    """What the files hold. `state` maps (domain, server) to a number; `latest` a domain to its latest server."""

    first_file_no: int
    groups: tuple[FoundGroup, ...]
    state: dict[tuple[int, int], int]
    latest: dict[int, int]
    prepared: frozenset[bytes]  # the XIDs as they are written: format id, two sizes, two parts
    piece_sizes: tuple[int, ...]  # of the records out of band


@dataclass(slots=True)
class _Record:
    kind: int
    file_no: int
    offset: int
    data: bytearray


def check_log(files: Mapping[str, bytes]) -> FoundLog:
    """Read a whole directory. Raises CheckError: it is not sound; the text says where and why."""
    logs = {int(name[7:-4]): data for name, data in files.items() if name.startswith("binlog-")}
    numbers = sorted(logs)
    if not numbers or numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise CheckError(f"files {numbers}")
    checker = _Checker(logs)
    begun = [number for number in numbers if not is_zero(logs[number][:512])]
    if not begun or begun != numbers[: len(begun)] or len(numbers) - len(begun) > 2:
        raise CheckError(f"of the files {numbers}, these were begun: {begun}")
    for number in numbers[len(begun) :]:
        if not is_zero(logs[number]):
            raise CheckError(f"file {number} has data and no header")
    for number in begun:
        checker.check_file(number, is_last=number == begun[-1])
    return checker.finish(begun[0])


class _Checker:
    def __init__(self, logs: dict[int, bytes]) -> None:
        self.logs = logs
        self.records: dict[tuple[int, int], _Record] = {}
        self.open: _Record | None = None
        self.nested: _Record | None = None
        self.groups: list[FoundGroup] = []
        self.state: dict[tuple[int, int], int] = {}
        self.latest: dict[int, int] = {}
        self.since: dict[tuple[int, int], int] = {}  # since page 1 of this file
        self.prepared: dict[bytes, tuple[int, int]] = {}
        self.has_state = False
        self.has_record = False
        self.waiting: list[tuple[str, dict[tuple[int, int], int], dict[int, int], bool]] = []
        self.oob_file_no = 0

    def check_file(self, number: int, *, is_last: bool) -> None:
        data = self.logs[number]
        if len(data) % PAGE:
            raise CheckError(f"file {number}: {len(data)} bytes")
        header = data[:PAGE]
        magic, log2, _, _, stored_no, pages, _, interval, oob, _ = struct.unpack_from("<IIIIQQQQQQ", header)
        if magic != 0x010DFEFE or log2 != 14 or stored_no != number or not is_zero(header[64:508] + header[512:DATA]):
            raise CheckError(f"file {number}: header")
        if struct.unpack_from("<I", header, 508)[0] != crc32c(header[:508]) or not _is_sound(header):
            raise CheckError(f"file {number}: checksum of the header")
        if len(data) > pages * PAGE or (is_last and len(data) != pages * PAGE):
            raise CheckError(f"file {number}: {len(data)} bytes, {pages} pages in the header")
        self.oob_file_no = oob
        ended = False
        for page_no in range(1, len(data) // PAGE):
            page = data[page_no * PAGE : (page_no + 1) * PAGE]
            if page[0] == 0:
                if not is_zero(page):
                    raise CheckError(f"file {number} page {page_no}: data behind a zero byte")
                ended = True
                continue
            if ended:
                raise CheckError(f"file {number} page {page_no}: data behind the end")
            if not _is_sound(page):
                raise CheckError(f"file {number} page {page_no}: checksum")
            ended = self.check_page(number, page_no, page, interval)
        if ended and not is_last:
            raise CheckError(f"file {number} ends early, and is not the last")

    def check_page(self, number: int, page_no: int, page: bytes, interval: int) -> bool:
        offset = 0
        if page_no == 1 and page[0] & 0x3F != 2:
            raise CheckError(f"file {number}: no state on page 1")
        while offset < DATA:
            kind = page[offset]
            if kind == 0:
                if not is_zero(page[offset:DATA]):
                    raise CheckError(f"file {number} page {page_no}: data behind the end at {offset}")
                return True
            if kind == 0xFF:
                if DATA - offset > 3 or page[offset:DATA].strip(b"\xff"):
                    raise CheckError(f"file {number} page {page_no}: filler at {offset}")
                return False
            (size,) = struct.unpack_from("<H", page, offset + 1)
            end = offset + 3 + size
            if not size or end > DATA:
                raise CheckError(f"file {number} page {page_no}: chunk at {offset}")
            self.take(number, page_no, offset, kind, page[offset + 3 : end], interval)
            offset = end
        return False

    def take(self, number: int, page_no: int, offset: int, kind: int, data: bytes, interval: int) -> None:
        where = f"file {number} page {page_no} offset {offset}"
        is_first, is_last, kind = not kind & 0x80, bool(kind & 0x40), kind & 0x3F
        if not 1 <= kind <= 6:
            raise CheckError(f"{where}: type {kind}")
        if is_first and kind == 2 and (offset or (page_no != 1 and (not interval or page_no % interval))):
            raise CheckError(f"{where}: a state record")
        record: _Record
        if is_first:
            record = _Record(kind, number, page_no * PAGE + offset, bytearray())
            self.has_record |= kind != 2
            if self.open is None:
                self.open = record
            elif self.nested is None and kind in (2, 4):
                self.nested = record
            else:
                raise CheckError(f"{where}: a record inside another")
        else:
            found = self.nested if self.nested is not None else self.open
            if found is None or found.kind != kind:
                if not self.has_record and number:
                    return  # the rest of a record that begins in a purged file
                raise CheckError(f"{where}: a record goes on that has not begun")
            record = found
        record.data += data
        if number > record.file_no + 1 or not (is_last or offset + 3 + len(data) == DATA):
            raise CheckError(f"{where}: a record goes over three files, or leaves room on a page")
        if is_last:
            if record is self.nested:
                self.nested = None
            else:
                self.open = None
            self.close(record)

    def close(self, record: _Record) -> None:
        where = f"file {record.file_no} offset {record.offset}"
        data = bytes(record.data)
        match record.kind:
            case 1:
                self.commit(record, data)
            case 2:
                self.check_state(where, data, is_full=record.offset // PAGE == 1)
            case 3:
                self.records[record.file_no, record.offset] = record
            case 5:
                _, _, size1, size2 = struct.unpack_from("<BIBB", data)
                count, at = _number(data, 7 + size1 + size2)
                first, at = _pair(data, at)
                last, at = _pair(data, at)
                if at != len(data) or not count or first not in self.records or last not in self.records:
                    raise CheckError(f"{where}: prepare record of {count} pieces from {first} to {last}")
                self.prepared[data[1 : 7 + size1 + size2]] = last
            case 6:
                self.prepared.pop(data[1:], None)
            case 4:
                if data.strip(b"\xff"):
                    raise CheckError(f"{where}: a dummy record with data")

    def commit(self, record: _Record, data: bytes) -> None:
        streams: list[tuple[int, tuple[int, int], tuple[int, int]]] = []
        at = 0
        while len(streams) < 2:
            count, at = _number(data, at)
            if not count:
                break
            first, at = _pair(data, at)
            last, at = _pair(data, at)
            streams.append((count, first, last))
        head = data[at:]
        (size,) = struct.unpack_from("<I", head, 9)
        server_id = struct.unpack_from("<I", head, 5)[0]
        if head[4] == 15 and not streams and size == len(head):  # a FORMAT_DESCRIPTION: a server has started
            return
        if head[4] != 162 or size > len(head) or (streams and size != len(head)):
            raise CheckError(f"file {record.file_no} offset {record.offset}: commit record")
        seq_no, domain_id = struct.unpack_from("<QI", head, 19)
        body = b"".join(self.pieces(record, *stream) for stream in streams)
        self.groups.append(FoundGroup(gtid=(domain_id, server_id, seq_no), events=head + body, file_no=record.file_no))
        self.state[domain_id, server_id] = self.since[domain_id, server_id] = seq_no
        self.latest[domain_id] = server_id
        for where, listed, latest, is_full in self.waiting:  # a state inside this record counts its GTID already
            self.compare_state(where, listed, latest, is_full=is_full)
        self.waiting.clear()

    def pieces(self, record: _Record, count: int, first: tuple[int, int], last: tuple[int, int]) -> bytes:
        found: list[bytes] = []
        self.visit(record, last, found, is_leftmost=True)
        if len(found) != count or first not in self.records:
            raise CheckError(f"file {record.file_no} offset {record.offset}: {len(found)} nodes of {count}")
        return b"".join(found)

    def visit(self, record: _Record, ref: tuple[int, int], found: list[bytes], *, is_leftmost: bool) -> None:
        node = self.records.get(ref)
        if node is None or ref[0] < self.oob_file_no:
            raise CheckError(f"file {record.file_no} offset {record.offset}: reference to {ref}")
        data = bytes(node.data)
        index, at = _number(data, 0)
        left, at = _pair(data, at)
        right, at = _pair(data, at)
        if left != (0, 0):
            self.visit(record, left, found, is_leftmost=is_leftmost)
            self.visit(record, right, found, is_leftmost=False)
        elif right != (0, 0) and is_leftmost:
            self.visit(record, right, found, is_leftmost=True)
        if index != len(found):
            raise CheckError(f"file {record.file_no} offset {record.offset}: node {index} as number {len(found)}")
        found.append(data[at:])

    def check_state(self, where: str, data: bytes, *, is_full: bool) -> None:
        count, at = _number(data, 0)
        _, at = _number(data, at)
        listed: dict[tuple[int, int], int] = {}
        latest: dict[int, int] = {}
        for _ in range(count):
            domain_id, at = _number(data, at)
            server_id, at = _number(data, at)
            seq_no, at = _number(data, at)
            if (domain_id, server_id) in listed:
                raise CheckError(f"{where}: a pair twice")
            listed[domain_id, server_id] = seq_no
            latest[domain_id] = server_id
        if self.open is not None and self.open.kind == 1:
            self.waiting.append((where, listed, latest, is_full))
        else:
            self.compare_state(where, listed, latest, is_full=is_full)

    def compare_state(
        self, where: str, listed: dict[tuple[int, int], int], latest: dict[int, int], *, is_full: bool
    ) -> None:
        if is_full and not self.has_state:
            self.state, self.latest = dict(listed), dict(latest)
        elif is_full:
            domains = {domain_id for domain_id, _ in listed}  # one that is missing was deleted by a flush
            self.state = {pair: seq_no for pair, seq_no in self.state.items() if pair[0] in domains}
            self.latest = {domain_id: server_id for domain_id, server_id in self.latest.items() if domain_id in domains}
            if (listed, latest) != (self.state, self.latest):
                raise CheckError(f"{where}: state {listed}, expected {self.state}")
        elif listed != self.since:
            raise CheckError(f"{where}: differential state {listed}, expected {self.since}")
        self.has_state = True
        if is_full:
            self.since = {}

    def finish(self, first_file_no: int) -> FoundLog:
        if self.open is not None:
            raise CheckError("the log ends inside a record")
        return FoundLog(
            first_file_no=first_file_no,
            groups=tuple(self.groups),
            state=self.state,
            latest=self.latest,
            prepared=frozenset(self.prepared),
            piece_sizes=tuple(len(record.data) for record in self.records.values()),
        )


def _is_sound(page: bytes) -> bool:
    return bool(struct.unpack_from("<I", page, DATA)[0] == crc32c(page[:DATA]))


def _number(data: bytes, at: int) -> tuple[int, int]:
    tag = data[at] & 7
    size = 9 if tag == 7 else tag + 1
    return int.from_bytes(data[at : at + size], "little") >> 3, at + size


def _pair(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    first, at = _number(data, at)
    second, at = _number(data, at)
    return (first, second), at
