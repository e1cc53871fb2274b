import errno
import itertools
import os
import random
import shutil
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest

from ibbmaster.errors import EventError, StoreError
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, HEADER, TYPE_OFFSET, decode_event_header, encode_event
from ibbmaster.replication.event.rows.changes import ChangeKind, RowDecoder, rows_of
from ibbmaster.replication.event.rows.encoding import encode_rows, encode_table_map, written_table
from ibbmaster.replication.event.rows.large import LargeRows
from ibbmaster.replication.event.rows.partial import FIXED, FLAG_WHOLE_SIZE, WHOLE_SIZE, PartialRows
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.table_map import decode_rows_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.spool import SCRATCH, Spool, scratch_directory

VALUE_BYTES = 64 << 20
ROWS = 17  # together more than 1 GiB
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
WRITTEN = 64  # bytes of a fragment that are not zero


def test_it_gives_what_it_took_as_one_buffer():
    rng = random.Random(3)
    pieces = [rng.randbytes(rng.randrange(5000)) for _ in range(50)]
    spool = Spool()
    for piece in pieces:
        spool.write(piece)
    whole = spool.whole()
    assert whole[:] == b"".join(pieces)
    assert (whole[7], whole[5:9]) == (b"".join(pieces)[7], b"".join(pieces)[5:9])


