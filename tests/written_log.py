"""A log of statements and rows, written group by group as a test spells them."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ibbmaster.api.group import Group
from ibbmaster.api.writing import WritableLog
from ibbmaster.gtid import Gtid
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.rows.changes import ChangeKind
from ibbmaster.replication.event.rows.encoding import Columns, WrittenTable, encode_rows, encode_table_map
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.events import make_event


class Said(NamedTuple):
    """A statement, with the error it ended with, and the sql_mode and the flags of its session."""

    text: str
    error_code: int = 0
    sql_mode: int = 0
    flags: int = 0

    def event(self) -> bytes:
        head = b"\0" + self.flags.to_bytes(4, "little") if self.flags else b""
        status = head + b"\x01" + self.sql_mode.to_bytes(8, "little")
        given = {"error_code": self.error_code, "status": status, "database": b"d", "text": self.text.encode()}
        return encode_query(Query(thread_id=1, seconds=0, **given), server_id=1)  # type: ignore[arg-type]


Item = str | Said | Sequence["str | Said | list[bytes]"]


def append_all(log: WritableLog, groups: Iterable[Group]) -> None:
    for group in groups:
        log.append(group.gtid, [event.data for event in group.events()])


def inserted(table: WrittenTable, *rows: Sequence[object], columns: Columns | None = None) -> list[bytes]:
    """The events that insert rows; `columns` are those of their images, None: all."""
    images = None if columns is None else (columns, columns)
    return _changed(table, ChangeKind.INSERT, *((None, row) for row in rows), columns=images)


def deleted(table: WrittenTable, *rows: Sequence[object]) -> list[bytes]:
    return _changed(table, ChangeKind.DELETE, *((row, None) for row in rows))


def updated(
    table: WrittenTable,
    *pairs: tuple[Sequence[object], Sequence[object]],
    columns: tuple[Columns, Columns] | None = None,
) -> list[bytes]:
    """The events that make of each first row the second one; `columns` are those of their images, None: all."""
    return _changed(table, ChangeKind.UPDATE, *pairs, columns=columns)


def _changed(
    table: WrittenTable,
    kind: ChangeKind,
    *pairs: tuple[Sequence[object] | None, Sequence[object] | None],
    columns: tuple[Columns, Columns] | None = None,
) -> list[bytes]:
    image = lambda row, told: None if row is None else table.image(row, told)  # noqa: E731 - of two rows
    before, after = columns or (None, None)
    images = [(image(old, before), image(new, after)) for old, new in pairs]
    return [encode_table_map(table, server_id=1), *encode_rows(table, kind, images, server_id=1, columns=columns)]


def write_log(directory: Path, *items: Item, file_bytes: int = 1 << 20, first: int = 1) -> Path:
    """Write a log, or go on with one: each item is a group, of a statement or of several and the events of rows.

    The first one has the number `first`.
    """
    directory.mkdir(exist_ok=True)
    with closing(RealDisk(directory)) as disk, BinlogWriter(disk, max_file_bytes=file_bytes, is_sparse=True) as writer:
        for number, item in enumerate(items, start=first):
            is_single = isinstance(item, str | Said)
            is_ddl = is_single or str(item[0]).startswith("CREATE")  # with rows: CREATE SELECT
            flags = GtidFlag.STANDALONE | GtidFlag.DDL if is_ddl else GtidFlag.TRANSACTIONAL
            gtid = Gtid(domain_id=0, server_id=1, seq_no=number)
            events = [event for part in ([item] if is_single else item) for event in _events(part)]
            head = encode_gtid_event(GtidEvent(gtid=gtid, flags=flags))
            writer.write_group(gtid, head, events if is_single else [*events, make_event(EventType.XID, 1, bytes(8))])
    return directory


def _events(part: str | Said | list[bytes]) -> list[bytes]:
    if isinstance(part, list):
        return part
    return [(Said(part) if isinstance(part, str) else part).event()]
