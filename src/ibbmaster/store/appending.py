"""A log to add many groups to: in bulk where files are all there is, through the store where there is a redo log.

Who appends to a log with a redo log and leaves that out, writes over groups that are in it
and not yet in the files, and leaves behind files that it does not fit any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from ibbmaster.codec.buffer import Buffer
from ibbmaster.disk.interface import Disk
from ibbmaster.disk.write_behind import WriteBehindDisk
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.log.directory import BinlogDirectory
from ibbmaster.log.interface import LogEngine
from ibbmaster.log.limits import MAX_FILE_BYTES, STATE_INTERVAL_BYTES
from ibbmaster.position import LogPosition
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.redo_names import has_redo_log
from ibbmaster.store.store_options import Durability, StoreOptions
from ibbmaster.store.writer import BinlogWriter


class AppendedLog(Protocol):
    """What groups are appended to; durable after `flush`.
    `in_bulk` is the writer of a log without a redo log. `is_new`: there was no log before."""

    @property
    def in_bulk(self) -> BinlogWriter | None: ...

    @property
    def is_new(self) -> bool: ...

    @property
    def logged(self) -> LogEngine:
        """What was there before anything was written here, to be read until then."""

    @property
    def state(self) -> GtidState:
        """What is logged so far; not to be changed or kept."""

    @property
    def end(self) -> LogPosition:
        """The first byte after the last record."""

    def write_group(self, gtid: Gtid, gtid_event: Buffer, body: Iterable[Buffer]) -> None: ...

    def flush(self) -> None: ...


@contextmanager
def open_log(
    disk: Disk,
    *,
    initial_state: GtidState | None = None,
    max_file_bytes: int = MAX_FILE_BYTES,
    state_interval_bytes: int = STATE_INTERVAL_BYTES,
    gtid_strict: bool = True,
) -> Iterator[AppendedLog]:
    """The log in a directory, recovered, or a new one; no other process can write there meanwhile.

    Raises:
        BusyError: another process has the directory.
        ConfigurationError: a size the format does not allow.
        DamageError, FormatError: the log is damaged where it must be read.
        StoreError: it cannot be read or written.
    """
    if has_redo_log(disk):
        options = StoreOptions(
            durability=Durability.LATER,
            max_file_bytes=max_file_bytes,
            state_interval_bytes=state_interval_bytes,
            is_sparse=True,
            full_disk_retry_s=0,
            gtid_strict=gtid_strict,
        )
        with BinlogStore(disk, options, initial_state=initial_state) as store:
            store.check_unbroken()
            yield _Store(store)
        return
    behind = WriteBehindDisk(disk)
    try:
        with BinlogWriter(
            behind,
            initial_state=initial_state,
            max_file_bytes=max_file_bytes,
            state_interval_bytes=state_interval_bytes,
            is_sparse=True,
            gtid_strict=gtid_strict,
        ) as writer:
            yield _Files(writer, BinlogDirectory(disk))
    finally:
        behind.close()


class _Files:
    def __init__(self, writer: BinlogWriter, logged: LogEngine) -> None:
        self.in_bulk = writer
        self.logged = logged
        self.is_new = writer.is_new
        self.flush = writer.flush

    @property
    def state(self) -> GtidState:
        return self.in_bulk.current_state

    @property
    def end(self) -> LogPosition:
        return self.in_bulk.end

    def write_group(self, gtid: Gtid, gtid_event: Buffer, body: Iterable[Buffer]) -> None:
        self.in_bulk.write_group(gtid, gtid_event, body)


class _Store:
    in_bulk = None
    is_new = False

    def __init__(self, store: BinlogStore) -> None:
        self._store = self.logged = store
        self.state = store.state()
        self.flush = store.sync

    @property
    def end(self) -> LogPosition:
        return self._store.end()

    def write_group(self, gtid: Gtid, gtid_event: Buffer, body: Iterable[Buffer]) -> None:
        self._store.group_commit_ordered(self._store.write_direct_ordered(gtid, gtid_event, body))
        self.state.log(gtid)
