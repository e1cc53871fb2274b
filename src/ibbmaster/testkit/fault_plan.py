"""The faults to come, and those that have happened; asked from every connection and every thread."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from ibbmaster.errors import ConfigurationError
from .action import PrimaryAction
from .fault import PlannedFault

FAULTS_MAX = 10_000
RECORDS_MAX = 100_000
EVENT_KEPT_MAX = 4096  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    fault: PlannedFault
    connection_id: int | None = None  # None: it happened at a time, to the whole primary
    sent_bytes: int = 0  # of the dump, to the client, before it
    gtid: str | None = None  # of the stream's group
    event: bytes = b""  # as it would have been sent, its first 4096 bytes
    problem: str = ""  # why it could not happen


class FaultPlan:
    """Faults in the order of their planning. The same seed and faults give the same bytes."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.done: list[FaultRecord] = []
        self._lock = threading.Lock()
        self._pending: tuple[PlannedFault, ...] = ()
        self._begun: list[PlannedFault] = []

    @property
    def pending(self) -> tuple[PlannedFault, ...]:
        """The faults to come; `times` counts what is left."""
        return self._pending

    def add_fault(self, fault: PlannedFault) -> PlannedFault:
        """Plan a fault, also for running dumps. Raises ConfigurationError: too many are planned."""
        with self._lock:
            if len(self._pending) >= FAULTS_MAX:
                raise ConfigurationError(f"{FAULTS_MAX} faults are planned already: expected fewer")
            self._pending += (fault,)
        return fault

    def clear(self) -> None:
        """Plan nothing more; what began continues."""
        with self._lock:
            self._pending = ()

    def take(self, is_due: Callable[[PlannedFault], bool]) -> list[PlannedFault]:
        """The faults due now; each has one time less left."""
        if not any(map(is_due, self._pending)):
            return []
        due, kept = [], []
        with self._lock:
            for fault in self._pending:
                if not is_due(fault):
                    kept.append(fault)
                    continue
                due.append(fault)
                if isinstance(fault.action, PrimaryAction):
                    self._begun.append(fault)
                if fault.times is None:
                    kept.append(fault)
                elif fault.times > 1:
                    kept.append(replace(fault, times=fault.times - 1))
            self._pending = tuple(kept)
        return due

    @property
    def unfinished(self) -> list[PlannedFault]:
        """The faults that are to come once at a place, or are happening to the whole primary."""
        waiting = [fault for fault in self._pending if fault.times is not None and fault.place is not None]
        return [*waiting, *self._begun]

    def finish(self, fault: PlannedFault) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._begun.remove(fault)

    def note(self, record: FaultRecord) -> None:
        if len(self.done) < RECORDS_MAX:
            self.done.append(replace(record, event=record.event[:EVENT_KEPT_MAX]))

    def random_bytes(self, fault: PlannedFault, count: int) -> bytes:
        return random.Random(f"{self.seed} {fault}").randbytes(count)
