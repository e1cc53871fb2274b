"""What the statements of a running primary make of its tables, as far as a stream has come.

A primary sends its statements among its groups, and those from before a position not again: the
offsets of a stream carry what they came to.
"""

from __future__ import annotations

from dataclasses import replace

from ibbmaster.arrow.live import LiveSource, address, live_range, read_history
from ibbmaster.arrow.plan import selected_versions
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.schema_reading import declared_texts, schema_of_texts
from ibbmaster.arrow.shape import ShapeField, TableFields
from ibbmaster.capture.client import oldest_position
from ibbmaster.errors import SourceError
from ibbmaster.gtid import GtidPosition
from ibbmaster.log.group_content import TableFilter
from ibbmaster.log.group_folding import GroupFolding
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.schema.catalog import KnownTable
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableKind, TableVersion
from ibbmaster.schema.render import create_table
from ibbmaster.schema.versions import TableVersions
from ibbmaster.spark.offset import TableTexts
from ibbmaster.spark.tracking import of_version
from ibbmaster.sqltext.table_name import parse_table_name

PRINTED_AS = 110800  # the version of a server whose SHOW CREATE TABLE offsets have


def texts_before(options: ReadOptions, position: GtidPosition) -> TableTexts:
    """What a typed stream that begins at a position has to know of its tables, if none are declared."""
    if options.table is None or options.table in options.declarations or not len(position):
        return {}
    try:
        history = read_history(options, live_range(str(oldest_position(address(options))), str(position)))
    except SourceError:
        return {}  # purged: only events could say it
    return _texts(options, history, None)


class LiveSchema:
    """The schema after the offset at which a run of a stream begins; it grows with what the primary sends.

    Groups are numbered from that offset on: `passed` says how many there are up to another one.
    """

    def __init__(self, options: ReadOptions, start: GtidPosition, texts: TableTexts, began: GtidPosition) -> None:
        kept = {name: one for name, one in options.declarations.items() if parse_table_name(name) not in texts}
        self.options = replace(options, declarations=kept)
        told = {name: text for name, text in texts.items() if text is not None}
        self._named = {*texts, *map(parse_table_name, kept)}
        history = SchemaHistory(schema_of_texts({**declared_texts(kept), **told}))
        self._folding = GroupFolding(history, takes_rows=options.table is not None)
        self._position, self._count = start, 0
        self._passed = {str(start): 0}
        self.fold_to(began)
        self._began = self._place(self._count)

    def fold_to(self, end: GtidPosition) -> None:
        """Read on up to a position; one that was passed is left alone."""
        if _reaches(self._position, end):
            return
        log_range = live_range(str(self._position), str(end), passed=self._count)
        for group in LiveSource(self.options).groups_in(log_range):
            self._folding.fold(group)
            self._count += 1
        self._position = end
        self._passed[str(end)] = self._count

    def note(self, position: GtidPosition, after: GtidPosition, count: int) -> None:
        """A position is a number of groups after one that is known."""
        self._passed[str(position)] = self._passed[str(after)] + count

    def passed(self, position: GtidPosition, after: GtidPosition) -> int:
        """How many groups there are from the beginning of the run to a position, which is after one that is known."""
        if str(position) not in self._passed:
            log_range = live_range(str(after), str(position))
            self.note(position, after, sum(1 for _ in LiveSource(self.options).groups_in(log_range)))
        return self._passed[str(position)]

    def versions(self) -> TableVersions:
        """The versions of the tables that options ask for."""
        return selected_versions(self.options, self._folding.history, self._began, goes_on=True)

    def texts(self, position: GtidPosition, after: GtidPosition) -> TableTexts:
        """What the tables are after a position, as far as statements have changed them since the stream began."""
        place = self._place(self.passed(position, after))
        found = _texts(self.options, self._folding.history, place)
        known = self._folding.history.at(place).tables
        gone = (name for name in self._named if name not in found and not _is_known(known.get(name)))
        return {**found, **dict.fromkeys(gone)}

    def fields(self, fields: tuple[ShapeField, ...]) -> tuple[ShapeField, ...]:
        """The columns of the DataFrame, as those of the table that this schema knows.

        Raises:
            ConfigurationError: its columns have other names now than when the DataFrame was made.
        """
        if not isinstance(fields, TableFields) or fields.shape.version is None:
            return fields
        versions = self.versions()
        newest = versions.newest(self._began)
        if not isinstance(newest, TableVersion) and newest is versions.newest():
            self._folding.history.take_rows(self._began, "", fields.shape.schema)  # by rows from before the stream
            newest = self.versions().newest(self._began)
        return of_version(fields, newest)

    @staticmethod
    def _place(passed: int) -> SchemaPlace:
        return SchemaPlace(LogPosition(NOWHERE.file_no, passed + 1), 0)


def _is_known(table: KnownTable | None) -> bool:
    return isinstance(table, TableVersion)


def _reaches(position: GtidPosition, end: GtidPosition) -> bool:
    """Whether a position has all of another."""
    found = {gtid.domain_id: gtid.seq_no for gtid in position.values()}
    return all(found.get(gtid.domain_id, -1) >= gtid.seq_no for gtid in end.values())


def _texts(options: ReadOptions, history: SchemaHistory, place: SchemaPlace | None) -> TableTexts:
    """The tables that a stream may meet, at a place; none for one that is as it was declared."""
    found: TableTexts = {}
    takes = TableFilter(options.tables).takes
    for name, table in history.at(place).tables.items():
        is_wanted = takes(name) if options.table is None else name[0] == parse_table_name(options.table)[0]
        is_declared = table.since is None and table.full_name in options.declarations
        if not is_wanted or is_declared or table.undefined_because:
            continue
        if isinstance(table, TableVersion) and table.kind is not TableKind.VIEW:
            found[name] = create_table(table, PRINTED_AS)
    return found
