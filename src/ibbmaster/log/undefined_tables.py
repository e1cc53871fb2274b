"""Tables whose CREATE TABLE a log does not have, learned from the TABLE_MAP events that name their columns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ibbmaster.errors import EventError
from ibbmaster.event.group import EventGroup
from ibbmaster.event.header import TYPE_OFFSET
from ibbmaster.event.rows.table_schema import decode_table_schema
from ibbmaster.event.table_map import SAYS_OFFSET
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid
from ibbmaster.log.group_content import group_events
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.work import check_wanted

SEEN_MAX = 1 << 12  # TABLE_MAP events that are known again

NeedsRows = Callable[[SchemaHistory], bool]
"""Whether a history by statements alone does not define all tables that are asked for."""


def defined_history(fold: Callable[[bool], SchemaHistory], needs_rows: NeedsRows) -> SchemaHistory:
    """The schema history of a log, in which rows define tables if it needs them: to read all rows takes long.

    `fold` gives it without rows, which is asked first, and with them.
    """
    history = fold(False)
    return fold(True) if needs_rows(history) else history


class UndefinedTables:
    """Puts the TABLE_MAP events of a log beside its statements, in order: tables that none of them defines.

    Of several that say the same between two statements one is looked at.
    """

    def __init__(self, history: SchemaHistory) -> None:
        self._history = history
        self._seen: set[bytes] = set()
        self._changes = 0  # up to which all these were seen

    def take(self, place: SchemaPlace, gtid: Gtid, event: bytes) -> None:
        """See an event; a damaged one is ignored here, and reported when its rows are read."""
        if len(self._seen) >= SEEN_MAX or len(self._history.places) != self._changes:
            self._seen.clear()
            self._changes = len(self._history.places)
        says = event[SAYS_OFFSET:]
        if says in self._seen:
            return
        self._seen.add(says)
        with contextlib.suppress(EventError):
            self._history.take_rows(place, str(gtid), decode_table_schema(event))

    def take_group(self, group: EventGroup) -> None:
        """See all events of a group."""
        assert group.gtid is not None
        for number, event in enumerate(group_events(group)):
            check_wanted()
            if event[TYPE_OFFSET] == EventType.TABLE_MAP:
                self.take(SchemaPlace(group.start, number), group.gtid, event)
