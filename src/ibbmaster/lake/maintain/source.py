"""A log as a maintenance run sees it: from the tables' positions to its end now."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import pyarrow as pa

from ibbmaster.errors import ConfigurationError, EventError, IbbMasterError, PositionError
from ibbmaster.gtid import GtidPosition
from ibbmaster.kernel.loading import do_pay
from ibbmaster.lake.pasts import START, Past, Place, past_of
from ibbmaster.lake.statements import Logged, after, completions, effective, logged_statements, read_table
from ibbmaster.logs.log.locating import resume
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.rows.shape import version_shape
from ibbmaster.schema.catalog import KnownTable, SchemaCatalog
from ibbmaster.schema.history import BEFORE, SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableKind, TableVersion, UnknownTable
from ibbmaster.schema.saved_history import LastFolded, decode_history, encode_history
from ibbmaster.schema.versions import ranges_of
from ibbmaster.sqltext.table_name import TableName, parse_table_name
from ibbmaster.tables.arrow.ddl_scan import scan_ddl
from ibbmaster.tables.arrow.many_tables import plan_tables, read_tables
from ibbmaster.tables.arrow.plan import end_of, history_of, open_log
from ibbmaster.tables.arrow.read_options import Granularity, ReadOptions
from ibbmaster.tables.arrow.shape import TableFields, arrow_schema, field_name, table_fields
from ibbmaster.tables.fold.applying import WITHOUT_BEGINNING
from ibbmaster.tables.fold.base_rows import BaseDump
from .reshaping import Reshape, reshape_of

GROUPS = ("_gtid", "_domain", "_commit_ts", "_file_no", "_offset", "tables")
BYTES_MAX = 256 << 20  # in memory


class UncertainRowsError(Exception):
    """The log does not have a table's rows since its first argument, a GTID; the second is the reason."""


class Read(NamedTuple):
    """Wanted changes of a table, into some columns, in groups after a place. From position `gtids` all are readable;
    empty for the beginning."""

    name: TableName
    fields: TableFields
    start: Place
    gtids: str = ""


