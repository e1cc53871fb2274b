"""^C ends the suite: at once, and without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_an_interrupt_ends_the_suite_without_a_traceback() -> None:
    suite = Path(__file__).with_name("interrupted.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(suite)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert "! KeyboardInterrupt !" in said
    assert "Traceback" not in said
    assert "failed" not in said
