"""One reader of a soak: interrupted in every way, it checks that it gets each group once, in order."""

from __future__ import annotations

import contextlib
import math
import random
import struct
from collections import Counter

import trio

from ibbmaster.errors import IbbMasterError, SourceError
from ibbmaster.event.group import GroupBoundary
from ibbmaster.event.gtid_event import decode_gtid
from ibbmaster.event.header import decode_event_header
from ibbmaster.event.types import EventFlag, EventType
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.wire.capability import SERVER_DEFAULT, Capability
from ibbmaster.wire.handshake import decode_greeting
from ibbmaster.wire.packet import PacketReader
from tests.machinery.client_wire import answer_native
from tests.machinery.soak_log import gtid_of, is_whole

PAYLOAD_MAX = 1 << 26
RECEIVE_SIZE = 1 << 16
FIRST_SERVER_ID = 100
TYPE_OFFSET = 4  # in the event header
CONNECTION_LOST = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
RETRY_S = 0.05
FAULT_COUNT_MAX = 20  # that a reader keeps
FATAL = b"\xff" + (1236).to_bytes(2, "little")
#: What becomes of a connection, and how long it takes, in bytes or seconds, from the least to the most.
CUT_BYTES = (100, 3_000_000)
STALL_BYTES = (100, 3_000_000)
STALL_S = (0.05, 12.0)
LIFE_S = (0.02, 20.0)
LIFE_OF_STALLING_S = (1.0, 60.0)


