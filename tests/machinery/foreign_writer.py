"""Somebody else who writes the files of a log in a directory: a server, a copier, or both at once, in any order."""

import random
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.machinery.events import gtid_of, make_event, make_gtid_event
from tests.machinery.simulated_disk import SimulatedDisk

HEAD = Path(__file__).parents[2] / "fixtures" / "classic" / "10.11" / "checksum-switch" / "binlog.000005"
FLAGS_AT = 4 + 17  # of the first event
BASE = "bin"
CONTENT_BYTES = 5
OPTIONS = StoreOptions(
    max_file_bytes=4 * PAGE_SIZE, state_interval_bytes=PAGE_SIZE * 2, redo_bytes=1 << 20, full_disk_retry_s=0
)


def sealed(event: bytes) -> bytes:
    return event + struct.pack("<I", zlib.crc32(event))


@dataclass
class _Server:
    rng: random.Random
    server_id: int = 1
    started_at: int = 1_700_000_000
    groups: list[tuple[Gtid, bytes]] = field(default_factory=list)
    state: GtidState = field(default_factory=GtidState)

    def next_group(self, size: int) -> tuple[Gtid, bytes]:
        domain_id = self.rng.choice((0, 3))
        gtid = gtid_of((self.state.highest_seq_no(domain_id) or 0) + 1, domain_id, self.server_id)
        content = self.rng.randbytes(size)
        self.state.log(gtid)
        self.groups.append((gtid, content[:CONTENT_BYTES]))
        return gtid, content


@dataclass
class ClassicServer(_Server):
    """One that has written traditional files: all there is of them, whether or not it is in the directory."""

    def __post_init__(self) -> None:
        self.files: dict[int, bytearray] = {}
        self._begin(1)

    @property
    def last(self) -> int:
        return max(self.files)

    def append(self, size: int = 20) -> None:
        gtid, content = self.next_group(size)
        self._add(EventType.GTID, struct.pack("<QIB", gtid.seq_no, gtid.domain_id, 0) + bytes(6))
        self._add(EventType.ANNOTATE_ROWS, content)
        self._add(EventType.XID, struct.pack("<Q", len(self.groups)))

    def rotate(self) -> None:
        number = self.last + 1
        self._add(EventType.ROTATE, struct.pack("<Q", 4) + f"{BASE}.{number:06d}".encode())
        self.files[self.last][FLAGS_AT] &= 0xFE
        self._begin(number)

    def _begin(self, number: int) -> None:
        head = HEAD.read_bytes()
        event = bytearray(head[4 : 4 + struct.unpack_from("<I", head, 4 + 9)[0] - 4])
        struct.pack_into("<I", event, 0, self.started_at)
        struct.pack_into("<I", event, 5, self.server_id)
        event[17] = 0
        self.files[number] = bytearray(b"\xfebin" + sealed(bytes(event)))
        self.files[number][FLAGS_AT] |= 1
        gtids = list(self.state)
        listed = b"".join(struct.pack("<IIQ", gtid.domain_id, gtid.server_id, gtid.seq_no) for gtid in gtids)
        self._add(EventType.GTID_LIST, struct.pack("<I", len(gtids)) + listed)

    def _add(self, event_type: int, body: bytes) -> None:
        data = self.files[self.last]
        end = len(data) + 19 + len(body) + 4
        data += sealed(
            struct.pack("<IBIIIH", self.started_at, event_type, self.server_id, end - len(data), end, 0) + body
        )


@dataclass
class IbbServer(_Server):
    def __post_init__(self) -> None:
        self._disk = SimulatedDisk()
        self._store = BinlogStore(self._disk, OPTIONS)
        self._store.checkpoint()

    @property
    def files(self) -> dict[int, bytes]:
        self._store.checkpoint()
        self._store.sync()
        names = {number: name for name in self._disk.list() if (number := parse_file_name(name)) is not None}
        return {number: self._disk.read(name, 0, self._disk.size(name)) for number, name in sorted(names.items())}

    @property
    def last(self) -> int:
        return self._store.end().file_no

    def append(self, size: int = 20) -> None:
        gtid, content = self.next_group(size)
        self._store.write_direct(
            gtid,
            make_gtid_event(gtid),
            [make_event(EventType.ANNOTATE_ROWS, self.server_id, content), make_event(EventType.XID, 1, bytes(8))],
        )

    def rotate(self) -> None:
        self._store.flush()


Server = ClassicServer | IbbServer


