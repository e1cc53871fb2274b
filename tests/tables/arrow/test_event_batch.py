"""Groups side by side: which are wanted, as GroupSelection says of each, and what they are called."""

import random
from types import SimpleNamespace

import numpy as np

from ibbmaster.errors import ClassicFormatError, EventError, RecordError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.fields import GroupColumn
from ibbmaster.logs.log.log_range import GroupSelection
from ibbmaster.position import LogPosition
from ibbmaster.tables.arrow.event_batch import EventBatch, in_group, wanted_groups


def group_row(gtid: Gtid, place: LogPosition, timestamp: int = 0):
    row = np.zeros(max(map(int, GroupColumn)) + 1, dtype=np.int64)
    row[GroupColumn.DOMAIN], row[GroupColumn.SERVER] = gtid.domain_id, gtid.server_id
    row[GroupColumn.SEQ_NO] = np.uint64(gtid.seq_no).astype(np.int64)
    row[GroupColumn.FILE_NO], row[GroupColumn.FILE_OFFSET], row[GroupColumn.TIMESTAMP] = *place, timestamp
    return row


def test_a_selection_takes_of_many_what_it_takes_of_each():
    for _ in range(100):
        groups = [
            (
                Gtid(domain_id=random.randrange(3), server_id=1, seq_no=number),
                LogPosition(random.randrange(3), random.randrange(4)),
                random.randrange(5),
            )
            for number in range(20)
        ]
        points = lambda: tuple((domain, LogPosition(random.randrange(3), random.randrange(4))) for domain in range(2))  # noqa: E731
        selection = GroupSelection(
            starts=random.choice([(), points()]),
            ends=random.choice([None, (), points()]),
            domains=random.choice([frozenset(), frozenset({0, 2})]),
            start_time=random.choice([None, 1, 2.5]),
            end_time=random.choice([None, 4, 3.5]),
        )
        found = wanted_groups(np.array([group_row(*group) for group in groups]), selection)
        assert found.tolist() == [selection.takes(*group) for group in groups], selection


def test_a_group_is_called_by_its_gtid_and_its_place():
    groups = np.array([group_row(Gtid(domain_id=1, server_id=2, seq_no=2**64 - 1), LogPosition(3, 99))])
    batch = EventBatch(np.zeros(0, dtype=np.uint8), groups, np.zeros((0, 9), dtype=np.int64))

    assert batch.place(0) == "group 1-2-18446744073709551615 at binlog-000003.ibb offset 99"


def test_an_error_names_its_group():
    group = SimpleNamespace(gtid="0-1-5", start=LogPosition(0, 7))
    here = LogPosition.on_page(0, 1)
    told = [
        str(in_group(error, group, lambda file_no: "f"))
        for error in (RecordError(here, "x"), ClassicFormatError("f", 4, "x"), EventError("x"))
    ]
    assert told == [f"{here}: x (in group 0-1-5)", "f offset 4: x (in group 0-1-5)", "group 0-1-5 at f offset 7: x"]
