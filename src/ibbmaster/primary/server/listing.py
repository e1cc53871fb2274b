"""The events of a file, and what was logged before a byte of it."""

import contextlib
from collections.abc import Iterator
from itertools import chain

from ibbmaster.errors import MissingEventError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.interface import EventGroups, FileEngine, LogEngine, LogFile
from ibbmaster.position import LogPosition
from ibbmaster.primary.dialogue.log_tables import BinlogEventRow
from ibbmaster.replication.event.describe import describe_event, event_type_name
from ibbmaster.replication.event.format_description import has_checksums
from ibbmaster.replication.event.header import CHECKSUM_SIZE, decode_event_header, resized, without_checksum
from ibbmaster.replication.event.split import event_heads
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.work import check_wanted

CANNOT_LIST = 1220
FIRST_OFFSET = 4


class Listing:
    def __init__(self, engine: LogEngine) -> None:
        self._engine = engine

    def end(self) -> LogPosition:
        return self._engine.end()

    def rows(self, file: LogFile | None, offset: int) -> Iterator[BinlogEventRow]:
        """From an offset on. Raises KeyError, RefusedError: no such file, or no event begins there."""
        if file is None:
            raise KeyError("there is no such file")
        return self._rows(self._engine.groups(self._engine.start_of_file(file.file_no)), file.name, offset)

    def _rows(self, groups: EventGroups, file_name: str, offset: int) -> Iterator[BinlogEventRow]:
        with contextlib.closing(groups):
            file_no = groups.position.file_no
            while (group := groups.next_group()) is not None and group.start.file_no == file_no:
                check_wanted()
                if group.start.offset < offset:
                    continue
                for event in event_heads(group.gtid_event, group.body):
                    header = decode_event_header(event)
                    yield BinlogEventRow(
                        file_name=file_name,
                        event_type=event_type_name(header.event_type),
                        server_id=header.server_id,
                        info=describe_event(event),
                    )

    def state_at(self, file: LogFile, offset: int) -> GtidState | None:
        """What was logged before a byte of a file; None: no place to begin a dump."""
        plan = self._engine.start_of_file(file.file_no)
        state = plan.state.copy()
        with contextlib.closing(self._engine.groups(plan)) as groups:
            while (group := groups.next_group()) is not None and group.start.file_no == plan.position.file_no:
                check_wanted()
                if group.start.offset >= offset:
                    break
                if group.gtid is not None:
                    state.log(group.gtid)
        return state


class StoredListing(Listing):
    """Files that are streams themselves: each event has its offset."""

    def __init__(self, engine: FileEngine) -> None:
        super().__init__(engine)
        self._files = engine

    def end(self) -> LogPosition:
        self._engine.state()  # so the end is one that a dump begins at
        return self._engine.end()

    def rows(self, file: LogFile | None, offset: int) -> Iterator[BinlogEventRow]:
        if file is None:
            raise _refused("Could not find target log")
        if offset > file.size and not file.is_packed:
            raise _refused(
                f"Invalid pos specified. Requested from pos:{offset} is greater than actual file size:{file.size}"
            )
        rows = self._stored_rows(file, max(offset, FIRST_OFFSET))
        first = next(rows, None)  # a wrong offset is an error before any row
        return rows if first is None else chain((first,), rows)

    def _stored_rows(self, file: LogFile, offset: int) -> Iterator[BinlogEventRow]:
        trailer_size = 0
        with contextlib.closing(self._files.stored_groups(self._files.start_of_file(file.file_no), offset)) as groups:
            while file.is_packed or groups.position.offset < file.size:  # later events were not there when asked
                try:
                    group = groups.next_group()
                except MissingEventError:
                    raise _refused("Wrong offset or I/O error") from None
                if group is None or group.start.file_no != file.file_no:
                    return
                position = group.start.offset
                for event in event_heads(group.gtid_event, group.body):
                    header = decode_event_header(event)
                    is_description = header.event_type == EventType.FORMAT_DESCRIPTION
                    if is_description:
                        trailer_size = CHECKSUM_SIZE if has_checksums(event) else 0
                    if position >= offset:
                        is_cut = len(event) < header.size
                        plain = event if is_description else without_checksum(event, 0 if is_cut else trailer_size)
                        yield BinlogEventRow(
                            file_name=file.name,
                            event_type=event_type_name(header.event_type),
                            server_id=header.server_id,
                            info=describe_event(resized(plain)),
                            position=position,
                            end_position=header.log_pos,
                        )
                    position += header.size

    def state_at(self, file: LogFile, offset: int) -> GtidState | None:
        """None where no event begins, nor the end is. A group counts after its GTID event. Source: MariaDB 10.11,
        sql_repl.cc, gtid_state_from_pos()."""
        plan = self._files.start_of_file(file.file_no)
        state = plan.state.copy()
        with contextlib.closing(self._files.stored_groups(plan)) as groups:
            while (group := groups.next_group()) is not None and group.start.file_no == file.file_no:
                position = group.start.offset
                for event in event_heads(group.gtid_event, group.body):
                    if position >= offset:
                        return state if position == offset else None
                    if group.gtid is not None and position == group.start.offset:
                        state.log(group.gtid)
                    position += decode_event_header(event).size
                if position == offset:
                    return state
        return None


def _refused(why: str) -> RefusedError:
    return RefusedError(CANNOT_LIST, "HY000", f"Error when executing command SHOW BINLOG EVENTS: {why}")
