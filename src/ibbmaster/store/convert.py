"""Traditional binlog files made into a directory of `.ibb` files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.kernel.loading import kernels
from ibbmaster.store.classic import ClassicReader
from ibbmaster.store.classic_window import EventWindow
from ibbmaster.store.disk import Disk
from ibbmaster.store.group_converter import GroupConverter
from ibbmaster.store.log_shape import MAX_FILE_BYTES, STATE_INTERVAL_BYTES
from ibbmaster.store.write_behind import WriteBehindDisk
from ibbmaster.store.writer import BinlogWriter

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
    already are passed over. `progress` is told (bytes read, bytes in all) from time to time.
    When a file turns out to be damaged, the groups before the damage are in the log, durable.

    Raises:
        ClassicFormatError: a file is damaged, encrypted, or does not continue the one before.
        ConfigurationError: a size the format does not allow.
        FormatError: the log in the directory is damaged where it must be read.
        StoreError: the directory cannot be written, holds a log although `append` is not
            set, or one that the files do not continue.
    """
    if not append and any(parse_file_name(name) is not None for name in disk.list()):
        raise StoreError(f"{disk} holds a binlog already: give an empty directory, or ask to append")
    reader = ClassicReader(paths)
    group_count = skipped_count = event_bytes = 0
    reported_bytes = 0

    def counted(body: Iterator[Buffer]) -> Iterator[Buffer]:
        nonlocal event_bytes
        for piece in body:
            event_bytes += len(piece)
            yield piece

    with (
        closing(WriteBehindDisk(disk)) as behind,
        BinlogWriter(
            behind,
            initial_state=reader.initial_state,
            max_file_bytes=max_file_bytes,
            state_interval_bytes=state_interval_bytes,
            is_sparse=True,
        ) as writer,
    ):
        first_file_no, _ = writer.end
        joint = _Joint(log=writer.state, classic=reader.initial_state)
        converter: GroupConverter | None = None  # once the kernels are ready

        def take(window: EventWindow) -> tuple[Gtid, ...]:
            nonlocal converter
            if converter is None:
                ready = kernels()
                if ready is None:
                    return ()
                converter = GroupConverter(writer, ready)
            return converter.take(window, (gtid for gtid in writer.state if gtid.domain_id in joint.joined))

        for group in reader.groups(take):
            gtid = group.gtid
            assert gtid is not None
            if joint.has(gtid):
                skipped_count += 1
            else:
                writer.write_group(gtid, group.gtid_event, counted(group.body))
                group_count += 1
                event_bytes += len(group.gtid_event)
            if progress is not None and reader.bytes_read - reported_bytes >= PROGRESS_STEP_BYTES:
                reported_bytes = reader.bytes_read
                progress(reported_bytes, reader.size_bytes)
        if converter is not None:
            group_count += converter.group_count
            event_bytes += converter.event_bytes
        writer.flush()
        last_file_no, _ = writer.end
        state = writer.state
    if progress is not None:
        progress(reader.size_bytes, reader.size_bytes)
    return ImportReport(
        classic_files=tuple(file.name for file in reader.files),
        ibb_files=tuple(map(format_file_name, range(first_file_no, last_file_no + 1))),
        read_bytes=reader.size_bytes,
        group_count=group_count,
        skipped_count=skipped_count,
        event_bytes=event_bytes,
        restart_count=reader.restart_count,
        gtid_state=state,
        notices=tuple(reader.notices),
    )


class _Joint:
    """Where the files meet the log they are added to, domain by domain.

    A domain is joined once the files have logged exactly what the log holds of it. Groups
    before that must be in the log already.
    """

    def __init__(self, *, log: GtidState, classic: GtidState) -> None:
        self._log = log
        self._classic = classic.copy()
        self.joined: set[int] = set()

    def has(self, gtid: Gtid) -> bool:
        """Whether the log has the next group of the files already.

        Raises:
            StoreError: it neither has the group nor ends right before it.
        """
        domain_id = gtid.domain_id
        if domain_id in self.joined:
            return False
        log, classic = _domain(self._log, domain_id), _domain(self._classic, domain_id)
        if log == classic:
            self.joined.add(domain_id)
            return False
        seq_no = self._log.seq_no(domain_id, gtid.server_id)
        if seq_no is None or seq_no < gtid.seq_no:
            raise StoreError(
                f"the log ends at GTID state [{log}] in domain {domain_id}, but before {gtid} the files are at "
                f"[{classic}]: they do not continue it"
            )
        self._classic.log(gtid)
        return True


def _domain(state: GtidState, domain_id: int) -> GtidState:
    return GtidState(gtid for gtid in state if gtid.domain_id == domain_id)
