"""The logs that are served: written by a real MariaDB server, which serves them too, or with files of 1 GB."""

from __future__ import annotations

import functools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ibbmaster.gtid import Gtid
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.testkit.mariadb_programs import find_programs
from ibbmaster.testkit.mariadb_server import NetworkServer, ServerTemplate
from tests.machinery.events import make_event, make_gtid_event

WRITER_OPTIONS = (  # only while it fills its log
    "--sync-binlog=0",
    "--innodb-buffer-pool-size=256M",
    "--innodb-log-file-size=256M",
)
PRIMARY_OPTIONS = (
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-checksum=NONE",
    "--binlog-annotate-row-events=OFF",
    "--max-binlog-size=1G",
    "--server-id=1",
    "--max-connections=5000",
    "--back-log=2000",
)
GB = 1 << 30
ROW_BYTES = 175  # of a group in files of 1 GB: small ones, as of W1, of which a search passes over most
GROUPS_IN_SMALL_FILE = 20


@dataclass(frozen=True, slots=True)
class Workload:
    """`groups` transactions, each of one row of `row_bytes`; `scales` are for the table, and for a quick one."""

    name: str
    groups: int
    row_bytes: int
    scales: tuple[float, float]

    @property
    def column(self) -> str:
        """The type of the column that holds the bytes."""
        return "longblob" if self.row_bytes > 60000 else f"varchar({self.row_bytes}) character set latin1"


WORKLOADS = {
    one.name: one
    for one in (
        Workload("W1", 550_000, 175, (1, 0.1)),  # events of 80 bytes on average
        Workload("W2", 220_000, 1800, (0.5, 0.1)),  # half a KiB
        Workload("W3", 16_000, 65_000, (0.5, 0.1)),  # 16 KB
        Workload("W4", 64, 16 << 20, (0.5, 0.1)),  # rows larger than a packet
    )
}


class Primary(NetworkServer):
    """A MariaDB primary whose data stay for the next run."""

    def __init__(self, version: str, directory: Path, *options: str) -> None:
        super().__init__(ServerTemplate.of_user(find_programs(version)), directory, *PRIMARY_OPTIONS, *options)

    def begin(self, column: str) -> None:
        """An account, and an empty table `bench.t (a int, b COLUMN)` with a procedure that fills it."""
        self.sql("CREATE USER bench IDENTIFIED BY 'bench'")
        self.sql("GRANT ALL ON *.* TO bench")
        self.sql("CREATE DATABASE bench")
        self.sql(f"CREATE TABLE bench.t (a int, b {column})")
        self.sql(
            "CREATE PROCEDURE bench.fill(groups int, size int) BEGIN "
            "DECLARE n int DEFAULT 0; DECLARE row_value longblob DEFAULT repeat('x', size); "
            "WHILE n < groups DO INSERT INTO bench.t VALUES (n, row_value); SET n = n + 1; END WHILE; END"
        )
        self.sql("RESET MASTER")  # the log begins with what comes now

    def forget_rows(self) -> None:
        """The log is what counts."""
        self.sql("SET sql_log_bin = 0")
        self.sql("DROP TABLE bench.t")

    @property
    def binlogs(self) -> list[Path]:
        """The files of its log."""
        return sorted(path for path in self.data.glob("binlog.[0-9]*") if path.suffix[1:].isdigit())

    def classic_directory(self) -> Path:
        """A directory with nothing but the files of its log: links to the very same ones."""
        directory = self.directory / "classic"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        for path in self.binlogs:
            if path.stat().st_size > HEAD_BYTES:
                os.link(path, directory / path.name)
        return directory


HEAD_BYTES = 1000  # of a file with a head and no group


