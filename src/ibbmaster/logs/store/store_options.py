"""The options of a store, and its status."""

from dataclasses import dataclass
from enum import IntEnum

from ibbmaster.errors import ConfigurationError
from ibbmaster.logs.log.limits import MAX_FILE_BYTES, OOB_PIECE_BYTES, STATE_INTERVAL_BYTES, LogLimits
from .redo_log import SEGMENT_BYTES_MIN

REDO_BYTES = 32 << 20
FIFO_PAGES_MAX = 1024  # 16 MiB


class Durability(IntEnum):
    """When a commit returns, as in `innodb_flush_log_at_trx_commit`. Readers only ever see durable groups."""

    LATER = 0  # at once; durable within a second
    SYNC = 1  # when it is durable
    WRITE = 2  # when the operating system has it; durable within a second


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Sizes are in bytes. With `is_sparse` new files take no room on the disk until they are filled. With
    `full_disk_retry_s` 0 a full disk is an error at once; else a writer waits for room. Files are purged when they are
    older than `expire_s`, or all of them larger than `max_total_bytes`, and at least `replicas_needed_for_purge`
    replicas are connected. With `gtid_strict` a group needs a newer GTID than every one of its domain in the log; gaps
    are allowed. Source: MariaDB 12.3, the variable gtid_strict_mode."""

    durability: Durability = Durability.SYNC
    max_file_bytes: int = MAX_FILE_BYTES
    state_interval_bytes: int = STATE_INTERVAL_BYTES
    oob_piece_bytes: int = OOB_PIECE_BYTES
    spill_bytes: int = OOB_PIECE_BYTES
    redo_bytes: int = REDO_BYTES
    fifo_pages_max: int = FIFO_PAGES_MAX
    is_sparse: bool = False
    full_disk_retry_s: float = 0.5
    expire_s: float | None = None
    max_total_bytes: int | None = None
    replicas_needed_for_purge: int = 1
    gtid_strict: bool = True

    def log_limits(self) -> LogLimits:
        """Raises ConfigurationError: a size is out of bounds."""
        if self.redo_bytes < 2 * SEGMENT_BYTES_MIN:
            raise ConfigurationError(f"a redo log of {self.redo_bytes} bytes: at least {2 * SEGMENT_BYTES_MIN}")
        return LogLimits(
            max_file_bytes=self.max_file_bytes,
            state_interval_bytes=self.state_interval_bytes,
            oob_piece_bytes=self.oob_piece_bytes,
            spill_bytes=self.spill_bytes,
        )


DEFAULT_OPTIONS = StoreOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """LSNs count bytes of the redo log."""

    state: str  # "running", "failed" or "closed"
    failure: str | None
    active_file: str
    end_offset: int  # in the active file, durable or not
    durable_file: str
    durable_offset: int
    lsn: int
    durable_lsn: int
    checkpoint_lsn: int
    pages_in_memory: int
    open_groups: int
    prepared: int
