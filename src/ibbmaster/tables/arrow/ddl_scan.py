"""Finds a log's DDL by kernels, many groups at once, for a new schema history."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from ibbmaster.errors import MissingFileError, PositionPurgedError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import EventColumn, GroupColumn, last_gtids
from ibbmaster.kernel.loading import load
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.group_content import MAY_HOLD_DDL, QUERIES
from ibbmaster.logs.log.group_folding import TakeMap
from ibbmaster.logs.log.interface import FramedEventGroups, LogEngine, PagedEventGroups
from ibbmaster.logs.log.schema_history import LastScanned, TakeStatement
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.table_map import SAYS_OFFSET
from ibbmaster.replication.event.types import EventType
from ibbmaster.work import check_wanted
from .event_batch import ALL_BITS, IDENTITY, EventBatch
from .small_files import batches_of_ranges
from .table_maps import last_of_each

RANGE_BYTES = 256 << 20


def scan_ddl(
    log: LogEngine,
    take: TakeStatement,
    take_map: TakeMap | None = None,
    *,
    find: Callable[[LogEngine], Kernels | None] = lambda log: load(),
) -> LastScanned | None:
    """Hand over each statement of groups that may hold DDL, and on demand what TABLE_MAP events say. None: `find` has
    no kernels, the log is empty, or began anew meanwhile. Errors as `event_batches`."""
    kernels = find(log)
    if kernels is None:
        return None
    plan, end = log.start_of_file(), log.end()
    scan = _Scan(plan.state.copy(), take, take_map, kernels)
    with closing(log.groups(plan)) as groups:
        source = BinlogDirectory(groups.disk) if isinstance(groups, PagedEventGroups) else log
        try:
            for batch in batches_of_ranges(source, source.ranges(LOG_START, end, size=RANGE_BYTES), kernels):
                check_wanted()
                if len(batch.groups):
                    scan.take_batch(batch)
            if isinstance(groups, FramedEventGroups):
                groups.check_log()
        except (MissingFileError, PositionPurgedError):
            return None
    return scan.up_to()


class _Scan:
    def __init__(self, state: GtidState, take: TakeStatement, take_map: TakeMap | None, kernels: Kernels) -> None:
        self._state = state  # before the last group
        self._take = take
        self._take_map = take_map
        self._kernels = kernels
        self._last: list[int] = []
        self._is_last_wanted = False

    def take_batch(self, batch: EventBatch) -> None:
        groups, events = batch.groups, batch.events
        goes_on = bool(self._last) and groups[0, IDENTITY].tolist() == self._last[IDENTITY]
        wanted = groups[:, GroupColumn.FIRST_NUMBER] == 0  # a GTID event is the first
        starts = groups[wanted, GroupColumn.START]
        wanted[wanted] = batch.data[starts + GTID_FLAGS_OFFSET] & MAY_HOLD_DDL != 0
        wanted[0] |= goes_on and self._is_last_wanted
        if wanted.any() or self._take_map is not None:
            self._take_events(batch, np.flatnonzero(wanted[events[:, EventColumn.GROUP]]))
        if self._last and not goes_on:
            self._state.log(_gtid(self._last))
        for gtid in last_gtids(groups[:-1]):
            self._state.log(gtid)
        self._last, self._is_last_wanted = groups[-1].tolist(), bool(wanted[-1])

    def _take_events(self, batch: EventBatch, numbers: Any) -> None:
        types = batch.data[batch.events[numbers, EventColumn.START] + TYPE_OFFSET]
        statements = numbers[np.isin(types, QUERIES)]
        maps = set() if self._take_map is None else set(self._maps_between(batch, statements))
        for number in sorted({*statements.tolist(), *maps}):
            row = batch.groups[batch.events[number, EventColumn.GROUP]].tolist()
            if number not in maps:
                self._take(batch.schema_place(number), _gtid(row), row[GroupColumn.TIMESTAMP], batch.event(number))
            elif self._take_map is not None:
                self._take_map(batch.schema_place(number), _gtid(row), batch.event(number))

    def _maps_between(self, batch: EventBatch, statements: Any) -> Iterator[int]:
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        maps = np.flatnonzero(types == EventType.TABLE_MAP)
        for part in np.split(maps, np.searchsorted(maps, statements)):
            yield from last_of_each(batch, part[::-1], SAYS_OFFSET, self._kernels)

    def up_to(self) -> LastScanned | None:
        if not self._last:
            return None
        row = self._last
        return LastScanned(
            start=LogPosition(row[GroupColumn.FILE_NO], row[GroupColumn.FILE_OFFSET]),
            end=LogPosition(row[GroupColumn.END_FILE_NO], row[GroupColumn.END_OFFSET]),
            gtid=_gtid(row),
            state=self._state,
        )


def _gtid(row: list[int]) -> Gtid:
    return Gtid(
        domain_id=row[GroupColumn.DOMAIN], server_id=row[GroupColumn.SERVER], seq_no=row[GroupColumn.SEQ_NO] % ALL_BITS
    )
