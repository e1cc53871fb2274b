"""`ibbmaster follow` as a process, and the servers that it follows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import ibbmaster as package
from ibbmaster.testkit.mariadb_server import PASSWORD, USER, RealPrimary
from lanes.primary import ibbmaster
from lanes.replica import Replica


class Server(RealPrimary, Replica):
    """A server that is a primary or a replica."""


def source_of(*servers: Server) -> str:
    return f"mysql://{USER}:{PASSWORD}@" + ",".join(f"{server.host}:{server.port}" for server in servers)


def follow_once(source: str, to: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Follow up to what the primary has logged now."""
    command = ibbmaster("follow", source, "--to", str(to), "--until-end", *options)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


class Following:
    """`ibbmaster follow` in a process of its own."""

    def __init__(self, source: str, to: Path, *options: str) -> None:
        self._command = ibbmaster("follow", source, "--to", str(to), "--json", *options)
        self.start()

    def start(self) -> None:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(self._command, **pipes)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        assert json.loads(line)["event"] == "following"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self) -> str:
        self.process.terminate()
        said, log = self.process.communicate(timeout=600)
        assert self.process.returncode == 0, log
        return said


def follow_until(to: Path, server: Server) -> None:
    """Wait until the log has what the server has logged by now."""
    wanted = package.GtidPosition.parse(server.sql("SELECT @@gtid_binlog_pos")[0][0])
    with package.open(to) as log:
        while any((log.state.highest_seq_no(gtid.domain_id) or 0) < gtid.seq_no for gtid in wanted.values()):
            server.sql("DO SLEEP(0.01)")


def purge(server: Server) -> None:
    """Remove all files but one without transactions."""
    server.sql("FLUSH BINARY LOGS")
    (last,) = server.sql("SHOW MASTER STATUS")[0][:1]
    while len(server.sql("SHOW BINARY LOGS")) > 1:  # a checkpoint may need the file for a moment
        server.sql(f"PURGE BINARY LOGS TO '{last}'")
