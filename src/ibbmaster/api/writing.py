"""A log as users hold it, to be written."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ibbmaster.errors import StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.group_writer import GroupWriter
from ibbmaster.logs.log.purge import PurgeResult
from ibbmaster.logs.store.background import Background
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreStatus
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.rows.declared import Declaration
from ibbmaster.schema.name_case import NameCase
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.ibb.xa import Xid
from .log import Log
from .statements import TRANSACTION, Origin, group_of, is_of_transaction, whole_group
from .stores import Size, purge_request

if TYPE_CHECKING:
    from ibbmaster.primary.server.figures import Figure


def as_gtid(gtid: Gtid | str) -> Gtid:
    return Gtid.parse(gtid) if isinstance(gtid, str) else gtid


def as_xid(xid: Xid | str) -> Xid:
    """A text is that of XA START 'text'."""
    return Xid(format_id=1, gtrid=xid.encode(), bqual=b"") if isinstance(xid, str) else xid


class OpenGroup:
    """A group that one thread writes in pieces. Made by `WritableLog.begin`. The log takes the pieces as they come;
    readers see them after `commit`. As a context it rolls back after an exception, and must otherwise be committed,
    prepared or rolled back before the end."""

    def __init__(self, writer: GroupWriter, origin: Origin) -> None:
        self._writer = writer
        self._origin = origin
        self._ends_with_text = False
        self._savepoints: dict[str, bool] = {}  # whether the group ended with a text there
        self._is_ended = False

    @property
    def is_ended(self) -> bool:
        """Whether it was committed, prepared or rolled back."""
        return self._is_ended

    def write(self, part: str | Buffer) -> None:
        """Add a statement that changes rows, or more bytes of events, cut anywhere. Raises StoreError: the group has
        ended, or the log cannot be written."""
        if isinstance(part, str) and not is_of_transaction(part):
            raise StoreError(f"{part[:60]!r} is a group by itself, as it is in MariaDB: append it alone")
        self._writer.write(self._origin.query(part) if isinstance(part, str) else part)
        self._ends_with_text = isinstance(part, str)

    def savepoint(self, name: str) -> None:
        """Remember this place; one of the same name is forgotten."""
        self._writer.savepoint(name)
        self._savepoints[name] = self._ends_with_text

    def roll_back_to(self, name: str) -> None:
        """Forget what was written since a savepoint. Raises StoreError: there is none of that name."""
        self._writer.roll_back_to(name)
        self._ends_with_text = self._savepoints[name]

    def commit(self, gtid: Gtid | str, gtid_event: Buffer | None = None) -> LogPosition:
        """Log the group, and return once it is as durable as `durability` says. A final statement given as text gets
        the XID event that ends a transaction; events bring their own. `gtid_event` replaces the GTID event of a
        transaction.

        Raises DuplicateGtidError, GtidOrderError: the GTID is not newer than what its domain has; StoreError: the group
        has ended, or the log cannot be written.
        """
        named = as_gtid(gtid)
        self._end_text(self._origin.xid(named.seq_no))
        head = self._origin.gtid_event(named, TRANSACTION) if gtid_event is None else gtid_event
        position = self._writer.commit(named, head)
        self._is_ended = True
        return position

    def prepare(self, xid: Xid | str) -> None:
        """End the group as XA PREPARE does; `WritableLog.xa_commit` logs it, also after a restart. A final statement
        given as text gets the COMMIT of a user's XA transaction; events bring their own. Raises StoreError: the
        group is empty or has ended, or the log cannot be written."""
        self._end_text(self._origin.query("COMMIT"))
        self._writer.prepare(as_xid(xid))
        self._is_ended = True

    def _end_text(self, event: bytes) -> None:
        if self._ends_with_text:
            self._writer.write(event)
            self._ends_with_text = False

    def roll_back(self) -> None:
        """Give the group up; a second call does nothing."""
        self._writer.abandon()
        self._is_ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        was_ended = self._is_ended
        self.roll_back()
        if not was_ended and error is None:
            raise StoreError(
                "the group was neither committed nor rolled back at the end of its block: it is rolled back"
            )


class WritableLog(Log):
    """A log that this process alone writes. Made by `ibbmaster.create`. Any thread may append, in that order;
    readers and replicas see groups once they are durable."""

    is_written = True

    def __init__(
        self,
        path: Path,
        store: BinlogStore,
        *,
        schema: Mapping[str, Declaration] | None = None,
        name_case: NameCase | None = None,
        row_event_max: int | None = None,
        has_background: bool = True,
    ) -> None:
        super().__init__(path, store, schema=schema, name_case=name_case, row_event_max=row_event_max)
        self.store = store
        self.more_figures: list[Callable[[], Iterable[Figure]]] = []
        """Of what feeds the log, for the figures of a primary that serves it."""
        self.bound = ""
        """Why its clients may not begin it anew: what else goes by its GTID state."""
        self._replica_counts: list[Callable[[], int]] = []
        store.connected_replicas = lambda: sum(count() for count in self._replica_counts)
        self._stack = ExitStack()
        self._stack.callback(store.close)
        if has_background:
            self._stack.enter_context(Background(store))

    # Writing --------------------------------------------------------------------------------

    def append(
        self,
        gtid: Gtid | str,
        parts: str | Buffer | Sequence[str | Buffer],
        *,
        database: str = "",
        timestamp: int | None = None,
    ) -> LogPosition:
        """Append one group, and return once it is as durable as `durability` says.

        `parts` are SQL texts, or whole events with any GTID event first. Texts that change rows form one transaction,
        any other text is a group by itself. Texts run in `database`, at `timestamp` in seconds since 1970 (now).

        Raises:
            DiskFullError: there is no room; nothing was appended.
            DuplicateGtidError: the log has this group already, event for event.
            EventError: the parts do not make one group.
            GtidError: the text is no GTID.
            GtidOrderError: the GTID is not newer than what its domain has.
            StoreError: the log cannot be written, or is closed.
        """
        named = as_gtid(gtid)
        given = [parts] if isinstance(parts, (str, Buffer)) else list(parts)
        whole = whole_group(named, given) or group_of(named, given, _origin(named.server_id, timestamp, database))
        return self.store.write_direct(named, *whole)

    def begin(self, *, server_id: int = 1, database: str = "", timestamp: int | None = None) -> OpenGroup:
        """Begin a group that comes in pieces, beside any others; texts are from `server_id`, which its GTID will
        have."""
        return OpenGroup(self.store.open_group(), _origin(server_id, timestamp, database))

    def sync(self) -> None:
        """Make everything durable that was appended."""
        self.store.sync()

    # Transactions that are prepared -----------------------------------------------------------

    @property
    def prepared(self) -> list[Xid]:
        """The prepared transactions that wait for their end."""
        return self.store.xa_recover()

    def xa_commit(self, xid: Xid | str, gtid: Gtid | str, gtid_event: Buffer | None = None) -> LogPosition:
        """Log a prepared transaction, perhaps from before a restart. Raises StoreError: none has that name, or as
        `append`."""
        named = as_gtid(gtid)
        head = _origin(named.server_id).gtid_event(named, TRANSACTION) if gtid_event is None else gtid_event
        return self.store.xa_commit(as_xid(xid), named, head)

    def xa_rollback(self, xid: Xid | str) -> None:
        """Give a prepared transaction up. Raises StoreError: there is none of that name."""
        self.store.xa_rollback(as_xid(xid))

    # Files ----------------------------------------------------------------------------------

    def flush(self, *, forget_domains: Iterable[int] = ()) -> None:
        """End the active file and begin the next, as FLUSH BINARY LOGS does. Raises BusyError: a file still holds
        groups of a domain to be forgotten."""
        self.store.flush(delete_domain_ids=forget_domains)

    def purge(
        self, *, to: str | None = None, before: datetime | float | None = None, max_total: Size | None = None
    ) -> PurgeResult:
        """Remove the oldest files, as PURGE BINARY LOGS does: those before file `to`, those last written before a
        moment (local time, or seconds since 1970), or until all have this size. Files that a replica, a transaction
        or another file needs stay, as the result says. Raises ConfigurationError: that is no name of a file, or no
        size; StoreError: there never was such a file."""
        return self.store.purge(purge_request(to, before, max_total))

    def reset(self, state: GtidState | str = "", *, if_empty: bool = False) -> None:
        """Remove every file and begin again with number 0 after `state`, as RESET MASTER does. Raises BusyError: a
        group that wrote out of band is open, or a transaction prepared; or with `if_empty` a GTID was logged."""
        self.store.reset(GtidState.parse(state) if isinstance(state, str) else state, if_empty=if_empty)
        self.forget_history()

    @property
    def status(self) -> StoreStatus:
        """What the writer is doing."""
        return self.store.status()

    @property
    def recovered(self) -> tuple[int, int]:
        """Records of the redo log that opening applied, and transactions that it rolled back."""
        return self.store.replayed_records, self.store.rolled_back

    def bring_to_files(self) -> None:
        self.store.checkpoint()
        self.store.sync()

    def count_replicas(self, count: Callable[[], int]) -> Callable[[], None]:
        """Include the connected replicas of `count` where removing files needs some; returns a call that ends this."""
        self._replica_counts.append(count)
        return lambda: self._replica_counts.remove(count)

    def close(self) -> None:
        """Bring everything to the files and release the directory; open groups are given up. A second call does
        nothing."""
        self._stack.close()


def _origin(server_id: int, timestamp: int | None = None, database: str = "") -> Origin:
    moment = int(time.time()) if timestamp is None else timestamp
    return Origin(server_id=server_id, timestamp=moment, database=database)
