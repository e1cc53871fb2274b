"""Waiting for what nothing announces."""

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], object], timeout_s: float = 600.0) -> None:  # ends what hangs; a machine may be busy
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.02)
