"""Where transactions to be compared come from: a log, or a running primary."""

from __future__ import annotations

from collections.abc import Iterator

from ibbmaster.api.group import Group
from ibbmaster.api.log import Log
from ibbmaster.capture.client import PrimaryAddress, groups_between, logged_position
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.log.group_content import group_events


class ReadGroup:
    """A transaction of a log; its events are read again each time."""

    def __init__(self, group: Group) -> None:
        self.gtid: Gtid = group.gtid
        self._group = group

    def data(self) -> Iterator[bytes]:
        for event in self._group.events():
            yield event.data
        self._group.release()

    def place(self) -> str:
        return str(self._group.start)


class SentGroup:
    """A transaction that a primary sends, once."""

    def __init__(self, group: EventGroup) -> None:
        assert group.gtid is not None
        self.gtid: Gtid = group.gtid
        self._group: EventGroup | None = group

    def data(self) -> Iterator[bytes]:
        group, self._group = self._group, None
        return iter(()) if group is None else group_events(group)

    def place(self) -> str:
        return ""


def logged_groups(log: Log) -> Iterator[ReadGroup]:
    """The transactions of a log, in its order."""
    return map(ReadGroup, log.groups())


def sent_groups(primary: PrimaryAddress, after: GtidPosition) -> Iterator[SentGroup]:
    """What a primary has logged by now, after a position.

    Raises:
        SourceError: it cannot be reached, refuses, or breaks off.
    """
    return map(SentGroup, groups_between(primary, after, logged_position(primary)))