def prepare(
    workload: Workload, version: str, base: Path, scale: float, options: Sequence[str] = ()
) -> tuple[Primary, Path]:
    """A primary with the workload in its log, not started, and the same log as .ibb; made if they are not there yet."""
    directory = base / f"{workload.name}-{version}-{scale:g}"

    def fill(primary: Primary) -> None:
        primary.sql(f"CALL bench.fill({max(1, round(workload.groups * scale))}, {workload.row_bytes})")
        primary.sql("FLUSH BINARY LOGS")

    if not (directory / "done").exists():
        primary = filled_primary(version, directory, workload.column, fill)
        files = [path for path in primary.binlogs if path.stat().st_size > HEAD_BYTES]
        subprocess.run(
            [sys.executable, "-m", "ibbmaster", "convert", "--to", "ibb", *map(str, files), str(directory / "ibb")],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (directory / "done").touch()
    return Primary(version, directory, *options), directory / "ibb"


def filled_primary(version: str, directory: Path, column: str, fill: Callable[[Primary], None]) -> Primary:
    """A new primary with the groups that `fill` writes in its log, and no rows; it was stopped."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    primary = Primary(version, directory, *WRITER_OPTIONS)
    primary.start()
    primary.begin(column)
    fill(primary)
    primary.forget_rows()
    primary.stop()
    return primary


class HastyDisk(RealDisk):
    """A disk for a log that nobody needs after a crash."""

    def sync(self, name: str) -> None:
        """Leave it to the system."""

    def sync_dir(self) -> None:
        """As `sync`."""


@functools.cache
def body_of(size: int) -> list[bytes]:
    """What is behind the GTID event of a group: one event with so many bytes."""
    return [bytes(make_event(160, 1, bytes(size)))]


def small_group(seq_no: int, size: int = ROW_BYTES, *, domain_id: int = 0) -> tuple[Gtid, bytes, list[bytes]]:
    """GTID, GTID event and body of a group."""
    gtid = Gtid(domain_id=domain_id, server_id=1, seq_no=seq_no)
    return gtid, bytes(make_gtid_event(gtid)), body_of(size)


@dataclass(frozen=True, slots=True)
class LargeLog:
    """`files` .ibb files of 1 GB.

    The last has `filled` bytes of groups, with their states. All before it have a real header, a real
    first state and 20 groups, and a hole up to the 1 GB that the header says, as of a file that is ready and has
    just been begun: a search for a position reads no more of them.
    """

    directory: Path
    files: int
    filled: int

    @property
    def small_groups(self) -> int:
        """How many groups the files before the last have."""
        return (self.files - 1) * GROUPS_IN_SMALL_FILE

    def last_group(self) -> int:
        """The sequence number of the newest group."""
        return int((self.directory / "groups").read_text())

    def some_position(self, rng: random.Random) -> str:
        """Of a replica that lacks something, half of the time in the last file; never the end of another."""
        if self.files == 1 or rng.random() < 0.5:
            return f"0-1-{rng.randrange(self.small_groups + 1, self.last_group())}"
        file_no = rng.randrange(self.files - 1)
        return f"0-1-{file_no * GROUPS_IN_SMALL_FILE + rng.randrange(1, GROUPS_IN_SMALL_FILE)}"

    def make(self) -> None:
        """Write it, unless it is there."""
        if (self.directory / "groups").exists():
            return
        shutil.rmtree(self.directory, ignore_errors=True)
        self.log.mkdir(parents=True)
        seq_no = 0
        if self.files > 1:
            options = StoreOptions(durability=Durability.LATER, max_file_bytes=GB, is_sparse=True)
            with BinlogStore(HastyDisk(self.log), options) as store:
                for seq_no in range(1, self.small_groups + 1):
                    store.write_direct(*small_group(seq_no))
                    if not seq_no % GROUPS_IN_SMALL_FILE:
                        store.flush()
            for name in SEGMENT_NAMES:  # all is in the files
                (self.log / name).unlink(missing_ok=True)
            for file_no in range(self.files - 1):
                os.truncate(self.log / format_file_name(file_no), GB)
        with BinlogWriter(HastyDisk(self.log), max_file_bytes=GB, is_sparse=True) as writer:
            while writer.end.offset < self.filled:
                seq_no += 1
                writer.write_group(*small_group(seq_no))
        (self.directory / "groups").write_text(str(seq_no))

    @property
    def log(self) -> Path:
        """Where its files are."""
        return self.directory / "ibb"


def large_log(base: Path, files: int, filled: int) -> LargeLog:
    """A log of files of 1 GB, made if it is not there yet."""
    log = LargeLog(base / f"large-{files}-{filled >> 20}", files, filled)
    log.make()
    return log


def prepare_files(version: str, base: Path, files: int) -> Primary:
    """A primary with `files` files of 20 groups each in its log, not started; made if it is not there yet."""
    directory = base / f"files-{files}-{version}"

    def fill(primary: Primary) -> None:
        for _ in range(files):
            primary.sql(f"CALL bench.fill({GROUPS_IN_SMALL_FILE}, {ROW_BYTES})")
            primary.sql("FLUSH BINARY LOGS")

    if not (directory / "done").exists():
        filled_primary(version, directory, WORKLOADS["W1"].column, fill)
        (directory / "done").touch()
    return Primary(version, directory)
