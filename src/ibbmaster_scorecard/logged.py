"""What a primary has logged, in the form that `matching` compares."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from ibbmaster.api.group import Group, Row
from ibbmaster.errors import PositionError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.replication.event.column_types.integer import Bit
from ibbmaster.replication.event.column_types.registry import BY_TYPE
from ibbmaster.replication.event.gtid_event import GtidFlag, decode_gtid_event
from ibbmaster.replication.event.query import decode_query
from ibbmaster.replication.event.rows.column import Column, TableSchema, ValueKind
from ibbmaster.replication.event.rows.encoding import RowMetadata
from ibbmaster.replication.event.types import EventType
from ibbmaster.testkit.primary import FixturePrimary
from .matching import LoggedChange, LoggedGroup
from .same_value import BitValue, EncodedText, PaddedBytes

STATEMENTS = (EventType.QUERY, EventType.QUERY_COMPRESSED)
FRAMES = ("begin", "commit", "rollback", "savepoint", "xa ", "release savepoint")  # statements that change no row


def logged_groups(primary: FixturePrimary, after: str) -> list[LoggedGroup]:
    has_names = primary.format.metadata is RowMetadata.FULL
    groups = primary.log.groups(after=after) if after else primary.log.groups()
    return [_logged(group, has_names) for group in groups]


def logged_behind(primary: FixturePrimary, start: str) -> list[LoggedGroup]:
    """What a consumer that starts there shall get of the present log; nothing if there is no such place."""
    try:
        return logged_groups(primary, start)
    except PositionError:
        return []


def _logged(group: Group, has_names: bool) -> LoggedGroup:
    events = [event.data for event in group.events()]
    flags = decode_gtid_event(events[0]).flags
    return LoggedGroup(
        gtid=str(group.gtid),
        changes=(*_rows(group, has_names), *(() if GtidFlag.DDL in flags else _statements(events))),
        is_prepared=GtidFlag.PREPARED_XA in flags,
    )


def _rows(group: Group, has_names: bool) -> list[LoggedChange]:
    found = []
    for schema, change in group.rows():
        columns = tuple(column.name for column in schema.columns)
        found.append(
            LoggedChange(
                table=schema.name,
                kind=change.kind,
                before=_marked(schema, change.before),
                after=_marked(schema, change.after),
                columns=columns,
                has_names=has_names,
                key=tuple(columns[number] for number in schema.primary_key) if has_names else (),
                types=schema.columns,
            )
        )
    return found


def _marked(schema: TableSchema, row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    columns = {column.name: column for column in schema.columns}
    return {name: _marked_value(columns[name], value) for name, value in row.items()}


def _marked_value(column: Column, value: Any) -> Any:
    if isinstance(BY_TYPE.get(column.type), Bit) and isinstance(value, int):
        return BitValue(value)
    if column.is_fixed_length and isinstance(value, bytes):
        return PaddedBytes(value)
    if column.kind is ValueKind.TEXT and column.charset is not None and isinstance(value, str):
        return EncodedText(value, column.charset)
    return value


def _statements(events: Sequence[bytes]) -> list[LoggedChange]:
    texts = [decode_query(data).text.decode("utf-8", "replace") for data in events if data[4] in STATEMENTS]
    return [LoggedChange(sql=text) for text in texts if not text.lower().lstrip().startswith(FRAMES)]


def of_both(written: Sequence[LoggedGroup], now: Sequence[LoggedGroup], start: str) -> list[LoggedGroup]:
    """What another primary has taken over and added, the marker last; groups that it lost may come or not."""
    begins = GtidPosition.parse(start)
    *known, marker = [dataclasses.replace(group, is_required=group in now) for group in written]
    added = [group for group in now if group not in written and not _is_before(group, begins)]
    return [*known, *added, marker]


def _is_before(group: LoggedGroup, start: GtidPosition) -> bool:
    gtid = Gtid.parse(group.gtid)
    return gtid.domain_id in start and gtid.seq_no <= start[gtid.domain_id].seq_no
