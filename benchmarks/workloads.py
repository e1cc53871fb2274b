"""The binlogs that are streamed: written by a real MariaDB server, which serves them too, and imported into .ibb."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lanes.programs import find_lane
from lanes.server import NetworkServer, Template

PRIMARY_OPTIONS = (
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-checksum=NONE",
    "--binlog-annotate-row-events=OFF",
    "--max-binlog-size=1G",
    "--sync-binlog=0",
    "--server-id=1",
    "--max-connections=2000",
    "--innodb-buffer-pool-size=256M",
    "--innodb-log-file-size=256M",
)


@dataclass(frozen=True, slots=True)
class Workload:
    """`groups` transactions, each of one row of `row_bytes`."""

    name: str
    groups: int
    row_bytes: int

    @property
    def column(self) -> str:
        """The type of the column that holds the bytes."""
        return "longblob" if self.row_bytes > 60000 else f"varchar({self.row_bytes}) character set latin1"


WORKLOADS = (
    Workload("W1", 550_000, 175),  # events of 80 bytes on average
    Workload("W2", 220_000, 1800),  # half a KiB
    Workload("W3", 16_000, 65_000),  # 16 KB
    Workload("W4", 64, 16 << 20),  # rows larger than a packet
)


class Primary(NetworkServer):
    """A MariaDB primary whose data stay for the next run."""

    def __init__(self, version: str, directory: Path) -> None:
        lane = find_lane(version)
        template_directory = directory / "template"
        shutil.rmtree(template_directory, ignore_errors=True)
        super().__init__(Template(lane, template_directory), directory, *PRIMARY_OPTIONS)

    def write(self, workload: Workload, scale: float) -> None:
        """Run its transactions; the log begins with them, as if there had been nothing before."""
        self.sql("CREATE OR REPLACE USER bench IDENTIFIED BY 'bench'")
        self.sql("GRANT ALL ON *.* TO bench")
        self.sql("CREATE DATABASE bench")
        self.sql(f"CREATE TABLE bench.t (a int, b {workload.column})")
        self.sql(
            "CREATE PROCEDURE bench.fill(groups int, size int) BEGIN "
            "DECLARE n int DEFAULT 0; DECLARE row_value longblob DEFAULT repeat('x', size); "
            "WHILE n < groups DO INSERT INTO bench.t VALUES (n, row_value); SET n = n + 1; END WHILE; END"
        )
        self.sql("RESET MASTER")
        groups = max(1, round(workload.groups * scale))
        self.sql(f"CALL bench.fill({groups}, {workload.row_bytes})")
        self.sql("FLUSH BINARY LOGS")

    @property
    def binlogs(self) -> list[Path]:
        """The files of its log."""
        return sorted(path for path in self.data.glob("binlog.[0-9]*") if path.suffix[1:].isdigit())


def prepare(workload: Workload, version: str, base: Path, scale: float) -> tuple[Primary, Path]:
    """A primary with the workload in its log, not started, and the same log as .ibb; made if they are not there yet."""
    directory = base / f"{workload.name}-{version}-{scale:g}"
    is_done = directory / "done"
    if not is_done.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        primary = Primary(version, directory)
        primary.start()
        primary.write(workload, scale)
        primary.stop()
        subprocess.run(
            [sys.executable, "-m", "ibbmaster", "import", *map(str, primary.binlogs), "--to", str(directory / "ibb")],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        is_done.touch()
    return Primary(version, directory), directory / "ibb"
