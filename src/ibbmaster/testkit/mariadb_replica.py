"""A real MariaDB replica: point it at a primary, and see where it is and what stopped it."""

from __future__ import annotations

from pathlib import Path

from ibbmaster.testkit.mariadb_server import RealServer, ServerTemplate

CONNECT_RETRY_S = 1
REPLICA_SERVER_ID = 1001


class RealReplica(RealServer):
    """A real replica. It takes no connection but ours."""

    def __init__(
        self, template: ServerTemplate, directory: Path, *options: str, server_id: int = REPLICA_SERVER_ID
    ) -> None:
        super().__init__(
            template, directory, f"--server-id={server_id}", "--skip-slave-start", "--relay-log=relay", *options
        )

    def follow_at(
        self,
        host: str,
        port: int,
        *,
        user: str,
        password: str,
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
            f"MASTER_HOST='{host}'",
            f"MASTER_PORT={port}",
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

    @property
    def position(self) -> set[str]:
        """Its GTID position; the order of domains means nothing."""
        return set(str(self.sql("SELECT @@GLOBAL.gtid_slave_pos")[0][0]).split(",")) - {""}


def problem_of(status: dict[str, object], *, tolerates_lost_connections: bool) -> str | None:
    """The error in a SHOW SLAVE STATUS row, if there is one that does not heal by itself."""
    if status["Last_SQL_Errno"]:
        return str(status["Last_SQL_Error"])
    has_given_up = status["Slave_IO_Running"] == "No"
    if status["Last_IO_Errno"] and (has_given_up or not tolerates_lost_connections):
        return str(status["Last_IO_Error"])
    return None
