import pytest

import ibbmaster
from ibbmaster.errors import StoreError
from ibbmaster.spark.log_writing import EVENT, Record, RunWriter, write_log
from ibbmaster.spark.write_options import EVENT_COLUMNS, WriteOptions
from tests.written_log import write_log as logged


def written(source, first, last, options, staging):
    runs = RunWriter(staging)
    with ibbmaster.open(source) as log:
        for group in log:
            for number, event in enumerate(group.events() if first <= group.gtid.seq_no <= last else ()):
                runs.add(Record(group.gtid.seq_no, 0, 0, 1, group.gtid.seq_no, number, 0, EVENT, event.data))
    found = write_log(runs.finish(), options, staging)
    return found.groups, found.skipped


def test_a_group_that_is_written_again_is_passed_over_if_it_is_the_same(tmp_path):
    source = logged(tmp_path / "source", *(f"CREATE TABLE t{number} (a INT)" for number in range(1, 7)))
    other = logged(tmp_path / "other", *(f"CREATE TABLE u{number} (a INT)" for number in range(1, 7)))
    options = WriteOptions(path=str(tmp_path / "log"), columns=tuple(EVENT_COLUMNS), max_file_bytes=1 << 20)
    assert written(source, 2, 4, options, tmp_path / "runs") == (3, 0)
    assert written(source, 3, 6, options, tmp_path / "runs") == (2, 2)
    with pytest.raises(StoreError, match="the log has another group 0-1-5, at binlog"):
        written(other, 5, 6, options, tmp_path / "runs")
    with pytest.raises(StoreError, match="what is added has 0-1-1, which the log does not have"):
        written(source, 1, 3, options, tmp_path / "runs")
