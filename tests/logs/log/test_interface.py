import contextlib
import lzma

import pytest

from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.directory import open_directory
from ibbmaster.logs.log.interface import groups_from
from ibbmaster.logs.log.log_range import WHOLE_FILE
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.followed import FollowedDirectory
from ibbmaster.position import LOG_START
from ibbmaster.storage.disk.local import RealDisk


@pytest.fixture(params=["store", "followed", "directory", "lenient", "classic", "packed"])
def log(request, grow, fixtures, tmp_path):
    capture = "11.8/domains"
    match request.param:
        case "classic":
            return ClassicBinlog([fixtures / "classic" / capture])
        case "packed":
            for path in (fixtures / "classic" / capture).glob("binlog.0*[0-9]"):
                (tmp_path / f"{path.name}.xz").write_bytes(lzma.compress(path.read_bytes()))
            return ClassicBinlog([tmp_path])
        case "store":
            return BinlogStore(RealDisk(grow(99)))
        case "followed":
            return FollowedDirectory(RealDisk(grow(99)))
    return open_directory(grow(99), is_strict=request.param == "directory")


def all_of(groups):
    return [(group.gtid, group.start, b"".join(map(bytes, [group.gtid_event, *group.body]))) for group in groups]


@pytest.mark.parametrize("size", [1, 100_000, WHOLE_FILE])
def test_ranges_hold_every_group_once(log, size):
    with contextlib.closing(log):
        expected = all_of(groups_from(log, log.start_of_file()))
        assert len(expected) > 10
        ranges = log.ranges(LOG_START, log.end(), size=size)
        assert all_of(group for one in ranges for group in log.groups_in(one)) == expected
        _, start, _ = expected[len(expected) // 2]
        _, end, _ = expected[-3]
        between = [group for one in log.ranges(start, end, size=size) for group in all_of(log.groups_in(one))]
        assert between == [group for group in expected if start <= group[1] < end]


def test_each_file_is_read_from_its_head_with_what_was_logged_before(log):
    with contextlib.closing(log):
        files, end = log.files(), log.end()
        assert [file.name for file in files] == [log.file_name(file.file_no) for file in files]
        state = log.start_of_file().state
        for file in files:
            if file.file_no > end.file_no:
                continue  # it is ready for later use
            plan = log.start_of_file(file.file_no)
            assert plan.state == state, file
            for group in groups_from(log, plan):
                if group.start.file_no == file.file_no and group.gtid is not None:
                    state.log(group.gtid)
        assert log.state() == state
        with pytest.raises(KeyError):
            log.start_of_file(999)
