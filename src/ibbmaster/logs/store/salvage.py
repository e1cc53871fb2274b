"""Writes all that can be read of a directory to a new one.

The directory may be one that no start accepts: with damaged pages, missing files, or files and a redo log that do not
fit together. It is only read, twice: as the redo log makes it, and, from the first page that the redo log changes on,
as the files alone have it. A group in both is written once."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ibbmaster.errors import FormatError, IbbMasterError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.continuation import find_continuation
from ibbmaster.logs.log.damaged_log import DamagedLog, Loss
from ibbmaster.logs.log.gtid_order import BEHIND, is_newer
from ibbmaster.logs.log.limits import MAX_FILE_BYTES, STATE_INTERVAL_BYTES, LogLimits
from ibbmaster.logs.log.out_of_band import OutOfBandReader
from ibbmaster.logs.log.pages import PageReader
from ibbmaster.logs.log.states import FULL_STATE_PAGE, read_state_record
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.split import EventSplitter
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.interface import Disk
from ibbmaster.storage.disk.overlay import OverlayDisk
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from .binlog_store import BinlogStore
from .recovery import replay, table_of
from .redo_log import RedoScan, scan_redo
from .redo_record import XaEntry
from .step_writer import LogSizes
from .store_options import StoreOptions
from .writer import BinlogWriter
from .xa_table import find_pending_xa, xid_text

PAGES_BEFORE = 1024  # before the redo log's first change: a record may reach it
SEEN_MAX = 200_000  # groups before the redo log that are recognized by content


@dataclass(slots=True)
class SalvageReport:
    """`group_count` groups are in the new log, `duplicates` were in the old one twice or more. `conflict_count` are in
    a log of their own, as the new log has other groups of their domain that are as new."""

    group_count: int = 0
    duplicates: int = 0
    conflict_count: int = 0
    prepared_count: int = 0
    gtid_state: GtidState = field(default_factory=GtidState)
    losses: list[Loss] = field(default_factory=list)


def salvage(source: Disk, target: Disk, conflicts: Callable[[], Disk]) -> SalvageReport:
    """Write the readable part of `source` to the empty `target`, and what has no place there to `conflicts`. Raises
    BusyError: another process writes there; StoreError: `target` cannot be written, or nothing can be read."""
    if target.list():
        raise StoreError(f"{target} is not empty: give a new directory")
    source.lock()
    try:
        return _Salvage(source).run(target, conflicts)
    finally:
        source.close()


class _UnreadableError(Exception):
    """The body of a group cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Views:
    """`main` up to `end`, and `extra`, which differs from `shared_from` on."""

    main: Disk
    extra: Disk | None = None
    scan: RedoScan | None = None
    end: LogPosition | None = None
    shared_from: LogPosition | None = None  # a page


def _first_change(overlay: OverlayDisk, end: LogPosition | None) -> LogPosition | None:
    """A record that the overlay changes may begin on this page."""
    changes = [
        LogPosition.on_page(file_no, pages[0])
        for name in overlay.changed_files
        if (file_no := parse_file_name(name)) is not None and (pages := overlay.changed_pages(name))
    ]
    if end is not None:  # the files may go on after it
        changes.append(LogPosition.on_page(end.file_no, end.page_no))
    if not changes:
        return None
    first = min(changes)
    file_no, page_no = first.file_no, first.page_no
    before = format_file_name(file_no - 1)
    if page_no > PAGES_BEFORE or file_no == 0 or before not in overlay.list():
        return LogPosition.on_page(file_no, max(FULL_STATE_PAGE, page_no - PAGES_BEFORE))
    last_page_no = overlay.size(before) // PAGE_SIZE
    return LogPosition.on_page(file_no - 1, max(FULL_STATE_PAGE, last_page_no - PAGES_BEFORE))


def _initial_state(disk: Disk, first: LogPosition) -> GtidState:
    try:
        record = read_state_record(PageReader(disk), first.file_no, first.page_no)
    except IbbMasterError:
        record = None  # reading its groups lists the page
    return GtidState() if record is None else GtidState(record.gtids)


