"""^C ends the suite: at once, and without a traceback, and a test hears it also where the suite ignores it."""

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path


def test_an_interrupt_ends_the_suite_without_a_traceback() -> None:
    suite = Path(__file__).with_name("interrupted.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(suite)]
    ignoring = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)  # as a shell does for what it begins with `&`
    done = subprocess.run(command, preexec_fn=ignoring, capture_output=True, text=True, timeout=600, check=False)

    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert "! KeyboardInterrupt !" in said
    assert "Traceback" not in said
    assert "failed" not in said
