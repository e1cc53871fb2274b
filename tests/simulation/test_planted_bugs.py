"""The judge of the store must find what is wrong: each of these mistakes is made on purpose, and found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from ibbmaster.gtid import GtidState
from ibbmaster.ibb.appender import References
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.store import log_writer, recovery, redo_log, redo_record
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.continuation import find_continuation
from ibbmaster.store.flusher import Flusher
from ibbmaster.store.log_writer import LogWriter
from ibbmaster.store.page_fifo import PageFifo
from ibbmaster.store.redo_log import RedoLog
from ibbmaster.store.redo_record import XaEntry
from ibbmaster.testing.crash import Judge, WrongStateError
from ibbmaster.testing.simulated_disk import SimulatedDisk

SEEDS = 60
VERBS = 60

BUGS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {}


def bug(name: str):
    def note(plant: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
        BUGS[name] = plant
        return plant

    return note


@bug("a commit does not sync the redo log")
def _(patch):
    def write_only(self):
        self.write()
        self.durable_lsn = self.written_lsn
        if self._pending is not None:
            self.checkpoint = self._pending[1]

    patch.setattr(RedoLog, "_sync", write_only)


@bug("the durable mark moves before the sync")
def _(patch):
    log = LogWriter._log

    def log_and_show(self, *arguments, **options):
        lsn = log(self, *arguments, **options)
        self.durable.advance(lsn)
        return lsn

    patch.setattr(LogWriter, "_log", log_and_show)


@bug("a redo segment is used again before a checkpoint covers it")
def _(patch):
    make_room = RedoLog.make_room

    def hasty(self, size, **options):
        checkpoint = self.checkpoint
        self.checkpoint = dataclasses.replace(checkpoint, lsn=max(checkpoint.lsn, self._segment_lsn))
        return make_room(self, size, **options)

    patch.setattr(RedoLog, "make_room", hasty)


@bug("a checkpoint does not sync the files")
def _(patch):
    patch.setattr(Flusher, "_sync_files", lambda self, numbers: self._dirty.clear())


@bug("a checkpoint covers what was appended while it was made")
def _(patch):
    append = RedoLog.append_checkpoint

    def covers_more(self, checkpoint):
        return append(self, dataclasses.replace(checkpoint, lsn=self.end_lsn))

    patch.setattr(RedoLog, "append_checkpoint", covers_more)
    write_pages = Flusher.write_pages

    def write_pages_late(self):
        if self._redo.end_lsn % 3:
            write_pages(self)

    patch.setattr(Flusher, "write_pages", write_pages_late)


@bug("the directory is not synced when a file is made")
def _(patch):
    patch.setattr(SimulatedDisk, "sync_dir", lambda self: self._done("sync_dir"))


@bug("a redo record with a wrong checksum is taken")
def _(patch):
    patch.setattr(redo_record, "crc32c", lambda data: 0)


@bug("a page that was written partly filled goes on in the redo log where it was")
def _(patch):
    patch.setattr(PageFifo, "whole_changes", lambda self, changes: list(changes))


@bug("pages are written before their redo is durable")
def _(patch):
    next_run = PageFifo.next_run
    patch.setattr(PageFifo, "next_run", lambda self, durable_lsn: next_run(self, 2**60))


@bug("two writes are swapped: the checkpoint is noted before the files are written")
def _(patch):
    def checkpoint(self):
        with self.lock, self._ordered:
            end, xa = self._snapshot()
            lsn = self._redo.end_lsn
            if not self._redo.is_begun or lsn == self._covered_lsn or end is None:
                return
            self._covered_lsn = self._redo.append_checkpoint(redo_record.Checkpoint(lsn=lsn, end=end, xa=xa))
            self._sync(self._redo.end_lsn)
            partial = self._fifo.last_partial()
            self.write_pages()
            if partial is not None:
                self._write(partial[1])
            for cut in self._cuts:
                self._cut(cut)
            self._cuts = []
            self._sync_files(self._dirty)

    patch.setattr(Flusher, "checkpoint", checkpoint)


@bug("a life of the redo log does not tell itself from the one before")
def _(patch):
    init = RedoLog.__init__

    def same_life(self, *arguments, **options):
        init(self, *arguments, **options)
        self._life = 1

    patch.setattr(RedoLog, "__init__", same_life)

    def begin_silently(self, checkpoint):
        self.is_begun = True

    begin = RedoLog.begin
    patch.setattr(
        RedoLog, "begin", lambda self, checkpoint: (begin if self._is_new else begin_silently)(self, checkpoint)
    )


@bug("the differential state is begun anew by a restart")
def _(patch):
    def find(disk):
        end = find_continuation(disk)
        return end if end is None else dataclasses.replace(end, differential=GtidState())

    patch.setattr(recovery, "find_continuation", find)


@bug("a purge is not noted before the files go")
def _(patch):
    def purge(self, request):
        self.checkpoint()
        self.sync()
        numbers = [number for number in self._directory.file_numbers() if number < request.to_file_no]
        for file_no in [number for number in numbers if number < self._needed_file_no()]:
            self._disk.unlink(format_file_name(file_no))

    patch.setattr(BinlogStore, "purge", purge)


@bug("an open group does not hold the file that it began in")
def _(patch):
    patch.setattr(LogWriter, "_references", lambda self: References(oob_file_no=None, xa_file_no=None))


@bug("a reset removes the files before it is durable")
def _(patch):
    reset_now = LogWriter._reset_now

    def hasty(self, state, remove_files):
        names = [name for name in self._disk.list() if name.endswith(".ibb")]
        for name in names:
            self._disk.unlink(name)
            self._disk.create(name)
        reset_now(self, state, remove_files)

    patch.setattr(LogWriter, "_reset_now", hasty)


@bug("a prepared transaction is not in the checkpoint")
def _(patch):
    snapshot = log_writer.XaTable.snapshot
    patch.setattr(
        log_writer.XaTable,
        "snapshot",
        lambda self: tuple(entry for entry in snapshot(self) if not isinstance(entry, XaEntry)),
    )


@bug("recovery ends behind the first segment")
def _(patch):
    read = redo_log._read_records
    patch.setattr(redo_log, "_read_records", lambda data, lsn: read(data, lsn)[:7])


@bug("a file is cut before the flush is durable, and too short")
def _(patch):
    cut = Flusher.cut

    def at_once(self, item):
        cut(self, item)
        self._disk.truncate(format_file_name(item.file_no), (item.size_pages - 1) * 16384)

    patch.setattr(Flusher, "cut", at_once)


@pytest.mark.parametrize("name", BUGS)
def test_the_judge_finds(name, monkeypatch):
    BUGS[name](monkeypatch)

    def judge_until_found():
        for seed in range(SEEDS):
            Judge(seed).run(VERBS)

    with pytest.raises(WrongStateError, match=r"^seed [0-9]+, operation [0-9]+"):
        judge_until_found()
