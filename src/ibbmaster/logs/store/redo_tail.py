"""What a redo log adds to the files, for a process that only reads; it grows with the log.

Only records count that are before the place up to which a living writer says that the log is durable. The writer may
begin a segment anew while it is read: a record counts only with the next LSN and a right checksum. A reader that does
not find it scans again, from a later checkpoint on, which has brought the missed changes to the files."""

import contextlib
from collections.abc import Iterable

from ibbmaster.errors import MissingFileError
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.appender import PageChange
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from .page_fifo import PageFifo, VisiblePages
from .redo_log import RedoScan, read_records
from .redo_names import SEGMENT_NAMES
from .redo_record import RECORDS_START, SEGMENT_HEADER, Checkpoint, RedoRecord, Reset, decode_segment_header


class RedoTail:
    """Pages and end of a log, from a scan of its redo log on. One thread may follow while others read `pages`."""

    def __init__(self, disk: ReadDisk, scan: RedoScan) -> None:
        self._disk = disk
        self._fifo = PageFifo()
        self.reset_count = 0
        self.mark = scan.checkpoint.end or LOG_START
        self.pages = VisiblePages(disk, self._fifo, lambda: self.mark)
        self._segment, self._segment_lsn = scan.segment, scan.segment_lsn
        self.lsn, self._life = scan.end_lsn, scan.life
        if self.mark.page_offset:
            file_no, page_no = self.mark.file_no, self.mark.page_no
            with contextlib.suppress(MissingFileError):  # removed by a reset after the checkpoint
                page = disk.read(format_file_name(file_no), page_no * PAGE_SIZE, PAGE_SIZE)
                self._fifo.load_last(file_no, page_no, page, self.mark.page_offset)
        self._apply(scan.records)

    def follow(self, durable_lsn: int) -> bool:
        """Take what is durable now; False if a part of it is gone. Raises StoreError: it cannot be read."""
        while self.lsn < durable_lsn:
            start = RECORDS_START + self.lsn - self._segment_lsn
            data = self._disk.read(SEGMENT_NAMES[self._segment], start, durable_lsn - self.lsn)
            records = read_records(data, self.lsn, self._life)
            if records:
                self._apply(records)
                self.lsn, self._life = records[-1].end_lsn, records[-1].life
            elif not self._change_segment():
                return False
        return True

    def _change_segment(self) -> bool:
        other = 1 - self._segment
        header = decode_segment_header(self._disk.read(SEGMENT_NAMES[other], 0, SEGMENT_HEADER.size))
        if header is None or header[1] != self.lsn:
            return False
        self._segment, self._segment_lsn = other, self.lsn
        return True

    def _apply(self, records: Iterable[RedoRecord]) -> None:
        for record in records:
            items = record.items()
            changes = [item for item in items if isinstance(item, PageChange)]
            if any(isinstance(item, Reset) for item in items):
                self._fifo.clear()
                self.reset_count += 1
            if changes:
                self._fifo.place(changes, record.end_lsn)
                self.mark = _end_behind(changes[-1])
            for item in items:
                if isinstance(item, Checkpoint):
                    self._fifo.drop_before(item.lsn)


def _end_behind(change: PageChange) -> LogPosition:
    end = change.page_offset + len(change.data)
    if change.page_no and end < DATA_SIZE:
        return LogPosition.on_page(change.file_no, change.page_no, end)
    return LogPosition.on_page(change.file_no, change.page_no + 1)
