"""Dumps without a network, by the careful path and by the fast one."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from ibbmaster.dump.profile import PROFILES
from ibbmaster.dump.request import DumpRequest
from ibbmaster.dump.session import DumpSession
from ibbmaster.dump.start import check_start
from ibbmaster.gtid import GtidPosition
from ibbmaster.kernel import loading
from ibbmaster.server import shared_blocks
from ibbmaster.server.dumping import Producer
from ibbmaster.server.shared_blocks import SharedBlocks


@dataclass
class Dump:
    """What came out of a dump: its bytes, how many groups took the careful path, and why it ended."""

    data: bytearray
    careful_groups: int
    error: str | None
    producer: Producer
    pumped: int = 0  # bytes that a socket took
    rest_max: int = 0  # bytes it did not take of one call, at most
    blocks: list[int] = field(default_factory=list)  # their sizes


class GroupCount:
    """Counts the groups that a reader hands out from now on; the reader stays what it is."""

    def __init__(self, groups: Any) -> None:
        self._next_group = groups.next_group
        self.count = 0
        groups.next_group = self._counted

    def _counted(self) -> Any:
        group = self._next_group()
        self.count += group is not None
        return group


def run_dump(
    engine,
    *,
    is_fast,
    is_pumped=False,
    send_buffer=4 << 20,
    shared=None,
    position="",
    profile="engine",
    between=None,
    stays=False,
    **options,
) -> Dump:
    """Dump from a position to the end; `between` is called after each block, and the log may grow there.

    With `stays`, it counts as a reader still.

    With `is_pumped`, a socket takes what it can whenever that goes: about `send_buffer` bytes at once.
    """
    request = DumpRequest(
        replica_server_id=9,
        position=GtidPosition.parse(position),
        **{"capability": 4, "wants_annotate_rows": True, **options},
    )
    check = check_start(request, engine.state())
    place = engine.seek(request.position)
    session = DumpSession(
        request,
        check,
        profile=PROFILES[profile],
        server_id=1,
        start_state=place.state,
        current_state=engine.state,
        position=place.position,
        file_name=engine.file_name,
    )
    groups = engine.groups(place)
    counted = GroupCount(groups)
    producer = Producer(groups, session, shared or SharedBlocks())
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    ours.setblocking(False)
    theirs.setblocking(False)
    was = shared_blocks.kernels
    shared_blocks.kernels = loading.load if is_fast else lambda: None
    generation = 1
    try:
        session.start()
        dump = Dump(bytearray(session.data_to_send()), 0, None, producer)
        while True:
            if is_pumped:
                rest = producer.pump(ours.fileno())
                size = len(dump.data)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        dump.data += theirs.recv(1 << 20)
                dump.pumped += len(dump.data) - size
                dump.data += as_buffer(rest)
                dump.rest_max = max(dump.rest_max, len(rest))
                if len(dump.data) > size:
                    continue
            generation += between is not None
            block = producer.ready_block(generation)
            if block is None:
                block = producer.next_block(generation)
                producer.end_look()
            dump.data += as_buffer(block)
            if len(block):
                dump.blocks.append(len(block))
            if between is not None:
                between(session)
            elif (producer.is_at_end and not len(block)) or (session.is_finished and not len(block)):
                break
            if session.is_finished and not len(block):
                break
        dump.careful_groups = counted.count
        dump.error = None if session.error is None else str(session.error)
        return dump
    finally:
        shared_blocks.kernels = was
        if not stays:
            producer.close()
        ours.close()
        theirs.close()


def as_buffer(data):
    """What is in a block, or in a buffer."""
    return data if isinstance(data, bytes | bytearray) else data.data()


@pytest.fixture
def dump_of() -> Callable[..., Dump]:
    if loading.load() is None:
        pytest.fail("the kernels cannot be loaded here")
    return run_dump
