"""A real MariaDB replica: point it at a primary, wait for a GTID, read what it has come to."""

from __future__ import annotations

import time
from collections.abc import Callable

from ibbmaster.testkit.mariadb_server import RealReplica, problem_of
from lanes.content import TableContent, table_content
from lanes.primary import PASSWORD, USER, Primary
from lanes.proxy import CuttingProxy

WAIT_STEP_S = 0.25  # how long one MASTER_GTID_WAIT waits before the replica's own errors are looked at


class ReplicationError(Exception):
    """The replica stopped, or did not get there in time; `problem` is MariaDB's own text."""

    def __init__(self, problem: str, status: dict[str, object]) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status


class Replica(RealReplica):
    """A replica that a test waits for."""

    def follow(self, primary: Primary | CuttingProxy, *, user: str = USER, password: str = PASSWORD, **given) -> None:
        """CHANGE MASTER and START SLAVE; options are those of `RealReplica.follow_at`."""
        self.follow_at(primary.host, primary.port, user=user, password=password, **given)

    def follow_by_file(self, primary: Primary, file: str, position: object = 4) -> None:
        """CHANGE MASTER and START SLAVE from a place in a file."""
        self.follow(primary, user=primary.user, password=primary.password, start=False)
        place = (file, position)
        self.sql("CHANGE MASTER TO MASTER_USE_GTID = no, MASTER_LOG_FILE = %s, MASTER_LOG_POS = %s", place)
        self.sql("START SLAVE")

    def wait_for_gtid(
        self, position: str, *, timeout_s: float = 600.0, tolerates_lost_connections: bool = False
    ) -> None:
        """Return when the replica has applied everything up to a GTID position.

        Raises ReplicationError: one of its threads stopped with an error, it cannot connect, or time is up.
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
        """The error a replica that must fail stops with. Raises ReplicationError: none within the time."""
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

        Raises ReplicationError: it does not within the time.
        """
        end = time.monotonic() + timeout_s
        while not holds(self):
            if time.monotonic() > end:
                raise ReplicationError(f"what was waited for did not come within {timeout_s} s", self.status())
            self.pause()

    def tables(self, names: list[str]) -> dict[str, TableContent | None]:
        """What has become of tables, each `database.table`; None for one that is not there."""
        connection = self.connect()
        try:
            return {name: table_content(connection, name) for name in names}
        finally:
            connection.close()
