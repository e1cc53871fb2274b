"""A real MariaDB replica: point it at a primary, wait for a GTID, read what it has come to."""

from __future__ import annotations

import time
from collections.abc import Callable

from ibbmaster.testkit.mariadb_server import RealReplica, problem_of
from lanes.capture import Capture, TableContent, contents
from lanes.primary import PASSWORD, USER, Primary
from lanes.proxy import CuttingProxy
from lanes.sql import drop_databases

WAIT_STEP_S = 0.25  # how long one MASTER_GTID_WAIT waits before the replica's own errors are looked at
FALLBACKS = ("Unexpected change", "olling back")


class ReplicationError(Exception):
    """The replica stopped, or did not get there in time; `problem` is MariaDB's own text."""

    def __init__(self, problem: str, status: dict[str, object]) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status


class Replica(RealReplica):
    def follow(self, primary: Primary | CuttingProxy, **given) -> None:
        """CHANGE MASTER and START SLAVE; options are those of `RealReplica.follow_at`."""
        account = {"user": getattr(primary, "user", USER), "password": getattr(primary, "password", PASSWORD)}
        self.follow_at(primary.host, primary.port, **account | given)

    def follow_by_file(self, primary: Primary, file: str, position: object = 4) -> None:
        """CHANGE MASTER and START SLAVE from a place in a file."""
        self.follow(primary, start=False)
        place = (file, position)
        self.sql("CHANGE MASTER TO MASTER_USE_GTID = no, MASTER_LOG_FILE = %s, MASTER_LOG_POS = %s", place)
        self.sql("START SLAVE")

    def begin_anew(self) -> None:
        """Make an empty replica of one that has followed before."""
        self.log.clear()
        self.sql("STOP SLAVE")
        self.sql("RESET SLAVE ALL")
        self.sql("SET GLOBAL gtid_slave_pos = ''")
        drop_databases(self)

    def follow_until(self, position: str) -> None:
        """START SLAVE up to a GTID position; return when the replica has applied it."""
        self.sql(f"START SLAVE UNTIL master_gtid_pos = '{position}'")
        self.wait_for_gtid(position)

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
        self.wait_until(lambda _: problem_of(self.status(), tolerates_lost_connections=False), timeout_s=timeout_s)
        return problem_of(self.status(), tolerates_lost_connections=False)

    def pause(self) -> None:
        """Let the replica work for a moment: wait for what never comes."""
        self.sql("SELECT MASTER_GTID_WAIT('4294967295-4294967295-18446744073709551614', %s)", (WAIT_STEP_S,))

    def wait_until(self, holds: Callable[[Replica], object], *, timeout_s: float = 600.0) -> None:
        """Look at the replica again and again until something holds of it.

        Raises ReplicationError: it does not within the time.
        """
        end = time.monotonic() + timeout_s
        while not holds(self):
            if time.monotonic() > end:
                raise ReplicationError(f"what was waited for did not come within {timeout_s} s", self.status())
            self.pause()

    def tables(self, names: list[str]) -> dict[str, TableContent | None]:
        return contents(self, names)

    def expect_no_fallback(self) -> None:
        """Its log does not say that it gave up a group and began it again."""
        assert [line for line in self.log if any(text in line for text in FALLBACKS)] == []

    def expect_end(self, capture: Capture, **given) -> None:
        """The replica comes to the tables that a replica of a real primary had in the end.

        Raises ReplicationError: it stops before; options are those of `wait_for_gtid`.
        """
        self.wait_for_gtid(capture.last_position, **given)
        expected = capture.replayed(self.programs.version).tables
        assert self.tables(list(expected)) == expected
