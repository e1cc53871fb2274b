import tracemalloc

import pytest

from ibbmaster.errors import FormatError, RecordError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.event_groups import EventGroupReader
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.commit import CommitHeader, OobStream, encode_commit_header
from ibbmaster.storage.ibb.oob import OobForest
from ibbmaster.storage.ibb.page import DATA_SIZE
from tests.built_logs import sealed_page
from tests.machinery.events import groups_of


def read_all(disk, file_no=0, page_no=1):
    return groups_of(EventGroupReader(disk, file_no=file_no, page_no=page_no))


# As mysql-test/suite/binlog_in_engine/mysqlbinlog.test
def test_reading_from_the_middle_passes_over_the_rest_of_a_cut_record(long_log):
    assert read_all(long_log.disk, page_no=2) == long_log.groups[1:]


def test_a_group_whose_body_nobody_takes_costs_no_reading_out_of_band(new_log, event):
    log = new_log(size_pages=200, interval_pages=0)
    forest = OobForest()
    log.out_of_band(forest, [event(16000)] * 100)
    page_no = log.appender.page_no
    log.commit("0-1-1", forest=forest)
    log.commit("0-1-2", event(100))
    skipping = EventGroupReader(log.disk, file_no=0, page_no=page_no)
    before = log.disk.pages_read
    assert [str(skipping.next_group().gtid) for _ in range(2)] == ["0-1-1", "0-1-2"]
    assert log.disk.pages_read - before < 10


@pytest.mark.parametrize("size", [1, 16_000, 40_000, 1_200_000], ids="{} bytes".format)
def test_a_commit_record_of_any_size_is_handed_over_whole(new_log, event, size):
    log = new_log(size_pages=300, interval_pages=16)
    log.commit("0-1-1", event(size + 19))
    log.commit("0-1-2", event(50))
    assert read_all(log.disk) == log.groups


@pytest.mark.usefixtures("alone")
def test_a_large_group_is_never_held_in_memory(new_log, event):
    log = new_log(size_pages=5000, interval_pages=0)
    forest = OobForest()
    for _ in range(100):
        log.out_of_band(forest, [event(500_000)])
    page_no = log.appender.page_no
    log.commit("0-1-1", forest=forest)
    group = EventGroupReader(log.disk, file_no=0, page_no=page_no).next_group()
    tracemalloc.start()
    assert sum(map(len, group.body)) == 100 * 500_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 << 20


def test_a_reader_at_the_end_sees_what_is_written_later(new_log, event):
    log = new_log()
    log.commit("0-1-1", event(50))
    reader = EventGroupReader(log.disk, file_no=0, page_no=1)
    assert reader.next_group().gtid == log.groups[0][0]
    for seq_no in range(2, 40):  # over pages and files
        assert reader.next_group() is None
        log.commit(f"0-1-{seq_no}", event(5000))
        assert reader.next_group().gtid == log.groups[-1][0]


def test_a_group_whose_end_is_not_written_yet_is_waited_for(new_log, event):
    log = new_log()
    log.commit("0-1-1", event(30_000))
    whole = log.disk.files["binlog-000000.ibb"]
    half = bytearray(whole)
    half[2 * 16384 :] = bytes(len(half) - 2 * 16384)  # its second page is still to come
    log.disk.files["binlog-000000.ibb"] = half
    reader = EventGroupReader(log.disk, file_no=0, page_no=1)
    assert reader.next_group() is None
    log.disk.files["binlog-000000.ibb"] = whole
    assert reader.next_group().gtid == log.groups[0][0]


# As mysql-test/suite/binlog_in_engine/mysqlbinlog.test
def test_an_empty_file_that_is_ready_for_later_ends_the_log(long_log):
    long_log.disk.create("binlog-000003.ibb")
    long_log.disk.allocate("binlog-000003.ibb", 4 * 16384)
    long_log.disk.allocate("binlog-000001.ibb", 3 * 16384)  # a page of zeros at the end of a closed file
    assert read_all(long_log.disk) == long_log.groups


