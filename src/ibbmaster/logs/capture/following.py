"""Follows a primary as a replica does: what it logs is logged here, durable before it is acknowledged.

One thread receives and checks groups, another stores them, with one sync for all that have come meanwhile. The GTID
state of the log is the only position that there is: whatever ends, the next connection goes on from it.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ibbmaster.errors import EventError, RefusedSourceError, SourceError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.wire.packet import frame_packets
from .byte_pipe import BytePipe
from .client import (
    DENIED,
    SEMI_SYNC_MAGIC,
    TIMEOUT_S,
    PrimaryAddress,
    begin_dump,
    code_of,
    connected,
    oldest_state,
    receive,
    register,
    semi_sync_of,
    stream_of,
    value_of,
)
from .storing import Acknowledgement, BulkStore, GroupStore, Stored, StoredDump

if TYPE_CHECKING:
    import pymysql

log = logging.getLogger(__name__)

BUFFER_BYTES = 64 << 20
HEARTBEAT_S = 1
IF_PURGED = " A new directory with `--start oldest` begins with what is left; nothing between is there any more"
RETRY_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # between rounds through all primaries
UNKNOWN_VARIABLE = 1193
REFUSALS = DENIED | {1130, 1227, 1236}  # errors of a primary that another attempt does not change


@dataclass(frozen=True, slots=True)
class FollowStatus:
    """How far a log follows. Counts are since the start of this process."""

    state: str  # "connecting", "following", "ended"
    primary: str  # host and port; empty at first
    groups: int = 0
    connections: int = 0
    last_gtid: Gtid | None = None
    last_timestamp: int = 0  # of that group, in seconds since 1970
    is_at_end: bool = False  # the primary had nothing more when it was last heard
    is_held_back: bool = False  # the primary waits because the disk here is slower
    problem: str = ""  # why the last connection ended


def start_state(primary: PrimaryAddress, start: str) -> GtidState:
    """The GTID state with which a new log begins: before the "oldest" group that a primary has, "now", or as named.
    Raises GtidError: `start` is none of these; SourceError: the primary cannot be reached, or refuses."""
    if start == "oldest":
        return oldest_state(primary)
    if start != "now":
        return GtidState(GtidPosition.parse(start).values())
    with connected(primary) as connection:
        return logged_state(primary, connection)


def logged_state(primary: PrimaryAddress, connection: pymysql.Connection[Any]) -> GtidState:
    """What a primary has logged. Raises RefusedSourceError: it has no log, or no GTIDs."""
    try:
        if value_of(connection, "log_bin") in ("0", "OFF"):
            raise RefusedSourceError(f"{primary}: it has no binary log (log_bin=OFF)")
        found = GtidState.parse(value_of(connection, "gtid_binlog_state"))
        for gtid in GtidPosition.parse(value_of(connection, "gtid_binlog_pos")).values():
            found.log(gtid)  # the latest of its domain
        return found
    except Exception as error:
        if error.args[:1] == (UNKNOWN_VARIABLE,):
            raise RefusedSourceError(
                f"{primary}: it has no GTIDs of MariaDB: expected MariaDB 10.2 or later"
            ) from error
        raise


def expect_same_history(primary: PrimaryAddress, ours: GtidState, theirs: GtidState) -> None:
    """Raises SourceError: the primary lags behind; RefusedSourceError: its domains went another way than those here."""
    for last in ours.position().values():
        has = theirs.seq_no(last.domain_id, last.server_id)
        if has is not None and has >= last.seq_no:
            continue
        there = ",".join(str(gtid) for gtid in theirs if gtid.domain_id == last.domain_id)
        here = ",".join(str(gtid) for gtid in ours if gtid.domain_id == last.domain_id)
        both = f"domain {last.domain_id} is at {there or 'nothing'} there, and at {here} here"
        if (theirs.highest_seq_no(last.domain_id) or 0) < last.seq_no:
            raise SourceError(f"{primary}: it lags behind this log: {both}")
        raise RefusedSourceError(f"{primary}: it has not logged {last}, which is here: {both}. It is another history")


class PrimaryFollower:
    """Keeps a log behind the first of some primaries that has all of it. `run` in one thread, `stop` from any."""

    def __init__(
        self,
        primaries: Sequence[PrimaryAddress],
        store: GroupStore,
        *,
        bulk: BulkStore | None = None,
        is_semi_sync: bool = False,
        until_end: bool = False,
        retries_refusals: bool = False,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        """`bulk` writes in the same log as `store`. `until_end`: end with what the primary has logged at first.
        `retries_refusals`: go on asking although every primary refuses, or cannot be reached at first."""
        self.status = FollowStatus("connecting", "")
        self._primaries = list(primaries)
        self._store = store
        self._bulk = bulk
        self._is_semi_sync = is_semi_sync
        self._until_end = until_end
        self._retries_refusals = retries_refusals
        self._buffer_bytes = buffer_bytes
        self._is_stopped = False
        self._acknowledgements: deque[Acknowledgement] = deque()
        self._awake, self._wakes = socket.socketpair()
        self._awake.setblocking(False)
        self._wakes.setblocking(False)
        self._sleep = threading.Event()
        self._noting = threading.Lock()

    def stop(self) -> None:
        """End soon: after the groups that have come are stored."""
        self._is_stopped = True
        self._sleep.set()
        self._wake()

    def read_again(self, primaries: Sequence[PrimaryAddress]) -> None:
        """Use the passwords of these from the next connection on."""
        passwords = {(one.host, one.port): one.password for one in primaries}
        self._primaries = [
            replace(one, password=passwords.get((one.host, one.port), one.password)) for one in self._primaries
        ]

    def _note(self, groups: int = 0, **changes: Any) -> None:
        with self._noting:  # both threads do
            self.status = replace(self.status, groups=self.status.groups + groups, **changes)

    def run(self) -> None:
        """Follow until `stop`, or the end. Raises EventError: a primary sends what is no event; SourceError: no primary
        can be followed; StoreError: the log cannot be written."""
        try:
            self._run()
        finally:
            self._note(state="ended")
            self._awake.close()
            self._wakes.close()

    def _run(self) -> None:
        told: dict[PrimaryAddress, str] = {}
        rounds = 0
        while not self._is_stopped:
            refusals = 0
            for primary in list(self._primaries):
                groups = self.status.groups
                try:
                    if self._follow(primary) or self._is_stopped:
                        return
                    text = f"{primary}: the primary ended the stream"
                except SourceError as error:
                    refusals += isinstance(error, RefusedSourceError) or code_of(error) in REFUSALS
                    text = f"{error}{IF_PURGED if 'purged' in str(error) else ''}"
                except EventError as error:
                    if not self._retries_refusals:
                        raise
                    text = f"{primary}: {error}"
                if self._is_stopped:
                    return
                self._note(state="connecting", problem=text)
                if told.get(primary) != text:
                    told[primary] = text
                    log.warning("%s", text)
                if self.status.groups > groups:
                    rounds = 0
                    found = self._primaries.pop(self._primaries.index(primary))
                    self._primaries.insert(0, found)  # it is the first to be asked again
                    break
            else:
                is_hopeless = refusals == len(self._primaries) or not self.status.connections
                if is_hopeless and not self._retries_refusals:
                    raise SourceError("; ".join(told[primary] for primary in self._primaries))
            self._sleep.wait(RETRY_S[min(rounds, len(RETRY_S) - 1)])
            rounds += 1

    def _follow(self, primary: PrimaryAddress) -> bool:
        """Follow one primary until the connection ends; whether all is here that was wanted."""
        with connected(primary) as connection:
            theirs = logged_state(primary, connection)
            self._store.sync()  # its state is that of what is durable
            ours = self._store.state()
            expect_same_history(primary, ours, theirs)
            end = theirs.position() if self._until_end else None
            if end is not None and not theirs.domains_beyond(ours.position()):
                return True
            # Up to an end nobody waits for it; and a real primary may hang when its only such replica ends at once.
            has_heads = self._is_semi_sync and end is None and self._begin_semi_sync(primary, connection)
            register(connection, primary.server_id)
            has_checksums = value_of(connection, "binlog_checksum") == ChecksumAlgorithm.CRC32.name
            begin_dump(
                connection,
                primary.server_id,
                ours.position(),
                end,
                with_checksums=has_checksums,
                heartbeat_s=HEARTBEAT_S,
            )
            log.info("following %s after %s", primary, ours.position() or "nothing")
            self._note(state="following", primary=str(primary), connections=self.status.connections + 1)
            before = self.status.groups
            is_over = self._transfer(connection, {"has_heads": has_heads, "has_checksums": has_checksums})
        is_reached = end is not None and not theirs.domains_beyond(self._store.state().position())
        if is_over and end is not None and not is_reached and self.status.groups == before:
            raise RefusedSourceError(f"{primary}: it ends the stream before {end}: numbers go back in its log")
        return is_reached

    def _begin_semi_sync(self, primary: PrimaryAddress, connection: pymysql.Connection[Any]) -> bool:
        found = semi_sync_of(connection)
        if found != "ON":
            log.warning("%s: semi-synchronous replication is off there: no commit waits for this log", primary)
        if found:
            with connection.cursor() as cursor:
                cursor.execute("SET @rpl_semi_sync_slave=1")
        return bool(found)

    def _transfer(self, connection: pymysql.Connection[Any], dump: dict[str, bool]) -> bool:
        """Receive bytes, and store their groups in another thread; returns when all that came is stored, and whether
        the primary has ended the dump."""
        pipe = BytePipe(self._buffer_bytes // 2)  # as much again is being stored
        problems: list[BaseException] = []
        is_over = False

        def store() -> None:
            nonlocal is_over
            try:
                is_over = StoredDump(self._store, self._bulk, pipe, self._note_stored).run(**dump)
            except BaseException as error:
                problems.append(error)
            finally:
                pipe.refuse()
                self._wake()

        thread = threading.Thread(target=store, name="ibbmaster-follow", daemon=True)
        thread.start()
        try:
            self._receive(connection, pipe)
        except OSError:
            pipe.finish()
            thread.join()
            if not is_over:
                raise
        finally:
            pipe.finish()
            thread.join()
            if not problems:
                with contextlib.suppress(OSError):  # the connection may be gone
                    self._acknowledge(connection)
            self._acknowledgements.clear()
            if problems:
                raise problems[0]
        return is_over

    def _receive(self, connection: pymysql.Connection[Any], pipe: BytePipe) -> None:
        """Until it is to end, or the other thread has ended; meanwhile acknowledge what is durable: a TLS stream is for
        one thread."""
        stream = stream_of(connection)
        while self._has_bytes(connection, stream, pipe):
            data = receive(stream)
            if pipe.would_wait(len(data)) and not self.status.is_held_back:
                self._note(is_held_back=True)
                log.warning("the disk here is slower than the primary: its dump waits while groups are stored")
            pipe.put(data)

    def _has_bytes(self, connection: pymysql.Connection[Any], stream: socket.socket, pipe: BytePipe) -> bool:
        while True:
            self._acknowledge(connection)
            if self._is_stopped or pipe.is_unwanted:
                return False
            if getattr(stream, "pending", int)():
                return True
            ready, _, _ = select.select((stream, self._awake), (), (), TIMEOUT_S)
            if not ready:
                raise TimeoutError(f"nothing came for {TIMEOUT_S} s, and no heartbeat")
            if self._awake in ready:
                self._awake.recv(4096)
            elif stream in ready:
                return True

    def _acknowledge(self, connection: pymysql.Connection[Any]) -> None:
        while self._acknowledgements:
            file_name, position = self._acknowledgements.popleft()
            payload = SEMI_SYNC_MAGIC + position.to_bytes(8, "little") + file_name
            connection._sock.sendall(frame_packets(payload, 0)[0])  # type: ignore[attr-defined]

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it is awake, or has ended
            self._wakes.send(b"\0")

    def _note_stored(self, stored: Stored) -> None:
        if stored.groups:
            last = {"last_gtid": stored.last_gtid, "last_timestamp": stored.last_timestamp}
            self._note(stored.groups, is_at_end=False, is_held_back=False, **last)
        if stored.is_at_end and not self.status.is_at_end:
            self._note(is_at_end=True)
        if stored.acknowledgements:
            self._acknowledgements += stored.acknowledgements
            self._wake()
