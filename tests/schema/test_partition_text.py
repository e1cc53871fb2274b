"""PARTITION BY; the expected texts and rows are those of MariaDB 10.11 and 11.8."""

import pytest

from ibbmaster.schema.partition_text import PARTITIONS_MAX, partition_text, partitions
from tests.case_table import data_beside

RANGE = (
    "RANGE (year(b)) SUBPARTITION BY HASH(a) SUBPARTITIONS 2 "
    "(PARTITION p0 VALUES LESS THAN (2000) COMMENT 'x', PARTITION p1 VALUES LESS THAN maxvalue)"
)
PRINTED = data_beside(__file__)


@pytest.mark.parametrize(("written", "printed"), PRINTED.items(), ids=lambda text: text[:30])
def test_partitions_are_printed_as_a_server_prints_them_or_as_they_were_written(written, printed):
    assert partition_text(written, "Aria") == printed


def test_each_partition_has_its_number_and_what_it_holds():
    found = [
        (part.name, part.sub_name, part.no, part.sub_no, part.method, part.expression, part.description)
        for part in partitions(RANGE)
    ]
    assert found == [
        ("p0", "p0sp0", 1, 1, "RANGE", "year(`b`)", "2000"),
        ("p0", "p0sp1", 1, 2, "RANGE", "year(`b`)", "2000"),
        ("p1", "p1sp0", 2, 1, "RANGE", "year(`b`)", "MAXVALUE"),
        ("p1", "p1sp1", 2, 2, "RANGE", "year(`b`)", "MAXVALUE"),
    ]


def test_partitions_that_are_only_counted_have_names_of_the_server_and_unreadable_ones_are_none():
    assert list(partitions("SYSTEM_TIME LIMIT 5")) == []
    assert [part.name for part in partitions("KEY (a) PARTITIONS 2")] == ["p0", "p1"]
    assert len(list(partitions("KEY (a) PARTITIONS 999999999"))) == PARTITIONS_MAX
