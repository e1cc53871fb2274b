import pytest

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.storage.ibb.appender import Appender, FileShape, References
from ibbmaster.storage.ibb.chunk import Chunk, ChunkEnd, RecordType, next_chunk
from ibbmaster.storage.ibb.commit import CommitHeader, encode_commit_header
from ibbmaster.storage.ibb.oob import OobForest, encode_oob_node
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from tests.case_table import data_beside
from tests.machinery.disk import MemoryDisk

DATA = data_beside(__file__)


GTID_EVENT = bytes.fromhex("00f15365a2010000002600000000000000080001000000000000000000000021000000000000")
QUERY_EVENT = bytes.fromhex(
    "00f1536502010000003c00000000000000000007000000000000000400000000746573740043524541544520544142"
    "4c45207431202861 20494e5429".replace(" ", "")
)


class Log:
    def __init__(self, *, interval_pages, start_lsns=None):
        self.disk = MemoryDisk()
        self.open_since: int | None = None
        lsns = start_lsns or {file_no: 100000 * (file_no + 1) for file_no in range(10)}
        self.appender = Appender(
            file_no=0,
            next_shape=lambda file_no: FileShape(
                size_pages=4, state_interval_pages=interval_pages, start_lsn=lsns[file_no]
            ),
            references=lambda: References(self.open_since, None),
            state=GtidState(),
        )

    def append(self, record_type, data, gtid=None):
        ref, changes = self.appender.append(record_type, data, None if gtid is None else Gtid.parse(gtid))
        self.disk.place(changes, size_pages=4)
        return ref

    def node(self, forest, data):
        ref = self.append(RecordType.OOB_DATA, encode_oob_node(forest.next_node()) + data)
        forest.add(ref)
        return ref

    def flush(self):
        file_no = self.appender.file_no
        kept, changes = self.appender.flush()
        self.disk.place(changes, size_pages=4)
        self.disk.truncate(f"binlog-{file_no:06d}.ibb", kept * PAGE_SIZE)

    @property
    def position(self):
        return self.appender.file_no, self.appender.page_no, self.appender.page_offset


