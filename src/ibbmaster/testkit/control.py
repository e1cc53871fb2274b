"""A socket over which a test in any language asks a served scenario: one line of JSON each way."""

from __future__ import annotations

import dataclasses
import hmac
import json
import secrets
import socketserver
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from ibbmaster.errors import ConfigurationError, IbbMasterError
from .fault import PlannedFault
from .fault_plan import FaultRecord
from .given import expect, only, shown
from .primary import FixturePrimary
from .witness import SeenConnection
from .written import WrittenGroup

LINE_SIZE_MAX = 1 << 20
CONNECTIONS_MAX = 16
WAIT_S_MAX = 3600.0
TOKEN_SIZE = 16  # bytes of chance
WITHOUT_TOKEN = {"ok": False, "error": "the first question has to have the token"}

Answer = Mapping[str, Any]


class ControlSocket:
    """Listens on a port of this machine, in threads of its own, until it is closed. `do` names the question in an
    object; the answer has `ok`, and `error` if that is false. `stop` calls `on_stop`. The first question of a
    connection carries the `token`, which a page in a browser of this machine does not know. A line without an object
    ends the connection."""

    def __init__(self, primary: FixturePrimary, on_stop: Callable[[], None] = lambda: None) -> None:
        self.token = secrets.token_urlsafe(TOKEN_SIZE)  # for askers
        self._primary = primary
        self._on_stop = on_stop
        self._places = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_known(self, asked: Mapping[str, Any]) -> bool:
        token = asked.get("token")
        return isinstance(token, str) and hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def answer(self, question: Mapping[str, Any]) -> Answer:
        asked = {name: value for name, value in question.items() if name != "token"}
        try:
            verb = asked.pop("do", None)
            if not isinstance(verb, str) or verb not in _QUESTIONS:
                raise ConfigurationError(f"do {shown(verb)}: expected one of {', '.join(_QUESTIONS)}")
            do, keys = _QUESTIONS[verb]
            if keys is not None:
                only(verb, asked, keys)
            return {"ok": True, **do(self, asked)}
        except (IbbMasterError, ValueError, TimeoutError, RecursionError) as error:
            return {"ok": False, "error": " ".join(str(error).split())}

    def take_place(self) -> bool:
        """Whether one more connection may come."""
        return self._places.acquire(blocking=False)

    def leave(self) -> None:
        self._places.release()

    # Questions ----------------------------------------------------------------------------------

    def _fault(self, asked: dict[str, Any]) -> Answer:
        line = asked.get("line")
        fault = PlannedFault.of(asked) if line is None else PlannedFault.parse(expect("line", str, line))
        return {"fault": str(self._primary.faults.add_fault(fault))}

    def _now(self, asked: dict[str, Any]) -> Answer:
        self._primary.faults.act(PlannedFault.of({**asked, "at": 0.0}))
        problem = self._primary.faults.done[-1].problem
        if problem:
            raise ConfigurationError(problem)
        return {}

    def _clear(self, asked: dict[str, Any]) -> Answer:
        self._primary.faults.clear()
        return {}

    def _faults(self, asked: dict[str, Any]) -> Answer:
        if "timeout" in asked:
            self._primary.faults.wait(_seconds(asked["timeout"]))
        faults = self._primary.faults
        return {"pending": [str(fault) for fault in faults.pending], "done": [_told(record) for record in faults.done]}

    def _group(self, asked: dict[str, Any]) -> Answer:
        gtid = WrittenGroup.of({key: value for key, value in asked.items() if key != "at"}).write(self._primary)
        return {"gtid": None if gtid is None else str(gtid)}

    def _table(self, asked: dict[str, Any]) -> Answer:
        columns = expect("columns", dict, asked.get("columns", {}))
        table = self._primary.table(expect("name", str, asked.get("name")), **columns)
        return {"rows": [{name: _shown(value) for name, value in row.items()} for row in table.rows]}

    def _position(self, asked: dict[str, Any]) -> Answer:
        return {"position": str(self._primary.log.position), "port": self._primary.port}

    def _authority(self, asked: dict[str, Any]) -> Answer:
        return {"file": str(self._primary.authority_file)}

    def _connections(self, asked: dict[str, Any]) -> Answer:
        return {"connections": [_seen(connection) for connection in self._primary.connections]}

    def _wait(self, asked: dict[str, Any]) -> Answer:
        replica = expect("replica", int | str, asked.get("replica"))
        gtid = expect("gtid", str | None, asked.get("gtid"))
        self._primary.wait_for(replica, gtid, _seconds(asked.get("timeout", 10)))
        return {}

    def _stop(self, asked: dict[str, Any]) -> Answer:
        self._on_stop()
        return {}


_QUESTIONS: dict[str, tuple[Callable[[ControlSocket, dict[str, Any]], Answer], tuple[str, ...] | None]] = {
    "fault": (ControlSocket._fault, None),  # `PlannedFault` checks its keys
    "now": (ControlSocket._now, None),
    "clear": (ControlSocket._clear, ()),
    "faults": (ControlSocket._faults, ("timeout",)),
    "group": (ControlSocket._group, None),
    "table": (ControlSocket._table, ("name", "columns")),
    "position": (ControlSocket._position, ()),
    "authority": (ControlSocket._authority, ()),
    "connections": (ControlSocket._connections, ()),
    "wait": (ControlSocket._wait, ("replica", "gtid", "timeout")),
    "stop": (ControlSocket._stop, ()),
}
QUESTIONS = tuple(_QUESTIONS)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], control: ControlSocket) -> None:
        self.control = control
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # the asker has gone


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        control = self.server.control
        is_known = False
        if not control.take_place():
            self.wfile.write(b'{"ok": false, "error": "too many connections"}\n')
            return
        try:
            while line := self.rfile.readline(LINE_SIZE_MAX + 1):
                asked = _question(line)
                if asked is None:
                    return
                is_known = is_known or control.is_known(asked)
                answer = control.answer(asked) if is_known else WITHOUT_TOKEN
                self.wfile.write(json.dumps(answer).encode() + b"\n")
                if not is_known:
                    return
        finally:
            control.leave()


def _question(line: bytes) -> dict[str, Any] | None:
    """An object; None for anything else, as the first line of a browser."""
    if len(line) > LINE_SIZE_MAX:
        return None
    try:
        asked = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return asked if isinstance(asked, dict) else None


def _told(record: FaultRecord) -> Answer:
    told = {**dataclasses.asdict(dataclasses.replace(record, fault=None)), "fault": str(record.fault)}  # type: ignore[arg-type]
    return {**told, "event": record.event.hex()}


def _seen(connection: SeenConnection) -> Answer:
    return {
        "number": connection.number,
        "user": connection.user,
        "server_id": connection.server_id,
        "statements": [statement.text for statement in connection.statements],
        "dump_start": None if connection.dump_start is None else str(connection.dump_start),
        "sent_gtids": [str(gtid) for gtid in connection.sent_gtids],
        "sent_bytes": connection.sent_bytes,
        "is_connected": connection.is_connected,
        "reason": connection.reason,
        "text": str(connection),
    }


def _shown(value: object) -> object:
    """A value for JSON: bytes in hexadecimal digits, other types without a form as text."""
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _seconds(value: object) -> float:
    seconds: float = expect("timeout", float, value)
    if not 0 <= seconds <= WAIT_S_MAX:
        raise ConfigurationError(f"timeout {value!r}: expected seconds from 0 to {WAIT_S_MAX:.0f}")
    return seconds
