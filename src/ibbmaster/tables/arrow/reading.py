"""A range of a log as record batches, read by a worker, which opens the files itself."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property, partial

import pyarrow as pa

from ibbmaster.errors import ClassicFormatError, EventError, FormatError
from ibbmaster.logs.log.group_content import TableFilter, group_events, query_texts, table_name, xid_text
from ibbmaster.logs.log.interface import GroupSource
from ibbmaster.logs.log.pages import PageReader
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.replication.event.column_types.registry import bytes_reader, value_reader
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.rows.changes import ABSENT, ChangeKind, Image, RawValue
from ibbmaster.replication.event.rows.column import Column, TableSchema
from ibbmaster.replication.event.rows.value import Reader, Value
from ibbmaster.replication.event.types import EventType, type_name
from ibbmaster.rows.shape import ColumnOrigin
from ibbmaster.schema.model import TableVersion
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.storage.disk.place import open_disk
from ibbmaster.storage.ibb.chunk import Chunk, RecordType
from ibbmaster.storage.ibb.page import PAGE_SIZE, is_blank
from ibbmaster.storage.ibb.scan import page_chunks
from .cell import cell_reader, completed, completed_columns, converting_reader, image_as_map, value_cell
from .event_batch import in_group
from .fast_reading import fast_batches, is_fast, is_sound, sound_batches
from .plan import ReadTask, load_kernels, open_task, row_reader
from .read_options import Granularity, ReadOptions, ZeroDates
from .shape import (
    ABSENT_FIELD,
    RESERVED,
    UNDECODABLE_FIELD,
    ShapeField,
    TableFields,
    arrow_schema,
    column_type,
    expect_readable,
    field_name,
)
from .staging import expect_log

BATCH_ROWS = 10_000
BATCH_BYTES = 8 << 20
SECOND_US = 1_000_000
Row = tuple[object, ...]


def read_task(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """The record batches of one range; errors as `fast_batches`, and StoreError: this worker does not see the log."""
    options = task.options
    if options.host is None:
        expect_log(options, task.log_range, is_strict=options.is_strict)
    ready = load_kernels(options)
    if ready is not None and options.granularity is Granularity.FAULTS and is_sound(task, ready):
        yield from batches(task.fields, iter(()))
    elif ready is not None and is_fast(task) and options.is_strict:
        yield from fast_batches(task, ready)
    elif ready is not None and is_fast(task) and options.host is None:
        begin = yield from sound_batches(task, ready)
        if begin is not None:
            yield from batches(task.fields, rows_of(task, begin))
    else:
        yield from batches(task.fields, rows_of(task))


def rows_of(task: ReadTask, begin: LogPosition = NOWHERE) -> Iterator[Row]:
    match task.options.granularity:
        case Granularity.PAGES:
            return _picked(task, _pages(task))
        case Granularity.RECORDS:
            return _picked(task, _records(task))
    return _group_rows(task, begin)


def batches(fields: tuple[ShapeField, ...], rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
    """Rows in portions; one empty portion without rows."""
    schema = arrow_schema(fields)
    columns: list[list[object]] = [[] for _ in fields]
    size = total = 0
    for total, row in enumerate(rows, start=1):  # noqa: B007  # used below
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
            if type(cell) is bytes or type(cell) is str:
                size += len(cell)
            elif type(cell) is dict:
                size += sum(len(value) for value in cell.values() if value is not None)
        if len(columns[0]) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield _batch(schema, columns)
            size = 0
            columns = [[] for _ in fields]
    if columns[0] or not total:
        yield _batch(schema, columns)


def _batch(schema: pa.Schema, columns: list[list[object]]) -> pa.RecordBatch:
    arrays = []
    for field, cells in zip(schema, columns, strict=True):
        if pa.types.is_map(field.type):
            cells = [None if cell is None else list(cell.items()) for cell in cells]  # type: ignore[attr-defined]
        arrays.append(pa.array(cells, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _picked(task: ReadTask, rows: Iterator[dict[str, object]]) -> Iterator[Row]:
    names = [field.name for field in task.fields]
    return (tuple(row[name] for name in names) for row in rows)


# Pages and records ----------------------------------------------------------------------------


def _pages(task: ReadTask) -> Iterator[dict[str, object]]:
    for page_no, page in _verified_pages(task):
        chunks = list(page_chunks(page, file_no=task.log_range.file_no, page_no=page_no))
        yield {
            "file_no": task.log_range.file_no,
            "page_no": page_no,
            "data_bytes": sum(len(chunk.data) for chunk in chunks),
            "chunks": len(chunks),
            "records": sum(chunk.is_first for chunk in chunks),
            "commits": sum(chunk.is_first and chunk.record_type == RecordType.COMMIT for chunk in chunks),
        }


def _records(task: ReadTask) -> Iterator[dict[str, object]]:
    file_no = task.log_range.file_no
    with closing(open_disk(task.options.path)) as disk:
        pages = PageReader(disk)
        for page_no, page in _verified_pages(task):
            for chunk in page_chunks(page, file_no=file_no, page_no=page_no):
                if chunk.is_first:
                    size, count = _record_size(pages, chunk, file_no, page_no)
                    yield {
                        "file_no": file_no,
                        "offset": page_no * PAGE_SIZE + chunk.page_offset,
                        "record_type": RecordType(chunk.record_type).name.lower(),
                        "bytes": size,
                        "chunks": count,
                    }


def _record_size(pages: PageReader, first: Chunk, file_no: int, page_no: int) -> tuple[int, int]:
    from ibbmaster.logs.log.cursor import ChunkCursor

    if first.is_last:
        return len(first.data), 1
    cursor = ChunkCursor(pages, file_no=file_no, page_no=page_no, page_offset=first.end_offset)
    size = count = 0
    for chunk in cursor.chunks_of(first):
        size += len(chunk.data)
        count += 1
    return size, count


def _verified_pages(task: ReadTask) -> Iterator[tuple[int, memoryview]]:
    log_range = task.log_range
    with closing(open_disk(task.options.path)) as disk:
        pages = PageReader(disk)
        for page_no in range(log_range.start_offset // PAGE_SIZE, -(-log_range.end_offset // PAGE_SIZE)):
            try:
                page = pages.page(log_range.file_no, page_no)
            except FormatError:
                if task.options.is_strict:
                    raise
                continue
            if page is not None and not is_blank(bytes(page)):
                yield page_no, page


# Groups and what is in them -------------------------------------------------------------------


def _group_rows(task: ReadTask, begin: LogPosition) -> Iterator[Row]:
    with closing(open_task(task)) as source:
        yield from _Groups(task, source).rows(begin)


class _Groups:
    def __init__(self, task: ReadTask, source: GroupSource) -> None:
        self._task = task
        self._options: ReadOptions = task.options
        self._source = source
        fields = task.fields
        self._reader = row_reader(
            task, partial(_TableReaders, fields, task.options.zero_dates) if isinstance(fields, TableFields) else None
        )
        self._tables = TableFilter(task.options.tables)
        self._names = [field.name for field in task.fields]
        self._faults: list[tuple[LogPosition, str | None, str]] = []

    def rows(self, begin: LogPosition) -> Iterator[Row]:
        """Of a damaged group none, or an error."""
        options = self._options
        rows_of: Callable[[EventGroup, dict[str, object]], Iterator[Row]] = {
            Granularity.EVENTS: self._events,
            Granularity.GROUPS: self._group,
            Granularity.FAULTS: self._nothing,
            Granularity.ROWS: self._changes if options.table is None else self._table_changes,
        }[options.granularity]
        is_lenient = not options.is_strict or options.granularity is Granularity.FAULTS
        for group in self._source.groups_in(self._task.log_range, on_fault=self._note if is_lenient else None):
            if group.gtid is None or group.start < begin:
                continue  # logged when a server started; or read before
            timestamp = decode_event_header(group.gtid_event).timestamp
            if not self._task.selection.takes(group.gtid, group.start, timestamp):
                continue
            head = self._head(group, timestamp)
            try:
                if is_lenient:
                    yield from list(rows_of(group, head))
                else:
                    yield from rows_of(group, head)
            except (EventError, FormatError, ClassicFormatError) as error:
                if not is_lenient:
                    raise in_group(error, group, self._source.file_name) from error
                problem = str(in_group(error, group, self._source.file_name))
                self._faults.append((group.start, str(group.gtid), problem))
        if options.granularity is Granularity.FAULTS:
            for point, gtid, problem in self._faults:
                fault = {"file_no": point.file_no, "offset": point.offset, "_gtid": gtid, "problem": problem}
                yield tuple(fault[name] for name in self._names)

    def _note(self, point: LogPosition, problem: str) -> None:
        self._faults.append((point, None, problem))

    def _head(self, group: EventGroup, timestamp: int) -> dict[str, object]:
        gtid = group.gtid
        assert gtid is not None
        return {
            "_gtid": str(gtid),
            "_domain": gtid.domain_id,
            "_server_id": gtid.server_id,
            "_seq": gtid.seq_no,
            "_commit_ts": timestamp * SECOND_US,
            "_file_no": group.start.file_no if group.start.is_in_file else None,
            "_offset": group.start.offset if group.start.is_in_file else None,
        }

    def _nothing(self, group: EventGroup, head: dict[str, object]) -> Iterator[Row]:
        for _ in self._reader.changes(group_events(group), group.start):
            pass
        return iter(())

    def _events(self, group: EventGroup, head: dict[str, object]) -> Iterator[Row]:
        for number, event in enumerate(group_events(group)):
            header = decode_event_header(event)
            row = head | {
                "event_no": number,
                "event_type": header.event_type,
                "type_name": type_name(header.event_type),
                "event_ts": header.timestamp * SECOND_US,
                "server_id": header.server_id,
                "flags": header.flags,
                "bytes": len(event),
                "data": event,
            }
            yield tuple(row[name] for name in self._names)

    def _group(self, group: EventGroup, head: dict[str, object]) -> Iterator[Row]:
        count = size = 0
        tables: dict[TableName, None] = {}
        query = database = None
        for event in group_events(group):
            count += 1
            size += len(event)
            if event[4] == EventType.TABLE_MAP:
                tables[table_name(event)] = None
            elif event[4] in (EventType.QUERY, EventType.QUERY_COMPRESSED) and query is None:
                query, database = query_texts(event)
        if self._options.tables and not any(map(self._tables.takes, tables)):
            return
        row = head | {
            "end_file_no": group.end.file_no if group.end.is_in_file else None,
            "end_offset": group.end.offset if group.end.is_in_file else None,
            "events": count,
            "bytes": size,
            "tables": list(map(str, tables)),
            "query": query,
            "database": database,
            "xid": xid_text(group.gtid_event),
        }
        yield tuple(row[name] for name in self._names)

    def _changes(self, group: EventGroup, head: dict[str, object]) -> Iterator[Row]:
        number = 0
        for schema, change in self._reader.changes(group_events(group), group.start):
            row = head | {
                "_table": schema.name,
                "before": image_as_map(schema, change.before),
                "after": image_as_map(schema, change.after),
            }
            for kind in _change_types(change.kind):
                row |= {"_change_type": kind, "_change_no": number}
                number += 1
                yield tuple(row[name] for name in self._names)

    def _table_changes(self, group: EventGroup, head: dict[str, object]) -> Iterator[Row]:
        number = 0
        for decoder, change in self._reader.decoded(group_events(group), group.start):
            readers = decoder.reader_of
            assert isinstance(readers, _TableReaders)
            if readers.has_own:
                decoder.expect_names()
            images = [image for image in (change.before, change.after) if image is not None]
            if self._options.completes_keys and len(images) == 2:
                images[1] = completed(images[0], images[1], completed_columns(decoder.schema, decoder.known_version))
            for kind, image in zip(_change_types(change.kind), images, strict=True):
                values = head | {"_change_type": kind, "_change_no": number} | readers.told(image)
                number += 1
                yield tuple(values[name] if name in values else readers.cell(name, image) for name in self._names)


class _TableReaders:
    """Reads rows of a version of a table: most columns as cells, others as values that become cells."""

    def __init__(
        self, fields: TableFields, zero_dates: ZeroDates, schema: TableSchema, version: TableVersion | None
    ) -> None:
        self._fields = fields
        self._zero_dates = zero_dates
        self._schema = schema
        self._version = version
        self.has_own = any(field.name not in RESERVED for field in fields)
        self._tells_absent = ABSENT_FIELD in fields
        self._tells_undecodable = UNDECODABLE_FIELD in fields

    def __call__(self, column: Column) -> Reader:
        number = self._schema.columns.index(column)
        field, origin = self._wanted.get(number, (None, None))
        if field is None and number not in self._as_values and not self._tells_undecodable:
            return bytes_reader(column)  # what they mean is not asked
        if field is None or origin is None or number in self._as_values:
            return value_reader(column)
        if origin.convert is None and column_type(column, self._zero_dates) == field.type:
            return cell_reader(column, field.type)
        return converting_reader(column, origin.convert, field.type)

    @cached_property
    def _origins(self) -> dict[str, ColumnOrigin]:
        shape = self._fields.shape
        names = [field_name(column.name) for column in shape.columns]
        return dict(zip(names, shape.origins(self._schema, self._version), strict=True))

    @cached_property
    def _wanted(self) -> dict[int, tuple[ShapeField, ColumnOrigin]]:
        """By number, the columns in the DataFrame. Raises EventError: one has another type there."""
        found = {}
        columns = dict(zip(self._origins, self._fields.shape.columns, strict=True))
        for field in self._fields:
            origin = self._origins.get(field.name)
            if field.name not in RESERVED and origin is not None and origin.number is not None:
                column = self._schema.columns[origin.number]
                expect_readable(self._schema.name, column, columns[field.name], field, self._zero_dates)
                found[origin.number] = field, origin
        return found

    @cached_property
    def _as_values(self) -> set[int | None]:
        computed = [origin for origin in self._origins.values() if origin.compute is not None]
        inputs = [made_of.number for origin in computed for _, made_of in origin.inputs]
        return {*inputs, *(origin.number for origin in computed)}

    @cached_property
    def _to_cells(self) -> dict[str, Callable[[Value], object]]:
        return {field.name: value_cell(field.type) for field in self._fields}

    def cell(self, name: str, image: Image) -> object:
        origin = self._origins[name]
        is_cell = origin.number is not None and origin.number not in self._as_values
        value = image[origin.number] if is_cell else origin.value(image)  # type: ignore[index]
        if value is ABSENT or type(value) is RawValue:
            return None
        return value if is_cell else self._to_cells[name](value)

    def told(self, image: Image) -> dict[str, object]:
        """What an image lacks, or has undecodable, if the DataFrame tells it."""
        found: dict[str, object] = {}
        if self._tells_absent:
            found[ABSENT_FIELD.name] = [name for name, origin in self._origins.items() if origin.is_absent(image)]
        if self._tells_undecodable:
            numbers = [(name, origin.number) for name, origin in self._origins.items() if origin.number is not None]
            values = [(name, image[number]) for name, number in numbers]
            found[UNDECODABLE_FIELD.name] = {name: value for name, value in values if type(value) is RawValue}
        return found


def _change_types(kind: ChangeKind) -> tuple[str, ...]:
    if kind is ChangeKind.UPDATE:
        return ("update_preimage", "update_postimage")
    return (kind.value,)
