"""Brings a directory to the state of its redo log, and finds where the log continues.

Applying is idempotent: recovery writes only what differs, and the next start does over what a crash interrupts. It
takes nothing from a file that the redo log covers, and changes nothing in one that it does not cover."""

from collections.abc import Iterable
from dataclasses import dataclass

from ibbmaster.errors import DamageError, FormatError, MissingFileError
from ibbmaster.logs.log.continuation import Continuation, find_continuation
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.interface import Disk
from ibbmaster.storage.ibb.appender import PageChange
from ibbmaster.storage.ibb.file_header import FileHeader, decode_file_header
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE, seal_page
from .redo_log import RedoScan, scan_redo
from .redo_record import Cut, Purge, RedoRecord, XaEntry
from .xa_table import XaTable, find_pending_xa

SALVAGE_ADVICE = "`ibbmaster recover DIR --salvage NEWDIR` writes everything that can be read to a new directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """If any record was replayed, everything in the files is durable."""

    scan: RedoScan | None
    end: Continuation | None
    xa: tuple[XaEntry, ...]
    replayed_records: int


def recover(disk: Disk, *, replay_from: int | None = None) -> Recovered:
    """Apply the redo log to the files, and find the end of the log. `replay_from`: the LSN of an earlier checkpoint,
    for files that are no newer. Raises as `replay`; FormatError: a page is damaged; StoreError: no log can be
    continued."""
    scan = scan_redo(disk, replay_from=replay_from)
    if scan is None:
        end = find_continuation(disk)
        xa = () if end is None else find_pending_xa(disk, end)
        return Recovered(scan=None, end=end, xa=xa, replayed_records=0)
    expected = replay(disk, scan)
    replayed = sum(not record.is_checkpoint for record in {*scan.records, *scan.notes})
    if expected is None:
        _check_never_begun(disk)
        return Recovered(scan=scan, end=None, xa=(), replayed_records=replayed)
    end = find_continuation(disk)
    if end is None:
        raise MissingFileError(f"{disk}: {format_file_name(expected.file_no)} is missing: the redo log ends in it")
    if end.position != expected:
        raise DamageError(
            f"the files end at {end.position}, and the redo log at {expected}: something else has written "
            f"here, or one of them is older. {SALVAGE_ADVICE}"
        )
    return Recovered(scan=scan, end=end, xa=table_of(scan).snapshot(), replayed_records=replayed)


def table_of(scan: RedoScan) -> XaTable:
    table = XaTable(scan.checkpoint.xa)
    for record in scan.notes:
        for item in record.items():
            if isinstance(item, XaEntry):
                table.apply(item)
    return table


def replay(disk: Disk, scan: RedoScan, *, is_alone: bool = False) -> LogPosition | None:
    """Apply a scan to the files; returns the end of the log. With `is_alone` the files are missing, or not those of the
    redo log: changes before the checkpoint count too, missing files are made, and pages that do not begin in it stay.
    Raises DamageError: files and redo log do not fit; StoreError."""
    steps = _Replay(disk, is_alone=is_alone)
    steps.apply((*scan.older, *scan.records) if is_alone else scan.records)
    return steps.end or scan.checkpoint.end


class _Replay:
    def __init__(self, disk: Disk, *, is_alone: bool) -> None:
        self._disk = disk
        self._is_alone = is_alone
        self._names = set(disk.list())
        self._headers: dict[int, FileHeader | None] = {}
        self._page: tuple[int, int] | None = None
        self._image = bytearray()
        self._touched: set[int] = set()
        self._cuts: dict[int, int] = {}
        self.end: LogPosition | None = None

    def apply(self, records: Iterable[RedoRecord]) -> None:
        records = list(records)
        resets = [index for index, record in enumerate(records) if record.is_reset]
        if resets:
            records = records[resets[-1] :]
            self._remove_before(None)
        for record in records:
            for item in record.items():
                if isinstance(item, PageChange):
                    self._change(record.lsn, item)
                elif isinstance(item, Cut):
                    self._cuts[item.file_no] = item.size_pages
                elif isinstance(item, Purge):
                    self._remove_before(item.first_file_no)
        self._finish_page()
        for file_no in sorted(self._touched | self._cuts.keys()):
            if format_file_name(file_no) in self._names or not self._is_alone:  # what was cut may have been purged
                self._finish_file(file_no)

    def _remove_before(self, first_file_no: int | None) -> None:
        """Finish a purge; or a reset, as the redo log has every file since then."""
        for name in sorted(self._names):
            file_no = parse_file_name(name)
            if file_no is not None and (first_file_no is None or file_no < first_file_no):
                self._disk.unlink(name)
                self._names.discard(name)
                self._touched.discard(file_no)
                self._cuts.pop(file_no, None)
        self._disk.sync_dir()

    def _change(self, lsn: int, change: PageChange) -> None:
        file_no, page_no, page_offset, data = change
        if page_no == 0:
            self._finish_page()
            self._begin_file(file_no, data)
            self.end = LogPosition.on_page(file_no, 1)
            return
        self._check_file(lsn, file_no)
        if (file_no, page_no) != self._page:
            self._finish_page()
            self._page, self._image = (file_no, page_no), bytearray()
        if page_offset == 0:
            self._image.clear()
        if page_offset != len(self._image) and self._is_alone:
            self._page = None
            return
        if page_offset != len(self._image):
            here = f"{format_file_name(file_no)} page {page_no} offset {page_offset}"
            raise DamageError(f"{here}: the redo log has this change, and not what comes before it on the page")
        self._image += data

    def _begin_file(self, file_no: int, page: bytes) -> None:
        header = decode_file_header(page, file_no=file_no)
        assert header is not None
        name = format_file_name(file_no)
        if name not in self._names:
            self._disk.create(name)
            self._disk.sync_dir()
            self._names.add(name)
        self._headers[file_no] = header
        self._write(file_no, 0, page)

    def _check_file(self, lsn: int, file_no: int) -> None:
        if self._is_alone:
            if (name := format_file_name(file_no)) not in self._names:
                self._disk.create(name)
                self._names.add(name)
            return
        if file_no not in self._headers:
            name = format_file_name(file_no)
            if name not in self._names:
                raise MissingFileError(f"{self._disk}: {name} is missing: the redo log has changes for it")
            self._headers[file_no] = decode_file_header(self._disk.read(name, 0, PAGE_SIZE), file_no=file_no)
        header = self._headers[file_no]
        if header is None or header.start_lsn > lsn:
            begun = "was never begun" if header is None else f"begins at LSN {header.start_lsn}"
            raise DamageError(
                f"{format_file_name(file_no)} {begun}, but the redo log has a change at LSN {lsn}: "
                "it belongs to other files"
            )

    def _finish_page(self) -> None:
        if self._page is None:
            return
        file_no, page_no = self._page
        end = len(self._image)
        page = self._image.ljust(PAGE_SIZE, b"\0")
        seal_page(page)
        self._write(file_no, page_no, bytes(page))
        self.end = (
            LogPosition.on_page(file_no, page_no, end) if end < DATA_SIZE else LogPosition.on_page(file_no, page_no + 1)
        )
        self._page = None

    def _write(self, file_no: int, page_no: int, page: bytes) -> None:
        name = format_file_name(file_no)
        self._touched.add(file_no)
        if self._disk.read(name, page_no * PAGE_SIZE, PAGE_SIZE) != page:
            self._disk.write(name, page_no * PAGE_SIZE, page)

    def _finish_file(self, file_no: int) -> None:
        name = format_file_name(file_no)
        header = self._headers.get(file_no)
        size = self._disk.size(name)
        if file_no in self._cuts:
            wanted = self._cuts[file_no] * PAGE_SIZE
            if size > wanted:
                self._disk.truncate(name, wanted)
        elif header is not None and size < header.size_pages * PAGE_SIZE:
            self._disk.allocate(name, header.size_pages * PAGE_SIZE)
        self._disk.sync(name)


def _check_never_begun(disk: Disk) -> None:
    """The redo log knows of no file: then none may have data."""
    for name in disk.list():
        file_no = parse_file_name(name)
        if file_no is not None:
            try:
                is_blank = decode_file_header(disk.read(name, 0, PAGE_SIZE).ljust(512, b"\0"), file_no=file_no) is None
            except FormatError:
                is_blank = False
            if not is_blank:
                raise DamageError(f"{name} has data, but the redo log is that of a log that was never begun")
