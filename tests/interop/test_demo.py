"""`ibbmaster demo` shows what it promises: a CDC client's changes and a private replica that follows."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from lanes.capture import Capture
from lanes.primary import ibbmaster


def test_the_demo_ends_with_a_replica_that_has_everything(
    captures: dict[str, Capture], ibb_directory: Callable[[Capture], Path]
) -> None:
    capture = captures["10.11/chained"]

    done = subprocess.run(
        ibbmaster("demo", str(ibb_directory(capture))), capture_output=True, text=True, timeout=600, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "50-50-22" in done.stdout
