"""Every fault of an archive, found by all cores at once: the files are shared out among the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ibbmaster.arrow.reaching import expect_files
from ibbmaster.disk.place import open_disk, whole_place
from ibbmaster.errors import StoreError
from ibbmaster.ibb.file_name import parse_file_name
from ibbmaster.lake.spreading import cores_of, spread
from ibbmaster.log.fault import Fault, Totals
from ibbmaster.log.verify import Part, joined_faults, parts_of, verify_part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS_PER_CORE = 4  # so that a large file keeps no worker waiting


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found, and how much was read."""

    faults: list[Fault]
    totals: Totals


def verify_archive(session: SparkSession, path: str) -> Verification:
    """Check every checksum, chunk, record, reference and GTID state.

    Raises:
        StoreError: there are no binlog files, or the directory cannot be read, here or by a worker.
    """
    path = whole_place(path)  # workers have another working directory
    disk = open_disk(path)
    numbers = sorted(number for name in disk.list() if (number := parse_file_name(name)) is not None)
    if not numbers:
        raise StoreError(f"{disk}: no binlog files (binlog-000000.ibb and so on)")
    parts = parts_of(numbers, PARTS_PER_CORE * cores_of(session))
    found = spread(session, check_part, [(path, part) for part in parts])
    totals = Totals()
    return Verification(list(joined_faults(found, totals)), totals)


def check_part(task: tuple[str, Part]) -> tuple[list[Fault], Totals]:
    """In a worker: check some files."""
    from ibbmaster.kernel.loading import load
    from ibbmaster.kernel.parts import KernelSet

    load(KernelSet.VERIFY)
    path, part = task
    expect_files(path, part[0])
    disk = open_disk(path)
    try:
        return verify_part(disk, Part(*part))
    finally:
        disk.close()
