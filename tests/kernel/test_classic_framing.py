"""The kernel that frames traditional files gives the packets of the careful path, and stops where that decides."""

import random
from pathlib import Path

import numpy as np
import pytest

from ibbmaster.errors import ClassicFormatError
from ibbmaster.gtid import GtidPosition
from ibbmaster.kernel import loading
from ibbmaster.kernel.calls import Framing
from ibbmaster.kernel.fields import LEAVES_OUT_ANNOTATE, LEAVES_OUT_MARKED, PAIR_COLUMNS, Field, Status
from ibbmaster.logs.classic.groups import ClassicFileReader
from ibbmaster.logs.classic.roles import kernel_roles
from ibbmaster.logs.classic.series import find_series
from ibbmaster.logs.classic.stored_file import StoredFileReader
from ibbmaster.replication.dump.framing import EventFramer
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.dump.rewriting import Rewriter
from ibbmaster.replication.event.format_description import ChecksumAlgorithm

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic"
FILES = sorted(
    path for path in CLASSIC.glob("*/*/binlog.0*") if path.suffix[1:].isdigit() and "encrypted" not in path.parts
)
OPTIONS = [{}, {"wants_annotate_rows": False, "leaves_out_marked": True}, {"has_semi_sync": True}]
GTID, GTID_LIST, STOP, QUERY, ROWS, ANNOTATE, XID, CHECKPOINT = 162, 163, 3, 2, 23, 160, 16, 161
WINDOW_MAX = 1 << 20
OUT = np.zeros(576 * 1024, dtype=np.uint8)


@pytest.fixture(autouse=True)
def _kernels():
    loading.load()


class Careful:
    """The packets of all groups of a file, and of the checkpoints between them, as far as the careful path comes."""

    def __init__(self, path, profile, **options):
        [file] = find_series([path])
        reader = StoredFileReader(file) if profile.startswith("classic") else ClassicFileReader(file)
        self.checksum_bytes = reader.window.checksum_size
        request = DumpRequest(
            replica_server_id=9, position=GtidPosition(), **{"capability": 4, "wants_annotate_rows": True, **options}
        )
        algorithm = ChecksumAlgorithm.CRC32 if self.checksum_bytes else ChecksumAlgorithm.NONE
        rewriter = Rewriter(request, PROFILES[profile].of_files(algorithm))
        framer = EventFramer(rewriter, has_semi_sync=request.has_semi_sync)
        self.packets = bytearray()
        self.gtids = []
        try:
            groups = reader.items() if profile.startswith("classic") else reader.groups()
            self.start = None
            for group in groups:
                is_sent = group is not None and (group.gtid is not None or group.gtid_event[4] == CHECKPOINT)
                if self.start is None and group is not None and not is_sent:
                    continue  # the head of the file
                if not is_sent:
                    break  # the end of the file
                if self.start is None:
                    self.start = group.start.offset
                    rewriter.begin_at(self.start)
                for piece in framer.frame_group(group.gtid_event, group.body):
                    self.packets += piece
                if group.gtid is not None:
                    self.gtids.append(group.gtid)
        except ClassicFormatError:
            pass
        finally:
            reader.close()
        self.start = reader.window.offset if self.start is None else self.start
        self.positions = rewriter.position, rewriter.last_position
        self.sequence = framer.sequence


