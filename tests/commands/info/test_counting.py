from collections import Counter
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.info.counting import GroupCounter, take_statement
from ibbmaster.commands.info.log_info import summarize
from ibbmaster.commands.info.statistics import ChangeSum, LogStatistics
from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.position import LOG_START
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.types import EventType
from tests.case_table import data_beside
from tests.machinery.events import make_event, make_gtid_event

FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.fixture(autouse=True)
def _without_kernels(monkeypatch):
    monkeypatch.setenv("IBBMASTER_KERNELS", "off")


@pytest.mark.parametrize("name", ["11.8/ddl-trx-xa", "11.8/vectors", "10.11/types-noblob-compressed"])
def test_rows_are_those_that_the_log_gives_one_by_one(name):
    with ibbmaster.open(FIXTURES / "classic" / name) as log:
        rows: Counter[tuple[str, str]] = Counter()
        for group in log.groups():
            try:
                rows.update((table.name, change.kind) for table, change in group.rows())
            except EventError:
                assert str(group.gtid) == "0-1-143"  # of a table whose TABLE_MAP does not say how long its values are
        found = summarize(log.engine, log.stored_bytes).tables
    kinds = [kind for kind in ChangeSum if kind is not ChangeSum.DDL]
    counted = {
        (name, kind.value): table.counts[kind] for name, table in found.items() for kind in kinds if table.is_counted
    }

    assert {place: count for place, count in counted.items() if count} == {
        place: count for place, count in rows.items() if place[0] != "types.old_temporal"
    }
    # Its TABLE_MAP does not say how long its values are.
    assert [name for name, table in found.items() if not table.is_counted] == ["types.old_temporal"] * ("types" in name)


@pytest.mark.parametrize(("text", "tables"), data_beside(__file__))
def test_ddl_is_counted_for_each_table_it_names(text, tables):
    statistics = LogStatistics()
    event = encode_query(
        Query(thread_id=1, seconds=0, error_code=0, status=b"", database=b"d", text=text.encode()), server_id=1
    )
    take_statement(statistics, event)

    assert {name: dict(found.counts) for name, found in statistics.tables.items()} == {
        table: {ChangeSum.DDL: 1} for table in tables
    }
    assert all(found.sizes[ChangeSum.DDL] == len(event) for found in statistics.tables.values())


def test_a_row_event_without_its_table_is_an_error_that_names_the_group():
    gtid = Gtid(domain_id=0, server_id=1, seq_no=5)
    body = make_event(EventType.WRITE_ROWS_V1, 1, bytes(20))
    group = EventGroup(gtid=gtid, gtid_event=make_gtid_event(gtid), body=iter([body]), start=LOG_START, end=LOG_START)
    with pytest.raises(
        EventError, match=r"^group 0-1-5 at file 0 offset \d+: row event of table 0, which no TABLE_MAP"
    ):
        GroupCounter(LogStatistics()).take(group, lambda file_no: f"file {file_no}")
