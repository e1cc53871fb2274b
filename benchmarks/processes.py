"""What a server costs: CPU seconds and memory, as the kernel counts them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a process, between two moments."""

    cpu_s: float
    peak_rss_bytes: int


class Meter:
    """Measures one process from now on."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak counts from here
        self._begun = self._cpu_s()

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def cost(self) -> Cost:
        """Since the meter was made."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return Cost(self._cpu_s() - self._begun, int(peak.split()[1]) * 1024)


def keep_to(pid: int, cpus: set[int]) -> None:
    """Let all threads of a process, and those they start, run on these CPUs alone."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), cpus)
