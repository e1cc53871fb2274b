"""A socket over which a test in any language asks a served scenario: one line of JSON each way."""

from __future__ import annotations

import dataclasses
import hmac
import json
import secrets
import socketserver
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ibbmaster.errors import ConfigurationError, IbbMasterError
from .fault import FaultRecord, PlannedFault
from .given import expect, only, shown
from .primary import FixturePrimary
from .witness import SeenConnection
from .written import WrittenGroup

LINE_SIZE_MAX = 1 << 20
CONNECTIONS_MAX = 16
WAIT_S_MAX = 3600.0
TOKEN_SIZE = 16  # bytes of chance
WITHOUT_TOKEN = {"ok": False, "error": "the first question has to have the token"}
#: The keys of each question; None: those of a fault or a group.
QUESTIONS: dict[str, tuple[str, ...] | None] = {
    **dict.fromkeys(("fault", "now"), None),
    "clear": (),
    "faults": ("timeout",),
    "group": None,
    "table": ("name", "columns"),
    **dict.fromkeys(("position", "authority", "connections"), ()),
    "wait": ("replica", "gtid", "timeout"),
    "stop": (),
}

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
        self.places = threading.BoundedSemaphore(CONNECTIONS_MAX)
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

    def is_known(self, asked: Mapping[str, Any]) -> bool:
        token = asked.get("token")
        return isinstance(token, str) and hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def answer(self, question: Mapping[str, Any]) -> Answer:
        asked = {name: value for name, value in question.items() if name != "token"}
        try:
            verb = asked.pop("do", None)
            if not isinstance(verb, str) or verb not in QUESTIONS:
                raise ConfigurationError(f"do {shown(verb)}: expected one of {', '.join(QUESTIONS)}")
            if (keys := QUESTIONS[verb]) is not None:
                only(verb, asked, keys)
            return {"ok": True, **self._do(verb, asked)}
        except (IbbMasterError, ValueError, TimeoutError, RecursionError) as error:
            return {"ok": False, "error": " ".join(str(error).split())}

    def _do(self, verb: str, asked: dict[str, Any]) -> Answer:
        primary, faults = self._primary, self._primary.faults
        match verb:
            case "fault":
                line = expect("line", str | None, asked.get("line"))
                fault = PlannedFault.of(asked) if line is None else PlannedFault.parse(line)
                return {"fault": str(faults.add_fault(fault))}
            case "now":
                faults.act(PlannedFault.of({**asked, "at": 0.0}))
                if problem := faults.done[-1].problem:
                    raise ConfigurationError(problem)
            case "clear":
                faults.clear()
            case "faults":
                if "timeout" in asked:
                    faults.wait(_seconds(asked["timeout"]))
                done = [_told(record) for record in faults.done]
                return {"pending": [str(fault) for fault in faults.pending], "done": done}
            case "group":
                gtid = WrittenGroup.of({key: value for key, value in asked.items() if key != "at"}).write(primary)
                return {"gtid": None if gtid is None else str(gtid)}
            case "table":
                columns = expect("columns", dict, asked.get("columns", {}))
                table = primary.table(expect("name", str, asked.get("name")), **columns)
                return {"rows": [{name: _shown(value) for name, value in row.items()} for row in table.rows]}
            case "position":
                return {"position": str(primary.log.position), "port": primary.port}
            case "authority":
                return {"file": str(primary.authority_file)}
            case "connections":
                return {"connections": [_seen(connection) for connection in primary.connections]}
            case "wait":
                replica = expect("replica", int | str, asked.get("replica"))
                late = _seconds(asked.get("timeout", 10))
                primary.wait_for(replica, expect("gtid", str | None, asked.get("gtid")), late)
            case "stop":
                self._on_stop()
        return {}


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
        if not control.places.acquire(blocking=False):
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
            control.places.release()


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
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _seconds(value: object) -> float:
    seconds: float = expect("timeout", float, value)
    if not 0 <= seconds <= WAIT_S_MAX:
        raise ConfigurationError(f"timeout {value!r}: expected seconds from 0 to {WAIT_S_MAX:.0f}")
    return seconds