def test_a_disk_without_room_or_directory_is_an_error_that_says_where(monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    spool = Spool()
    monkeypatch.setattr(spool, "_file", Full())
    with pytest.raises(StoreError, match=r"No space left on device behind 0 bytes of a temporary file \(TMPDIR"):
        spool.write(b"x")
    monkeypatch.setattr("tempfile.tempdir", "/no/such/directory")
    with pytest.raises(StoreError, match="a temporary file is needed: No such file or directory"):
        Spool()


HOLDER = """
from ibbmaster.storage.disk.spool import scratch_directory
with scratch_directory() as place:
    (place / "segment").write_bytes(b"x")
    print(place, flush=True)
    input()
"""


def test_a_directory_of_a_killed_process_is_removed_by_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    holders = [
        subprocess.Popen([sys.executable, "-c", HOLDER], env={**os.environ, "TMPDIR": str(tmp_path)}, **PIPES)
        for _ in range(3)
    ]
    lives, ends, dies = holders
    places = [Path(holder.stdout.readline().strip()) for holder in holders]
    ends.communicate("\n")
    dies.kill()
    dies.communicate()
    assert [place.exists() for place in places] == [True, False, True]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{SCRATCH}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{SCRATCH}open").mkdir()
    (tmp_path / f"{SCRATCH}open").chmod(0o777)  # of whoever came first

    with scratch_directory() as place:
        assert [*place.iterdir()] == []
        assert [other.exists() for other in places] == [True, False, False]

    lives.communicate("\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", f"{SCRATCH}link", f"{SCRATCH}open"]


MAKERS = 4
MAKER = """
from ibbmaster.storage.disk.spool import scratch_directory
for number in range(200):
    with scratch_directory() as place:
        (place / "segment").write_bytes(b"x")
"""


def test_processes_that_make_directories_at_the_same_time_leave_each_other_theirs(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    makers = [subprocess.Popen([sys.executable, "-c", MAKER], env=environment) for _ in range(MAKERS)]
    assert [maker.wait() for maker in makers] == [0] * MAKERS
    assert [*tmp_path.iterdir()] == []


def test_a_directory_that_another_process_removes_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lock, removed = RealDisk.lock, []

    def late(disk):
        if len(removed) < 2:  # once before it is opened, once before it is locked
            removed.append(disk.directory)
            if len(removed) == 2:
                lock(disk)
            shutil.rmtree(disk.directory)
        if len(removed) != 2 or disk.directory not in removed:
            lock(disk)

    monkeypatch.setattr(RealDisk, "lock", late)
    with scratch_directory() as place:
        assert place.is_dir()
        assert place.parent not in removed
    assert [*tmp_path.iterdir()] == []


class SparseSpool(Spool):
    """Leaves holes where the bytes are zero: a test needs no gigabyte of disk."""

    def write(self, data):
        super().write(data[:WRITTEN])
        if len(data) > WRITTEN:
            self._file.truncate(self._file.seek(len(data) - WRITTEN, os.SEEK_CUR))
            self._size += len(data) - WRITTEN


class ZeroSpool(Spool):
    """Leaves holes for pieces that are all zero; knows the longest piece."""

    def __init__(self):
        super().__init__()
        self.longest = 0

    def write(self, data):
        self.longest = max(self.longest, len(data))
        if data.strip(b"\0"):
            super().write(data)
        elif len(data):
            self._file.truncate(self._file.seek(len(data), os.SEEK_CUR))
            self._size += len(data)


def compressed_rows(table):
    """A compressed row event of more than 1 GiB: the stream of one row of zeros, again and again."""
    row = table.image((7, b""))[:-4] + VALUE_BYTES.to_bytes(4, "little")
    packer = zlib.compressobj(1)
    packed = packer.compress(row) + packer.compress(bytes(VALUE_BYTES)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 1
    for _ in range(ROWS):
        checksum = zlib.adler32(bytes(VALUE_BYTES), zlib.adler32(row, checksum))
    stream = packed[:2] + packed[2:] * ROWS + b"\x03\0" + checksum.to_bytes(4, "big")  # the last block is empty
    size = ROWS * (len(row) + VALUE_BYTES)
    (small,) = encode_rows(table, ChangeKind.INSERT, [(None, table.image((0, b"")))], server_id=1, is_compressed=True)
    head = small[: decode_rows_header(small).rows_offset]
    body = head[EVENT_HEADER_SIZE:] + b"\x84" + size.to_bytes(4, "big") + stream
    return encode_event(event_type=EventType(small[TYPE_OFFSET]), body=body, server_id=1)


def fragments(table):
    """A row event of more than 1 GiB, a row in each fragment, each in the same buffer."""
    empty = table.image((0, b""))
    (small,) = encode_rows(table, ChangeKind.INSERT, [(None, empty)], server_id=1)
    head = small[: -len(empty)]
    size = len(head) + ROWS * (len(empty) + VALUE_BYTES)
    whole_head = HEADER.pack(*decode_event_header(small)._replace(size=size)) + head[EVENT_HEADER_SIZE:]
    fixed = FIXED.pack(ROWS, 1, FLAG_WHOLE_SIZE) + WHOLE_SIZE.pack(size) + whole_head
    row = table.image((1, b""))[:-4] + VALUE_BYTES.to_bytes(4, "little")
    yield encode_event(event_type=EventType.PARTIAL_ROW_DATA, body=fixed + row + bytes(VALUE_BYTES), server_id=1)
    body = FIXED.pack(ROWS, 2, 0) + row + bytes(VALUE_BYTES)
    event = bytearray(encode_event(event_type=EventType.PARTIAL_ROW_DATA, body=body, server_id=1))
    del body
    for number in range(2, ROWS + 1):
        FIXED.pack_into(event, EVENT_HEADER_SIZE, ROWS, number, 0)
        event[EVENT_HEADER_SIZE + FIXED.size : EVENT_HEADER_SIZE + FIXED.size + len(row)] = table.image((number, b""))[
            :-4
        ] + VALUE_BYTES.to_bytes(4, "little")
        yield event


def test_a_row_event_of_more_than_a_gigabyte_is_read_row_by_row():
    table = written_table("shop.files", {"id": "int not null", "body": "longblob"}, table_id=7)
    decoder = RowDecoder(decode_table_schema(encode_table_map(table, server_id=1)))
    partial = PartialRows(LargeRows(SparseSpool))
    tracemalloc.start()
    try:
        whole = next(filter(None, map(partial.take, fragments(table))))
        assert len(whole) > 1 << 30
        for number, change in zip(itertools.count(1), decoder.changes(whole)):
            assert change.after[0] == number
            assert len(change.after[1]) == VALUE_BYTES
        assert number == ROWS
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * VALUE_BYTES


def test_compressed_rows_of_more_than_a_gigabyte_are_unpacked_on_the_disk_piece_by_piece():
    event = compressed_rows(written_table("shop.files", {"id": "int not null", "body": "longblob"}, table_id=7))
    header, spools = decode_rows_header(event), []
    rows, start = rows_of(event, header, LargeRows(lambda: spools.append(ZeroSpool()) or spools[-1]))
    assert (len(spools), spools[0].longest, start) == (1, 1 << 20, 0)
    assert len(rows) > 1 << 30
    each = len(rows) // ROWS
    assert [rows[row * each + 1] for row in range(ROWS)] == [7] * ROWS  # behind the NULL bits
    with pytest.raises(EventError, match=r"a row event of 11408\d{5} bytes, put together or unpacked, and at most 107"):
        rows_of(event, header, LargeRows(ZeroSpool, size_max=1 << 30))


def test_a_decoder_reads_compressed_rows_from_the_disk():
    table = written_table("shop.files", {"id": "int not null", "body": "longblob"}, table_id=7)
    images = [(None, table.image((number, bytes(100)))) for number in range(50)]
    (event,) = encode_rows(table, ChangeKind.INSERT, images, server_id=1, is_compressed=True)
    decoder = RowDecoder(
        decode_table_schema(encode_table_map(table, server_id=1)), large=LargeRows(ZeroSpool, kept_max=1000)
    )
    assert [change.after for change in decoder.changes(event)] == [(number, bytes(100)) for number in range(50)]
