"""Rows: how fast a log becomes Delta tables that are kept, in changes a second of processor time.

Each run is a process of its own, as `ibbmaster lake maintain` is: inserts of new rows into nothing, then updates
of some of them. Beside it what delta-rs takes to write the same rows, ready in memory.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

import pyarrow  # noqa: F401  # without it the rows are left out

import ibbmaster
from benchmarks.arrows import PLAIN, VALUES, statement
from benchmarks.figures import Bench, Figure, Target, rows, spread
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.loading import load
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.replication.event.control import encode_xid
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.rows.changes import ChangeKind
from ibbmaster.replication.event.rows.encoding import WrittenTable, encode_rows, encode_table_map, written_table
from ibbmaster.storage.disk.local import RealDisk

INSERTS = (500_000, 100_000)
UPDATES = (50_000, 20_000)  # of a later run
DIFFERENT = 10_000  # rows, each with many keys
ROWS_IN_GROUP = 100
KEY = slice(1, 9)  # of an image: after the bits of what is NULL
KINDS = ("current", "changes", "history")
TARGET = 100_000


class KeptLog:
    """A log of one table that grows."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._table: WrittenTable = written_table("bench.t", PLAIN, table_id=1, primary_key=("id",))
        rng = random.Random(1)
        self._images = [
            self._table.image([VALUES[declared.partition("(")[0]](rng, number) for declared in PLAIN.values()])
            for number in range(DIFFERENT)
        ]
        self._groups = 0
        self._write([statement(text)] for text in self._table.statements)

    def insert(self, count: int) -> None:
        """Rows with the keys below this number."""
        self._change(ChangeKind.INSERT, [(None, self._image(key, key)) for key in range(count)])

    def update(self, keys: Sequence[int], turn: int) -> None:
        """All but the keys of some rows."""
        pairs = [(self._image(key, key + turn - 1), self._image(key, key + turn)) for key in keys]
        self._change(ChangeKind.UPDATE, pairs)

    def _image(self, key: int, number: int) -> bytes:
        image = bytearray(self._images[number % DIFFERENT])
        image[KEY] = key.to_bytes(8, "little")
        return bytes(image)

    def _change(self, kind: ChangeKind, pairs: Sequence[tuple[bytes | None, bytes | None]]) -> None:
        head = encode_table_map(self._table, server_id=1)
        parts = (pairs[start : start + ROWS_IN_GROUP] for start in range(0, len(pairs), ROWS_IN_GROUP))
        self._write(
            [head, *encode_rows(self._table, kind, part, server_id=1), encode_xid(1, server_id=1)] for part in parts
        )

    def _write(self, groups: Iterable[list[bytes]]) -> None:
        with BinlogWriter(RealDisk(self.directory), is_sparse=True) as writer:
            for group in groups:
                self._groups += 1
                gtid = Gtid(domain_id=0, server_id=1, seq_no=self._groups)
                flags = GtidFlag.TRANSACTIONAL if len(group) > 1 else GtidFlag.STANDALONE | GtidFlag.DDL
                writer.write_group(gtid, encode_gtid_event(GtidEvent(gtid=gtid, flags=flags)), group)


def seconds_to_maintain(log: str, target: str, kind: str) -> float:
    """Processor time of a run, without what it imports."""
    from ibbmaster.lake.maintain.job import maintain

    load()
    begun = time.process_time()
    done = maintain(log, f"delta://{target}", kind=kind)
    took = time.process_time() - begun
    (table,) = done.tables.values()
    assert not table.because, table.because
    return took


def seconds_to_write(log: str, target: str) -> float:
    """Processor time of writing the rows of a log that are ready in memory."""
    from deltalake import write_deltalake

    with ibbmaster.open(log) as opened:
        table = opened.to_arrow(table="bench.t", columns=list(PLAIN))
    begun = time.process_time()
    write_deltalake(target, table)
    return time.process_time() - begun


@rows("maintain", is_further=True)
def maintained(bench: Bench) -> Iterator[Figure]:
    """A first load, and a run with updates after it, of each kind."""
    inserts, updates = round(bench.pick(*INSERTS)), round(bench.pick(*UPDATES))
    loads: dict[str, list[float]] = {kind: [] for kind in KINDS}
    later: dict[str, list[float]] = {kind: [] for kind in KINDS}
    ready: list[float] = []
    rng = random.Random(2)
    for _ in range(bench.repeats):
        with tempfile.TemporaryDirectory(dir=bench.base) as name, get_context("spawn").Pool(1) as pool:
            path, base = Path(name) / "log", Path(name)
            path.mkdir()
            log = KeptLog(path)
            log.insert(inserts)
            ready.append(pool.apply(seconds_to_write, (str(path), f"{base}/ready")))
            for kind in KINDS:
                loads[kind].append(pool.apply(seconds_to_maintain, (str(path), f"{base}/{kind}", kind)))
            log.update(rng.sample(range(inserts), updates), 1)
            for kind in KINDS:
                later[kind].append(pool.apply(seconds_to_maintain, (str(path), f"{base}/{kind}", kind)))
    limit = inserts / statistics.median(ready)
    for what, count, times in (("inserts into nothing", inserts, loads), ("updates", updates, later)):
        for kind in KINDS:
            yield Figure(
                name=f"{what} kept as {kind}, Delta",
                unit="changes/s CPU",
                ours=count / statistics.median(times[kind]),
                spread=spread(times[kind]),
                limit=limit if times is loads else None,
                limit_name="delta-rs alone",
                target=Target(value=TARGET),
            )