class _Salvage:
    def __init__(self, source: Disk) -> None:
        self._source = source
        self._report = SalvageReport()
        self._seen: dict[bytes, None] = {}
        self._gtids: set[Gtid] = set()
        self._views_found = _Views(main=source)
        self._is_extra = False
        self._conflict_log: BinlogWriter | None = None
        self._open_losses: list[Loss] = []
        self._latest = ""
        self._sizes: LogSizes = {}

    def run(self, target: Disk, conflicts: Callable[[], Disk]) -> SalvageReport:
        report = self._report
        views = self._views()
        log = DamagedLog(views.main, self._note)
        if log.first is None:
            raise StoreError(f"{self._source}: no binlog files (binlog-000000.ibb and so on), and none in a redo log")
        self._sizes = _sizes_of(views.main, log)
        state = _initial_state(views.main, log.first)
        with BinlogWriter(target, initial_state=state, is_sparse=True, gtid_strict=False, **self._sizes) as writer:
            for group in log.groups(log.first, end=views.end):
                self._take(group, log, writer)
            if views.extra is not None and views.shared_from is not None:
                self._is_extra = True
                extra = DamagedLog(views.extra, self._note)
                for group in extra.groups(views.shared_from):
                    self._take_extra(group, extra, writer, conflicts)
                self._is_extra = False
            report.gtid_state = writer.state
        if self._conflict_log is not None:
            self._conflict_log.close()
        self._take_prepared(views.scan, views.main, target)
        return report

    def _views(self) -> _Views:
        try:
            scan = scan_redo(self._source)
        except IbbMasterError as error:
            self._note(Loss(reason=f"the redo log cannot be read: {error}"))
            return _Views(main=self._source)
        if scan is None:
            return _Views(main=self._source)
        overlay = OverlayDisk(self._source)
        try:
            end = replay(overlay, scan)
            replay(overlay, scan, is_alone=True)  # also what the files should have had before
        except IbbMasterError as error:
            self._note(Loss(reason=f"the redo log does not apply: {error}; what is in it alone comes last"))
            overlay = OverlayDisk(self._source, is_empty=True)
            replay(overlay, scan, is_alone=True)
            self._views_found = _Views(main=self._source, extra=overlay, shared_from=_first_change(overlay, None))
            return self._views_found
        has_log = any(parse_file_name(name) is not None for name in overlay.list())
        self._views_found = _Views(
            main=overlay,
            extra=self._source if has_log else None,
            scan=scan,
            end=end,
            shared_from=_first_change(overlay, end),
        )
        return self._views_found

    def _take(self, group: EventGroup, log: DamagedLog, writer: BinlogWriter) -> None:
        """Also with an older GTID, unless it is there twice."""
        again: EventGroup | None = group
        if group.gtid is not None and not is_newer(writer.current_state, group.gtid):
            digest = self._digest(group)
            if digest in self._seen:
                self._report.duplicates += 1
            if digest is None or digest in self._seen:
                return
            again = log.group_at(group)
        if again is not None:
            self._write(again, writer)

    def _take_extra(
        self, group: EventGroup, log: DamagedLog, writer: BinlogWriter, conflicts: Callable[[], Disk]
    ) -> None:
        """Add a group if new, and put it aside if it does not fit."""
        digest = None if group.gtid is None else self._digest(group)
        if digest is None or digest in self._seen:
            return
        again = log.group_at(group)
        assert again is not None
        assert again.gtid is not None
        if is_newer(writer.current_state, again.gtid):
            self._write(again, writer)
            return
        if self._conflict_log is None:
            self._conflict_log = BinlogWriter(conflicts(), is_sparse=True, gtid_strict=False, **self._sizes)
        self._conflict_log.write_group(again.gtid, again.gtid_event, again.body)
        self._remember(digest, again)
        self._report.conflict_count += 1
        reason = "the redo log has other groups that are as new, so it is in the log of conflicts"
        self._report.losses.append(_loss_of(again, reason))

    def _digest(self, group: EventGroup) -> bytes | None:
        digest = hashlib.blake2b(group.gtid_event, digest_size=16)
        try:
            for piece in _checked(group.body):
                digest.update(piece)
        except IbbMasterError as error:
            self._note(_loss_of(group, str(error)))
            return None
        return digest.digest()

    def _write(self, group: EventGroup, writer: BinlogWriter) -> None:
        digest = hashlib.blake2b(group.gtid_event, digest_size=16)

        def readable() -> Iterator[Buffer]:
            try:
                for piece in _checked(group.body):
                    digest.update(piece)
                    yield piece
            except IbbMasterError as error:
                raise _UnreadableError(str(error)) from error

        try:
            writer.write_group(group.gtid, group.gtid_event, readable())
        except _UnreadableError as error:
            self._note(_loss_of(group, str(error)))
            return
        self._remember(digest.digest(), group)
        if group.gtid is not None:
            self._report.group_count += 1
            self._latest = str(group.gtid)
            for loss in self._open_losses:
                loss.before = self._latest
            self._open_losses.clear()

    def _remember(self, digest: bytes, group: EventGroup) -> None:
        self._seen[digest] = None
        shared_from = self._views_found.shared_from
        if shared_from is not None and group.start >= shared_from:
            if group.gtid is not None:
                self._gtids.add(group.gtid)
        elif len(self._seen) > SEEN_MAX:
            del self._seen[next(iter(self._seen))]

    def _note(self, loss: Loss) -> None:
        if self._is_extra and self._is_in_main(loss):
            return
        if loss.file_name is not None and loss.gtid is None:
            loss.after = self._latest
            self._open_losses.append(loss)
        self._report.losses.append(loss)

    def _is_in_main(self, loss: Loss) -> bool:
        if loss.gtid is not None:
            return Gtid.parse(loss.gtid) in self._gtids
        views = self._views_found
        file_no = parse_file_name(loss.file_name or "")
        if views.end is None or file_no is None:
            return True
        return (file_no, (loss.last_page + 1) * PAGE_SIZE) <= views.end  # its last page has more behind the end

    def _take_prepared(self, scan: RedoScan | None, disk: Disk, target: Disk) -> None:
        try:
            entries = [entry for entry in _table_of(disk, scan) if entry.engine_count]
        except IbbMasterError as error:
            self._note(Loss(reason=f"whether transactions are prepared is not known: {error}"))
            return
        if not entries:
            return
        out_of_band = OutOfBandReader(disk)
        options = replace(StoreOptions(is_sparse=True, full_disk_retry_s=0), **self._sizes)
        with BinlogStore(target, options) as store:
            for entry in entries:
                assert entry.stream is not None
                group = store.open_group()
                try:
                    for piece in out_of_band.data(entry.stream, BEHIND):
                        group.write(piece)
                except FormatError as error:
                    group.abandon()
                    self._note(Loss(reason=f"prepared transaction {xid_text(entry.xid)}: {error}"))
                    continue
                group.prepare(entry.xid, engine_count=entry.engine_count)
                self._report.prepared_count += 1


