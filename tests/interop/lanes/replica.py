"""A real MariaDB replica: point it at a primary, wait for a GTID, read what it has come to."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from lanes.content import TableContent, table_content
from lanes.primary import PASSWORD, USER, Primary
from lanes.proxy import CuttingProxy
from lanes.server import Server, Template

WAIT_STEP_S = 0.25  # how long one MASTER_GTID_WAIT waits before the replica's own errors are looked at
CONNECT_RETRY_S = 1
SERVER_ID = 1001


class ReplicationError(Exception):
    """The replica stopped, or did not get there in time; `problem` is MariaDB's own text."""

    def __init__(self, problem: str, status: dict[str, object]) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status


class Replica(Server):
    """A real replica. It takes no connection but ours."""

    def __init__(self, template: Template, directory: Path, *options: str, server_id: int = SERVER_ID) -> None:
        super().__init__(
            template, directory, f"--server-id={server_id}", "--skip-slave-start", "--relay-log=relay", *options
        )

    def follow(
        self,
        primary: Primary | CuttingProxy,
        *,
        user: str = USER,
        password: str = PASSWORD,
        ssl: bool | None = False,
        position: str = "",
        heartbeat_period_s: float | None = None,
        start: bool = True,
    ) -> None:
        """CHANGE MASTER and START SLAVE from a GTID position.

        `ssl` None leaves TLS as the version has it: not used before 11.4, demanded and verified since.
        """
        if position:
            self.sql("SET GLOBAL gtid_slave_pos = %s", (position,))
        words = [
            f"MASTER_HOST='{primary.host}'",
            f"MASTER_PORT={primary.port}",
            f"MASTER_USER='{user}'",
            f"MASTER_PASSWORD='{password}'",
            "MASTER_USE_GTID=slave_pos",
            f"MASTER_CONNECT_RETRY={CONNECT_RETRY_S}",
        ]
        if ssl is not None:
            words.append(f"MASTER_SSL={int(ssl)}")
        if ssl is False:
            words.append("MASTER_SSL_VERIFY_SERVER_CERT=0")
        if heartbeat_period_s is not None:
            words.append(f"MASTER_HEARTBEAT_PERIOD={heartbeat_period_s}")
        self.sql(f"CHANGE MASTER TO {', '.join(words)}")
        if start:
            self.sql("START SLAVE")

    def status(self) -> dict[str, object]:
        """The one row of SHOW SLAVE STATUS."""
        return self.query("SHOW SLAVE STATUS")[0]

    def wait_for_gtid(
        self, position: str, *, timeout_s: float = 600.0, tolerates_lost_connections: bool = False
    ) -> None:
        """Return when the replica has applied everything up to a GTID position.

        Raises:
            ReplicationError: one of its threads stopped with an error, it cannot connect, or time is up.
        """
        end = time.monotonic() + timeout_s
        while self.sql("SELECT MASTER_GTID_WAIT(%s, %s)", (position, WAIT_STEP_S)) != ((0,),):
            status = self.status()
            if problem := problem_of(status, tolerates_lost_connections=tolerates_lost_connections):
                raise ReplicationError(problem, status)
            if time.monotonic() > end:
                reached = self.sql("SELECT @@GLOBAL.gtid_slave_pos")[0][0]
                raise ReplicationError(
                    f"after {timeout_s} s at {reached!r} instead of {position!r}; "
                    f"IO {status['Slave_IO_State']!r}, SQL {status['Slave_SQL_Running_State']!r}",
                    status,
                )

    def wait_for_problem(self, *, timeout_s: float = 600.0) -> str:
        """The error a replica that must fail stops with.

        Raises:
            ReplicationError: none within the time.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            status = self.status()
            if problem := problem_of(status, tolerates_lost_connections=False):
                return problem
            self.pause()
        raise ReplicationError(f"no error within {timeout_s} s", self.status())

    def pause(self) -> None:
        """Let the replica work for a moment: wait for what never comes."""
        self.sql("SELECT MASTER_GTID_WAIT('4294967295-4294967295-18446744073709551614', %s)", (WAIT_STEP_S,))

    def wait_until(self, holds: Callable[[Replica], bool], *, timeout_s: float = 600.0) -> None:
        """Look at the replica again and again until something holds of it.

        Raises:
            ReplicationError: it does not within the time.
        """
        end = time.monotonic() + timeout_s
        while not holds(self):
            if time.monotonic() > end:
                raise ReplicationError(f"what was waited for did not come within {timeout_s} s", self.status())
            self.pause()

    @property
    def position(self) -> set[str]:
        """Its GTID position; the order of domains means nothing."""
        return set(str(self.sql("SELECT @@GLOBAL.gtid_slave_pos")[0][0]).split(",")) - {""}

    def tables(self, names: list[str]) -> dict[str, TableContent | None]:
        """What has become of tables, each `database.table`; None for one that is not there."""
        connection = self.connect()
        try:
            return {name: table_content(connection, name) for name in names}
        finally:
            connection.close()


def problem_of(status: dict[str, object], *, tolerates_lost_connections: bool) -> str | None:
    """The error in a SHOW SLAVE STATUS row, if there is one that does not heal by itself."""
    if status["Last_SQL_Errno"]:
        return str(status["Last_SQL_Error"])
    has_given_up = status["Slave_IO_Running"] == "No"
    if status["Last_IO_Errno"] and (has_given_up or not tolerates_lost_connections):
        return str(status["Last_IO_Error"])
    return None
