"""A running primary as a source of groups: ranges of its log are GTID positions.

Groups of a primary have no place in a file. They are numbered in the order in which they come, so that versions of
tables have places among them; readers of a range again see by some GTIDs whether the order is the same.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ibbmaster.errors import ConfigurationError, GtidError, SourceError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.capture.client import PrimaryAddress, groups_between, logged_position, oldest_position
from ibbmaster.logs.log.group_folding import GroupFolding
from ibbmaster.logs.log.interface import GroupSource, OnFault
from ibbmaster.logs.log.log_range import WHOLE_FILE, LogRange
from ibbmaster.logs.stages.engine import passed_on
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.versions import TableVersions
from ibbmaster.sqltext.table_name import TableName, parse_table_name
from .read_options import ReadOptions
from .schema_reading import declared_schema
from .staging import live_stages

VERSION = 1

Offset = dict[str, int | str | dict[str, str | None] | dict[str, int]]
TableTexts = dict[TableName, str | None]  # CREATE TABLE by database and table


def encode_offset(
    position: GtidPosition, point: LogPosition, tables: TableTexts | None = None, *, file_name: str | None = None
) -> Offset:
    """`{"v": 1, "gtid": "0-1-100,1-2-7", "file": 12, "offset": 14303233}`: a GTID for each domain, which decides, and
    where in the log that is, for people and metrics. The caller adds `lag` of the last batch and `columns`; `tables`
    of a running primary: the CREATE TABLE of those that statements have changed, null where gone or unknown.

    `file_name`: of a traditional file.
    """
    file = point.file_no if file_name is None else file_name
    offset: Offset = {"v": VERSION, "gtid": str(position), "file": file, "offset": point.offset}
    if tables:
        offset["tables"] = {str(name): text for name, text in sorted(tables.items())}
    return offset


def tables_of(offset: Mapping[str, object]) -> TableTexts:
    """Raises ConfigurationError: the tables of the offset were not written so."""
    found = offset.get("tables", {})
    if not isinstance(found, dict) or not all(text is None or isinstance(text, str) for text in found.values()):
        raise ConfigurationError(f"offset {json.dumps(dict(offset))[:60]} has tables that are no statements")
    try:
        return {parse_table_name(name): text for name, text in found.items()}
    except ConfigurationError as error:
        problem = "an older version wrote it, and it may mean another table: begin the stream anew"
        raise ConfigurationError(f"offset {json.dumps(dict(offset))[:60]}: {error}: {problem}") from None


def decode_offset(offset: Mapping[str, object]) -> GtidPosition:
    """Raises ConfigurationError: the offset is none of ours, or of a later version."""
    if offset.get("v") != VERSION or not isinstance(offset.get("gtid"), str):
        raise ConfigurationError(
            f"offset {json.dumps(dict(offset))[:60]} is not one of this source (version {VERSION})"
        )
    return GtidPosition.parse(str(offset["gtid"]))


def position_of_option(text: str) -> GtidPosition:
    """Raises ConfigurationError: `startingOffsets` is neither a GTID position nor an offset."""
    try:
        return decode_offset(json.loads(text)) if text.startswith("{") else GtidPosition.parse(text)
    except (ValueError, RecursionError, GtidError, ConfigurationError) as error:
        problem = f"option startingOffsets is {text[:60]!r}, expected earliest, latest, a GTID position or an offset"
        raise ConfigurationError(f"{problem}: {error}") from None


_HISTORIES: dict[tuple[object, ...], SchemaHistory] = {}  # the last one
PASSWORD_VARIABLE = "IBBMASTER_PASSWORD"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRange(LogRange):
    """The groups after one position, up to another. The first has the number after `start_offset`; GTIDs in `landmarks`
    must have these numbers."""

    start: str
    end: str
    landmarks: tuple[tuple[int, str], ...] = ()


def live_range(start: str, end: str, *, passed: int = 0) -> LiveRange:
    """`passed` groups of the primary's log precede it."""
    return LiveRange(file_no=NOWHERE.file_no, start_offset=passed, end_offset=WHOLE_FILE, start=start, end=end)


def with_landmarks(ranges: Iterable[LogRange], versions: TableVersions) -> list[LogRange]:
    """Ranges whose readers check that each version of a table begins where it began for the planner."""
    found = [one for one in ranges if isinstance(one, LiveRange)]
    return [replace(one, landmarks=tuple(sorted({*one.landmarks, *versions.landmarks()}))) for one in found]


def read_history(options: ReadOptions, log_range: LiveRange) -> SchemaHistory:
    """The schema history of a range; `declarations` are the tables where it begins. Rows define the one table of
    options where statements do not. Raises SourceError: the primary cannot be reached, refuses, or breaks off;
    EventError: a statement is damaged; it names the group."""
    takes_rows = options.table is not None
    given = repr((options.declarations, options.stages, takes_rows))
    key = str(address(options)), log_range, given, options.name_case
    found = _HISTORIES.get(key)
    if found is None:
        found = SchemaHistory(declared_schema(options.declarations), options.name_case)
        folding = GroupFolding(found, takes_rows=takes_rows)
        for group in LiveSource(options).groups_in(log_range):
            folding.fold(group)
        _HISTORIES.clear()
        _HISTORIES[key] = found
    return found


def ended(options: ReadOptions) -> ReadOptions:
    """The same with both ends, of the oldest file and of now: two calls then ask about one range."""
    if options.starting_gtid is None:
        options = replace(options, starting_gtid=str(oldest_position(address(options))))
    if options.ending_gtid is not None:
        return options
    return replace(options, ending_gtid=str(logged_position(address(options))))


def whole_range(options: ReadOptions) -> LiveRange:
    """All that options select, up to now, in one range: a primary sends in order."""
    options = ended(options)
    return live_range(options.starting_gtid or "", options.ending_gtid or "")


def address(options: ReadOptions) -> PrimaryAddress:
    assert options.host is not None
    return PrimaryAddress(
        host=options.host,
        port=options.port,
        user=options.user,
        password=options.password or os.environ.get(PASSWORD_VARIABLE, ""),
        uses_tls=options.uses_tls,
        server_id=options.server_id,
    )


class LiveSource(GroupSource):
    def __init__(self, options: ReadOptions) -> None:
        self._primary = address(options)
        self._stages = live_stages(options)

    def close(self) -> None:
        """Nothing is kept open."""

    def file_name(self, file_no: int) -> str:
        return ""

    def groups_in(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        assert isinstance(log_range, LiveRange)
        start, end = GtidPosition.parse(log_range.start), GtidPosition.parse(log_range.end)
        landmarks = dict(log_range.landmarks)
        for number, group in enumerate(groups_between(self._primary, start, end), start=log_range.start_offset + 1):
            expected = landmarks.get(number)
            if expected is not None and expected != str(group.gtid):
                raise SourceError(f"{self._primary}: sends {group.gtid}, and has sent {expected} there: try again")
            place = LogPosition(NOWHERE.file_no, number)
            passed = passed_on(replace(group, start=place, end=place._replace(offset=number + 1)), self._stages)
            if passed is not None:
                yield passed
