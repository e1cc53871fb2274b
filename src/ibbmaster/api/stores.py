"""The stores of logs that are written, from what users give for them."""

import logging
from datetime import datetime
from pathlib import Path
from typing import Literal, TypedDict

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.classic.packing import holds_classic_files
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.redo_names import holds_log
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.sizes import parse_size
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.place import local_place
from ibbmaster.storage.ibb.file_name import parse_file_name
from .log_files import PathLike, log_path

log = logging.getLogger(__name__)

Size = int | str  # bytes, or text as "64M"


class WritingOptions(TypedDict, total=False):
    """The defaults are those of `StoreOptions`, but files are sparse."""

    durability: Literal["sync", "write", "later"]
    max_file_bytes: Size
    state_interval_bytes: Size
    oob_piece_bytes: Size
    spill_bytes: Size
    redo_bytes: Size
    is_sparse: bool
    full_disk_retry_s: float
    expire_s: float | None
    max_total_bytes: Size | None
    replicas_needed_for_purge: int
    gtid_strict: bool


def store_options(options: WritingOptions) -> StoreOptions:
    """Raises ConfigurationError: one cannot be used as given."""
    given: dict[str, object] = {"is_sparse": True, **options}
    for name, value in given.items():
        if name.endswith("_bytes") and isinstance(value, str):
            given[name] = parse_size(value)
    durability = str(given.pop("durability", "sync"))
    if durability not in DURABILITIES:
        raise ConfigurationError(f"durability {durability!r}: expected one of {', '.join(DURABILITIES)}")
    made = StoreOptions(durability=DURABILITIES[durability], **given)  # type: ignore[arg-type]
    if made.expire_s is not None and not made.expire_s > 0:
        raise ConfigurationError(f"files that expire after {made.expire_s} s: expected a number of seconds above 0")
    if made.replicas_needed_for_purge < 0:
        raise ConfigurationError(
            f"{made.replicas_needed_for_purge} replicas needed to remove files: expected 0 or more"
        )
    return made


DURABILITIES: dict[str, Durability] = {member.name.lower(): member for member in Durability}


def existing_store(path: PathLike, options: WritingOptions) -> BinlogStore:
    """Recover and open it; errors as `ibbmaster.open` with `writable=True`."""
    where = local_place(log_path(path), "a log that is written")
    disk = RealDisk(where)
    if holds_classic_files(disk.list()):
        raise StoreError(
            f"{where} holds traditional binlog files, which are only read; `ibbmaster convert` copies them"
        )
    if not holds_log(disk):
        raise StoreError(f"{where}: no binlog files (binlog-000000.ibb and so on)")
    return opened_store(where, options)


def new_store(path: Path, options: WritingOptions, state: GtidState, *, exist_ok: bool) -> BinlogStore:
    """In a directory that is made if it is missing; errors as `ibbmaster.create`."""
    store_options(options).log_limits()  # what cannot be used shall leave no directory behind
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    disk = RealDisk(path)
    if holds_classic_files(disk.list()) or (holds_log(disk) and not exist_ok):
        raise StoreError(f"{path} holds a log already: ibbmaster.open(path, writable=True) continues one of .ibb files")
    return opened_store(path, options, state)


def opened_store(path: Path, options: WritingOptions, state: GtidState | None = None) -> BinlogStore:
    """Or begin one after `state`; errors as `existing_store`."""
    store = BinlogStore(RealDisk(path), store_options(options), initial_state=state)
    try:
        store.check_unbroken()
    except BaseException:
        store.close()
        raise
    log.info("%d redo records applied, %d transactions rolled back", store.replayed_records, store.rolled_back)
    return store


def purge_request(to: str | None, before: datetime | float | None, max_total: Size | None) -> PurgeRequest:
    """Of the arguments of `WritableLog.purge`; errors as there."""
    file_no = None if to is None else parse_file_name(to)
    if to is not None and file_no is None:
        raise ConfigurationError(f"{to!r}: expected the name of a file, as binlog-000012.ibb")
    return PurgeRequest(
        to_file_no=file_no,
        before=before.timestamp() if isinstance(before, datetime) else before,
        total_bytes=parse_size(max_total) if isinstance(max_total, str) else max_total,
    )
