"""Rows: how fast rows become Arrow arrays, for data that users have, in one process and without Spark.

Each is a log of its own, read whole by the kernels, as `Log.to_arrow` and Spark's tasks do. The rate is per
second of processor time; the limit is that of five plain columns in the same rounds.
"""

from __future__ import annotations

import gc
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow  # noqa: F401  # without it the rows are left out

from benchmarks.figures import Bench, Figure, Target, rows, spread
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.loading import load
from ibbmaster.logs.log.limits import MAX_FILE_BYTES
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.replication.event.column_types.kind import StoredText
from ibbmaster.replication.event.control import encode_xid
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.rows.changes import ChangeKind
from ibbmaster.replication.event.rows.encoding import (
    Columns,
    RowMetadata,
    WrittenTable,
    encode_rows,
    encode_table_map,
    written_column,
    written_table,
)
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.tables.arrow.fast_reading import fast_batches
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import ReadTask, find_fields, plan_tasks

Change = tuple[bytes | None, bytes | None]  # the images before and after
ROWS = (1_000_000, 200_000)
DIFFERENT = 10_000  # rows, which come again and again
NULLS = 0.05  # of all values but the keys
STORAGES = {
    "latin1": StoredText(charset="latin1", collation=8, unit=1),
    "ascii": StoredText(charset="ascii", collation=11, unit=1),
}
TARGET = 5.0  # M rows/s
PLAIN = {"id": "bigint", "n": "int", "word": "varchar(50)", "price": "decimal(10,2)", "moment": "datetime(6)"}
TYPES = {
    "id": "bigint unsigned",
    "small": "smallint",
    "medium": "mediumint unsigned",
    "ratio": "double",
    "part": "float",
    "price": "decimal(20,4)",
    "day": "date",
    "clock": "time(3)",
    "stamp": "timestamp(3)",
    "born": "year",
    "flags": "bit(9)",
    "state": "enum('new','paid','sent')",
    "tags": "set('a','b','c')",
    "code": "char(8) character set ascii",
    "word": "varchar(50) character set latin1",
    "note": "text",
    "raw": "varbinary(16)",
    "document": "json",
    "key": "uuid",
    "peer": "inet6",
}
VALUES: dict[str, Callable[[random.Random, int], object]] = {  # by the first word of a type
    "bigint": lambda rng, number: number,
    "int": lambda rng, number: rng.randrange(1 << 31),
    "smallint": lambda rng, number: rng.randrange(-(1 << 15), 1 << 15),
    "mediumint": lambda rng, number: rng.randrange(1 << 24),
    "double": lambda rng, number: rng.random(),
    "float": lambda rng, number: rng.randrange(1 << 20) / 1024,
    "decimal": lambda rng, number: f"{rng.randrange(10**9) / 100:.2f}",
    "date": lambda rng, number: f"2024-02-{1 + number % 28:02}",
    "time": lambda rng, number: (
        f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}.{number % 1000:03}"
    ),
    "datetime": lambda rng, number: f"2024-02-{1 + number % 28:02} 01:02:03.{number % 10**6:06}",
    "timestamp": lambda rng, number: f"2024-02-{1 + number % 28:02} 01:02:03.{number % 1000:03}",
    "year": lambda rng, number: 1990 + number % 50,
    "bit": lambda rng, number: rng.randrange(512),
    "enum": lambda rng, number: ("new", "paid", "sent")[number % 3],
    "set": lambda rng, number: ("a", "a,b", "c")[number % 3],
    "char": lambda rng, number: f"c{number % 5000}",
    "varchar": lambda rng, number: f"{number} " + "x" * rng.randrange(5, 25),
    "text": lambda rng, number: f"note {number} " + "y" * rng.randrange(60),
    "varbinary": lambda rng, number: rng.randbytes(rng.randrange(4, 16)),
    "json": lambda rng, number: f'{{"n": {number}, "ok": true}}',
    "uuid": lambda rng, number: f"{rng.getrandbits(32):08x}-1111-1222-8333-444444444444",
    "inet6": lambda rng, number: f"2001:db8::{1 + rng.randrange(0xFFFE):x}",
}


def _in_words(charset: str) -> dict[str, str]:
    return PLAIN | {"word": f"varchar(50) character set {charset}"}


