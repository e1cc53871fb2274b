"""A log served beneath the sockets: statements and dumps as a connection has them, without one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.primary.server.dump_opening import DumpOpening
from ibbmaster.primary.server.facts import PrimaryFacts
from ibbmaster.primary.server.login_guard import LoginGuard
from ibbmaster.primary.server.options import PrimaryOptions
from ibbmaster.primary.server.registry import Registry
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.wire.auth import make_account
from ibbmaster.replication.wire.packet import PacketReader

EOF = b"\xfe"
BINLOG_STATEMENTS = ("binlog_state", "binlog_end", "binary_logs")


class ServedDump:
    def __init__(self, served: ServedLog, position: str | tuple[str, int]) -> None:
        self.events: list[bytes] = []
        self.end: bytes | None = None
        self._served = served
        wishes: dict[str, Any] = {"position": None if isinstance(position, tuple) else GtidPosition.parse(position)}
        if isinstance(position, tuple):
            wishes["file_name"], wishes["file_position"] = position
        request = DumpRequest(
            replica_server_id=9, capability=4, wants_annotate_rows=True, knows_checksums=True, **wishes
        )
        self.opened = served.opening.open(request)
        self._packets = PacketReader(limit=1 << 26, next_sequence=1)
        self._source = BlockSource(self.opened.groups, self.opened.dump, served.shared)
        self.opened.dump.start()

    def go_on(self) -> None:
        dump = self.opened.dump
        for generation in range(self._served.generation + 1, 1 << 30):
            self._served.generation = generation
            block = self._source.next_block(generation, may_wait=False)
            if block is None:
                block = self._source.next_block(generation, may_wait=True)
            assert block is not None
            self._packets.receive_data(block.data())
            if not len(block) and (self._source.is_at_end or dump.is_finished):
                break
        while (payload := self._packets.next_payload()) is not None:
            if payload[:1] == b"\0":
                self.events.append(payload[1:])
            else:
                self.end = payload

    def close(self) -> None:
        self._source.close()


class ServedLog:
    def __init__(self, engine: LogEngine, profile: str) -> None:
        self.engine = engine
        algorithm = getattr(engine, "checksum_algorithm", None)
        shape = PROFILES[profile] if algorithm is None else PROFILES[profile].of_files(algorithm)
        options = PrimaryOptions(
            host="localhost", port=0, account=make_account("u", ""), certificate=None, profile=shape
        )
        self.facts = PrimaryFacts(engine, options, Registry(), LoginGuard(lambda: 0.0))
        self.facts.started_at = 0
        self.opening = DumpOpening(engine, options, self.facts)
        self.shared = SharedBlocks()
        self.generation = 0

    def answers(self) -> dict[str, Any]:
        found = {name: self._answer(getattr(self.facts, name)) for name in BINLOG_STATEMENTS}
        for name, size in found["binary_logs"] if isinstance(found["binary_logs"], list) else ():
            found[f"events of {name}"] = self._answer(partial(self._events, name))
            found[f"state at the end of {name}"] = self._answer(partial(self.facts.gtid_position_at, name, size))
        return found

    def _events(self, name: str) -> list[Any]:
        return list(self.facts.binlog_events(name, 4))

    def _answer(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except IbbMasterError as error:
            return f"{type(error).__name__}: {error}"

    def dump(self, position: str | tuple[str, int]) -> tuple[list[bytes], Any]:
        try:
            dump = ServedDump(self, position)
        except IbbMasterError as error:
            return [], str(error) if isinstance(error, DumpError) else f"{type(error).__name__}: {error}"
        try:
            dump.go_on()
            return dump.events, dump.end
        finally:
            dump.close()
