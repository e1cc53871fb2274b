"""The closed binlog files of a real server, copied."""

import shutil
from pathlib import Path

from ibbmaster.testkit.mariadb_server import RealServer


def copy_binlogs(server: RealServer, target: Path, copied: set[str] | None = None) -> Path:
    """Copy what it has logged into a directory; of what was copied before, as `copied` knows, only what came since."""
    server.sql("FLUSH BINARY LOGS")
    target.mkdir(parents=True, exist_ok=True)
    known = set[str]() if copied is None else copied
    for name in [row[0] for row in server.sql("SHOW BINARY LOGS")][:-1]:
        if name not in known:
            shutil.copy(server.data / name, target / name)
            known.add(name)
    return target
