"""The redo log: two segments, written in turn, that make page files safe to write later.

Layout and rules: protocol/store/redo-log.md. Invariants:
- What was appended is durable after `sync`, in order: never a later record without an earlier one
  (test_what_was_synced_survives_and_what_was_not_may_not).
- A segment is begun anew only when a durable checkpoint covers all that was in it, and everything in the other one is
  durable (test_a_segment_is_not_used_again_before_a_checkpoint_covers_it).
- A life (one opening of the store) begins with a checkpoint that is durable before anything follows, so nothing
  continues what an earlier life left after the end
  (test_another_life_goes_on_where_the_last_ended_and_is_told_from_what_it_left).
- After an error of the disk nothing is written. A full disk is no error: the same bytes are written again, to the same
  place (test_an_error_of_the_disk_is_final, test_a_full_disk_is_no_error_and_the_same_bytes_are_written_later)."""

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ibbmaster.errors import DamageError, MissingFileError, StoreError
from ibbmaster.storage.codec.buffer import Buffer, is_zero
from ibbmaster.storage.disk.interface import Disk, ReadDisk
from .failure_latch import FailureLatch
from .group_commit import GroupCommit
from .redo_names import SEGMENT_NAMES
from .redo_record import (
    DURABLE_END,
    RECORD_HEADER,
    RECORDS_START,
    Checkpoint,
    Item,
    RedoRecord,
    XaEntry,
    decode_durable_end,
    decode_record,
    decode_segment_header,
    encode_change,
    encode_durable_end,
    encode_record,
    encode_segment_header,
)

DURABLE_END_NAME = "ibbmaster-durable-end"
FIRST_LSN = 8192
SEGMENT_BYTES_MIN = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoScan:
    """A redo log when a store is opened: `records` after the LSN of the last checkpoint, `checkpoint`, and `older` ones
    before it, whose changes are in the files; `notes` are the records after that of the checkpoint."""

    segment: int
    segment_bytes: int
    segment_lsn: int
    end_lsn: int
    life: int
    checkpoint: Checkpoint
    older: tuple[RedoRecord, ...]
    records: tuple[RedoRecord, ...]
    notes: tuple[RedoRecord, ...]


def scan_redo(disk: ReadDisk, *, replay_from: int | None = None, end_lsn: float = math.inf) -> RedoScan | None:
    """Read both segments; None if there is no redo log, or one that was never begun. `replay_from` counts instead of
    the last checkpoint where files are older. Only records before `end_lsn` count. Raises DamageError: a needed segment
    is not whole; StoreError: it cannot be read, or a newer version wrote it."""
    names = disk.list()
    segments: list[tuple[int, int, int, list[RedoRecord]]] = []  # LSN, number, size, records
    damaged = []
    for number, name in enumerate(SEGMENT_NAMES):
        if name not in names:
            continue
        data = memoryview(disk.read(name, 0, disk.size(name)))
        header = decode_segment_header(data)
        if header is None:
            if not is_zero(data[:RECORDS_START]):
                damaged.append(name)
            continue
        size, start_lsn = header
        records = [record for record in read_records(data[RECORDS_START:size], start_lsn) if record.end_lsn <= end_lsn]
        if records and records[0].is_checkpoint:
            segments.append((start_lsn, number, size, records))
    if not segments:
        if damaged:
            raise DamageError(f"{' and '.join(damaged)}: no redo log, and not empty either")
        return None
    segments.sort()
    start_lsn, number, size, newest = segments[-1]
    oldest_lsn, records = start_lsn, newest
    if len(segments) == 2 and segments[0][3][-1].end_lsn == start_lsn and segments[0][3][-1].life <= newest[0].life:
        oldest_lsn, records = segments[0][0], segments[0][3] + newest
    last = max(index for index, record in enumerate(records) if record.is_checkpoint)
    checkpoint = records[last].items()[0]
    assert isinstance(checkpoint, Checkpoint)
    first_lsn = checkpoint.lsn if replay_from is None else min(replay_from, checkpoint.lsn)
    if first_lsn < oldest_lsn:
        raise DamageError(
            f"{SEGMENT_NAMES[1 - number]}: changes from LSN {first_lsn} on are needed, and the redo log "
            f"can be read only from LSN {oldest_lsn} on"
        )
    return RedoScan(
        segment=number,
        segment_bytes=size,
        segment_lsn=start_lsn,
        end_lsn=records[-1].end_lsn,
        life=records[-1].life,
        checkpoint=checkpoint,
        older=tuple(record for record in records if record.lsn < first_lsn),
        records=tuple(record for record in records if record.lsn >= first_lsn),
        notes=tuple(records[last + 1 :]),
    )


