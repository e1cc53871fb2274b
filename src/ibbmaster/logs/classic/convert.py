"""Writes groups of traditional binlog files, or of any log, into a directory of `.ibb` files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ibbmaster.errors import StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import PAIR_COLUMNS, Conversion, noted_gtids
from ibbmaster.kernel.loading import kernels
from ibbmaster.kernel.plain_memory import RowTable, numbers, scratch
from ibbmaster.logs.log.gtid_order import Overlap, is_newer
from ibbmaster.logs.log.limits import MAX_FILE_BYTES, STATE_INTERVAL_BYTES, LogLimits
from ibbmaster.logs.store.appending import AppendedLog, open_log
from ibbmaster.logs.store.redo_names import holds_log
from ibbmaster.logs.store.step_writer import Placer
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.interface import Disk
from ibbmaster.storage.ibb.file_name import format_file_name
from .binlog import ClassicReader
from .roles import kernel_roles
from .window import EventWindow

if TYPE_CHECKING:
    from .exporting import LogRead

PAIRS_MAX = 256
FAILURES_MAX = 6
RECORD_BYTES_MAX = 1 << 18  # the reference takes longer groups at little cost
PROGRESS_STEP_BYTES = 1 << 20


class BulkLog(Protocol):
    """A log that takes many groups in one piece, see `BinlogWriter` and `BinlogStore`."""

    limits: LogLimits

    @property
    def current_state(self) -> GtidState: ...
    def place(self, placer: Placer) -> Any: ...


class Window(Protocol):
    """What groups are read from: `EventWindow`, or packets of a dump."""

    position: int
    block_offset: int
    checksum_size: int
    packet_no: int
    head_bytes: int

    @property
    def block(self) -> Buffer: ...
    def extend(self) -> bool: ...


class GroupConverter:
    """Writes groups into a log as fast as a kernel finds them; the reference takes those that it leaves."""

    def __init__(self, log: BulkLog, kernels: Kernels) -> None:
        self.group_count = self.event_bytes = 0
        self.last_at = 0  # where in the window the last group began
        self.answer_at = 0  # above 0: where the last event that is to be acknowledged did
        self.ticket: Any = None  # of the last `place`
        self.is_cut = False  # what `take` left is no whole group
        self._log = log
        self._kernels = kernels
        self._numbers = numbers(Conversion.SIZE)
        self._pairs = RowTable(PAIRS_MAX, PAIR_COLUMNS)
        self._failures = 0
        self._to_skip = 0
        self._scratch = scratch(RECORD_BYTES_MAX)

    def take(self, window: Window, is_known: Callable[[int], bool]) -> tuple[Gtid, ...]:
        """Convert the groups at the beginning of a window that are of a pair in the log and newer than all of their
        domain, if that `is_known`; returns the last GTID of each pair. Raises StoreError: the log cannot be written."""
        if self._to_skip:
            self._to_skip -= 1
            return ()
        here = self._numbers
        taken, is_cut = self._convert(window, is_known)
        while is_cut and not taken and len(window.block) - window.position < RECORD_BYTES_MAX and window.extend():
            taken, is_cut = self._convert(window, is_known)
        self._failures = 0 if taken else min(self._failures + 1, FAILURES_MAX)
        self._to_skip = 2**self._failures - 1 if self._failures > 2 else 0
        self.is_cut = is_cut
        window.position, window.packet_no = here[Conversion.READ_AT], here[Conversion.NUMBER]
        self.last_at, self.answer_at = here[Conversion.LAST_AT], here[Conversion.ANSWER_AT]
        self.group_count += here[Conversion.NOTED]
        self.event_bytes += here[Conversion.EVENT_BYTES]
        return taken

    def _convert(self, window: Window, is_known: Callable[[int], bool]) -> tuple[tuple[Gtid, ...], bool]:
        """Also whether more bytes may complete the next group."""
        here, pairs = self._numbers, self._pairs
        is_cut = False

        def place(pages: Any, begin: int, end: int) -> tuple[int, tuple[Gtid, ...]]:
            nonlocal is_cut
            count = self._note_pairs(is_known)
            here[:] = numbers(Conversion.SIZE)
            here[Conversion.READ_AT], here[Conversion.SOURCE_OFFSET] = window.position, window.block_offset
            here[Conversion.CHECKSUM_BYTES], here[Conversion.PAIRS] = window.checksum_size, count
            here[Conversion.RECORD_MAX], here[Conversion.NUMBER] = self._log.limits.inline_size_max, window.packet_no
            here[Conversion.WRITE_AT], here[Conversion.WRITE_END] = begin, end
            here[Conversion.HEAD_BYTES] = window.head_bytes
            source: Any
            if count:
                with memoryview(window.block) as source:
                    found = self._kernels.convert_groups(
                        source, here, pairs.memory, kernel_roles(), self._scratch, pages
                    )
                is_cut = bool(found)
            return here[Conversion.WRITE_AT], noted_gtids(pairs.rows(count))

        self.ticket = self._log.place(place)
        return (noted_gtids(pairs.rows(here[Conversion.PAIRS])) if here[Conversion.NOTED] else ()), is_cut

    def _note_pairs(self, is_known: Callable[[int], bool]) -> int:
        state, pairs, count = self._log.current_state, self._pairs.memory, 0
        for gtid in state:
            if is_known(gtid.domain_id) and count < PAIRS_MAX:
                highest = state.highest_seq_no(gtid.domain_id) or 0
                row = gtid.domain_id, gtid.server_id, highest - (highest >> 63 << 64), 0
                for column, number in enumerate(row):
                    pairs[count, column] = number
                count += 1
        return count


class ImportReport(NamedTuple):
    """Sizes are in bytes; `gtid_state` is that of the whole log afterwards."""

    source_files: tuple[str, ...]
    ibb_files: tuple[str, ...]  # that the import wrote
    read_bytes: int  # of the files on disk
    group_count: int
    skipped_count: int
    event_bytes: int
    out_of_order_count: int  # of a primary without gtid_strict_mode
    restart_count: int  # server starts between files
    gtid_state: GtidState
    notices: tuple[str, ...]


def import_groups(
    source: ClassicReader | LogRead,
    disk: Disk,
    *,
    max_file_bytes: int = MAX_FILE_BYTES,
    state_interval_bytes: int = STATE_INTERVAL_BYTES,
    append: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Write every event group of a source into a directory.

    With `append` the directory may hold a log that the source continues; the same transactions, also as a replica logs
    them, are skipped, and nothing is written before that is known. A log with a redo log is recovered first: killed at
    any moment, it has all it had, and some of the import. GTIDs stay as they are. `progress` hears (bytes read, bytes
    in all). If a file is damaged, the groups before the damage are in the log, durable.

    Raises BusyError: another process has the directory; ClassicFormatError: a file is damaged, encrypted, or does not
    continue the one before; ConfigurationError: a size the format does not allow; EventError, FormatError: the log is
    damaged where it must be read; StoreError: the directory cannot be written, holds a log although `append` is not
    set, one that the source does not continue, or one with other groups."""
    if not append and holds_log(disk):
        raise StoreError(f"{disk} holds a binlog already: give an empty directory, or ask to append")
    with open_log(
        disk,
        initial_state=source.initial_state,
        max_file_bytes=max_file_bytes,
        state_interval_bytes=state_interval_bytes,
        gtid_strict=False,
    ) as log:
        if not append and not log.is_new:
            raise StoreError(f"{disk} holds a binlog already: another process has begun it just now")
        first_file_no = log.end().file_no
        counts = _Counts()
        converter: GroupConverter | None = None

        def take(window: EventWindow, overlap: Overlap) -> tuple[Gtid, ...]:
            nonlocal converter
            if converter is None and log.in_bulk is not None and (ready := kernels()) is not None:
                converter = GroupConverter(log.in_bulk, ready)
                seal: Any = ready.seal_pages
                log.in_bulk.seal_with(seal)
            return () if converter is None else converter.take(window, overlap.joined.__contains__)

        for group in _left(source, log, take, counts):
            gtid = group.gtid
            assert gtid is not None
            if not is_newer(log.state, gtid):
                counts.note_out_of_order(gtid, source.place(group.start))
            log.write_group(gtid, group.gtid_event, counts.counted(group))
            if progress is not None and source.bytes_read - counts.reported_bytes >= PROGRESS_STEP_BYTES:
                counts.reported_bytes = source.bytes_read
                progress(source.bytes_read, source.size_bytes)
        if converter is not None:
            counts.groups += converter.group_count
            counts.event_bytes += converter.event_bytes
        log.flush()
        last_file_no = log.end().file_no
        state = log.state.copy()
    if progress is not None:
        progress(source.size_bytes, source.size_bytes)
    return ImportReport(
        source_files=tuple(source.file_names),
        ibb_files=tuple(map(format_file_name, range(first_file_no, last_file_no + 1))),
        read_bytes=source.size_bytes,
        group_count=counts.groups,
        skipped_count=counts.skipped,
        event_bytes=counts.event_bytes,
        out_of_order_count=counts.out_of_order,
        restart_count=source.restart_count,
        gtid_state=state,
        notices=(*source.notices, *counts.notices()),
    )


