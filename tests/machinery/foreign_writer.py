"""Somebody else who writes the files of a log in a directory: a server, a copier, or both at once, in any order."""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid, GtidState

HEAD = Path(__file__).parents[2] / "fixtures" / "classic" / "10.11" / "checksum-switch" / "binlog.000005"
FLAGS_AT = 4 + 17  # of the first event
BASE = "bin"


def sealed(event: bytes) -> bytes:
    return event + struct.pack("<I", zlib.crc32(event))


@dataclass
class Server:
    """One that has written some files: all there is of them, whether or not it is in the directory."""

    rng: random.Random
    server_id: int = 1
    started_at: int = 1_700_000_000
    files: dict[int, bytearray] = field(default_factory=dict)  # by the number in their names
    groups: list[Gtid] = field(default_factory=list)
    state: GtidState = field(default_factory=GtidState)
    domains: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        self._begin(1)

    @property
    def last(self) -> int:
        return max(self.files)

    def append(self, size: int = 20) -> None:
        """One transaction."""
        domain_id = self.rng.choice(self.domains)
        seq_no = (self.state.highest_seq_no(domain_id) or 0) + 1
        gtid = Gtid(domain_id=domain_id, server_id=self.server_id, seq_no=seq_no)
        self._add(EventType.GTID, struct.pack("<QIB", seq_no, domain_id, 0) + bytes(6))
        self._add(160, self.rng.randbytes(size))  # ANNOTATE_ROWS
        self._add(EventType.XID, struct.pack("<Q", len(self.groups)))
        self.groups.append(gtid)
        self.state.log(gtid)

    def rotate(self) -> None:
        """End the file, and begin the next."""
        number = self.last + 1
        self._add(EventType.ROTATE, struct.pack("<Q", 4) + name_of(number).encode())
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


def name_of(number: int) -> str:
    return f"{BASE}.{number:06d}"


class Writer:
    """Brings what a server has written into a directory, as servers and copiers do."""

    def __init__(self, directory: Path, rng: random.Random) -> None:
        self.directory = directory
        self.rng = rng
        self.server = Server(rng)
        self.oldest = 1

    def path(self, number: int | None = None) -> Path:
        return self.directory / name_of(self.server.last if number is None else number)

    def publish(self) -> None:
        """Bring everything there; what is there already is only added to."""
        self.directory.mkdir(exist_ok=True)
        for number, data in self.server.files.items():
            if number >= self.oldest:
                self.grow(number, len(data))

    def grow(self, number: int, size: int) -> None:
        """Add to a file, up to a size; a flag at its head may change, too."""
        path, data = self.path(number), self.server.files[number]
        there = path.stat().st_size if path.exists() else 0
        with path.open("r+b" if there else "wb") as file:
            if there > FLAGS_AT:
                file.seek(FLAGS_AT)
                file.write(data[FLAGS_AT : FLAGS_AT + 1])
            file.seek(there)
            file.write(data[there:size])

    def append(self) -> None:
        self.server.append(self.rng.choice((5, 20, 300, 6000)))
        self.publish()

    def append_a_part(self) -> None:
        """A transaction that is not all there yet."""
        self.publish()
        there = len(self.server.files[self.server.last])
        self.server.append()
        self.grow(self.server.last, self.rng.randrange(there + 1, len(self.server.files[self.server.last])))

    def rotate(self) -> None:
        self.server.rotate()
        self.publish()

    def purge(self) -> None:
        """All before one of the files."""
        self.publish()
        self.oldest = self.rng.randint(self.oldest, self.server.last)
        self._remove_older()

    def rotate_and_purge(self) -> None:
        """All but the newest, at once."""
        self.server.append()
        self.server.rotate()
        self.publish()
        self.oldest = self.server.last
        self._remove_older()

    def reset(self) -> None:
        """RESET MASTER: the same server begins again, perhaps within the same second."""
        self._be(Server(self.rng, started_at=self.server.started_at + self.rng.choice((0, 5))))
        for path in self.directory.glob(f"{BASE}.*"):
            path.unlink()
        for _ in range(self.rng.randrange(3)):
            self.server.append()
        self.publish()

    def write_another_over_it(self) -> None:
        """Another server's log, written over the files in place; what is there of more files goes."""
        self._be(Server(self.rng, server_id=self.rng.randrange(2, 9)))
        for _ in range(self.rng.randrange(12)):
            self.server.append(self.rng.choice((5, 400)))
        for path in self.directory.glob(f"{BASE}.*"):
            if path != self.path(1):
                path.unlink()
        self.directory.mkdir(exist_ok=True)
        with self.path(1).open("r+b" if self.path(1).exists() else "wb") as file:
            file.write(self.server.files[1])
            file.truncate()

    def replace_by_a_copy(self) -> None:
        """As rsync does: what there is of the last file, and more, under its name at once."""
        self.server.append()
        self.publish()
        copy = self.directory / "copy"
        copy.write_bytes(self.server.files[self.server.last])
        copy.rename(self.path())

    def begin_again(self) -> None:
        """A copier begins the last file again, and comes a part of the way."""
        self.publish()
        if self.rng.randrange(2):
            self.path().unlink()
        data = self.server.files[self.server.last]
        self.path().write_bytes(data[: self.rng.choice((0, 4, 100, 270, len(data) // 2, len(data) - 1))])

    def cut(self) -> None:
        """The last file loses its end; then it grows again."""
        self.publish()
        with self.path().open("r+b") as file:
            file.truncate(self.rng.randrange(len(self.server.files[self.server.last])))

    def remove(self) -> None:
        """The last file goes, to come again."""
        self.publish()
        self.path().unlink()

    def remove_all(self) -> None:
        """The directory with all that is in it, for now."""
        for path in self.directory.iterdir():
            path.unlink()
        self.directory.rmdir()

    def make_anew(self) -> None:
        """Another log where the directory was removed, of another server, or the same one."""
        self.directory.mkdir(exist_ok=True)
        self.reset() if self.rng.randrange(2) else self.write_another_over_it()

    def _be(self, server: Server) -> None:
        self.server, self.oldest = server, 1

    def _remove_older(self) -> None:
        for number in range(1, self.oldest):
            self.path(number).unlink(missing_ok=True)