@dataclass(frozen=True, slots=True)
class RowLog:
    """A log of changes of one table."""

    name: str
    columns: Mapping[str, str] = field(default_factory=lambda: PLAIN)
    word: str = ""  # what every text of `word` begins with
    rows_in_group: int = 100  # 0: all in one
    kind: ChangeKind = ChangeKind.INSERT
    metadata: RowMetadata = RowMetadata.FULL
    changed: str = ""  # of an UPDATE with binlog_row_image=MINIMAL, the only column after it

    def _values(self, rng: random.Random, number: int) -> list[object]:
        return [
            None if name != "id" and rng.random() < NULLS else self._value(name, declared, rng, number)
            for name, declared in self.columns.items()
        ]

    def _value(self, name: str, declared: str, rng: random.Random, number: int) -> object:
        value = VALUES[declared.partition("(")[0].partition(" ")[0]](rng, number)
        return f"{self.word}{value}" if name == "word" else value

    def _changes(self, table: WrittenTable) -> tuple[list[Change], tuple[Columns, Columns] | None]:
        rng = random.Random(1)
        found = [self._values(rng, number) for number in range(DIFFERENT)]
        if self.changed:
            after = (list(self.columns).index(self.changed),)
            return [(table.image(row, (0,)), table.image(row, after)) for row in found], ((0,), after)
        images = [table.image(row) for row in found]
        if self.kind is ChangeKind.UPDATE:
            return [(image, image) for image in images], None
        return [(None, image) for image in images], None

    def _table(self) -> WrittenTable:
        utf8 = {name: declared.partition(" character set ")[0] for name, declared in self.columns.items()}
        table = written_table("bench.t", utf8, table_id=1, primary_key=("id",))
        columns = [
            replace(one, collation=storage.collation, encode=own.encode, metadata=own.metadata, declared=declared)
            if (storage := STORAGES.get(declared.partition(" character set ")[2]))
            and (own := written_column(one.name, declared, storage=storage))
            else one
            for one, declared in zip(table.columns, self.columns.values(), strict=True)
        ]
        return replace(table, columns=tuple(columns))

    def write(self, directory: Path, count: int, *, file_bytes: int = MAX_FILE_BYTES) -> None:
        """So many rows; an update has two."""
        table = self._table()
        changes, present = self._changes(table)
        changes_count = count // (2 if self.kind is ChangeKind.UPDATE else 1)
        in_group = self.rows_in_group or changes_count
        table_map = encode_table_map(table, server_id=1, metadata=self.metadata)

        def body(start: int) -> list[bytes]:
            some = itertools.islice(itertools.cycle(changes), start % DIFFERENT, start % DIFFERENT + in_group)
            return [
                table_map,
                *encode_rows(table, self.kind, some, server_id=1, columns=present),
                encode_xid(1, server_id=1),
            ]

        bodies = {start: body(start) for start in range(0, min(DIFFERENT, changes_count), in_group)}
        with BinlogWriter(RealDisk(directory), max_file_bytes=file_bytes, is_sparse=True) as writer:
            events = [[statement(text)] for text in table.statements]
            events += [bodies[start % DIFFERENT] for start in range(0, changes_count, in_group)]
            for number, group in enumerate(events, start=1):
                gtid = Gtid(domain_id=0, server_id=1, seq_no=number)
                flags = GtidFlag.STANDALONE | GtidFlag.DDL if number <= 2 else GtidFlag.TRANSACTIONAL
                writer.write_group(gtid, encode_gtid_event(GtidEvent(gtid=gtid, flags=flags)), group)


def statement(text: str) -> bytes:
    """A statement as a log has it."""
    query = Query(thread_id=1, seconds=0, error_code=0, status=b"", database=b"bench", text=text.encode())
    return encode_query(query, server_id=1)


LOGS = (
    RowLog("5 plain columns"),
    RowLog("latin1, all ASCII", _in_words("latin1")),
    RowLog("latin1, an umlaut in each", _in_words("latin1"), word="é"),
    RowLog("ascii", _in_words("ascii")),
    RowLog("utf8mb4, an umlaut in each", word="é"),
    RowLog("one large group", rows_in_group=0),
    RowLog("NO_LOG", metadata=RowMetadata.NO_LOG),
    RowLog("updates, full images", kind=ChangeKind.UPDATE),
    RowLog("updates, MINIMAL images", kind=ChangeKind.UPDATE, changed="n"),
    RowLog("50 columns", {f"{name}{turn or ''}": PLAIN[name] for turn in range(10) for name in PLAIN}),
    RowLog("5 long texts", {"id": "bigint"} | {f"text{number}": "text" for number in range(4)}),
    RowLog(f"{len(TYPES)} columns, a type each", TYPES),
)


def seconds_of(tasks: list[ReadTask], kernels: Kernels, count: int) -> float:
    """Processor time of a read of so many rows."""
    gc.collect()
    begun = time.process_time()
    assert sum(batch.num_rows for task in tasks for batch in fast_batches(task, kernels)) == count
    return time.process_time() - begun


@rows("arrow")
def to_arrow(bench: Bench) -> Iterator[Figure]:
    """Rows of each log into Arrow, in M rows/s of one core."""
    count = round(bench.pick(*ROWS))
    kernels = load()
    assert kernels is not None
    with tempfile.TemporaryDirectory(dir=bench.base) as name:
        work: dict[str, Callable[[], float]] = {}
        for number, one in enumerate(LOGS):
            directory = Path(name) / str(number)
            directory.mkdir()
            one.write(directory, count)
            options = parse_options({"path": str(directory), "table": "bench.t", "columns": ",".join(one.columns)})
            tasks = plan_tasks(options, find_fields(options))
            seconds_of(tasks, kernels, count)  # warm
            work[one.name] = partial(seconds_of, tasks, kernels, count)
        found = bench.rounds(work)
    plain = count / statistics.median(found[LOGS[0].name]) / 1e6
    for one in LOGS:
        rate = count / statistics.median(found[one.name]) / 1e6
        yield Figure(
            name=f"rows into Arrow, {one.name}",
            unit="M rows/s CPU",
            ours=rate,
            spread=spread(found[one.name]),
            limit=plain,
            limit_name="5 plain columns",
            target=Target(value=TARGET),
            note=f"{rate * len(one.columns):.0f} M cells/s",
        )