class GroupChecker:
    """Takes the events of one connection after the other; `faults` says what was not as it must be."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.faults: list[str] = []
        self.group_count = 0
        self.last: dict[int, int] = {}  # sequence number of each domain
        self._seed = seed
        self._missing: set[Gtid] = set()
        self._gtid: Gtid | None = None  # of the current group
        self._boundary = GroupBoundary(0)
        self._events: list[bytes] = []
        self._cut: tuple[Gtid, list[bytes]] | None = None  # what an earlier connection brought of a group
        self._where = "before its first connection"

    @property
    def position(self) -> GtidPosition:
        """What it has, whole groups only."""
        return GtidPosition(gtid_of(domain_id, seq_no) for domain_id, seq_no in sorted(self.last.items()))

    def begin(self, connection_id: int) -> None:
        """Events of a new connection follow; a group that was cut off must come again."""
        if self._gtid is not None:
            self._cut = self._gtid, self._events
        self._gtid, self._events = None, []
        self._where = f"connection {connection_id}, from [{self.position}]"

    def receive_event(self, event: bytes) -> None:
        """The next event, without checksum."""
        header = decode_event_header(event)
        if header.size != len(event):
            self.note(f"an event of {len(event)} bytes says it has {header.size}")
        if header.event_type == EventType.HEARTBEAT or header.flags & EventFlag.ARTIFICIAL:
            return
        if header.event_type == EventType.GTID:
            gtid, flags = decode_gtid(header, event)
            if self._gtid is not None:
                self.note(f"{gtid} begins inside {self._gtid}, after {len(self._events)} events of it")
            self._gtid, self._events, self._boundary = gtid, [], GroupBoundary(flags)
            self._check_order(gtid)
        elif self._gtid is None:
            self.note(f"an event of type {header.event_type} comes outside of a group")
        else:
            self._events.append(event)
            if self._boundary.ends_with(header, event):
                self._end_group(self._gtid)

    def finish(self) -> None:
        """Nothing more comes: what has not come is lost."""
        if self._missing:
            lost = ", ".join(str(gtid) for gtid in sorted(self._missing, key=str)[:20])
            self.note(f"lost: {lost}")

    def _check_order(self, gtid: Gtid) -> None:
        last = self.last.get(gtid.domain_id, 0)
        if gtid.seq_no == last + 1:
            return
        if gtid.seq_no > last + 1:
            skipped = [gtid_of(gtid.domain_id, seq_no) for seq_no in range(last + 1, gtid.seq_no)]
            self._missing.update(skipped)
            self.note(f"{gtid} comes behind {gtid_of(gtid.domain_id, last)}: without {skipped[0]} to {skipped[-1]}")
        elif gtid in self._missing:
            self._missing.discard(gtid)
            self.note(f"{gtid} comes late, behind {gtid_of(gtid.domain_id, last)}: out of order")
        else:
            self.note(f"{gtid} comes twice; the last of its domain was {gtid_of(gtid.domain_id, last)}")

    def _end_group(self, gtid: Gtid) -> None:
        events = self._events
        if not is_whole(self._seed, gtid, events):
            self.note(f"{gtid} comes with {len(events)} events that are not those it was written with")
        if self._cut is not None and self._cut[0] == gtid:
            before = self._cut[1]
            if events[: len(before)] != before:
                self.note(f"{gtid} comes again with other events: a replica counts those it has")
            self._cut = None
        self._gtid, self._events = None, []
        self.last[gtid.domain_id] = max(gtid.seq_no, self.last.get(gtid.domain_id, 0))
        self.group_count += 1

    def note(self, fault: str) -> None:
        """Something is not as it must be."""
        if len(self.faults) < FAULT_COUNT_MAX:
            self.faults.append(f"{self.name}: {fault} ({self._where})")


class Client:
    """A connection that speaks just enough of the protocol.

    Raises:
        IbbMasterError: the primary breaks the protocol.
        OSError, trio.BrokenResourceError: the connection is lost.
    """

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.connection_id = 0
        self.received = 0  # bytes
        self._reader = PacketReader(limit=PAYLOAD_MAX)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(self.stream)

    async def packet(self) -> bytes:
        """The next payload; empty when the server has closed."""
        while (packet := self._reader.next_packet()) is None:
            data = await self.stream.receive_some(RECEIVE_SIZE)
            if not data:
                return b""
            self.received += len(data)
            self._reader.receive_data(data)
        return packet.payload

    async def send(self, payload: bytes, sequence: int = 0) -> None:
        self._reader.next_sequence = sequence + 1
        await self.stream.send_all(len(payload).to_bytes(3, "little") + bytes([sequence]) + payload)

    async def log_in(self, user: str, password: str) -> None:
        greeting = decode_greeting(await self.packet())
        self.connection_id = greeting.connection_id
        capabilities = SERVER_DEFAULT & ~Capability.CONNECT_ATTRIBUTES & ~Capability.CONNECT_WITH_DB
        fixed = struct.pack("<IIB23s", int(capabilities) & 0xFFFFFFFF, PAYLOAD_MAX, 45, b"")
        answer = answer_native(password, greeting.seed)
        login = user.encode() + b"\0" + bytes([len(answer)]) + answer + b"mysql_native_password\0"
        await self.send(fixed + login, 1)
        await self._expect_ok("login")

    async def run(self, sql: str) -> None:
        """A statement that gives no rows."""
        await self.send(b"\x03" + sql.encode())
        await self._expect_ok(sql)

    async def ask_for_dump(self, position: GtidPosition, *, server_id: int, heartbeat_s: float) -> None:
        await self.run(f"SET @mariadb_slave_capability=4, @slave_connect_state='{position}'")
        await self.run(f"SET @master_heartbeat_period={int(heartbeat_s * 1e9)}, @master_binlog_checksum='NONE'")
        await self.send(b"\x12" + struct.pack("<IHI", 4, 0, server_id))

    async def _expect_ok(self, what: str) -> None:
        payload = await self.packet()
        if not payload:
            raise trio.BrokenResourceError(f"{what}: the primary has closed the connection")
        if payload[0] != 0:
            raise SourceError(f"{what}: the primary answers {payload[:100]!r}")


class Reader:
    """Follows a primary through connections that are cut, stall, are killed, or lose to a newer one."""

    def __init__(self, number: int, *, port: int, account: tuple[str, str], heartbeat_s: float, seed: int) -> None:
        self.checker = GroupChecker(f"reader {number} (heartbeat {heartbeat_s:g} s)", seed)
        self.interruptions: Counter[str] = Counter()
        self.heartbeat_count = 0
        self._server_id = FIRST_SERVER_ID + number
        self._port = port
        self._account = account
        self._heartbeat_s = heartbeat_s
        self._rng = random.Random(f"{seed} reader {number}")
        self._is_calm = False
        self._life = trio.CancelScope()  # of the connection

    def calm_down(self) -> None:
        """From here on, one connection that is not interrupted."""
        self._is_calm = True
        self._life.cancel()

    async def run(self) -> None:
        """Read until it is cancelled, or the primary refuses to continue."""
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    async with await self._connect() as client:
                        await self._follow(client, nursery)
                except CONNECTION_LOST:
                    await trio.sleep(RETRY_S)
                except IbbMasterError as error:
                    self.checker.note(str(error))
                    return

    async def _connect(self) -> Client:
        client = Client(await trio.open_tcp_stream("127.0.0.1", self._port))
        try:
            await client.log_in(*self._account)
        except BaseException:
            await trio.aclose_forcefully(client.stream)
            raise
        return client

    async def _follow(self, client: Client, nursery: trio.Nursery) -> None:
        """One connection, and its end."""
        kind = self._rng.choice(("cut", "cut", "stall", "KILL", "KILL QUERY", "newer dump"))
        self.checker.begin(client.connection_id)
        await self._ask_for_dump(client)
        if self._is_calm:
            await self._read(client, math.inf)
            return
        self.interruptions[kind] += 1
        with trio.move_on_after(self._between(*LIFE_OF_STALLING_S)) as self._life:
            match kind:
                case "cut":
                    await self._read(client, client.received + self._between(*CUT_BYTES))
                case "stall":
                    while await self._read(client, client.received + self._between(*STALL_BYTES)):
                        await trio.sleep(self._between(*STALL_S))
                case _:
                    nursery.start_soon(self._end, kind, client.connection_id)
                    await self._read(client, math.inf)

    async def _ask_for_dump(self, client: Client) -> None:
        await client.ask_for_dump(self.checker.position, server_id=self._server_id, heartbeat_s=self._heartbeat_s)

    async def _read(self, client: Client, size: float) -> bool:
        """Take events until `size` bytes were received on the connection; False when it has ended."""
        while client.received < size:
            payload = await client.packet()
            if payload.startswith(FATAL):
                raise SourceError(f"the primary ends the dump with {payload[9:].decode(errors='replace')!r}")
            if not payload or payload[0] != 0:
                return False  # closed, EOF, or an error after which a replica connects again
            self.heartbeat_count += payload[1 + TYPE_OFFSET] == EventType.HEARTBEAT
            self.checker.receive_event(payload[1:])
        return True

    async def _end(self, kind: str, connection_id: int) -> None:
        """After a while, end a connection from another one; it may have ended before."""
        await trio.sleep(self._between(*LIFE_S))
        with contextlib.suppress(IbbMasterError, *CONNECTION_LOST):
            async with await self._connect() as other:
                if kind == "newer dump":
                    await self._ask_for_dump(other)
                    await other.packet()
                else:
                    await other.run(f"{kind} {connection_id}")

    def _between(self, least: float, most: float) -> float:
        return math.exp(self._rng.uniform(math.log(least), math.log(most)))
