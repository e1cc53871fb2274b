"""Dumps without a network, by the careful path and by the fast one."""

import contextlib
import socket
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pytest

from ibbmaster.gtid import GtidPosition
from ibbmaster.kernel import loading
from ibbmaster.logs.log.interface import FileEngine
from ibbmaster.primary.streaming import shared as shared_module
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.primary.streaming.sink import SocketSink
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.dump.request import DumpRequest
from tests.machinery.dump_sessions import session_of

#: Ways of the fast path.
PUMPS = [{}, {"is_pumped": True}, {"is_pumped": True, "send_buffer": 60_000}, {"is_pumped": True, "is_clear": False}]


@dataclass
class Dump:
    """What came out of a dump: its bytes, how many groups took the careful path, and why it ended."""

    data: bytearray
    careful_groups: int
    error: str | None
    source: BlockSource
    pumped: int = 0  # bytes that a socket took
    rest_max: int = 0  # bytes it did not take of one call, at most
    blocks: list[int] = field(default_factory=list)  # their sizes


class OpaqueSink(SocketSink):
    """As over TLS, what it is given is not what goes to its socket; and it takes note of how much each block is."""

    def __init__(self, descriptor, sizes):
        super().__init__(descriptor)
        self.descriptor = None
        self._sizes = sizes

    def write(self, data, patience_ms=0):
        self._sizes.append(len(data))
        return super().write(data)  # nobody reads meanwhile


class GroupCount:
    def __init__(self, groups):
        self._next_group = groups.next_group
        self.count = 0
        groups.next_group = self._counted

    def _counted(self, **kwargs):
        group = self._next_group(**kwargs)
        self.count += group is not None and group.gtid is not None
        return group


def gtids_of(engine):
    with contextlib.closing(engine.groups(engine.start_of_file())) as groups:
        return [group.gtid for group in iter(groups.next_group, None) if group.gtid is not None]


def positions_of(engine):
    state = engine.start_of_file().state.copy()
    positions = [state.position()]
    for gtid in gtids_of(engine):
        state.log(gtid)
        positions.append(state.position())
    return positions


class Call(NamedTuple):
    given: tuple
    named: dict
    found: object


def noted(monkeypatch, owner, name):
    calls, function = [], getattr(owner, name)

    def note(*given, **named):
        found = function(*given, **named)
        calls.append(Call(given, named, found))
        return found

    monkeypatch.setattr(owner, name, note)
    return calls


def write_all(store, groups):
    for group in groups:
        ticket = store.write_direct_ordered(*group)
    store.group_commit_ordered(ticket)


def run_dump(
    engine,
    *,
    is_fast,
    is_pumped=False,
    is_clear=True,
    send_buffer=4 << 20,
    shared=None,
    position="",
    profile="engine",
    between=None,
    stays=False,
    **options,
):
    """Dump from a position, or by file, to the end; `between` is called after each block, and the log may grow there.

    With `stays`, it counts as a reader still.

    With `is_pumped`, a socket takes what it can whenever that goes: about `send_buffer` bytes at
    once. If it is not `is_clear`, packets go there as over TLS: not straight from the files.
    """
    request = DumpRequest(
        replica_server_id=9,
        position=GtidPosition.parse(position),
        **{"capability": 4, "wants_annotate_rows": True, **options},
    )
    if request.file_name:
        request = replace(request, position=None)
    place = None
    if request.file_name:
        place = engine.start_of_file([file.name for file in engine.files()].index(request.file_name))
    is_of_files = isinstance(engine, FileEngine)
    shape = PROFILES[profile].of_files(engine.checksum_algorithm) if is_of_files else PROFILES[profile]
    session, place = session_of(engine, request, shape, place)
    if shape.sends_files:
        groups = engine.stored_groups(place, request.file_position if request.file_name else 4)
    else:
        groups = engine.groups(place)
    counted = GroupCount(groups)
    source = BlockSource(groups, session, shared or SharedBlocks())
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    ours.setblocking(False)
    theirs.setblocking(False)
    was = shared_module.kernels
    shared_module.kernels = loading.load if is_fast else lambda: None
    generation = 1
    try:
        session.start()
        dump = Dump(bytearray(), 0, None, source)
        sink = SocketSink(ours.fileno()) if is_clear else OpaqueSink(ours.fileno(), dump.blocks)
        while True:
            if is_pumped:
                assert not (session.watched_domain_ids and source.is_far_behind), "a hop to a thread in vain"
                rest, sent = source.pump(sink)
                size = len(dump.data)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        dump.data += theirs.recv(1 << 20)
                dump.pumped += len(dump.data) - size
                dump.data += rest.data()
                dump.rest_max = max(dump.rest_max, len(rest))
                if len(dump.data) > size:
                    assert len(dump.data) - size == sent + len(rest)
                    if between is not None:
                        between(session)
                    continue
            generation += between is not None
            block = source.next_block(generation, may_wait=False)
            if block is None:
                block = source.next_block(generation, may_wait=True)
                source.end_probe()
            dump.data += block.data()
            if len(block):
                dump.blocks.append(len(block))
            if between is not None:
                between(session)
            if not len(block) and (session.is_finished or (between is None and source.is_at_end)):
                break
        dump.careful_groups = counted.count
        dump.error = None if session.error is None else str(session.error)
        return dump
    finally:
        shared_module.kernels = was
        if not stays:
            source.close()
        ours.close()
        theirs.close()


def check_same(dump_of, engine, position="", ways=PUMPS, **options):
    """Each way gives what groups one by one give; returns that dump and those."""
    careful = dump_of(engine, is_fast=False, position=position, **options)
    dumps = [dump_of(engine, is_fast=True, position=position, **way, **options) for way in ways]
    for way, dump in zip(ways, dumps, strict=True):
        assert dump.data == careful.data, (position, way, options)
        assert dump.error == careful.error
    return careful, dumps


@pytest.fixture
def dump_of():
    if loading.load() is None:
        pytest.fail("the kernels cannot be loaded here")
    with contextlib.ExitStack() as staying:

        def dump(*args, **options):
            made = run_dump(*args, **options)
            if options.get("stays"):
                staying.callback(made.source.close)
            return made

        yield dump