def test_a_damaged_page_stops_the_reader_with_its_place_and_again_when_asked_again(long_log):
    long_log.disk.files["binlog-000001.ibb"][16384 + 5000] ^= 1
    reader = EventGroupReader(long_log.disk, file_no=0, page_no=1)
    for _ in range(2):
        reader.next_group()
    for _ in range(2):
        with pytest.raises(FormatError, match=r"binlog-000001\.ibb page 1 offset 0: page checksum is \w+, its bytes"):
            reader.next_group()


def test_a_commit_record_that_refers_to_something_else_is_named(new_log, event):
    log = new_log()
    log.commit("0-1-1", event(50))
    wrong = LogPosition(0, 16384 + 5)  # the commit record above
    stream = OobStream(node_count=1, first=wrong, last=wrong)
    gtid_event = log.groups[0][1][:38]
    log.append(RecordType.COMMIT, encode_commit_header(CommitHeader(streams=(stream,))) + gtid_event)
    reader = EventGroupReader(log.disk, file_no=0, page_no=1)
    reader.next_group()
    with pytest.raises(RecordError, match=r"page 1 offset 5: an out-of-band reference to something else"):
        list(reader.next_group().body)


def test_a_purged_file_with_out_of_band_data_is_named_by_the_group_that_needs_it(long_log):
    del long_log.disk.files["binlog-000000.ibb"]
    reader = EventGroupReader(long_log.disk, file_no=1, page_no=1)
    with pytest.raises(RecordError, match=r"binlog-000000\.ibb page 1 .* was binlog-000000\.ibb purged\?"):
        list(reader.next_group().body)
    assert str(reader.next_group().gtid) == "0-1-4"


def test_an_unknown_record_type_is_not_skipped(long_log):
    page = long_log.page(1, file_no=2)[:DATA_SIZE]
    long_log.put(1, sealed_page(page[:11] + bytes([0x40 | 9]) + page[12:]), file_no=2)
    with pytest.raises(FormatError, match=r"binlog-000002\.ibb page 1 offset 11: record type 9 is unknown"):
        read_all(long_log.disk)


def test_a_pair_that_mariadb_has_set_back_at_a_restart_does_not_stop_a_reader(new_log, event):
    """After two restarts in one file its server has 1-1-5 again, as when the file began, and so has the next file."""
    log = new_log(size_pages=8, state="1-1-5", first_file_no=3)
    log.commit("1-1-6", event(50))
    log.commit("0-1-1", event(50))
    log.appender.state = GtidState.parse("1-1-5,0-1-1")
    log.flush()
    log.commit("0-1-2", event(50))
    assert read_all(log.disk, file_no=3) == log.groups


def test_a_file_that_begins_behind_other_groups_stops_a_reader(new_log, event):
    log = new_log(size_pages=8, state="1-1-5", first_file_no=3)
    log.commit("1-1-6", event(50))
    log.appender.state = GtidState.parse("1-1-7")
    log.flush()
    with pytest.raises(RecordError, match="the file begins after 1-1-7, the groups before it end with number 6"):
        read_all(log.disk, file_no=3)


@pytest.mark.parametrize("left", range(4, 60))
def test_a_group_that_begins_just_before_the_end_of_a_page_is_no_step_back(new_log, event, left):
    """What is known of it at a glance ends with the page: behind that come the page's checksum and the next page."""
    log = new_log(size_pages=16, interval_pages=0)
    log.commit("0-1-1")
    used = log.appender.page_offset
    log.commit("0-1-2")
    overhead = log.appender.page_offset - used
    log.commit("0-1-3", event(DATA_SIZE - log.appender.page_offset - overhead - left))
    assert DATA_SIZE - log.appender.page_offset == left
    log.commit_all((4, 5), event(100))
    whole, steps_back = EventGroupReader(log.disk, file_no=0, page_no=1), []
    groups = [(group.gtid, group.end) for group in iter(whole.next_group, None)]
    passing = EventGroupReader(log.disk, file_no=0, page_no=1, at_step_back=steps_back.append)
    passing.next_group()
    for gtid, end in groups[1:]:
        passing.continue_at(end, (gtid,), is_inside_record=False)
    assert steps_back == []
