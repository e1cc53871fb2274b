"""All connections: SHOW PROCESSLIST lists them, KILL ends them, and one server id has one dump."""

import enum
import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import trio

from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.printable import address
from ibbmaster.work import BreakReason, Work
from .login_guard import address_key

REFUSALS = ("purged", "diverged", "privilege", "damaged", "other")  # kinds of a `DumpError`
REFUSALS_PAUSE_S, REFUSALS_PAUSE_MAX_S = 60.0, 3600.0  # between lines about those that are alike
REFUSALS_REMEMBERED_MAX = 1000
GRACE_S = 1.0  # for the last packet to a replica that does not read


class RunningDump(Protocol):
    @property
    def place(self) -> tuple[LogPosition, GtidState] | None:
        """Up to where it has read the log, and what was sent: of a state that changes, ask for single numbers. None:
        the kernel has all that is durable. For any thread."""


class EndReason(enum.Enum):
    SHUTDOWN = "the server is shutting down"
    HOLDS_FILE = "it keeps a file from being removed"
    KILL_QUERY = "KILL QUERY"
    NEWER_DUMP = "a newer dump of the same server id has begun"


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    connection_id: int
    host: str
    since: float  # on the monotonic clock
    port: int = 0  # of the client
    user: str = "unauthenticated user"
    is_in: bool = False
    is_admin: bool = False  # it may end the connections of others
    command: str = "Connect"
    state: str = ""
    replica_server_id: int | None = None  # set by COM_REGISTER_SLAVE
    replica_host: str = ""
    replica_port: int = 0
    dump_server_id: int | None = None  # set while a dump runs
    end_reason: EndReason | None = None
    reason: str = ""  # why it ended; empty: the client left, or was cut off
    socket: trio.socket.SocketType | None = None  # what it comes through, in clear or not
    dump_start: GtidPosition | None = None  # what the replica had before its dump, if it said so by GTID
    work: Work | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    dump: RunningDump | None = None
    waiting: trio.CancelScope | None = None  # the wait at the durable end; safe to break off

    @property
    def peer(self) -> str:
        return address(self.host, self.port)

    def __str__(self) -> str:
        return f"connection {self.connection_id} of {self.user}@{self.peer}"

    @property
    def log_fields(self) -> dict[str, object]:
        """What a JSON line of the log has of it."""
        found = {"connection": self.connection_id, "user": self.user, "client": self.peer}
        return found if self.dump_server_id is None else {**found, "server_id": self.dump_server_id}

    def note(self, command: str, state: str, now: float) -> None:
        self.command, self.state, self.since = command, state, now

    def cut_off(self, reason: BreakReason) -> None:
        if self.work is not None:
            self.work.break_off(reason)
        self.scope.cancel()

    def end_dump(self, reason: EndReason) -> None:
        """Ask a dump to say its last word; after `GRACE_S` it is cut off."""
        if self.end_reason is None:
            self.end_reason = reason
        self.scope.deadline = min(self.scope.deadline, trio.current_time() + GRACE_S)
        if self.waiting is not None:
            self.waiting.cancel()


class Refusals:
    """Which refusals are logged: of those that are alike the first, then from time to time how many came meanwhile, as
    a consumer may ask again each second. Bounded: it forgets what came longest ago. `clock` gives seconds that only
    grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._alike: OrderedDict[Hashable, tuple[float, float, int]] = OrderedDict()  # next line, its pause, how many

    def level_of(self, key: Hashable) -> tuple[int, str]:
        """The level at which a refusal like others of that key is logged, and what its line ends with."""
        now = self._clock()
        due, pause_s, count = self._alike.pop(key, (-math.inf, REFUSALS_PAUSE_S, 0))
        if now < due:
            self._alike[key] = due, pause_s, count + 1
            return logging.DEBUG, ""
        self._alike[key] = now + pause_s, min(2 * pause_s, REFUSALS_PAUSE_MAX_S), 0
        if len(self._alike) > REFUSALS_REMEMBERED_MAX:
            self._alike.popitem(last=False)
        return logging.WARNING, f" ({count} more like this since its last line)" if count else ""

    def log(
        self, to: logging.Logger, key: Hashable, text: str, *args: object, level_max: int = logging.WARNING
    ) -> None:
        """`args` go to the logger as they are: their `log_fields` are part of a line."""
        level, others = self.level_of(key)
        to.log(min(level, level_max), f"{text}%s", *args, others)


class Registry:
    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._dumps: dict[int | None, set[Session]] = {}  # by server id
        self._last_id = 0
        self.dropped = 0  # connections ended before a login, for lack of room
        self.sent_bytes = self.received_bytes = 0  # of connections that have ended
        self.dumps_begun = 0
        self.logins = Counter(dict.fromkeys(("ok", "wrong", "not_allowed", "turned_away", "too_many", "too_late"), 0))
        self.refusals = Counter(dict.fromkeys(REFUSALS, 0))
        self.alike = Refusals()
        self.dumps_ended = Counter(dict.fromkeys(("ok", *REFUSALS), 0))

    def open(self, host: str, now: float, port: int = 0) -> Session:
        self._last_id += 1
        session = Session(connection_id=self._last_id, host=host, since=now, port=port)
        self._sessions[session.connection_id] = session
        return session

    def close(self, session: Session) -> None:
        self._sessions.pop(session.connection_id, None)
        same = self._dumps.get(session.dump_server_id, set())
        same.discard(session)
        if not same:
            self._dumps.pop(session.dump_server_id, None)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, connection_id: int) -> Session | None:
        return self._sessions.get(connection_id)

    @property
    def opened(self) -> int:
        return self._last_id

    def make_room(self) -> bool:
        """End the oldest connection without a login, of the address with most; False: there is none."""
        waiting: dict[str, list[Session]] = {}
        for session in self._sessions.values():
            if not session.is_in and not session.scope.cancel_called:
                waiting.setdefault(address_key(session.host), []).append(session)
        if not waiting:
            return False
        oldest = max(waiting.values(), key=len)[0]
        oldest.reason = "its place was needed, and it had not logged in"
        oldest.scope.cancel()
        self.dropped += 1
        return True

    def begin_dump(self, session: Session, server_id: int) -> None:
        session.dump_server_id = server_id
        self.dumps_begun += 1
        self._dumps.setdefault(server_id, set()).add(session)

    def end_dumps_of(self, server_id: int, *, but: Session) -> None:
        """As a primary when a server id asks again."""
        for session in tuple(self._dumps.get(server_id, ())):
            if session is not but:
                session.end_dump(EndReason.NEWER_DUMP)

    def kill(self, connection_id: int, *, query_only: bool) -> None:
        """Cut the connection, or with `query_only` end its work; unknown ids do no harm."""
        session = self._sessions.get(connection_id)
        if session is None:
            return
        if not query_only:
            session.cut_off(BreakReason.KILLED)
        elif session.dump_server_id is not None:
            session.end_dump(EndReason.KILL_QUERY)
        elif session.work is not None:
            session.work.break_off(BreakReason.KILLED)
