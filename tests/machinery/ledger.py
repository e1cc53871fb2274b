"""What several threads fed to a log, and what of it must be there after a crash, or may be.

Unlike the notes of one thread these know no order of their own: the places that the store
returns order the groups, once it has returned them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from ibbmaster.position import LogPosition
from tests.machinery.log_checker import CheckError, FoundLog

GtidKey = tuple[int, int, int]  # domain, server, number


class GroupStage(IntEnum):
    """Of a prepared transaction; while it changes it may be in the one before or behind."""

    PREPARING = 0
    PREPARED = 1
    FINISHING = 2
    FINISHED = 3


@dataclass(slots=True, eq=False)
class Fed:
    """A group; `order` is its place among those whose places are known."""

    key: GtidKey
    events: bytes
    order: LogPosition | None = None
    file_no: int | None = None
    is_logged: bool = False  # the store has said that it is in the log
    is_written: bool = False  # it must survive a kill
    is_durable: bool = False  # it must survive a loss of power
    is_sent: bool = False
    is_gone: bool = False  # a reset has removed it
    may_be_gone: bool = False  # it was fed while the log was reset


@dataclass(slots=True, eq=False)
class Prepared:
    """A transaction in two phases; `fed` is the group it is committed as."""

    xid: bytes
    stage: GroupStage = GroupStage.PREPARING
    fed: Fed | None = None
    was_durable: bool = False  # when it was prepared
    is_logged: bool = False
    is_written: bool = False
    is_durable: bool = False
    is_loose: bool = False  # the log was reset while its stage changed

    def begin(self, stage: GroupStage) -> None:
        self.was_durable = self.is_durable
        self.stage = stage
        self.is_logged = self.is_written = self.is_durable = False


@dataclass(slots=True)
class Ledger:
    """Notes of all threads. `purge_to` is how far a thread asked to purge."""

    fed: dict[GtidKey, Fed] = field(default_factory=dict)
    prepared: dict[bytes, Prepared] = field(default_factory=dict)
    purge_to: int = 0
    reset_count: int = 0  # resets that were begun
    doomed: list[Fed] | None = None  # while the log is reset: what will be gone

    def begin_group(self, key: GtidKey, events: bytes) -> Fed:
        fed = self.fed[key] = Fed(key, events, may_be_gone=self.doomed is not None)
        return fed

    def begin_prepare(self, xid: bytes) -> Prepared:
        prepared = self.prepared[xid] = Prepared(xid, is_loose=self.doomed is not None)
        return prepared

    def note_logged(self, fed: Fed, position: LogPosition) -> None:
        fed.is_logged = True
        if not fed.may_be_gone:
            fed.order, fed.file_no = position, position.file_no

    def begin_reset(self) -> None:
        self.reset_count += 1
        self.doomed = [fed for fed in self.fed.values() if fed.is_logged and not fed.is_gone and not fed.may_be_gone]
        for fed in self.fed.values():
            fed.may_be_gone |= not fed.is_logged
        for prepared in self.prepared.values():
            prepared.is_loose |= prepared.stage in (GroupStage.PREPARING, GroupStage.FINISHING)

    def end_reset(self, *, is_done: bool) -> None:
        assert self.doomed is not None
        if is_done:
            for fed in self.doomed:
                fed.is_gone = True
            self.purge_to = 0
        self.doomed = None

    def unsynced(self) -> list[Fed | Prepared]:
        items: list[Fed | Prepared] = [*self.fed.values(), *self.prepared.values()]
        return [item for item in items if item.is_logged and not item.is_durable]

    def required(self, *, is_kill: bool) -> set[Fed]:
        return {fed for fed in self.fed.values() if fed.is_durable or fed.is_sent or (is_kill and fed.is_written)}

    def restart(self, found: FoundLog) -> None:
        groups = self.fed
        self.fed = {}
        for index, group in enumerate(found.groups):
            old = groups[group.gtid]
            order = LogPosition(-1, index)
            self.fed[group.gtid] = Fed(
                group.gtid, old.events, order, group.file_no, is_logged=True, is_written=True, is_durable=True
            )
        self.prepared = {
            xid: Prepared(xid, GroupStage.PREPARED, is_logged=True, is_written=True, is_durable=True)
            for xid in found.prepared
        }
        self.purge_to = max(self.purge_to, found.first_file_no)
        self.doomed = None

    def steady(self) -> dict[Prepared, GroupStage]:
        stages = (GroupStage.PREPARED, GroupStage.FINISHED)
        return {item: item.stage for item in self.prepared.values() if item.is_durable and item.stage in stages}

    def check(
        self,
        found: FoundLog,
        required: Iterable[Fed],
        *,
        is_kill: bool,
        since: dict[Prepared, GroupStage] | None = None,
    ) -> None:
        """Compare what was found with what was fed. Raises CheckError: something is wrong or missing.

        `since` is what was `steady` at an earlier moment, if what was found may be as old as that."""
        groups = self._check_groups(found)
        present = set(groups)
        orders = [fed.order for fed in groups if fed.order is not None]
        if orders != sorted(orders):
            raise CheckError(f"groups in another order than in the log: {orders}")
        needed = dict.fromkeys(required, "acknowledged or sent")
        if orders:
            for fed in self.fed.values():
                if fed.order is not None and fed.order < orders[-1]:
                    needed.setdefault(fed, "before another one that is there")
        doomed = set(self.doomed or ())
        missing = [fed for fed in needed if fed not in present and not fed.is_gone and not fed.may_be_gone]
        missing = [fed for fed in missing if not self._is_purged(fed, found)]
        if doomed and not doomed & present:
            missing = [fed for fed in missing if fed not in doomed]  # the reset was durable already
        if missing:
            fed = missing[0]
            raise CheckError(f"group {fed.key} is missing, and {len(missing) - 1} more: it is {needed[fed]}")
        self._check_prepared(found, present, is_kill=is_kill, since=since)

    def _check_groups(self, found: FoundLog) -> list[Fed]:
        groups: list[Fed] = []
        for group in found.groups:
            fed = self.fed.get(group.gtid)
            if fed is None or fed.is_gone or fed.events != group.events:
                raise CheckError(f"group {group.gtid} is there, and was not fed so")
            groups.append(fed)
        if len(set(groups)) != len(groups):
            raise CheckError("a group is there twice")
        return groups

    def _is_purged(self, fed: Fed, found: FoundLog) -> bool:
        return fed.file_no is not None and fed.file_no < found.first_file_no <= self.purge_to

    def _check_prepared(
        self, found: FoundLog, present: set[Fed], *, is_kill: bool, since: dict[Prepared, GroupStage] | None
    ) -> None:
        unknown = set(found.prepared) - self.prepared.keys()
        if unknown:
            raise CheckError(f"prepared {unknown}, and nobody did so")
        for xid, prepared in self.prepared.items():
            if prepared.is_loose or (since is not None and since.get(prepared) is not prepared.stage):
                continue
            is_there = xid in found.prepared
            is_sure = prepared.is_durable or (is_kill and prepared.is_written)
            if prepared.stage is GroupStage.PREPARED and is_sure and not is_there:
                raise CheckError(f"{xid!r} was prepared, and is not any more")
            if prepared.stage is GroupStage.FINISHED and is_sure and is_there:
                raise CheckError(f"{xid!r} was finished, and is prepared again")
            if prepared.stage is GroupStage.FINISHING and prepared.was_durable and prepared.fed is not None:
                is_committed = prepared.fed in present or self._is_purged(prepared.fed, found)
                if is_there == is_committed:
                    raise CheckError(f"{xid!r} is prepared: {is_there}, its group is there: {is_committed}")
