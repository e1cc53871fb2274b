"""Sums over groups that come one by one: gaps, clocks, the largest, and what keeps memory bounded."""

from ibbmaster.commands.info.statistics import (
    GAPS_MAX,
    LARGEST,
    OTHER_TABLES,
    SPANS_MAX,
    TABLES_MAX,
    ChangeSum,
    GroupSum,
    LogStatistics,
    Timeline,
)
from ibbmaster.gtid import Gtid
from ibbmaster.position import LOG_START
from ibbmaster.replication.event.types import EventType


def take(statistics, gtid, *, timestamp=100, size=10):
    statistics.take_group(GroupSum(size, -statistics.groups, Gtid.parse(gtid), timestamp, LOG_START, 3, ()))


def statistics_of(*gtids):
    statistics = LogStatistics()
    for gtid in gtids:
        take(statistics, gtid)
    return statistics


def test_missing_numbers_are_counted_by_domain_whichever_server_logged():
    domain = statistics_of("0-1-1", "0-2-2", "1-1-7", "0-1-5", "1-1-8", "0-1-10").domains[0]

    assert (domain.groups, domain.gap_count, domain.missing, domain.steps_back) == (4, 2, 6, 0)
    assert [(str(gap.after), str(gap.before), gap.missing) for gap in domain.gaps] == [
        ("0-2-2", "0-1-5", 2),
        ("0-1-5", "0-1-10", 4),
    ]
    assert {server: (pair.groups, pair.first, pair.last) for server, pair in domain.pairs.items()} == {
        1: (3, 1, 10),
        2: (1, 2, 2),
    }


def test_a_group_that_is_not_newer_than_the_one_before_is_a_step_back():
    domain = statistics_of("0-1-5", "0-1-5", "0-2-3", "0-1-4").domains[0]
    assert (domain.steps_back, domain.gap_count) == (2, 0)


def test_so_many_gaps_are_listed_and_all_are_counted():
    domain = statistics_of(*(f"0-1-{2 * number + 1}" for number in range(GAPS_MAX + 5))).domains[0]
    assert (len(domain.gaps), domain.gap_count, domain.missing) == (GAPS_MAX, GAPS_MAX + 4, GAPS_MAX + 4)


def test_a_clock_that_goes_back_is_seen_in_the_times_and_makes_no_pause():
    statistics = LogStatistics()
    for seq_no, timestamp in enumerate([100, 160, 50, 55], start=1):
        take(statistics, f"0-1-{seq_no}", timestamp=timestamp)
    pause = statistics.longest_pause

    assert (statistics.earliest, statistics.latest, statistics.clock_steps_back) == (50, 160, 1)
    assert [str(gtid) for gtid, _ in (statistics.first, statistics.last)] == ["0-1-1", "0-1-4"]
    assert (pause.seconds, str(pause.after), str(pause.before), pause.timestamp) == (60, "0-1-1", "0-1-2", 100)


def test_the_largest_groups_come_first_and_of_equal_ones_the_earlier():
    statistics = LogStatistics()
    for seq_no in range(1, 40):
        take(statistics, f"0-1-{seq_no}", size=seq_no // 2)
    assert [group.gtid.seq_no for group in statistics.largest()] == [38, 39, 36, 37, 34, 35, 32, 33, 30, 31]
    assert len(statistics.largest()) == LARGEST


def test_a_time_line_has_so_many_spans_however_long_the_log_is():
    line = Timeline()
    for timestamp in (0, 1, 5_000, 5_001, 2**32 - 1):
        line.add(timestamp, 1, 10)
    rows = list(line.rows())

    assert len(line.spans) <= SPANS_MAX
    assert line.span_s == 2**23
    assert (sum(groups for _, groups, _ in rows), sum(size for _, _, size in rows)) == (5, 50)
    assert rows[-1][0] <= 2**32 - 1 < rows[-1][0] + line.span_s


def test_tables_beyond_a_number_are_counted_together():
    statistics = LogStatistics()
    statistics.tables = {str(number): statistics.table("x") for number in range(TABLES_MAX)}
    statistics.take_changes("a.b", ChangeSum.INSERT, 2, 30)
    statistics.take_changes("c.d", ChangeSum.INSERT, 3, 40)
    assert (statistics.tables[OTHER_TABLES].counts[ChangeSum.INSERT], "a.b" in statistics.tables) == (5, False)


def test_event_types_come_by_their_bytes():
    statistics = LogStatistics()
    statistics.take_type(EventType.GTID, 5, 190)
    statistics.take_type(EventType.QUERY_COMPRESSED, 2, 500)
    statistics.take_type(EventType.ANNOTATE_ROWS, 1, 20)
    statistics.take_type(77, 1, 3)

    assert list(statistics.types_by_name()) == ["QUERY_COMPRESSED", "GTID", "ANNOTATE_ROWS", "type 77"]
    assert (statistics.compressed_events, statistics.annotations) == (2, 1)
