"""A new MariaDB server in a directory, for one command: it listens at a socket there, and is stopped in the end."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ibbmaster.errors import RestoreError

INSTALL, SERVER = "mariadb-install-db", "mariadbd"
START_S, STOP_S = 120.0, 600.0
LOOK_S = 0.1
STRICT = "--gtid-strict-mode=ON"
OPTIONS = ("--skip-networking", "--skip-log-bin", "--skip-slave-start", STRICT, "--log-error=restore.err")
LOG_LINES = 3  # of a program that failed
SOCKET = "restore.sock"


def start_command(datadir: Path) -> str:
    return f"{SERVER} --no-defaults --datadir={datadir.absolute()} {STRICT}"


@contextlib.contextmanager
def new_server(datadir: Path) -> Iterator[str]:
    """The URL of the server. Raises RestoreError: a program is missing, the directory is not empty, or the server does
    not start."""
    for program in (INSTALL, SERVER):
        if shutil.which(program) is None:
            raise RestoreError(f"--into new needs {program}: apt install mariadb-server-core, or name a server")
    if datadir.exists() and (not datadir.is_dir() or any(datadir.iterdir())):
        raise RestoreError(f"{datadir}: expected an empty directory, or none")
    user, where = pwd.getpwuid(os.geteuid()).pw_name, datadir.absolute()
    given = ["--no-defaults", f"--datadir={where}", f"--user={user}"]
    made = subprocess.run([INSTALL, *given, "--skip-test-db"], capture_output=True, text=True, check=False)
    if made.returncode:
        raise RestoreError(f"{INSTALL}: {_last_lines(made.stdout + made.stderr)}")
    where.chmod(0o700)  # and its socket
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    process = subprocess.Popen([SERVER, *given, *OPTIONS, f"--socket={SOCKET}"], **quiet)
    try:
        end = time.monotonic() + START_S
        while not (where / SOCKET).exists():
            if process.poll() is not None or time.monotonic() > end:
                raise RestoreError(f"{SERVER}: {_last_lines((where / 'restore.err').read_text(errors='replace'))}")
            time.sleep(LOOK_S)
        yield f"mysql://{user}@{quote(str(where / SOCKET), safe='')}"
    finally:
        process.terminate()
        process.wait(STOP_S)


def _last_lines(text: str) -> str:
    return " / ".join(line.strip() for line in text.strip().splitlines()[-LOG_LINES:])
