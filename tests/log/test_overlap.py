"""What is added to a log that is there: nothing is written before it is known that it continues the log."""

import shutil
import struct
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from ibbmaster.classic.convert import import_groups
from ibbmaster.classic.exporting import LogRead
from ibbmaster.disk.local import RealDisk
from ibbmaster.errors import StoreError
from ibbmaster.event.control import encode_xid
from ibbmaster.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.event.query import Query, encode_query
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.store.writer import BinlogWriter
from tests.machinery.events import make_event
from tests.machinery.importing import import_classic
from tests.machinery.stores import faults_at, open_files
from tests.machinery.tables import rows_of
from tests.written_log import inserted

END = Query(thread_id=3, seconds=1, error_code=0, status=b"", database=b"", text=b"COMMIT")
FILE_BYTES = 1 << 20
CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic"


def log_of(files, directory):
    """The files of a log that traditional files were added to."""
    directory.mkdir(exist_ok=True)
    with closing(RealDisk(directory)) as disk:
        import_classic(files, disk, max_file_bytes=64 << 10, state_interval_bytes=16 << 10, append=True)
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def with_other_contents(path, wanted, other):
    """Change an event that holds some bytes, under a right checksum."""
    data = bytearray(path.read_bytes())
    found, start = data.index(wanted), 4
    while (end := start + struct.unpack_from("<I", data, start + 9)[0]) <= found:
        start = end
    data[found : found + len(wanted)] = other
    struct.pack_into("<I", data, end - 4, zlib.crc32(data[start : end - 4]))
    path.write_bytes(data)


@pytest.fixture
def captured(tmp_path):
    """Copies of the files of a capture with five domains."""
    names = [f"binlog.{number:06d}" for number in (1, 2, 3)]
    return [Path(shutil.copy(CLASSIC / "11.8" / "domains" / name, tmp_path / name)) for name in names]


def test_files_that_continue_a_log_in_one_domain_only_are_refused_before_anything_is_written(tmp_path, captured):
    before = log_of(captured[:1], tmp_path / "ibb")
    with pytest.raises(StoreError, match="they do not continue it"):
        log_of(captured[2:], tmp_path / "ibb")
    assert {path.name: path.read_bytes() for path in (tmp_path / "ibb").iterdir()} == before


def gtid_event_of(path):
    """Number, domain and flags of the first group."""
    data, start = path.read_bytes(), 4
    while data[start + 4] != EventType.GTID:
        start += struct.unpack_from("<I", data, start + 9)[0]
    return data[start + 19 : start + 32]


@pytest.mark.parametrize("is_of_gtid_event", [False, True], ids=["in a statement", "in the GTID event"])
def test_groups_that_the_log_has_with_other_contents_are_refused_before_anything_is_written(
    tmp_path, captured, is_of_gtid_event
):
    before = log_of(captured[:1], tmp_path / "ibb")
    if is_of_gtid_event:
        *told, flags = gtid_event_of(captured[0])
        with_other_contents(captured[0], bytes((*told, flags)), bytes((*told, flags ^ GtidFlag.DDL)))
    else:
        with_other_contents(captured[0], b"CREATE", b"create")
    with pytest.raises(
        StoreError, match=r"another group \d+-\d+-\d+, at binlog-000000.ibb offset \d+, than .* at binlog"
    ):
        log_of(captured, tmp_path / "ibb")
    assert {path.name: path.read_bytes() for path in (tmp_path / "ibb").iterdir()} == before


def test_groups_that_the_log_has_in_another_order_of_its_domains_are_passed_over(tmp_path, captured):
    log_of(captured[:2], tmp_path / "ibb")
    with closing(RealDisk(tmp_path / "ibb")) as disk:
        log = open_files(disk)
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


MEETINGS = rows_of(__file__, "meetings")


def written(directory, before, said):
    """A log of groups as `MEETINGS` has them; each fourth of them is large."""
    directory.mkdir()
    with (
        closing(RealDisk(directory)) as disk,
        BinlogWriter(
            disk,
            initial_state=GtidState.parse(before),
            max_file_bytes=FILE_BYTES,
            oob_piece_bytes=1 << 16,
            gtid_strict=False,
        ) as writer,
    ):
        for name in said.split():
            gtid, how = Gtid.parse(name.rstrip("rxm")), name[-1]
            is_replica = how == "r"
            table = written_table("d.t", {"id": "int", "c": "longtext"}, table_id=9 if is_replica else 4)
            text = "x" * (1_500_000 if gtid.seq_no % 4 == 0 else 20) + how * (how == "x")
            events = inserted(table, [gtid.seq_no, text]) * (2 if how == "m" else 1)
            if is_replica:
                events.append(encode_query(END, server_id=gtid.server_id))
            else:
                events = [
                    make_event(EventType.ANNOTATE_ROWS, gtid.server_id, b"INSERT"),
                    *events,
                    encode_xid(7, server_id=gtid.server_id),
                ]
            flags = GtidFlag.WAITED if is_replica else GtidFlag.TRANSACTIONAL
            writer.write_group(gtid, encode_gtid_event(GtidEvent(gtid=gtid, flags=flags)), events)
    return directory


class CountedRead(LogRead):
    """Counts how often the files are read."""

    count = 0

    def groups(self, take=None):
        CountedRead.count += 1
        return super().groups(take)

    def from_file(self, file_no):
        return CountedRead(self._log, file_no)


@pytest.mark.parametrize(
    ("logged", "before", "added", "outcome"), [row[1:] for row in MEETINGS], ids=[row[0] for row in MEETINGS]
)
def test_what_is_added_is_passed_over_written_or_refused(tmp_path, monkeypatch, logged, before, added, outcome):
    monkeypatch.setattr(CountedRead, "count", 0)
    archive = written(tmp_path / "archive", "", logged)
    files = {path.name: path.read_bytes() for path in archive.iterdir()}
    source = CountedRead(open_files(written(tmp_path / "added", before, added)))
    with closing(RealDisk(archive)) as disk:
        if not outcome[0].isdigit():
            with pytest.raises(StoreError, match=outcome):
                import_groups(source, disk, max_file_bytes=FILE_BYTES, append=True)
            assert {path.name: path.read_bytes() for path in archive.iterdir()} == files
            return
        faults = len(faults_at(disk))  # numbers that step back
        report = import_groups(source, disk, max_file_bytes=FILE_BYTES, append=True)
        assert (report.skipped_count, report.group_count, CountedRead.count) == tuple(map(int, outcome.split()))
        assert len(faults_at(disk)) == faults
        assert import_groups(source, disk, max_file_bytes=FILE_BYTES, append=True).group_count == 0