class LogSource:
    """Up to the end of options, or of the log now; later groups are for the next source. The log is new from GTID
    position `start` on; empty for all of it. `known` is what an earlier source knew of schemas, also of purged
    files."""

    def __init__(self, options: ReadOptions, start: str = "", known: bytes | None = None) -> None:
        self.start = start
        self._groups: dict[str, pa.Table] = {}
        self.log = open_log(options)
        pays = do_pay(sum(file.size for file in self.log.files()))
        self.end = options.ending_gtid or str(self.log.state().position())
        self.options = dataclasses.replace(
            options, table=None, tables=(), columns=(), uses_kernels=pays, ending_gtid=self.end
        )
        self.end_position = end_of(self.end, options, self.log)
        self.end_place = SchemaPlace(self.end_position, 0)
        self.base = None if options.base is None else BaseDump.of_file(Path(options.base))
        self.base_place = None if self.base is None else self._place_of_base(self.base)
        self.history = self._history(known)
        self._pasts: dict[TableName, Past] = {}
        self._gathered = SharedScan(self.options, [], self._known)

    def _history(self, known: bytes | None) -> SchemaHistory:
        """That of all of the log; of a purged log it continues what is known."""
        options = self.options
        self._known: SchemaHistory | None = None  # what scans cannot find in the log that is left
        if known is None or options.declarations or options.base or not list(self.log.start_of_file().state):
            return history_of(options, self.log)
        found, last = decode_history(known)
        self._since = last.state or self.start
        scan, position = scan_ddl if options.uses_kernels else None, GtidPosition.parse(self._since)
        base = _as_before(found.at())
        self._known = LoggedSchema(self.log, base=base, behind=position, scan=scan, case=options.name_case).history()
        return self._known

    def known(self, others: "Iterable[tuple[TableName, LogSource]]" = ()) -> bytes:
        """What the next source has to know of schemas; of some tables what another source of this log knows."""
        last = LastFolded(self.end_position, "", "", self.end, "")
        catalog = self.history.at()
        tables = dict(catalog.tables)
        for generation, (name, other) in enumerate(others, self.history.fold.last_generation + 1):
            tables[name] = dataclasses.replace(other.known_table(name), generation=generation)
        return encode_history(SchemaHistory(dataclasses.replace(catalog, tables=tables), self.history.case), last)

    def close(self) -> None:
        self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def statements(self) -> list[Logged]:
        found = logged_statements(self.options)
        if self.base_place is not None:
            start = just_before(self.base_place)
            found = [one for one in found if one.place > start]
        return found

    @cached_property
    def prepared(self) -> dict[Place, Logged | None]:
        """The places of prepared XA transactions, and what committed them."""
        return dict(completions(self.statements))

    def tables(self) -> Iterator[TableName]:
        for name in sorted(set(self.history.names())):
            if self.has_table(name):
                yield name

    def has_table(self, name: TableName) -> bool:
        known = self.table_at(name, self.end_place)
        return isinstance(known, UnknownTable) or (known is not None and known.kind is TableKind.BASE)

    def known_table(self, name: TableName) -> TableVersion:
        """Raises UncertainRowsError: its columns are unknown."""
        known = self.table_at(name, self.end_place)
        if isinstance(known, UnknownTable):
            raise UncertainRowsError(known.gtid or "", known.reason)
        assert known is not None
        return known

    def table_at(self, name: TableName, place: SchemaPlace) -> KnownTable | None:
        return self.history.table_at(*name, place)

    def past(self, name: TableName) -> Past:
        if name not in self._pasts:
            self._pasts[name] = past_of(self.history, name, self.end_place, self.statements)
        return self._pasts[name]

    def is_whole(self, name: TableName) -> bool:
        """Whether the log has the beginning of a table."""
        begin = SchemaPlace(self.log.start_of_file().position, 0)
        ranges = ranges_of(self.history, name, self.end_place)
        return all(one.since is not None and one.since >= begin for one in ranges)

    def expect_whole(self, name: TableName) -> None:
        """Raises UncertainRowsError: purged files had the table's beginning."""
        if self._known is not None and not self.is_whole(name):
            raise UncertainRowsError("", WITHOUT_BEGINNING)

    def generations(self, name: TableName) -> frozenset[int]:
        return frozenset(
            one.generation
            for called in ranges_of(self.history, name, self.end_place)
            for one in self.history.versions(*called.name)
            if isinstance(one, TableVersion) and called.holds(called.name, one.since or BEFORE)
        )

    # What is new ------------------------------------------------------------------------------

    def place_of(self, gtids: str) -> SchemaPlace:
        """Raises PositionError: the position is not in the log, or is no place: groups before it are missing."""
        start = resume(self.log, GtidPosition.parse(gtids))
        last = max(start.starts.values(), default=start.begin)
        if start.begin < last:
            problem = "is no place of this log: groups before its last one are not in it"
            raise PositionError(f"GTID position {gtids} {problem}")
        return SchemaPlace(last, 0)

    def _place_of_base(self, base: BaseDump) -> SchemaPlace:
        """Raises PositionError: the dump has no place, or one after the end."""
        try:
            place = self.place_of(str(base.position))
        except PositionError as error:
            raise PositionError(f"{self.options.base} is of GTID position {base.position}: {error}") from None
        if place > self.end_place:
            raise PositionError(f"{self.options.base} is of GTID position {base.position}, which is after {self.end}")
        return place

    def version_in_base(self, name: TableName) -> TableVersion | None:
        """Whatever the table was called there; None if it came later."""
        place = self.base_place
        if place is None:
            return None
        for one in ranges_of(self.history, name, self.end_place):
            known = self.table_at(one.name, place) if one.holds(one.name, place) else None
            if isinstance(known, TableVersion):
                return known
        return None

    def version_at(self, name: TableName, place: SchemaPlace) -> TableVersion | None:
        if self._known is not None and place < self.place_of(self._since):
            return None
        known = self.table_at(name, place)
        return known if isinstance(known, TableVersion) else None

    def written_since(self, gtids: str) -> set[TableName]:
        """Tables, as events name them, changed by groups that took effect since a position, or ever."""
        found: set[str] = set()
        start = just_before(self.place_of(gtids)) if gtids else START
        for group in self._groups_since(gtids).select(["_file_no", "_offset", "tables"]).to_pylist():
            if self._effective((group["_file_no"], group["_offset"])) > start:
                found.update(group["tables"] or ())
        return {self.history.case.table_key(*parse_table_name(name)) for name in found}

    def marks(self) -> dict[str, tuple[str, int]]:
        """The last GTID of each domain, and its time: another log may have the same numbers."""
        groups = self._groups_since(self.start).select(["_domain", "_gtid", "_commit_ts"])
        last = {domain: number for number, domain in enumerate(groups["_domain"].to_pylist())}
        rows = groups.take(list(last.values())).to_pylist() if last else []
        return {str(row["_domain"]): (row["_gtid"], int(row["_commit_ts"].timestamp())) for row in rows}

    def expect_same(self, marks: Mapping[str, tuple[str, int]], position: str) -> None:
        """Raises PositionError: the log has other groups than that of these marks, made at that position."""
        wanted, end = dict(marks.values()), end_of(position, self.options, self.log)
        with closing(self.log.groups(self.log.seek(GtidPosition.parse(position)))) as groups:
            while (group := groups.next_group()) is not None and group.start < end:
                gtid, seconds = str(group.gtid), decode_event_header(group.gtid_event).timestamp
                if wanted.get(gtid, seconds) != seconds:
                    raise PositionError(f"GTID {gtid} is another group in this log than in that of the last run")

    def _groups_since(self, gtids: str) -> pa.Table:
        if gtids not in self._groups:
            begin = just_before(self.place_of(gtids)) if gtids else START
            start = self.readable_from(begin, gtids)
            self._groups[gtids] = read_table(
                dataclasses.replace(
                    self.options, granularity=Granularity.GROUPS, starting_gtid=start, columns=GROUPS, declarations={}
                )
            )
        return self._groups[gtids]

    def _effective(self, place: Place) -> Place:
        """Where a group takes effect; before everything if it does not."""
        if place not in self.prepared:
            return place
        completed = self.prepared[place]
        return (-1, -1) if completed is None else completed.place

    # Rows -------------------------------------------------------------------------------------

    def fields(self, table: TableVersion, more: Sequence[str] = ()) -> TableFields:
        """A table's columns, with `more` in front. Raises ConfigurationError: two differ only in their case;
        EventError: a column has an unknown type."""
        shape = version_shape(table.full_name, table)
        own = [field_name(column.name) for column in shape.columns]
        table_fields(shape, self.options.zero_dates)
        return table_fields(shape, self.options.zero_dates, [*more, *own])

    def reshape(self, name: TableName, place: SchemaPlace, now: TableVersion) -> Reshape | None:
        """How columns of a position's rows change; None if these are no rows of now."""
        then = self.version_at(name, place)
        if then is None:
            return None
        try:
            return reshape_of(then, now, self.fields)
        except (ConfigurationError, EventError):
            return None

    def gather(self, reads: Iterable[Read]) -> None:
        self._gathered = SharedScan(self.options, [self._wanted(read) for read in reads], self._known)

    def changes(self, read: Read) -> pa.Table:
        """The changes that took effect in groups after a place, in that order."""
        return after(effective(self._gathered.take(self._wanted(read)), self.statements), read.start)

    def _wanted(self, read: Read) -> "TableRequest":
        return TableRequest(str(read.name), read.fields, self.readable_from(read.start, read.gtids))

    def readable_from(self, start: Place, gtids: str) -> str | None:
        """The position from which all is read that took effect after a place; None: the beginning."""
        is_all = not gtids or any(place <= start < self._effective(place) for place in self.prepared)
        return None if is_all else gtids