def _table_of(disk: Disk, scan: RedoScan | None) -> list[XaEntry]:
    if scan is None:
        end = find_continuation(disk)
        return [] if end is None else list(find_pending_xa(disk, end))
    return list(table_of(scan))


def _checked(body: Iterator[Buffer]) -> Iterator[Buffer]:
    """Raises EventError: the bytes do not divide into events, as where misplaced pages make records of two halves."""
    events = EventSplitter()
    for piece in body:
        for _ in events.feed(piece):
            pass
        yield piece
    events.finish()


def _loss_of(group: EventGroup, reason: str) -> Loss:
    name, page_no = format_file_name(group.start.file_no), group.start.page_no
    return Loss(reason=reason, file_name=name, first_page=page_no, last_page=page_no, gtid=str(group.gtid))


def _sizes_of(disk: Disk, log: DamagedLog) -> LogSizes:
    """Prefers a header with which its file agrees; ignores sizes beyond those of servers, which fill disks."""
    found: list[tuple[bool, LogSizes]] = []
    for file_no in log.numbers:
        try:
            header = PageReader(disk).header(file_no)
            if header is not None:
                file_bytes, interval_bytes = header.size_pages * PAGE_SIZE, header.state_interval_pages * PAGE_SIZE
                sizes = LogSizes(max_file_bytes=file_bytes, state_interval_bytes=interval_bytes)
                LogLimits(**sizes)
                size = disk.size(format_file_name(file_no))
                if file_bytes <= max(size, MAX_FILE_BYTES):
                    found.append((file_bytes != size, sizes))
        except IbbMasterError:
            continue
    usual = LogSizes(max_file_bytes=MAX_FILE_BYTES, state_interval_bytes=STATE_INTERVAL_BYTES)
    return min(found, key=lambda one: one[0])[1] if found else usual
