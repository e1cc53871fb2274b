"""Archives a log: reads what is durable in it, and puts it as segments.

It reads the log as any other reader does, so neither a slow nor a dead store holds its writer up. What is archived is
the only position there is: whatever ends, the next run goes on from it.

Invariants:
- Files with groups that are not archived are not purged (test_what_is_not_archived_is_not_purged).
- A store that fails holds up no writer and no reader (test_a_dead_store_holds_no_append_up_and_is_named_once)."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ibbmaster.errors import BusyError, IbbMasterError, PositionError, PositionPurgedError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.classic.exporting import TraditionalSeries, passed_by, ready_kernels
from ibbmaster.logs.classic.series_writer import ClassicWriter
from ibbmaster.logs.log.interface import EventGroups, LogEngine
from ibbmaster.logs.log.locating import expect_logged
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.dump.profile import Profile
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.dump.skipping import GroupFilter
from ibbmaster.replication.dump.start import check_start
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.object_store import RefusalError
from ibbmaster.storage.disk.spool import scratch_directory
from ibbmaster.storage.disk.whole_objects import WholeObjects
from .keeping import ArchiveKeeper
from .manifest import STEM, Segment, segment_name
from .packed import PackedSegment, pack

log = logging.getLogger(__name__)

SEGMENT_S, SEGMENT_BYTES = 5.0, 8 << 20
LOOK_S = 0.5  # between looks at the end of the log
CHECK_S = 60.0  # between notes that all is archived
RETRY_S = (1.0, 2.0, 5.0, 10.0, 30.0)
PACKED_NAME = "packed"


class _StoppedError(Exception):
    """It is to end."""


class Archiver:
    """Keeps an archive behind a log. `run` in one thread, `stop` from any. Raises ConfigurationError: the archive has
    another history, or lacks groups that the log no longer has; BusyError: another process writes it."""

    def __init__(
        self,
        source: LogEngine,
        objects: WholeObjects,
        profile: Profile,
        *,
        is_origin: bool = True,
        segment_s: float = SEGMENT_S,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """`is_origin`: nothing is logged elsewhere before it is in this log, so a log without anything new is archived
        up to now."""
        self._log = source
        self._keeper = ArchiveKeeper(objects)
        self._profile = profile
        self._is_origin = is_origin
        self._segment_s, self._segment_bytes = segment_s, segment_bytes
        self._ending = threading.Event()  # once all that is durable is archived
        self._stopping = threading.Event()  # now
        self._attempts = 0  # that failed in a row
        self._held: EventGroups | None = None  # keeps files from being purged
        self._held_file_no = -1
        self._hold(source.start_of_file().position.file_no)
        self.groups = 0  # that were archived
        self._thread: threading.Thread | None = None
        self.problem: IbbMasterError | None = None  # that ended it

    @property
    def url(self) -> str:
        return self._keeper.objects.url

    @property
    def end(self) -> GtidState:
        """The state at the end of the archive, which was opened."""
        return GtidState.parse(self._keeper.head.end)

    @property
    def last_recoverable_time(self) -> int | None:
        """As `Head` has it; None also if the archive could not be opened yet."""
        head = self._keeper.known
        return None if head is None else head.last_recoverable_time

    def start(self) -> None:
        """Run in a thread. Raises at once what another attempt would not change."""
        try:
            self._open()
            with self._as_refusals():
                self._continued()[0].close()
        except (BusyError, RefusalError):
            raise
        except StoreError as error:
            self._complain(error)
        self._thread = threading.Thread(target=self._run_aside, name="ibbmaster-archive", daemon=True)
        self._thread.start()

    def _run_aside(self) -> None:
        try:
            self.run()
        except IbbMasterError as error:
            self.problem = error
            log.error("%s: nothing more is archived, and no file purged: %s", self.url, error)

    def stop(self, timeout_s: float | None = None) -> None:
        """End once all that is durable is archived, or after that time; of the rest nothing is lost. The log must still
        be open."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(timeout_s)
            self._stopping.set()
            if self._thread.is_alive():
                log.warning("%s: %s of the log are not archived yet: the next start does that", self.url, self._waiting)
        self._stopping.set()
        self._let_go()

    def run(self, *, until_end: bool = False) -> None:
        """Archive until `stop`. `until_end`: up to what is durable now, and errors of the store end it. Raises also
        FormatError: the log is damaged; StoreError: see `until_end`."""
        if until_end:
            self._ending.set()
        try:
            while True:
                try:
                    self._archive(is_patient=not until_end)
                    return
                except (BusyError, PositionError):
                    raise
                except StoreError as error:  # also a refusal: rights come back
                    if until_end:
                        raise
                    self._pause(error)
        except _StoppedError:
            pass
        finally:
            if until_end:
                self._let_go()

    def _archive(self, *, is_patient: bool) -> None:
        with contextlib.ExitStack() as stack:
            self._open()
            with self._as_refusals():
                groups, judge = self._continued()
            stack.callback(groups.close)
            staging = stack.enter_context(scratch_directory())
            put = self._put_patiently if is_patient else self._put
            series = _Segments(self._log, self._keeper, self._profile, staging, self._segment_bytes, put)
            with self._as_refusals():
                while not judge.has_reached_start and (group := groups.next_group()) is not None:
                    if group.gtid is not None and judge.judge(group.gtid).is_wanted:
                        series.take(group)  # other domains have another order than in the log of before
            kernels, checked = ready_kernels(), time.monotonic() - CHECK_S
            while True:
                is_last, now = self._ending.is_set(), time.time()
                end = self._log.end()
                for found in passed_by(groups, end, kernels):
                    series.take(found)
                    if self._is_due(series):
                        series.end()
                    if self._stopping.is_set():
                        raise _StoppedError
                if self._is_due(series) or is_last:
                    series.end()
                if self._is_origin and not series.writer.is_open and (is_last or time.monotonic() - checked >= CHECK_S):
                    checked = time.monotonic()
                    self._keeper.note_checked(now)
                if is_last:
                    return
                if not series.writer.is_open:
                    self._note_well()
                self._hold(series.begun_in if series.writer.is_open else groups.position.file_no)
                self._ending.wait(LOOK_S)

    def _is_due(self, series: _Segments) -> bool:
        return series.writer.is_open and time.monotonic() - series.begun_at >= self._segment_s

    def _open(self) -> None:
        self._keeper.open(self._log.start_of_file().state, self._profile.server_version)

    @contextlib.contextmanager
    def _as_refusals(self) -> Iterator[None]:
        """Errors of a log that does not go on where the archive ends."""
        archived = self.end
        try:
            yield
        except PositionPurgedError as error:
            raise PositionPurgedError(
                f"{self.url} ends at '{archived}', and the log no longer has what follows: {error}. Nothing was "
                "archived: give a new URL for what is left"
            ) from None
        except (PositionError, DumpError) as error:
            text = error.text if isinstance(error, DumpError) else str(error)
            raise PositionError(
                f"{self.url} holds another log, or more of it: the archive ends at '{archived}', this directory at "
                f"'{self._log.state()}' ({text}): give a new URL, or a directory "
                f"that begins with `--start {archived.position()}`"
            ) from None

    def _continued(self) -> tuple[EventGroups, GroupFilter]:
        """A reader of what the archive lacks, and the judge of its first groups."""
        position, state = self.end.position(), self._log.state()
        known = [gtid for gtid in position.values() if gtid.domain_id in state.domain_ids]  # it may forget a domain
        for gtid in known or position.values():
            expect_logged(gtid, state)
        request = DumpRequest(replica_server_id=0, position=position, is_strict=True)
        plan, check = self._log.seek(position), check_start(request, state)
        judge = GroupFilter(request, check, start_state=plan.state, current_state=self._log.state)
        return self._log.groups(plan), judge

    def _put(self, segment: PackedSegment) -> None:
        self._keeper.add(segment, server_version=self._profile.server_version)
        self.groups += segment.entry.groups

    def _put_patiently(self, segment: PackedSegment) -> None:
        while True:
            try:
                self._put(segment)
                break
            except BusyError:
                raise
            except StoreError as error:
                self._pause(error)
        self._note_well()

    def _note_well(self) -> None:
        if self._attempts:
            log.info("%s: the archive goes on, after %d attempts", self.url, self._attempts)
            self._attempts = 0

    def _pause(self, error: StoreError) -> None:
        self._complain(error)
        if self._ending.is_set():
            self._stopping.wait(RETRY_S[0])
        else:  # the end of the process is no reason to wait longer
            self._ending.wait(RETRY_S[min(self._attempts - 1, len(RETRY_S) - 1)])
        if self._stopping.is_set():
            raise _StoppedError

    def _complain(self, error: StoreError) -> None:
        if not self._attempts:
            log.warning("%s: the archive is late, %s of the log wait: %s", self.url, self._waiting, error)
        self._attempts += 1

    @property
    def _waiting(self) -> str:
        with contextlib.suppress(StoreError):
            end = self._log.end()
            before = sum(file.size for file in self._log.files() if self._held_file_no <= file.file_no < end.file_no)
            return f"up to {before + end.offset} bytes"
        return "some bytes"

    def _hold(self, file_no: int) -> None:
        """Let nothing be purged from a file on."""
        if file_no != self._held_file_no:
            held, self._held_file_no = self._held, file_no
            self._held = self._log.groups(self._log.start_of_file(file_no))
            if held is not None:
                held.close()

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


