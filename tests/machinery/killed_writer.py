"""A process that writes a store, and is killed behind its last group."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.machinery.events import new_group
from tests.machinery.stores import new_store

SIZES: dict[str, Any] = {"max_file_bytes": 1 << 16, "state_interval_bytes": 1 << 14, "redo_bytes": 1 << 20}


def killed_writer(directory: Path, first: int, end: int, size: int = 700) -> None:
    command = [sys.executable, "-m", "tests.machinery.killed_writer", str(directory), str(first), str(end), str(size)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[2:]]
    store = new_store(sys.argv[1], **SIZES)
    for seq_no in range(numbers[0], numbers[1]):
        store.write_direct(*new_group(seq_no, numbers[2]))
    os.kill(os.getpid(), signal.SIGKILL)
