"""Rows: how long a store takes from its start to the first group for a reader, with a transaction in doubt."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Bench, Figure, rows
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.xa import Xid
from tests.machinery.events import make_event, make_gtid_event

MB = 1 << 20
OPTIONS = StoreOptions(max_file_bytes=16 * MB, is_sparse=True)
EARLIER_GROUPS = 200
LATER_GROUPS = 50
REPEATS = 7
SIZES_MB = (1, 100, 1000)


def build(directory: Path, size_mb: int) -> None:
    """A store whose process died with a transaction of this size in doubt, other groups before and after it."""
    disk = RealDisk(directory)
    store = BinlogStore(disk, OPTIONS)

    def feed(seq_nos: range, size: int) -> None:
        for seq_no in seq_nos:
            gtid = Gtid(domain_id=0, server_id=1, seq_no=seq_no)
            store.write_direct(gtid, make_gtid_event(gtid), [make_event(160, 1, bytes(size))])

    feed(range(1, EARLIER_GROUPS), MB // 4)  # so that the redo log has been round once, whatever the size
    group = store.open_group()
    for _ in range(size_mb):
        group.write(bytes(MB))
    group.prepare(Xid(format_id=1, gtrid=b"in doubt", bqual=b""))
    store.flush()  # the same distance from the last checkpoint, and from the last state record, whatever the size
    feed(range(EARLIER_GROUPS, EARLIER_GROUPS + LATER_GROUPS), 1000)
    disk.close()


def start(disk: RealDisk) -> None:
    """Open the store and read the first group, as the first reader after a crash."""
    store = BinlogStore(disk, OPTIONS)
    group = store.groups(store.seek(GtidPosition())).next_group()
    assert group is not None
    for _ in group.body:
        pass


def time_to_first_group(directory: Path) -> float:
    """Seconds from nothing to the first group of a reader."""
    os.sync()
    begun = time.perf_counter()
    disk = RealDisk(directory)
    start(disk)
    took = time.perf_counter() - begun
    disk.close()
    return took


def measure(size_mb: int, *, repeats: int = REPEATS, base: Path | None = None) -> float:
    """The median in seconds for one size; each start is the first one after the crash."""
    with tempfile.TemporaryDirectory(dir=base) as name:
        original = Path(name) / "original"
        original.mkdir()
        build(original, size_mb)
        return statistics.median(
            time_to_first_group(copy_of(original, Path(name) / str(number))) for number in range(repeats)
        )


def copy_of(original: Path, copy: Path) -> Path:
    """The same store again: the files that a start may change are copied, the others linked."""
    copy.mkdir()
    newest = sorted(original.glob("binlog-*.ibb"))[-3:]
    for path in original.iterdir():
        if path in newest or not path.name.startswith("binlog-"):
            shutil.copyfile(path, copy / path.name)
        else:
            os.link(path, copy / path.name)
    return copy


@rows("restart", is_further=True)
def restarts(bench: Bench) -> Iterator[Figure]:
    """Start to first group; the limit is the same with nothing in doubt to speak of."""
    sizes = SIZES_MB[:2] if bench.is_quick else SIZES_MB
    times = [measure(size, base=bench.base) for size in sizes]
    for size, time_s in zip(sizes, times, strict=True):
        yield Figure(
            name=f"restart to the first group, {size:,} MB in doubt",
            unit="ms",
            ours=time_s * 1e3,
            limit=times[0] * 1e3,
            limit_name=f"{SIZES_MB[0]} MB",
        )
