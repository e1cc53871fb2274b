"""A real MariaDB replica, set up as an operator would: what it tells is what it has applied, as its own binlog has it.

`replica.py VERSION` follows; `replica.py VERSION prepare` sees whether the programs of the version are here.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pymysql

import ibbmaster
from ibbmaster.replication.dump.start import is_logged
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.statement.logged import STATEMENT_TYPES, decode_statement
from ibbmaster.testkit.mariadb_programs import ProgramsMissingError, find_programs
from ibbmaster.testkit.mariadb_server import RealReplica, ServerTemplate
from ibbmaster_scorecard.adapters.adapting import ask, run, tell

POLL_S = 0.05
HEARTBEAT_PERIOD_S = 1.0
SLOW_EVENT_BYTES = 100  # about the size of an event
OPTIONS = (
    f"--slave-net-timeout={5 * HEARTBEAT_PERIOD_S:.0f}",
    "--log-slave-updates",
    "--binlog-format=ROW",
    "--binlog-row-metadata=FULL",
    "--innodb-flush-log-at-trx-commit=2",  # what is committed survives that the process is killed
)
SESSION_STATEMENT = re.compile(r"(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|XA (START|END))\b", re.IGNORECASE)


def main() -> int:
    version = sys.argv[1]
    try:
        template = ServerTemplate.of_user(find_programs(version))
    except ProgramsMissingError as error:
        print(error, file=sys.stderr)
        return 1
    if sys.argv[2:] == ["prepare"]:
        return 0
    request = json.loads(sys.stdin.readline())
    directory = Path(request["directory"])
    applied = directory / "applied"
    applied.mkdir(exist_ok=True)
    options = (*OPTIONS, f"--log-bin={applied.absolute() / 'binlog'}")
    replica = RealReplica(template, directory / "server", *options, server_id=request["server_id"])
    replica.start()
    try:
        return 0 if Follower(replica, applied / "binlog.index", request).run() else 1
    finally:
        replica.stop()


class Follower:
    def __init__(self, replica: RealReplica, index: Path, request: dict[str, Any]) -> None:
        resume = request["resume"] or {"gtid": request["start"], "place": [0, 0]}
        self._replica = replica
        self._index = index
        self._request = request
        self._reached = dict(ibbmaster.GtidPosition.parse(resume["gtid"]))  # domain -> GTID
        self._place = ibbmaster.LogPosition(*resume["place"])  # in the replica's binlog, up to which all was told
        self._size = -1
        self._told = {"IO": "", "SQL": ""}
        # A replica needs the tables and their rows: it begins where the log does, and tells what is behind `start`.
        self._asks_for_start = index.parent / "asks-for-start"
        is_inside = bool(request["resume"]) or self._asks_for_start.exists()
        self._ahead = {} if is_inside else dict(self._reached)
        self._is_ended = threading.Event()
        threading.Thread(target=self._wait_for_end, daemon=True).start()

    def _wait_for_end(self) -> None:
        sys.stdin.read()
        self._is_ended.set()

    def run(self) -> bool:
        """Until the end is asked for, or, which returns False, until a thread of the replica has stopped."""
        tell("version", text=f"MariaDB {self._replica.sql('SELECT VERSION()')[0][0]} as a replica")
        if delay_ms := self._request["delay_ms"]:
            self._replica.sql("SET GLOBAL read_binlog_speed_limit = %s", (max(1, SLOW_EVENT_BYTES // delay_ms),))
        if self._replica.query("SHOW SLAVE STATUS"):
            self._replica.sql("START SLAVE")
        else:
            self._follow("" if self._is_start_logged() else self._request["start"])
        is_following = True
        while is_following and not self._is_ended.wait(POLL_S):
            is_following = self._tell_errors()
            self._tell_applied()
        return is_following

    def _follow(self, position: str) -> None:
        if position:
            self._asks_for_start.touch()
            self._ahead = {}
        request = self._request
        self._replica.follow_at(
            request["host"],
            request["port"],
            user=request["user"],
            password=request["password"],
            ssl=bool(request["tls"]),
            position=position,
            heartbeat_period_s=HEARTBEAT_PERIOD_S,
        )

    def _is_start_logged(self) -> bool:
        if not self._ahead:
            return True
        try:
            state = ibbmaster.GtidState.parse(ask(self._request, "SELECT @@GLOBAL.gtid_binlog_state"))
        except (pymysql.Error, OSError):
            return True
        return all(is_logged(gtid, state) for gtid in self._ahead.values())

    def _tell_errors(self) -> bool:
        status = self._replica.status()
        is_following = True
        for thread in ("IO", "SQL"):
            text = str(status[f"Last_{thread}_Error"])
            is_fatal = status[f"Slave_{thread}_Running"] == "No" and bool(text)
            if is_fatal and status["Last_IO_Errno"] == 1236 and self._ahead and not status["Gtid_IO_Pos"]:
                return self._start_behind_purged()
            if text and text != self._told[thread]:
                tell("error", text=text, is_fatal=is_fatal, is_retried=not is_fatal)
            self._told[thread] = text
            is_following &= not is_fatal
        return is_following

    def _start_behind_purged(self) -> bool:
        """The log has lost its beginning: ask for the very position, whatever tables are missing."""
        self._replica.sql("STOP SLAVE")
        self._follow(self._request["start"])
        return True

    def _tell_applied(self) -> None:
        size = sum(path.stat().st_size for path in self._index.parent.iterdir())
        if size == self._size:
            return
        self._size = size
        with ibbmaster.open(self._index) as log:
            for group in log.groups():
                if group.start >= self._place:
                    self._tell_group(group)
                    self._place = group.end

    def _tell_group(self, group: ibbmaster.Group) -> None:
        domain_id = group.gtid.domain_id
        if domain_id in self._ahead:
            if self._ahead[domain_id] == group.gtid:
                del self._ahead[domain_id]
            return
        self._reached[domain_id] = group.gtid
        tell("begin", gtid=str(group.gtid))
        for event in group.events():
            if decode_event_header(event.data).event_type in STATEMENT_TYPES:
                text = decode_statement(event.data).text
                if not SESSION_STATEMENT.match(text):
                    tell("statement", sql=text)
        for table, change in group.rows():
            if self._request.get("tables"):
                names = [column.name for column in table.columns]
                key = [names[number] for number in table.primary_key]
                tell("table", table=table.name, columns=names, key=key, types=[column.type for column in table.columns])
            before, after = plain(change.before), plain(change.after)
            tell("change", table=table.name, kind=change.kind, before=before, after=after)
        tell("commit", gtid=str(group.gtid))
        place = [group.end.file_no, group.end.offset]
        tell("position", position={"gtid": str(ibbmaster.GtidPosition(self._reached.values())), "place": place})


def plain(row: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if row is None else {name: plain_value(value) for name, value in row.items()}


def plain_value(value: object) -> object:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value if value is None or isinstance(value, str | int | float) else str(value)


if __name__ == "__main__":
    run(main)