class Fast:
    """The same by the kernel, from windows of sizes that `chance` chooses; it ends where no window helps."""

    def __init__(self, data, careful, profile, rng, *, segments=0, **options):
        state = np.zeros(Field.SIZE, dtype=np.int64)
        prefix = b"\0\xef\0" if options.get("has_semi_sync") else b"\0"
        state[Field.SEQUENCE], state[Field.PREFIX_SIZE] = 1, len(prefix)
        state[Field.FILTERS] = (0 if options.get("wants_annotate_rows", True) else LEAVES_OUT_ANNOTATE) | (
            LEAVES_OUT_MARKED if options.get("leaves_out_marked") else 0
        )
        state[Field.CHECKSUM_BYTES] = careful.checksum_bytes
        state[Field.IS_STORED] = profile.startswith("classic")
        state[Field.FILE_SIZE] = len(data)
        state[Field.POSITION], state[Field.LAST_POSITION] = careful.start, 4
        self.state = state
        self.packets = bytearray()
        self.groups = self.large_groups = 0
        self.offset = careful.start
        self._data = data
        self._kernels = loading.load()
        self._segments = np.zeros((segments, 3), dtype=np.int64)
        self._prefix = np.frombuffer(bytearray(prefix.ljust(8)), dtype=np.uint8)
        wanted = 0
        while self.offset < len(data):
            size = wanted or rng.choice([100, 1000, 10_000, 1 << 18])
            status, advanced = self._frame(size)
            if status == Status.DONE:
                self.large_groups += 1
                state[Field.IN_PARTS] = 0
            if advanced:
                wanted = 0
            elif status == Status.FULL and not state[Field.IN_PARTS]:
                state[Field.IN_PARTS] = 1
            elif len(data) - self.offset <= size or status == Status.FALLBACK:
                break
            elif size < WINDOW_MAX:
                wanted = min(4 * size, WINDOW_MAX)
            else:
                state[Field.IN_PARTS] = 1
        self.positions = int(state[Field.POSITION]), int(state[Field.LAST_POSITION])
        self.sequence = int(state[Field.SEQUENCE])

    def _frame(self, size):
        state = self.state
        window = np.frombuffer(bytearray(self._data[self.offset : self.offset + size]), dtype=np.uint8)
        state[Field.READ_AT], state[Field.SOURCE_OFFSET] = 0, self.offset
        state[Field.OUT] = state[Field.PAIRS] = 0
        pairs, table = np.zeros((64, PAIR_COLUMNS), dtype=np.int64), np.zeros((0, 3), dtype=np.int32)
        framing = Framing(state, OUT[:0], OUT[:0], self._prefix, pairs, table, OUT, self._segments)
        no_skips = np.zeros((0, 3), dtype=np.int64)
        status = self._kernels.frame_classic(window, len(window), framing, kernel_roles(), no_skips)
        assert int(state[Field.OUT] + state[Field.SEGMENT_BYTES]) <= len(OUT)
        position = 0
        for at, start, length in self._segments[: state[Field.SEGMENTS]].tolist():
            self.packets += OUT[position:at].tobytes() + window[start : start + length].tobytes()
            position = at
        self.packets += OUT[position : int(state[Field.OUT])].tobytes()
        self.groups += int(state[Field.GROUPS])
        advanced = int(state[Field.READ_AT])
        self.offset += advanced
        return Status(status), advanced


def check_same(path, data, profile, rng, segments=0, **options):
    """Both ways give the same of a file."""
    careful = Careful(path, profile, **options)
    fast = Fast(data, careful, profile, rng, segments=segments, **options)
    assert fast.packets == careful.packets
    assert fast.groups == len(careful.gtids)
    assert fast.sequence == careful.sequence
    if profile.startswith("classic"):  # the others carry no positions
        assert fast.positions == careful.positions


@pytest.mark.parametrize("path", FILES, ids=lambda path: "-".join(path.parts[-3:]))
def test_files_of_real_servers(path):
    rng = random.Random(str(path))
    data = path.read_bytes()
    for profile in PROFILES:
        check_same(path, data, profile, rng, segments=rng.choice([0, 40]), **rng.choice(OPTIONS))


def write_file(path, file, groups):
    """A file that a server has closed; each group is a list of event types and bodies behind its GTID event."""
    file.add(GTID_LIST, bytes(4))
    for seq_no, (flags, events) in enumerate(groups, 1):
        file.begin_group(seq_no, flags)
        for event in events:
            file.add(*event[:2], flags=event[2] if len(event) > 2 else 0)
    file.add(STOP, b"")
    path.write_bytes(file.data)
    return bytes(file.data)


@pytest.mark.parametrize("with_checksums", [True, False])
def test_groups_and_events_of_any_size(memory_path, new_classic_file, with_checksums):
    """Pieces of large events end at packets, and the checksum of one may be cut by that."""
    rng = random.Random(3)
    path = memory_path / "binlog.000001"
    for size in [0xFFFFFF - 20 + step for step in range(-5, 3)] + [600_000, 2 * 0xFFFFFF - 24]:
        query = bytes(13) + b"\0" + rng.choice([b"COMMIT", b"ROLLBACK", b"COMMITS", b"commit"])
        groups = [
            (0, [(ANNOTATE, bytes(700_000)), (ROWS, rng.randbytes(size)), (ROWS, b"1", 0x8000), (XID, bytes(8))]),
            (0, [*((ROWS, bytes(rng.randrange(20_000))) for _ in range(100)), (XID, bytes(8))]),
            (1, [(QUERY, bytes(600_000))]),
            (0, [(QUERY, query), (ROWS, bytes(8180 + size % 40)), (XID, bytes(8))]),
        ]
        file = new_classic_file(with_checksums=with_checksums)
        data = write_file(path, file, [group for group in groups if size % 2 or group[0]])
        for profile in ("engine", "classic-10.11", "classic-11.8"):
            check_same(path, data, profile, rng, segments=rng.choice([0, 40]), **rng.choice(OPTIONS))


@pytest.mark.parametrize("name", ["11.8/ddl-trx-xa", "10.11/ddl-trx-xa-none-compressed"])
def test_a_damaged_file_gives_what_the_careful_path_gives_before_it_stops(memory_path, name):
    rng = random.Random(random.randrange(2**32))
    whole = (CLASSIC / name / "binlog.000001").read_bytes()
    path = memory_path / "binlog.000001"
    for index in range(150):
        data = bytearray(whole[: rng.randrange(400, len(whole))] if index % 3 == 0 else whole)
        if index % 3:
            data[rng.randrange(400, len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        check_same(path, data, "classic-11.8", rng)