class ForeignWriter:
    """Brings what a server has written into a directory; `is_whole` where it is there from the file `oldest` on."""

    def __init__(self, directory: Path, rng: random.Random, make: type[Server] = ClassicServer) -> None:
        self.directory = directory
        self.rng = rng
        self.make = make
        self.oldest = 0
        self._be(make(rng))
        self.publish()

    def path(self, number: int | None = None) -> Path:
        number = self.server.last if number is None else number
        return self.directory / (format_file_name(number) if self.make is IbbServer else f"{BASE}.{number:06d}")

    def publish(self) -> None:
        self.directory.mkdir(exist_ok=True)
        for number, data in self.server.files.items():
            if number >= self.oldest:
                self.grow(number, len(data))
        self.is_whole = True

    def grow(self, number: int, size: int) -> None:
        path, data = self.path(number), bytes(self.server.files[number][:size])
        found = path.read_bytes() if path.exists() else b""
        if found == data:
            return
        pages = range(0, len(data), PAGE_SIZE if self.make is IbbServer else len(data))
        first = next((at for at in pages if found[at:][:PAGE_SIZE] != data[at:][:PAGE_SIZE]), 0)
        with path.open("r+b" if found else "wb") as file:
            if self.make is ClassicServer and len(found) > FLAGS_AT:
                file.seek(FLAGS_AT)
                file.write(data[FLAGS_AT : FLAGS_AT + 1])
                first = len(found)
            file.seek(first)
            file.write(data[first:])
            file.truncate()

    def append(self) -> None:
        self.server.append(self.rng.choice((5, 20, 300, 6000)))
        self.publish()

    def append_a_part(self) -> None:
        self.publish()
        there = len(self.server.files[self.server.last])
        self.server.append()
        if len(self.server.files[self.server.last]) > there:
            self.is_whole = False
            self.grow(self.server.last, self.rng.randrange(there + 1, len(self.server.files[self.server.last])))
        else:
            self.publish()

    def rotate(self) -> None:
        self.server.rotate()
        self.publish()

    def purge(self) -> None:
        self.publish()
        self.oldest = self.rng.randint(max(self.oldest, min(self.server.files)), self.server.last)
        self._remove_older()

    def rotate_and_purge(self) -> None:
        self.server.append()
        self.server.rotate()
        if self.make is IbbServer:
            self.server.append()  # a file that is not begun says nothing of what was before it
        self.publish()
        self.oldest = self.server.last
        self._remove_older()

    def restore(self) -> None:
        self.oldest = self.rng.randint(min(self.server.files), self.oldest) if self.oldest else 0
        self.publish()

    def reset(self) -> None:
        """RESET MASTER: the same server begins again, perhaps within the same second."""
        self._be(self.make(self.rng, started_at=self.server.started_at + self.rng.choice((0, 5))))
        for path in self.directory.iterdir():
            path.unlink()
        for _ in range(self.rng.randrange(3)):
            self.server.append()
        self.publish()

    def write_another_over_it(self) -> None:
        self._be(self.make(self.rng, server_id=self.rng.randrange(2, 9)))
        for _ in range(self.rng.randrange(12)):
            self.server.append(self.rng.choice((5, 400)))
        self.directory.mkdir(exist_ok=True)
        files = {self.path(number): data for number, data in self.server.files.items()}
        for path in self.directory.iterdir():
            if path not in files:
                path.unlink()
        for path, data in files.items():
            with path.open("r+b" if path.exists() else "wb") as file:
                file.write(data)
                file.truncate()
        self.is_whole = True

    def replace_by_a_copy(self) -> None:
        """As rsync does: what there is of the last file, and more, under its name at once."""
        self.server.append()
        self.publish()
        copy = self.directory / "copy"
        copy.write_bytes(self.server.files[self.server.last])
        copy.rename(self.path())

    def begin_again(self) -> None:
        self.publish()
        self.is_whole = False
        if self.rng.randrange(2):
            self.path().unlink()
        data = self.server.files[self.server.last]
        self.path().write_bytes(data[: self.rng.choice((0, 4, 100, 270, len(data) // 2, len(data) - 1))])

    def cut(self) -> None:
        self.publish()
        self.is_whole = False
        with self.path().open("r+b") as file:
            file.truncate(self.rng.randrange(len(self.server.files[self.server.last])))

    def remove(self) -> None:
        self.publish()
        self.is_whole = False
        self.path().unlink()

    def remove_all(self) -> None:
        self.is_whole = False
        if not self.directory.exists():
            return
        for path in self.directory.iterdir():
            path.unlink()
        self.directory.rmdir()

    def make_anew(self) -> None:
        self.directory.mkdir(exist_ok=True)
        self.reset() if self.rng.randrange(2) else self.write_another_over_it()

    def _be(self, server: Server) -> None:
        self.server, self.oldest = server, 0

    def _remove_older(self) -> None:
        for number in range(self.oldest):
            self.path(number).unlink(missing_ok=True)
