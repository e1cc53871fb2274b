"""What a recorder of sessions writes: the groups that came as a log, and what went wrong as a scenario.

The log grows group by group; the scenario is written anew at changes and at intervals, and renamed into its place: what
a killed recorder leaves can be served. No call raises because of the disk: then the recording ends, and says so.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import ibbmaster
from ibbmaster.api import opening
from ibbmaster.api.writing import OpenGroup, WritableLog
from ibbmaster.errors import ConfigurationError, IbbMasterError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.testkit.given import toml_lines, toml_value
from ibbmaster.versions import Difference, version_number

log = logging.getLogger(__name__)

SCENARIO_NAME = "scenario.toml"
LOG_NAME = "log"
RESERVE_NAME = "reserve"  # for the last scenario on a full disk
RESERVE_BYTES = 256 << 10
FILE_BYTES = "64M"
REDO_BYTES = "4M"
WRITE_INTERVAL_S = 1.0
WRITE_SHARE = 20  # times the last writing, until the next one
TIMES_MAX = 20_000  # of groups; more are put together
TIMES_STEP_S = 0.001  # groups this close come together
FAULTS_MAX = 5_000
CONNECTIONS_TOLD = 500
LINES_TOLD = 100  # of a connection
LINE_SIZE = 300
AWAY_S = 5.0  # ends of connections this long before an absence belong to it
SAME_MOMENT_S = 1.0
_ENDS = ("cut", "eof", "error")


@dataclass(slots=True, kw_only=True)
class RecordedFault:
    keys: dict[str, object]
    at: float
    dump: int | None = None  # its number
    replica: int | None = None

    @property
    def place(self) -> tuple[object, ...]:
        return (self.keys.get("place"), self.keys.get("gtid"), self.keys.get("connection"), self.replica)


class Recording:
    """One recording in a directory of its own, for one thread at a time.

    Attributes:
        group_count, fault_count, connection_count: what has come so far.
        problem: why it has ended; empty: it continues.
        is_live: the primary once had nothing more to send: from then on groups have times.
    """

    def __init__(self, directory: Path, source: str) -> None:
        """Raises ConfigurationError: the directory is not empty, or cannot be made."""
        self.directory = directory
        self.group_count = self.connection_count = 0
        self.problem = ""
        self.is_live = False
        self._source = source
        self._wall = time.gmtime()
        self._begun: float | None = None
        self._log: WritableLog | None = None
        self._initial, self._state = GtidState(), GtidState()  # before the log's first group, and after its last
        self._expected: GtidState | None = None
        self._primary: dict[str, object] = {}
        self._version, self._shape = "", ""
        self._times: list[tuple[float, Gtid]] = []
        self._step_s = TIMES_STEP_S
        self._last_history: Gtid | None = None
        self._faults: list[RecordedFault] = []
        self._left_out = 0
        self._told: defaultdict[int, list[str]] = defaultdict(list)  # of each connection
        self._left_out_lines: Counter[int] = Counter()
        self._notes: list[str] = []
        self._replicas: set[int] = set()
        self._dumps = 0
        self._away: tuple[float, RecordedFault | None] | None = None
        self._last_contact = 0.0
        self._primary_connections = 0
        self._is_changed = True
        self._due = 0.0
        expect_free(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with (directory / RESERVE_NAME).open("wb") as reserve:
                reserve.write(bytes(RESERVE_BYTES))
        except OSError as error:
            raise ConfigurationError(f"{directory}: {error.strerror}") from None
        self.write()

    @property
    def fault_count(self) -> int:
        return len(self._faults) + self._left_out

    # What came

    def now(self) -> float:
        return 0.0 if self._begun is None else time.monotonic() - self._begun

    def begin_connection(self, peer: str) -> int:
        self._begun = time.monotonic() if self._begun is None else self._begun
        self.connection_count += 1
        self.tell(self.connection_count, f"connection {self.connection_count} of {peer}")
        return self.connection_count

    def begin_dump(self, replica: int) -> int:
        self._dumps += 1
        if len(self._replicas) < CONNECTIONS_TOLD:
            self._replicas.add(replica)
        return self._dumps

    def tell(self, number: int, line: str) -> None:
        """Note for people, without secrets, what a connection did."""
        if number > CONNECTIONS_TOLD:
            return
        if len(self._told[number]) < LINES_TOLD:
            self._told[number].append(f"{self.now():9.3f} s  {line[:LINE_SIZE]}")
        else:
            self._left_out_lines[number] += 1
        self._is_changed = True

    def warn(self, text: str) -> None:
        log.warning("%s", text)
        if len(self._notes) < LINES_TOLD:
            self._notes.append(f"{self.now():9.3f} s  {text[:LINE_SIZE]}")
        self._is_changed = True

    def know_primary(self, *, version: str = "", shape: str = "", server_id: int | None = None, user: str = "") -> None:
        """Note facts of the primary; the first of each stay. `shape`: engine, compat or classic."""
        self._version = self._version or version
        self._shape = self._shape or shape
        for name, value in (("server_id", server_id), ("user", user)):
            if value:
                self._primary.setdefault(name, value)

    def add_fault(
        self, keys: Mapping[str, object], *, dump: int | None = None, replica: int | None = None
    ) -> RecordedFault:
        fault = RecordedFault(keys=dict(keys), at=self.now(), dump=dump, replica=replica)
        if len(self._faults) < FAULTS_MAX:
            self._faults.append(fault)
        else:
            self._left_out += 1
        self._is_changed, self._due = True, 0.0
        return fault

    def primary_refused(self) -> None:
        """The primary is gone: what ended connections just before was its end."""
        if self._away is not None:
            return
        now = self.now()
        since = max(self._last_contact, now - AWAY_S)
        ends = [fault for fault in self._faults if fault.keys["action"] in _ENDS and fault.at >= since]
        in_dumps = [fault for fault in ends if fault.dump is not None]
        last = max(in_dumps or ends, key=lambda fault: fault.at, default=None)
        if last is None:
            self._away = now, self.add_fault({"at": round(now, 3), "action": "crash"})
            return
        is_orderly = any(fault.keys["action"] != "cut" for fault in ends)
        for fault in ends:
            if fault is not last and fault.at >= last.at - SAME_MOMENT_S:
                self._faults.remove(fault)
        for name in ("by", "code", "state", "text"):
            last.keys.pop(name, None)
        last.keys["action"] = "restart" if is_orderly else "crash"
        self._away = last.at, last
        self._is_changed = True

    def primary_answered(self) -> int:
        """The primary took a connection; returns its number among these."""
        self._last_contact = self.now()
        self._primary_connections += 1
        if self._away is not None:
            self._note_closed()
            self._away = None
        return self._primary_connections

    def _note_closed(self) -> None:
        assert self._away is not None
        since, fault = self._away
        if fault is not None:
            fault.keys["closed_s"] = round(self.now() - since, 3)
        self._is_changed = True

    # Groups

    def open_group(self, gtid: Gtid, start: GtidState) -> OpenGroup | None:
        """A group to write, unless the log has it; `start` was logged before the first group of the log."""
        if self.problem:
            return None
        try:
            self._begin_log(start)
            assert self._log is not None
            if not self.has(gtid):
                return self._log.begin()
        except (StoreError, OSError) as error:
            self.fail(error)
        return None

    def expect_start(self, start: GtidState) -> str:
        """The events of a dump from this state begin; returns in words what the log will lack of it."""
        self._expected = self._expected or start
        for domain_id in {*start.domain_ids, *self._state.domain_ids}:
            asked = start.highest_seq_no(domain_id) or 0
            if self._log is not None and asked > (self._state.highest_seq_no(domain_id) or 0):
                return f"it begins behind [{start}], the log ends at [{self._state}]: what is between is not in the log"
            if asked < (self._initial.highest_seq_no(domain_id) or 0):
                return f"it begins behind [{start}], the log at [{self._initial}]: what is before is not in the log"
        return ""

    def _begin_log(self, start: GtidState) -> None:
        if self._log is None:
            start = self._expected or start
            self._initial, self._state = start, start.copy()
            self._log = opening.create(
                self.directory / LOG_NAME,
                state=start,
                durability="write",
                gtid_strict=False,
                full_disk_retry_s=0.0,
                max_file_bytes=FILE_BYTES,
                redo_bytes=REDO_BYTES,
            )

    def has(self, gtid: Gtid) -> bool:
        seq_no = self._state.seq_no(gtid.domain_id, gtid.server_id)
        return seq_no is not None and gtid.seq_no <= seq_no

    def commit(self, group: OpenGroup, gtid: Gtid, gtid_event: bytes) -> None:
        try:
            if self.problem or self.has(gtid):  # another connection was faster
                group.roll_back()
                return
            group.commit(gtid, gtid_event)
        except (IbbMasterError, OSError) as error:
            self.fail(error)
            return
        self._state.log(gtid)
        self.group_count += 1
        if self.is_live:
            self._note_time(gtid)
        else:
            self._last_history = gtid
        self._is_changed = True

    def _note_time(self, gtid: Gtid) -> None:
        now = self.now()
        if self._times and now - self._times[-1][0] < self._step_s:
            self._times[-1] = (self._times[-1][0], gtid)
            return
        self._times.append((now, gtid))
        if len(self._times) > TIMES_MAX:
            self._step_s *= 2
            kept: list[tuple[float, Gtid]] = []
            for at, each in self._times:
                if kept and at - kept[-1][0] < self._step_s:
                    kept[-1] = (kept[-1][0], each)
                else:
                    kept.append((at, each))
            self._times = kept

    def fail(self, error: Exception) -> None:
        """Record no more groups and faults; bytes still pass."""
        if self.problem:
            return
        self.problem = " ".join(str(error).split()) or type(error).__name__
        if not isinstance(error, (IbbMasterError, OSError)):
            log.error("this is a mistake of the recorder", exc_info=error)
        self.warn(f"the recording ends here, behind [{self._state}]; bytes are passed on unrecorded: {self.problem}")
        with contextlib.suppress(OSError):
            (self.directory / RESERVE_NAME).unlink()
        self.write()

    # The scenario

    def write_if_due(self) -> None:
        if self._is_changed and time.monotonic() >= self._due and not self.problem:
            self.write()

    def write(self) -> None:
        """Write the scenario; a failure ends the recording."""
        begun = time.monotonic()
        path = self.directory / SCENARIO_NAME
        new = path.with_suffix(".new")
        self._is_changed = False
        try:
            new.write_text(self.text(), encoding="utf-8")
            os.replace(new, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                new.unlink()
            self.fail(StoreError(f"{path}: {error.strerror}"))
        took = time.monotonic() - begun
        self._due = begun + max(WRITE_INTERVAL_S, WRITE_SHARE * took)

    def close(self) -> None:
        if self._away is not None:
            self._note_closed()
        try:
            self._begin_log(GtidState())
            assert self._log is not None
            self._log.close()
        except (IbbMasterError, OSError) as error:
            self.fail(error)
        with contextlib.suppress(OSError):
            (self.directory / RESERVE_NAME).unlink()
        self.write()

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        day = time.strftime("%Y-%m-%d %H:%M:%S", self._wall)
        yield f"# Recorded by ibbmaster {ibbmaster.__version__} from {self._source}, {day} UTC"
        yield f"# {self.group_count} groups, {self.fault_count} faults, {self.connection_count} connections"
        yield "# No password was recorded: ibbmaster serve --scenario takes one by --password-file."
        yield from map(_comment, self._notes)
        yield from ("", "seed = 0", 'clock = "connection"  # times are seconds from the first one on', "", "[primary]")
        yield f"profile = {toml_value(profile_of_stream(self._version, self._shape))}"
        if self._version:
            yield f"server_version = {toml_value(self._version)}"
        yield from toml_lines(self._primary)
        if self._log is not None:
            yield from ("", "[log]", f"directory = {toml_value(LOG_NAME)}")
        yield from self._group_lines()
        yield from self._fault_lines()
        for number, lines in sorted(self._told.items()):
            yield from ("", *map(_comment, lines))
            if left_out := self._left_out_lines[number]:
                yield f"# … and {left_out} lines more"

    def _group_lines(self) -> Iterator[str]:
        if not self._times:
            return
        if self._last_history is not None:
            yield from ("", "[[group]]", *toml_lines({"recorded": str(self._last_history)}))
        for at, gtid in self._times:
            yield from ("", "[[group]]", *toml_lines({"recorded": str(gtid), "at": round(at, 3)}))

    def _fault_lines(self) -> Iterator[str]:
        kinds: defaultdict[tuple[object, ...], set[str]] = defaultdict(set)
        for fault in self._faults:
            kinds[fault.place].add(str(fault.keys))
        counts: Counter[str] = Counter()
        tables: dict[str, RecordedFault] = {}
        for fault in self._faults:
            keys = fault.keys
            if len(self._replicas) > 1 and fault.replica:
                keys = {**keys, "replica": fault.replica}
            if len(kinds[fault.place]) > 1 and fault.dump and "connection" not in keys:
                keys = {**keys, "connection": fault.dump}
            text = "\n".join(toml_lines(keys))
            counts[text] += 1
            tables.setdefault(text, fault)
        for text, fault in tables.items():
            yield from ("", f"# {fault.at:.3f} s", "[[fault]]", text)
            if counts[text] > 1:
                yield f"times = {counts[text]}"
        if self._left_out:
            yield f"\n# … and {self._left_out} faults more"


def expect_free(directory: Path) -> None:
    """Raises ConfigurationError: a directory, which need not exist, is not empty, or cannot be looked at."""
    try:
        if directory.exists() and any(directory.iterdir()):
            raise ConfigurationError(f"{directory} is not empty: a recording begins in a directory of its own")
    except OSError as error:
        raise ConfigurationError(f"{directory}: {error.strerror}") from None


def profile_of_stream(version: str, shape: str) -> str:
    """The name in scenarios of a server with that version and shape of stream; the version may be unknown."""
    number = version_number(version)
    if shape == "compat":
        return "compat"
    if shape == "engine" or (not shape and Difference.BINLOG_IN_ENGINE.holds(number)):
        return "12.3"
    # Of the versions that scenarios can name, the first that is not older.
    return next((name for name, end in (("10.6", 100700), ("10.11", 110000), ("11.4", 110500)) if number < end), "11.8")


def _comment(text: str) -> str:
    return f"# {toml_value(text)[1:-1]}" if not text.isprintable() else f"# {text}"
