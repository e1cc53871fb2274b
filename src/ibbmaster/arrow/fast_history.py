"""The schema history of a log whose events kernels have collected: a Python object for DDL alone."""

from __future__ import annotations

import re

import numpy as np

from ibbmaster.arrow.collecting import event_batches
from ibbmaster.event.gtid_event import GTID_FLAGS_OFFSET
from ibbmaster.event.header import TYPE_OFFSET
from ibbmaster.event.statement.logged import decode_statement
from ibbmaster.event.types import EventType
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import EventColumn, GroupColumn
from ibbmaster.log.interface import LogEngine
from ibbmaster.log.log_range import WHOLE_FILE
from ibbmaster.log.schema_history import MAY_HOLD_DDL, QUERIES
from ibbmaster.position import LOG_START
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.history import SchemaHistory

TEMPORARY = re.compile(r"create\s.{0,40}temporary", re.IGNORECASE | re.DOTALL)


def fast_history(log: LogEngine, base: SchemaCatalog, kernels: Kernels) -> SchemaHistory | None:
    """All that is durable now, folded; None if only the reference can do that.

    A batch does not show where a server was started anew, which ends its temporary tables: logs
    that make such are for the reference.

    Raises:
        EventError: a statement is damaged; it names the group.
        FormatError, ClassicFormatError: a file is damaged.
    """
    history = SchemaHistory(base)
    end = log.end()
    last: tuple[int, ...] = ()  # the group that the batch before has ended with, and whether it may hold DDL
    did_last = False
    for log_range in log.ranges(LOG_START, end, size=WHOLE_FILE):
        for batch in event_batches(log, log_range, kernels):
            if not len(batch.groups):
                continue
            starts, groups = batch.events[:, EventColumn.START], batch.events[:, EventColumn.GROUP]
            types = batch.data[starts + TYPE_OFFSET]
            may_hold = np.zeros(len(batch.groups), dtype=bool)
            may_hold[0] = did_last and batch.identity(0) == last
            heads = np.flatnonzero(types == EventType.GTID)
            may_hold[groups[heads]] = batch.data[starts[heads] + GTID_FLAGS_OFFSET] & MAY_HOLD_DDL != 0
            last, did_last = batch.identity(-1), bool(may_hold[-1])
            for number in np.flatnonzero(np.isin(types, QUERIES) & may_hold[groups]).tolist():
                group = int(groups[number])
                with batch.naming_group(number):
                    statement = decode_statement(batch.event(number))
                if TEMPORARY.search(statement.text):
                    return None
                timestamp = int(batch.groups[group, GroupColumn.TIMESTAMP])
                history.add(batch.schema_place(number), batch.gtid(group), timestamp, statement)
    history.end = end
    return history