def read_records(data: Buffer, lsn: int, life: int = 0) -> list[RedoRecord]:
    """The records of this life and later ones from the first byte on, which has this LSN."""
    records = []
    offset = 0
    while (record := decode_record(data, offset, lsn, life)) is not None:
        records.append(record)
        offset += record.end_lsn - lsn
        lsn, life = record.end_lsn, record.life
    return records


def read_durable_end(disk: ReadDisk) -> int | None:
    """The LSN before which a writer says that everything is durable; None without one, or while it is written."""
    try:
        return decode_durable_end(disk.read(DURABLE_END_NAME, 0, DURABLE_END.size))
    except MissingFileError:
        return None


class RedoLog:
    """The write side: `make_room` and the appends for one thread at a time; `write` and `sync` for any; nothing before
    `begin`. After each sync, before those who wait continue, calls `synced` with the durable LSN."""

    def __init__(
        self,
        disk: Disk,
        *,
        segment_bytes: int,
        scan: RedoScan | None = None,
        first_lsn: int = FIRST_LSN,
        latch: FailureLatch | None = None,
        synced: Callable[[int], object] = lambda lsn: None,
    ) -> None:
        assert segment_bytes >= SEGMENT_BYTES_MIN
        self._disk = disk
        self._wanted_bytes = segment_bytes
        self._synced = synced
        self._group_commit = GroupCommit(self._sync)
        self._sync_lock = threading.RLock()
        self._write_lock = threading.Lock()  # taken after `_sync_lock`
        self._buffer_lock = threading.Lock()
        self._buffer: list[bytes] = []  # records
        self._is_new = scan is None
        self._pending: tuple[int, Checkpoint] | None = None  # not durable yet; the LSN after it
        self.is_begun = False
        self._latch = latch or FailureLatch()
        if scan is None:
            self._use_segment(0, segment_bytes, first_lsn)
            self._life = 1
            self.end_lsn = first_lsn
            self.checkpoint = Checkpoint(lsn=first_lsn, end=None, xa=())
        else:
            self._use_segment(scan.segment, scan.segment_bytes, scan.segment_lsn)
            self._life = scan.life + 1
            self.end_lsn = scan.end_lsn
            self.checkpoint = scan.checkpoint
        self.written_lsn = self.durable_lsn = self.end_lsn

    def begin(self, checkpoint: Checkpoint) -> None:
        """Begin this life at the `checkpoint`, before which all is durable in the files. Raises as `make_room`."""
        assert not self.is_begun
        record = encode_record(self.end_lsn, self._life, [checkpoint])
        with self._latch.repeatable:
            if self._is_new:
                self._make_segments()
                self._begin_segment(0, self._wanted_bytes, record)
            elif self.end_lsn + len(record) <= self._segment_end_lsn:
                self._disk.write(SEGMENT_NAMES[self._segment], self._offset(self.end_lsn), record)
            else:
                assert self.checkpoint.lsn >= self._segment_lsn
                self._begin_segment(1 - self._segment, self._wanted_bytes, record)
            self._disk.sync(SEGMENT_NAMES[self._segment])
        self.end_lsn += len(record)
        self.written_lsn = self.durable_lsn = self.end_lsn
        self.checkpoint = checkpoint
        self.is_begun = True
        self._publish(encode_durable_end(self.end_lsn))

    def make_room(self, size: int, *, reserve: int, xa: Callable[[], tuple[XaEntry, ...]]) -> bool:
        """Have room for a record with `size` bytes of items, and for checkpoints of `reserve` bytes after it. False if
        a checkpoint must become durable first. `xa` gives the present table. Raises DiskFullError, StoreError."""
        needed = RECORD_HEADER.size + size + reserve
        if self.end_lsn + needed <= self._segment_end_lsn and self._latch.failure is None:
            return True
        self._latch.check()
        self._wanted_bytes = max(self._wanted_bytes, 2 * (RECORDS_START + needed + reserve))
        if self.checkpoint.lsn < self._segment_lsn:
            return False
        with self._sync_lock:
            self._sync()
            if self.checkpoint.lsn < self._segment_lsn:
                return False
            with self._write_lock, self._latch.repeatable:
                first = replace(self.checkpoint, xa=xa())
                record = encode_record(self.end_lsn, self._life, [first])
                self._begin_segment(1 - self._segment, self._wanted_bytes, record)
                with self._buffer_lock:
                    self.end_lsn += len(record)
                self.written_lsn = self.end_lsn
        return True

    def append(self, items: Iterable[Item]) -> int:
        """Append one record for which there is room; returns the LSN after it."""
        return self._append(encode_record(self.end_lsn, self._life, items))

    def append_change(self, file_no: int, page_no: int, page_offset: int, data: bytes) -> int:
        """As `append` of one change of a page that is not page 0."""
        return self._append(encode_change(self.end_lsn, self._life, file_no, page_no, page_offset, data))

    def _append(self, record: bytes) -> int:
        end_lsn = self.end_lsn + len(record)
        assert end_lsn <= self._segment_end_lsn
        with self._buffer_lock:
            self._buffer.append(record)
            self.end_lsn = end_lsn
        return end_lsn

    def append_checkpoint(self, checkpoint: Checkpoint) -> int:
        """Append into the room reserved for it; it counts once durable."""
        end_lsn = self.append([checkpoint])
        self._pending = end_lsn, checkpoint
        return end_lsn

    def write(self) -> None:
        """Hand everything appended to the operating system. Raises as `make_room`."""
        with self._write_lock:
            self._write()

    def sync(self, lsn: int) -> None:
        """Make every record before `lsn` durable; one sync serves all who wait. Raises as `write`."""
        self._group_commit.wait(lambda: lsn <= self.durable_lsn)

    @property
    def used_since_checkpoint(self) -> int:
        """Bytes of records that a recovery would read."""
        return self.end_lsn - self.checkpoint.lsn

    def _sync(self) -> None:
        with self._sync_lock:
            with self._write_lock:
                name = SEGMENT_NAMES[self._segment]
                self._write()
                written, pending = self.written_lsn, self._pending
            if written == self.durable_lsn:
                return
            durable_end = encode_durable_end(written)  # before the wait: after it others have the caches of the CPU
            try:
                self._disk.sync(name)
            except BaseException as error:
                self._latch.repeatable.hear(error)
                raise
            self._publish(durable_end)
            self._synced(written)
            self.durable_lsn = written
            if pending is not None and pending[0] <= written:
                self.checkpoint = pending[1]

    def _publish(self, durable_end: bytes) -> None:
        try:  # noqa: SIM105  # a context takes as long as the write
            self._disk.publish(DURABLE_END_NAME, durable_end)
        except StoreError:
            pass

    def _write(self) -> None:
        if self._latch.failure is not None:
            self._latch.check()
        with self._buffer_lock:
            records, self._buffer, end_lsn = self._buffer, [], self.end_lsn
        if records:
            data = records[0] if len(records) == 1 else b"".join(records)
            try:
                self._disk.write(SEGMENT_NAMES[self._segment], self._offset(self.written_lsn), data)
            except BaseException as error:
                with self._buffer_lock:
                    self._buffer[:0] = records
                self._latch.repeatable.hear(error)
                raise
            self.written_lsn = end_lsn

    def _begin_segment(self, number: int, size: int, record: bytes) -> None:
        name = SEGMENT_NAMES[number]
        if self._disk.size(name) < size:
            self._disk.allocate(name, size)
        self._disk.write(name, 0, encode_segment_header(size, self.end_lsn) + record)
        self._use_segment(number, size, self.end_lsn)

    def _make_segments(self) -> None:
        names = self._disk.list()
        for name in SEGMENT_NAMES:
            if name in names:
                self._disk.truncate(name, 0)  # of an earlier attempt
            else:
                self._disk.create(name)
            self._disk.allocate(name, self._wanted_bytes)
        self._publish(encode_durable_end(self.end_lsn))
        self._disk.sync_dir()

    def _use_segment(self, number: int, size: int, start_lsn: int) -> None:
        self._segment, self._segment_lsn = number, start_lsn
        self._segment_end_lsn = start_lsn + size - RECORDS_START

    def _offset(self, lsn: int) -> int:
        return RECORDS_START + lsn - self._segment_lsn
