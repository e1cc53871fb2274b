"""A log to add many groups to: in bulk where it has files alone, through the store where it has a redo log, with which
files appended in bulk would not fit."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Unpack

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.interface import Disk
from ibbmaster.storage.disk.write_behind import WriteBehindDisk
from .binlog_store import BinlogStore
from .redo_names import has_redo_log
from .step_writer import LogSizes
from .store_options import Durability, StoreOptions
from .writer import BinlogWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedLog:
    """A log to append groups to; durable after `flush`."""

    in_bulk: BinlogWriter | None
    is_new: bool
    logged: LogEngine  # as it was before, readable until the first write
    state: GtidState  # not to be changed or kept
    end: Callable[[], LogPosition]
    write_group: Callable[[Gtid, Buffer, Iterable[Buffer]], object]
    flush: Callable[[], None]


@contextmanager
def open_log(
    disk: Disk, *, initial_state: GtidState | None = None, gtid_strict: bool = True, **sizes: Unpack[LogSizes]
) -> Iterator[AppendedLog]:
    """The log in a directory, recovered, or a new one; locks it. `sizes` are those of `LogLimits`. Raises as
    `BinlogStore`."""
    if has_redo_log(disk):
        options = StoreOptions(
            durability=Durability.LATER, is_sparse=True, full_disk_retry_s=0, gtid_strict=gtid_strict
        )
        with BinlogStore(disk, replace(options, **sizes), initial_state=initial_state) as store:
            store.check_unbroken()
            yield _appended_to(store)
        return
    behind = WriteBehindDisk(disk)
    try:
        with BinlogWriter(
            behind, initial_state=initial_state, is_sparse=True, gtid_strict=gtid_strict, **sizes
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