def _left(
    source: ClassicReader | LogRead,
    log: AppendedLog,
    take: Callable[[EventWindow, Overlap], tuple[Gtid, ...]],
    counts: _Counts,
) -> Iterator[EventGroup]:
    """The groups that the log lacks, once they are known to continue it. Reads the source once, unless another domain
    was still compared when the first of them came: then again from that file on."""
    overlap = Overlap(log.logged, log.state, source.initial_state, source.place)
    early: int | None = None  # the file of the first to come before all domains were compared

    def take_all(window: EventWindow) -> tuple[Gtid, ...]:
        return take(window, overlap) if overlap.is_complete and early is None else ()

    for group in source.groups(take_all):
        if overlap.has(group):
            counts.skipped += 1
        elif early is None and overlap.is_complete:
            yield group
        elif early is None:
            early = group.start.file_no
        if early is not None and overlap.is_complete:
            break
    overlap.finish()
    if early is not None:
        rest = source.from_file(early)
        known = Overlap(log.logged, log.state, rest.initial_state, rest.place)
        for group in rest.groups(lambda window: take(window, known)):
            if not known.has(group, compares=False):
                yield group


@dataclass(slots=True)
class _Counts:
    groups: int = 0
    skipped: int = 0
    event_bytes: int = 0
    out_of_order: int = 0
    first_out_of_order: str = ""
    reported_bytes: int = 0

    def counted(self, group: EventGroup) -> Iterator[Buffer]:
        self.groups += 1
        self.event_bytes += len(group.gtid_event)
        for piece in group.body:
            self.event_bytes += len(piece)
            yield piece

    def note_out_of_order(self, gtid: Gtid, place: str) -> None:
        self.out_of_order += 1
        self.first_out_of_order = self.first_out_of_order or f"{gtid} at {place}"

    def notices(self) -> Iterator[str]:
        if self.out_of_order:
            yield (
                f"{self.out_of_order} groups are not newer than what their domain had, the first is "
                f"{self.first_out_of_order}: their primary ran without gtid_strict_mode, and they are kept as they are"
            )
