import lzma
import shutil
from pathlib import Path

import ibbmaster
from ibbmaster.api.file_states import CLOSED, CUT, DAMAGED, ENDED_BY_FLUSH, IN_USE, PACKED, READY, WITHOUT_END, WRITTEN

FIXTURES = Path(__file__).parents[2] / "fixtures"


def states(path):
    with ibbmaster.open(path) as log:
        return [facts["state"] for facts in log.stored.facts()]


def test_files_of_pages_are_written_closed_flushed_and_ready(imported):
    assert states(FIXTURES / "ibb/xa-and-ddl") == [WRITTEN, READY]
    assert states(FIXTURES / "ibb-mariadb/two-restarts") == [ENDED_BY_FLUSH, WRITTEN, READY]
    found = states(imported("11.8/types-full-crc32"))
    assert found == [CLOSED] * (len(found) - 2) + [WRITTEN, READY]


def test_a_file_that_was_cut_and_a_damaged_one_say_so(imported):
    directory = imported("11.8/types-full-crc32")
    with (directory / "binlog-000000.ibb").open("r+b") as file:
        file.truncate(5 * 16384)
    with (directory / "binlog-000001.ibb").open("r+b") as file:
        file.seek(100)
        file.write(b"x")
    with ibbmaster.open(directory) as log:
        cut, damaged, *_ = log.stored.facts()
    assert (cut["state"], damaged["state"]) == (CUT, DAMAGED)
    assert "no FLUSH has ended it here" in cut["problem"]
    assert damaged["problem"].startswith("binlog-000001.ibb page 0 ")


def test_a_traditional_file_is_closed_in_use_without_end_or_packed(tmp_path):
    source = FIXTURES / "classic/10.11/domains"
    assert states(source) == [CLOSED] * 5 + [IN_USE] + [CLOSED] * 3
    shutil.copytree(source, tmp_path / "log")
    data = (tmp_path / "log/binlog.000001").read_bytes()
    (tmp_path / "log/binlog.000001.xz").write_bytes(lzma.compress(data))
    (tmp_path / "log/binlog.000001").unlink()
    last = tmp_path / "log/binlog.000009"
    last.write_bytes(last.read_bytes()[:-23])
    found = states(tmp_path / "log")
    assert (found[0], found[-1]) == (PACKED, WITHOUT_END)


def test_each_file_says_what_was_logged_before_it():
    with ibbmaster.open(FIXTURES / "ibb/large-groups") as log:
        assert [facts["begins_after"] for facts in log.stored.facts()][:2] == ["", "0-1-27"]
