"""Appending traditional files: nothing is written before it is known that they continue the log."""

from __future__ import annotations

import shutil
import struct
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from ibbmaster.classic.convert import import_classic
from ibbmaster.disk.local import RealDisk
from ibbmaster.errors import StoreError
from ibbmaster.event.gtid_event import GtidFlag
from ibbmaster.event.types import EventType
from ibbmaster.log.directory import BinlogDirectory
from ibbmaster.store.writer import BinlogWriter

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic"


def log_of(files: list[Path], directory: Path) -> dict[str, bytes]:
    """The files of a log that traditional files were added to."""
    directory.mkdir(exist_ok=True)
    with closing(RealDisk(directory)) as disk:
        import_classic(files, disk, max_file_bytes=64 << 10, state_interval_bytes=16 << 10, append=True)
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def with_other_contents(path: Path, wanted: bytes, other: bytes) -> None:
    """Change an event that holds some bytes, under a right checksum."""
    data = bytearray(path.read_bytes())
    found = data.index(wanted)
    start = 4
    while (end := start + struct.unpack_from("<I", data, start + 9)[0]) <= found:
        start = end
    data[found : found + len(wanted)] = other
    struct.pack_into("<I", data, end - 4, zlib.crc32(data[start : end - 4]))
    path.write_bytes(data)


@pytest.fixture
def captured(tmp_path: Path) -> list[Path]:
    """Copies of the files of a capture with five domains."""
    names = [f"binlog.{number:06d}" for number in (1, 2, 3)]
    return [Path(shutil.copy(CLASSIC / "11.8" / "domains" / name, tmp_path / name)) for name in names]


def test_files_that_continue_a_log_in_one_domain_only_are_refused_before_anything_is_written(
    tmp_path: Path, captured: list[Path]
) -> None:
    before = log_of(captured[:1], tmp_path / "ibb")
    with pytest.raises(StoreError, match="they do not continue it"):
        log_of(captured[2:], tmp_path / "ibb")
    assert {path.name: path.read_bytes() for path in (tmp_path / "ibb").iterdir()} == before


def gtid_event_of(path: Path) -> bytes:
    """Number, domain and flags of the first group."""
    data, start = path.read_bytes(), 4
    while data[start + 4] != EventType.GTID:
        start += struct.unpack_from("<I", data, start + 9)[0]
    return data[start + 19 : start + 32]


@pytest.mark.parametrize("is_of_gtid_event", [False, True], ids=["in a statement", "in the GTID event"])
def test_groups_that_the_log_has_with_other_contents_are_refused_before_anything_is_written(
    tmp_path: Path, captured: list[Path], is_of_gtid_event: bool
) -> None:
    before = log_of(captured[:1], tmp_path / "ibb")
    if is_of_gtid_event:
        *told, flags = gtid_event_of(captured[0])
        with_other_contents(captured[0], bytes((*told, flags)), bytes((*told, flags ^ GtidFlag.DDL)))
    else:
        with_other_contents(captured[0], b"CREATE", b"create")
    with pytest.raises(
        StoreError,
        match=r"another group \d+-\d+-\d+, at binlog-000000.ibb offset \d+, than .* at binlog",
    ):
        log_of(captured, tmp_path / "ibb")
    assert {path.name: path.read_bytes() for path in (tmp_path / "ibb").iterdir()} == before


def test_groups_that_the_log_has_in_another_order_of_its_domains_are_passed_over(
    tmp_path: Path, captured: list[Path]
) -> None:
    log_of(captured[:2], tmp_path / "ibb")
    with closing(RealDisk(tmp_path / "ibb")) as disk:
        log = BinlogDirectory(disk)
        reader = log.groups(log.start_of_file())
        groups = [(group.gtid, group.gtid_event, b"".join(group.body)) for group in iter(reader.next_group, None)]
    (tmp_path / "sorted").mkdir()
    with closing(RealDisk(tmp_path / "sorted")) as disk, BinlogWriter(disk) as writer:
        for gtid, gtid_event, body in sorted(groups, key=lambda group: group[0].domain_id):
            writer.write_group(gtid, gtid_event, [body])
    with closing(RealDisk(tmp_path / "sorted")) as disk:
        report = import_classic(captured, disk, append=True)
    assert report.skipped_count == len(groups)
    assert report.group_count > 0
