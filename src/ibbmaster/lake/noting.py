"""The validity of each row, noted by the reference as it reads a log forward."""

from collections.abc import Sequence
from typing import NamedTuple

from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.schema.model import TableVersion
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.tables.fold.cascades import MissingTablesError
from ibbmaster.tables.fold.contents import TableContents
from ibbmaster.tables.fold.folding import RowFold
from ibbmaster.tables.fold.kept_rows import KeptRows, RowFile
from .maintain.source import LogSource, UncertainRowsError

NOTES_MAX = 1 << 24  # changes, in memory, of rows that are followed one by one
Moment = tuple[str, int | None]  # GTID of an effective group, and seconds since 1970


class Period(NamedTuple):
    place: int
    begin: Moment
    end: Moment | None


class _NotedRows(KeptRows):
    def __init__(self, numbers: frozenset[int]) -> None:
        super().__init__(RowFile())
        self.noted = numbers
        self.moment: Moment = ("", None)
        self._notes: list[tuple[tuple[int, bytes], int | None, Moment]] = []  # row, place
        self._marks: dict[str, int] = {}

    def savepoint(self, name: str) -> None:
        super().savepoint(name)
        self._marks[name] = len(self._notes)

    def undo(self, name: str) -> None:
        super().undo(name)
        del self._notes[self._marks[name] :]

    def drop(self, number: int) -> None:
        if number in self.noted:
            self._note(number, [key for key, _ in self.all_rows(number)])
        super().drop(number)

    def _note(self, number: int, keys: Sequence[bytes] = (), places: Sequence[int] | None = None) -> None:
        super()._note(number, keys, places)
        if number in self.noted:
            found = places if places is not None else [None] * len(keys)
            self._notes += [((number, key), place, self.moment) for key, place in zip(keys, found, strict=True)]
            if len(self._notes) > NOTES_MAX:
                reason = f"its history is followed row by row, and it has more than {NOTES_MAX} changes"
                raise UncertainRowsError(self.moment[0], reason)

    def periods(self) -> list[Period]:
        rows: dict[tuple[int, bytes], list[Period]] = {}
        for row, place, moment in self._notes:
            found = rows.setdefault(row, [])
            if found and found[-1].end is None:
                found[-1] = found[-1]._replace(end=moment)
            if place is not None:
                found.append(Period(place, moment, None))
        return [one for found in rows.values() for one in found]


class _NotingFold(RowFold):
    kept: _NotedRows

    def _take(self, group: EventGroup) -> None:
        self.kept.moment = (str(group.gtid), decode_event_header(group.gtid_event).timestamp)
        super()._take(group)
        for number in self.kept.noted & self.tables.keys():
            expect_known(self.tables[number])


def expect_known(contents: TableContents) -> None:
    """Raises UncertainRowsError: something of a row is unknown."""
    of_rows = (one for found in contents.doubts.rows.values() for one in found.values())
    for unknown in (contents.unknown, *contents.unknown_columns.values(), *of_rows):
        if unknown is not None:
            raise UncertainRowsError(unknown.gtid, unknown.reason)


def periods_of(source: LogSource, name: TableName, table: TableVersion) -> tuple[TableContents, list[Period]]:
    """All periods of a table's rows, and its rows now. Raises UncertainRowsError: the log does not tell the rows of
    some position; IbbMasterError: the log cannot be read."""
    noted = wanted = source.generations(name)
    while True:
        kept = _NotedRows(noted)
        kept.moment = "" if source.base is None else str(source.base.position), None
        start = source.log.start_of_file().position
        fold = _NotingFold(source.log, source.history, kept, start, 1 << 62, source.base, wanted=wanted)
        try:
            fold.advance(source.end_position)
        except MissingTablesError as error:
            wanted |= error.generations
            continue
        contents = fold.contents_of(table)
        expect_known(contents)
        return contents, kept.periods()