def _as_before(found: SchemaCatalog) -> SchemaCatalog:
    tables = {name: dataclasses.replace(one, since=None) for name, one in found.tables.items()}
    for name, one in tables.items():
        if isinstance(one, TableVersion):
            tables[name] = dataclasses.replace(one, is_created_in_log=False)
    return dataclasses.replace(found, tables=tables)


def just_before(place: SchemaPlace) -> Place:
    """Groups at this place, and later ones, compare as greater."""
    return place.position.file_no, place.position.offset - 1


class TableRequest(NamedTuple):
    """The changes of a table, as `database.table`, after a GTID position, or all, into some columns."""

    table: str
    fields: TableFields
    starting_gtid: str | None


class SharedScan:
    """Reads wanted changes together where they begin at the same position; `known` as for `plan_tables`."""

    def __init__(
        self, options: ReadOptions, wanted: Sequence[TableRequest], known: SchemaHistory | None = None
    ) -> None:
        self._options = options
        self._known = known
        self._wanted = list(wanted)  # in the order of the requests
        self._read: dict[TableRequest, pa.Table] = {}

    def take(self, one: TableRequest) -> pa.Table:
        """What is wanted, which is not kept; anything else is read by itself. Errors as `read_tables`, and
        PositionError."""
        if one in self._read:
            return self._read.pop(one)
        others = [other for other in self._wanted if other.starting_gtid == one.starting_gtid and other != one]
        if one in self._wanted and others:
            try:
                self._read |= self._scanned([one, *others])
            except IbbMasterError:  # it may concern one table: each finds its own
                self._wanted.clear()
            self._wanted = [other for other in self._wanted if other not in self._read]
        return self._read.pop(one) if one in self._read else self._scanned([one])[one]

    def _scanned(self, wanted: list[TableRequest]) -> dict[TableRequest, pa.Table]:
        """The first, and as many others as memory allows, in one scan."""
        tables = {one.table: one for one in wanted}
        batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in tables}
        sizes = dict.fromkeys(tables, 0)
        left_out: set[str] = set()
        options = replace(self._options, starting_gtid=wanted[0].starting_gtid)
        for task in plan_tables(options, {name: one.fields for name, one in tables.items()}, known=self._known):
            for name, batch in read_tables(task, left_out):
                batches[name].append(batch)
                sizes[name] += batch.nbytes
                while sum(sizes.values()) > BYTES_MAX and len(sizes) > 1:
                    last, _ = sizes.popitem()
                    left_out.add(last)
                    del batches[last]
        return {
            tables[name]: pa.Table.from_batches(found, schema=arrow_schema(tables[name].fields))
            for name, found in batches.items()
        }
