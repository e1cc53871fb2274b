"""Traditional binlog files made into a directory of `.ibb` files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ibbmaster.classic.binlog import ClassicReader
from ibbmaster.classic.group_converter import GroupConverter
from ibbmaster.classic.overlap import Overlap, check_overlap
from ibbmaster.classic.series import find_series
from ibbmaster.classic.window import EventWindow
from ibbmaster.codec.buffer import Buffer
from ibbmaster.disk.interface import Disk
from ibbmaster.errors import StoreError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.kernel.loading import kernels
from ibbmaster.kernel.parts import KernelSet
from ibbmaster.log.gtid_order import is_newer
from ibbmaster.log.limits import MAX_FILE_BYTES, STATE_INTERVAL_BYTES
from ibbmaster.store.appending import open_log
from ibbmaster.store.redo_names import holds_log

PROGRESS_STEP_BYTES = 1 << 20  # of input between two calls of `progress`


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did. Sizes are in bytes; `gtid_state` is that of the whole log afterwards."""

    classic_files: tuple[str, ...]
    ibb_files: tuple[str, ...]  # from the one where the import began to the one where it ended
    read_bytes: int  # of the files as they are on disk
    group_count: int
    skipped_count: int  # groups the log had already
    event_bytes: int  # of the groups that were written
    out_of_order_count: int  # groups not newer than what their domain had: of a primary without gtid_strict_mode
    restart_count: int  # server starts between the files; the log does not show them
    gtid_state: GtidState
    notices: tuple[str, ...]


def import_classic(
    paths: Iterable[Path],
    disk: Disk,
    *,
    max_file_bytes: int = MAX_FILE_BYTES,
    state_interval_bytes: int = STATE_INTERVAL_BYTES,
    append: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Write every event group of traditional binlog files into a directory.

    With `append` the directory may hold a log that these files continue; groups it has
    already are skipped if they are equal, event for event; nothing is written before that is known. A log with
    a redo log is recovered first, and continued with it: killed at any moment, it has all it had, and some of
    what was imported. GTIDs are kept as they are, also where they go back or repeat. `progress` is called with
    (bytes read, bytes in all) from time to time.
    When a file turns out to be damaged, the groups before the damage are in the log, durable.

    Raises:
        BusyError: another process has the directory.
        ClassicFormatError: a file is damaged, encrypted, or does not continue the one before.
        ConfigurationError: a size the format does not allow.
        FormatError: the log in the directory is damaged where it must be read.
        StoreError: the directory cannot be written, holds a log although `append` is not
            set, or one that the files do not continue, or that has other groups than they have.
    """
    if not append and holds_log(disk):
        raise StoreError(f"{disk} holds a binlog already: give an empty directory, or ask to append")
    paths = tuple(paths)
    reader = ClassicReader(find_series(paths))
    with open_log(
        disk,
        initial_state=reader.initial_state,
        max_file_bytes=max_file_bytes,
        state_interval_bytes=state_interval_bytes,
        gtid_strict=False,
    ) as log:
        if not append and not log.is_new:
            raise StoreError(f"{disk} holds a binlog already: another process has begun it just now")
        first_file_no = log.end.file_no
        overlap = Overlap(log=log.state, classic=reader.initial_state)
        if not log.is_new:
            check_overlap(
                ClassicReader(find_series(paths)).groups(),
                log.logged,
                Overlap(log=log.state, classic=reader.initial_state),
            )
        counts = _Counts()

        converter: GroupConverter | None = None  # once the kernels are ready

        def take(window: EventWindow) -> tuple[Gtid, ...]:
            nonlocal converter
            if converter is None and log.in_bulk is not None and (ready := kernels(KernelSet.IMPORT)) is not None:
                converter = GroupConverter(log.in_bulk, ready)
            return () if converter is None else converter.take(window, overlap.joined_pairs(log.state))

        for group in reader.groups(take):
            gtid = group.gtid
            assert gtid is not None
            if overlap.has(gtid):
                counts.skipped += 1
            else:
                if not is_newer(log.state, gtid):
                    counts.note_out_of_order(gtid, reader.files[group.start.file_no].name, group.start.offset)
                log.write_group(gtid, group.gtid_event, counts.counted(group))
            if progress is not None and reader.bytes_read - counts.reported_bytes >= PROGRESS_STEP_BYTES:
                counts.reported_bytes = reader.bytes_read
                progress(reader.bytes_read, reader.size_bytes)
        if converter is not None:
            counts.groups += converter.group_count
            counts.event_bytes += converter.event_bytes
        log.flush()
        last_file_no = log.end.file_no
        state = log.state.copy()
    if progress is not None:
        progress(reader.size_bytes, reader.size_bytes)
    return ImportReport(
        classic_files=tuple(file.name for file in reader.files),
        ibb_files=tuple(map(format_file_name, range(first_file_no, last_file_no + 1))),
        read_bytes=reader.size_bytes,
        group_count=counts.groups,
        skipped_count=counts.skipped,
        event_bytes=counts.event_bytes,
        out_of_order_count=counts.out_of_order,
        restart_count=reader.restart_count,
        gtid_state=state,
        notices=(*reader.notices, *counts.notices()),
    )


@dataclass(slots=True)
class _Counts:
    """What was written so far, apart from what a converter has taken."""

    groups: int = 0
    skipped: int = 0
    event_bytes: int = 0
    out_of_order: int = 0
    first_out_of_order: str = ""
    reported_bytes: int = 0

    def counted(self, group: EventGroup) -> Iterator[Buffer]:
        """The body of a group that is written, and counted on the way."""
        self.groups += 1
        self.event_bytes += len(group.gtid_event)
        for piece in group.body:
            self.event_bytes += len(piece)
            yield piece

    def note_out_of_order(self, gtid: Gtid, file_name: str, offset: int) -> None:
        self.out_of_order += 1
        self.first_out_of_order = self.first_out_of_order or f"{gtid} at {file_name} {offset}"

    def notices(self) -> Iterator[str]:
        if self.out_of_order:
            yield (
                f"{self.out_of_order} groups are not newer than what their domain had, the first is "
                f"{self.first_out_of_order}: their primary ran without gtid_strict_mode, and they are kept as they are"
            )