def chunks(disk, file_no):
    """(page, offset, type byte, size) of every chunk of a file."""
    content = memoryview(bytes(disk.files[f"binlog-{file_no:06d}.ibb"]))
    found = []
    for page_no in range(1, len(content) // PAGE_SIZE):
        page, offset = content[page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE], 0
        while isinstance(chunk := next_chunk(page, offset, file_no=file_no, page_no=page_no), Chunk):
            found.append((page_no, offset, page[offset], len(chunk.data)))
            offset = chunk.end_offset
        assert chunk in (ChunkEnd.NO_DATA, ChunkEnd.PAGE_FULL)
    return found


def test_a_flush_fills_the_page_with_a_dummy_cuts_the_file_and_begins_the_next(digest):
    log = Log(interval_pages=8, start_lsns={0: 56789, 1: 60000})
    assert log.append(RecordType.COMMIT, b"\0" + GTID_EVENT + QUERY_EVENT, "0-1-1") == (0, 16389)
    assert log.position == (0, 1, 107)
    assert digest(log.disk, 0) == "906fb6b08cf48f08f014e408fb79b840df4d260d977d7cfe9ccf47fba85efa3d"
    log.flush()
    assert digest(log.disk, 0) == "4a7d4fe4b7b278239db063dc17b3d770cfb36472d46db36782248bfacda20b5d"
    assert digest(log.disk, 1) == "3d38bb3089d36fc97f2302b424be80c910635aec7dbab9d0742e48c4d19b7750"


ENDS = {  # bytes of the first payload: (position behind it, reference of the second record, SHA-256)
    16371: ((0, 2, 0), None, "bca59d3be202c8dd086b09ad448fb236e76123927a4509f508fab820a611366c"),
    16369: ((0, 1, 16378), (0, 32768), "58e60f9ad648e27dca98559decfc2b84dc4cd3396696ae08361ca4fd488b512b"),
    16367: ((0, 1, 16376), (0, 32760), "eaa97de854306fd77d6ee2f86ae8d8e75aa22bc78f736ac82ce21b9fc3e8e635"),
}


@pytest.mark.parametrize("size", ENDS)
def test_a_record_that_ends_near_the_end_of_its_page(size, pat, digest):
    position, second, sha256 = ENDS[size]
    log = Log(interval_pages=8)
    log.append(RecordType.COMMIT, b"\0" + pat(size, 1), "0-1-1")
    assert log.position == position
    if second is not None:
        assert log.append(RecordType.COMMIT, b"\0" + pat(10, 2), "0-1-2") == second
    assert digest(log.disk, 0) == sha256


def test_three_files_with_cut_and_nested_records_out_of_band_data_and_a_flush(pat, digest):
    log = Log(interval_pages=2)
    forest = OobForest()
    assert log.append(RecordType.COMMIT, b"\0" + pat(100, 1), "0-1-1") == (0, 16389)
    assert log.node(forest, pat(20000, 2)) == (0, 16493)
    log.open_since = 0
    assert log.append(RecordType.COMMIT, b"\0" + pat(9000, 3), "0-1-2") == (0, 36516)
    assert log.node(forest, pat(5000, 4)) == (0, 45520)
    assert log.append(RecordType.COMMIT, b"\0" + pat(16000, 5), "1-2-1") == (0, 50537)
    assert log.position == (1, 1, 1023)
    assert log.node(forest, pat(3000, 6)) == (1, 17407)
    header = encode_commit_header(CommitHeader(streams=(forest.stream(),)))
    assert header == bytes.fromhex("18006a030208fa1f0200")
    assert log.append(RecordType.COMMIT, header + pat(38, 7), "0-1-3") == (1, 20419)
    log.open_since = None
    log.flush()
    assert log.position == (2, 1, 11)
    assert log.append(RecordType.COMMIT, b"\0" + pat(50, 8), "0-1-4") == (2, 16395)
    assert [list(map(list, chunks(log.disk, file_no))) for file_no in (0, 1)] == [DATA["first"], DATA["second"]]
    assert [digest(log.disk, file_no) for file_no in range(3)] == DATA["digests"]


def test_the_example_of_a_forest_closed_by_a_commit(digest):
    log = Log(interval_pages=8, start_lsns={0: 56789})
    forest = OobForest()
    places = [log.node(forest, letter * 4)[1] for letter in (b"A", b"B", b"C", b"D", b"E", b"F", b"G")]
    assert places == [16389, 16401, 16415, 16431, 16445, 16459, 16475]
    event = GTID_EVENT[:31] + b"\x0c" + GTID_EVENT[32:]
    header = encode_commit_header(CommitHeader(streams=(forest.stream(),)))
    assert log.append(RecordType.COMMIT, header + event, "0-1-1") == (0, 16491)
    assert digest(log.disk, 0) == "edcc5665cd0cdfc1721e6e49f0305eca4e98a520b6ee821d88458f9a54c483ea"


@pytest.mark.parametrize("size", [1, 100, DATA_SIZE - 200, *range(DATA_SIZE - 110, DATA_SIZE - 95), DATA_SIZE])
def test_a_record_inside_a_page_is_placed_as_any_other(size):
    """After a record of 100 bytes and its header; where it does not fit, everything is as it was."""
    first, second = Log(interval_pages=1), Log(interval_pages=1)
    gtids = Gtid.parse("0-1-1"), Gtid.parse("0-2-7")
    assert first.appender.append_inside(RecordType.COMMIT, b"x", gtids[0]) is None
    for log in (first, second):
        log.appender.append(RecordType.COMMIT, bytes(100), gtids[0])
    before, state = first.position, first.appender.state.copy()
    chunk = first.appender.append_inside(RecordType.COMMIT, bytes(size), gtids[1])
    ref, changes = second.appender.append(RecordType.COMMIT, bytes(size), gtids[1])
    if chunk is None:
        assert len(changes) > 1 or second.appender.page_offset == 0
        assert (first.position, first.appender.state) == (before, state)
    else:
        assert [(0, before[1], before[2], chunk)] == changes
        assert ref == (0, before[1] * PAGE_SIZE + before[2])
        assert first.position == second.position
        assert str(first.appender.state) == str(second.appender.state)
        assert str(first.appender.differential) == str(second.appender.differential)


@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_flush_with_a_few_bytes_left_pads_them_and_writes_no_dummy(left):
    log = Log(interval_pages=0)
    log.append(RecordType.COMMIT, bytes(DATA_SIZE - 5 - 3 - left))
    log.flush()
    content = log.disk.files["binlog-000000.ibb"]
    assert len(content) == 2 * PAGE_SIZE
    assert bytes(content[PAGE_SIZE + DATA_SIZE - left : PAGE_SIZE + DATA_SIZE]) == b"\xff" * left


def test_a_flush_of_a_file_that_is_exactly_full_cuts_and_writes_nothing():
    log = Log(interval_pages=0)
    log.append(RecordType.COMMIT, bytes(3 * DATA_SIZE - 5 - 3 * 3))
    assert log.position == (0, 4, 0)
    log.flush()
    assert len(log.disk.files["binlog-000000.ibb"]) == 4 * PAGE_SIZE
    assert log.position == (1, 1, 5)


def test_states_stand_in_front_of_the_last_page_and_count_the_gtid_of_the_record_around_them():
    log = Log(interval_pages=1)
    log.append(RecordType.COMMIT, bytes(50_000))
    assert [place for place in chunks(log.disk, 0) if place[2] & 0x3F == RecordType.GTID_STATE] == [
        (1, 0, 0x42, 2),
        (2, 0, 0x42, 2),
    ]
    log = Log(interval_pages=1)
    log.append(RecordType.COMMIT, b"\0" + bytes(20_000), "0-1-5")
    page = bytes(log.disk.files["binlog-000000.ibb"][2 * PAGE_SIZE :][:8])
    assert page == bytes.fromhex("42 05 00 08 00 00 08 28")  # one pair, 0-1-5
    assert bytes(log.disk.files["binlog-000000.ibb"][PAGE_SIZE:][:5]) == bytes.fromhex("42 02 00 00 00")
