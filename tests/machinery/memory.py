"""The memory of processes."""

import resource
from pathlib import Path


def resident_bytes(process: int | str = "self") -> int:
    """By its id. Source: proc(5), /proc/pid/statm."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