class _Segments(TraditionalSeries):
    """Each file is a segment of its own, and put once it has ended."""

    def __init__(
        self,
        source: LogEngine,
        keeper: ArchiveKeeper,
        profile: Profile,
        staging: Path,
        segment_bytes: int,
        put: Callable[[PackedSegment], None],
    ) -> None:
        self._disk, self._staging = RealDisk(staging), staging
        self._keeper, self._profile, self._put = keeper, profile, put
        super().__init__(source, self._next_writer(GtidState.parse(keeper.head.end)), segment_bytes)

    def _next_writer(self, state: GtidState) -> ClassicWriter:
        number = self._keeper.head.next_number
        return ClassicWriter(self._disk, self._profile, state=state, stem=STEM, first_number=number)

    def begin(self, *, is_start: bool, near: dict[str, int]) -> None:
        self._before, self._count, self._is_begun_anew = str(self.writer.state), self.group_count, is_start
        self._first_time, self.begun_at, self.begun_in = near["timestamp"], time.monotonic(), self.file_no
        super().begin(is_start=is_start, near=near)

    def end(self) -> None:
        if not self.writer.is_open:
            return
        super().end()
        writer = self.writer
        [name] = writer.names
        try:
            with (self._staging / name).open("rb") as source, (self._staging / PACKED_NAME).open("wb") as target:
                size, content, packed_size, sha256 = pack(source, target)
        except OSError as error:
            raise StoreError(f"{self._staging}: {error.strerror} (TMPDIR names another directory)") from None
        number = self._keeper.head.next_number
        entry = Segment(
            number=number,
            name=segment_name(number, writer.state),
            before=self._before,
            after=str(writer.state),
            first_time=self._first_time,
            last_time=self._last["timestamp"],
            groups=self.group_count - self._count,
            bytes=packed_size,
            size=size,
            sha256=sha256,
            chain="",
            is_restart=self._is_begun_anew,
        )
        self._put(PackedSegment(entry=entry, path=self._staging / PACKED_NAME, content=content))
        for made in (name, writer.index_name, PACKED_NAME):
            self._disk.unlink(made)
        self.writer = self._next_writer(writer.state.copy())
