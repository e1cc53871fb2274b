import pytest

from ibbmaster.errors import FormatError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.continuation import find_continuation
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.chunk import RecordType, encode_chunk
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.built_logs import header_of, sealed_page
from tests.machinery.events import gtid_of, make_gtid_event, new_group


def write_file(directory, file_no, pages, *, size_pages=4):
    """A file with these data areas on page 1 and up, sealed."""
    data = header_of(file_no, size_pages=size_pages, interval_pages=2, start_lsn=7) + b"".join(map(sealed_page, pages))
    (directory / format_file_name(file_no)).write_bytes(data.ljust(size_pages * PAGE_SIZE, b"\0"))


EMPTY_STATE = bytes.fromhex("42 02 00 00 00")
COMMIT = encode_chunk(RecordType.COMMIT, b"\0" + make_gtid_event(gtid_of(1)), is_first=True, is_last=True)


def test_a_directory_without_log_has_no_end(tmp_path):
    assert find_continuation(RealDisk(tmp_path)) is None
    (tmp_path / "binlog-1.ibb").write_bytes(b"no name of a binlog file")
    assert find_continuation(RealDisk(tmp_path)) is None
    for file_no in (0, 1):  # only made
        (tmp_path / format_file_name(file_no)).write_bytes(bytes(4 * PAGE_SIZE))
        assert find_continuation(RealDisk(tmp_path)) is None


@pytest.mark.parametrize("has_next", [False, True], ids=["", "an empty file is ready for later"])
def test_the_end_is_behind_the_last_chunk(tmp_path, has_next):
    write_file(tmp_path, 0, [EMPTY_STATE + COMMIT])
    if has_next:
        (tmp_path / format_file_name(1)).write_bytes(bytes(4 * PAGE_SIZE))
    end = find_continuation(RealDisk(tmp_path))
    assert (end.header.file_no, end.size_pages, end.position) == (0, 4, LogPosition.on_page(0, 1, 5 + len(COMMIT)))
    assert end.state == end.differential == GtidState([gtid_of(1)])


def test_state_and_differential_are_those_at_the_end(tmp_path):
    before = GtidState.parse("0-1-5,1-1-5,2-1-5")
    with BinlogWriter(
        RealDisk(tmp_path), initial_state=before, max_file_bytes=64 * PAGE_SIZE, state_interval_bytes=2 * PAGE_SIZE
    ) as writer:
        for seq_no in range(6, 60):
            writer.write_group(*new_group(seq_no, 3000, domain_id=seq_no % 2))
    end = find_continuation(RealDisk(tmp_path))
    assert end.state == GtidState.parse("0-1-58,1-1-59,2-1-5")
    assert end.differential == GtidState.parse("0-1-58,1-1-59")


def test_a_log_that_ends_inside_a_record_or_has_no_state_cannot_be_continued(tmp_path):
    room = PAGE_SIZE - 4 - 5 - 3
    first = encode_chunk(RecordType.OOB_DATA, bytes(5) + b"x" * (room - 5), is_first=True, is_last=False)
    write_file(tmp_path, 0, [EMPTY_STATE + first])
    with pytest.raises(StoreError, match=r"^binlog-000000.ibb page 1: the log ends inside a record"):
        find_continuation(RealDisk(tmp_path))
    write_file(tmp_path, 0, [COMMIT])
    with pytest.raises((StoreError, FormatError)):
        find_continuation(RealDisk(tmp_path))


def test_a_file_cut_by_a_flush_is_made_whole_again(tmp_path):
    write_file(tmp_path, 0, [EMPTY_STATE + COMMIT])
    path = tmp_path / format_file_name(0)
    path.write_bytes(path.read_bytes()[: 2 * PAGE_SIZE])
    with BinlogWriter(RealDisk(tmp_path)) as writer:
        assert path.stat().st_size == 4 * PAGE_SIZE
        assert writer.end == (0, PAGE_SIZE + 5 + len(COMMIT))


def test_each_damaged_byte_of_the_last_page_is_found(tmp_path):
    write_file(tmp_path, 0, [EMPTY_STATE + COMMIT])
    path = tmp_path / format_file_name(0)
    whole = path.read_bytes()
    for position in (*range(PAGE_SIZE, PAGE_SIZE + 60), 2 * PAGE_SIZE - 1):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x40]) + whole[position + 1 :])
        with pytest.raises(FormatError):
            find_continuation(RealDisk(tmp_path))
