"""A log to add many groups to: in bulk where files are all there is, through the store where there is a redo log.

Who appends to a log with a redo log and leaves that out, writes over groups that are in it
and not yet in the files, and leaves behind files that it does not fit any more.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedLog:
    """What groups are appended to; durable after `flush`."""

    in_bulk: BinlogWriter | None  # the writer of a log without a redo log
    is_new: bool  # there was no log before
    logged: LogEngine  # what was there before anything was written here, to be read until then
    state: GtidState  # what is logged so far; not to be changed or kept
    end: Callable[[], LogPosition]  # gives the first byte after the last record
    write_group: Callable[[Gtid, Buffer, Iterable[Buffer]], object]
    flush: Callable[[], None]


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
            yield _appended_to(store)
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
            yield AppendedLog(
                in_bulk=writer,
                is_new=writer.is_new,
                logged=BinlogDirectory(disk),
                state=writer.current_state,
                end=lambda: writer.end,
                write_group=writer.write_group,
                flush=writer.flush,
            )
    finally:
        behind.close()


def _appended_to(store: BinlogStore) -> AppendedLog:
    state = store.state()

    def write_group(gtid: Gtid, gtid_event: Buffer, body: Iterable[Buffer]) -> None:
        store.group_commit_ordered(store.write_direct_ordered(gtid, gtid_event, body))
        state.log(gtid)

    return AppendedLog(
        in_bulk=None, is_new=False, logged=store, state=state, end=store.end, write_group=write_group, flush=store.sync
    )
