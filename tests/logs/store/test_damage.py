import random

import pytest

from ibbmaster.errors import EventError, FormatError, StoreError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.verify import verify
from ibbmaster.storage.ibb.page import PAGE_SIZE, seal_page
from tests.machinery.disk import MemoryDisk


def read_whole(disk):
    groups = []
    try:
        directory = BinlogDirectory(disk)
        reader = directory.groups(directory.seek(GtidPosition()))
        while (group := reader.next_group()) is not None:
            groups.append((group.gtid, group.gtid_event + b"".join(group.body)))
    except (FormatError, StoreError) as error:
        return groups, str(error)
    return groups, None


@pytest.fixture(scope="module")
def seed():
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return seed


def test_a_flipped_bit_gives_the_same_groups_or_an_error_with_its_place(long_log, seed):
    random_source = random.Random(seed)
    used = [(name, offset) for name, content in long_log.disk.files.items() for offset in range(0, len(content), 97)]
    for name, offset in random_source.sample(used, 700):
        disk = MemoryDisk(long_log.disk.files)
        disk.files[name][offset] ^= 1 << random_source.randrange(8)
        groups, error = read_whole(disk)
        assert groups == long_log.groups[: len(groups)], (seed, name, offset)
        assert groups == long_log.groups or error is not None, (seed, name, offset)
        if error is not None:
            assert "binlog-0" in error, (seed, name, offset)
            assert "page" in error, (seed, name, offset)


@pytest.fixture
def small_log(new_log, event):
    log = new_log()
    log.commit("0-1-1", event(100))
    log.commit("0-1-2", event(9000))
    log.flush()  # cuts the file to two pages
    log.commit("0-1-3", event(50))
    assert len(log.disk.files["binlog-000000.ibb"]) == 2 * PAGE_SIZE
    return log


@pytest.mark.slow
def test_a_single_flipped_bit_of_a_small_file_is_an_error_with_its_page(small_log, seed, request):
    """`pytest tests/logs/store/test_damage.py --flipped-bits 0` flips every one."""
    name = "binlog-000000.ibb"
    file = small_log.disk.files[name]
    count = request.config.getoption("--flipped-bits") or len(file) * 8
    for bit in sorted(random.Random(seed).sample(range(len(file) * 8), count)):
        file[bit // 8] ^= 1 << bit % 8
        groups, error = read_whole(small_log.disk)
        file[bit // 8] ^= 1 << bit % 8
        assert error is not None, bit
        assert f"{name} page {bit // 8 // PAGE_SIZE} offset" in error, bit
        assert groups == small_log.groups[: len(groups)], bit


def test_every_truncation_of_a_small_file_gives_a_prefix_or_an_error(small_log, seed, request):
    """`--flipped-bits 0` cuts to every size."""
    name = "binlog-000000.ibb"
    whole = bytes(small_log.disk.files[name])
    count = request.config.getoption("--flipped-bits") or len(whole)
    for size in random.Random(seed).sample(range(len(whole)), min(count, len(whole))):
        small_log.disk.files[name] = bytearray(whole[:size])
        groups, error = read_whole(small_log.disk)
        assert groups == small_log.groups[: len(groups)], size
        assert error is not None, size


# As mysql-test/suite/binlog_in_engine/binlog_restart.test
def test_changed_bytes_under_right_checksums_never_end_in_anything_but_our_errors(long_log, seed):
    random_source = random.Random(seed)
    names = list(long_log.disk.files)
    for _ in range(700):
        disk = MemoryDisk(long_log.disk.files)
        name = random_source.choice(names)
        page_no = random_source.randrange(1, len(disk.files[name]) // PAGE_SIZE)
        page = bytearray(disk.files[name][page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE])
        offset = random_source.choice((random_source.randrange(0, 60), random_source.randrange(0, 16380)))
        page[offset] = random_source.randrange(256)
        seal_page(page)
        disk.files[name][page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE] = page
        try:
            read_whole(disk)
            list(verify(disk, Totals()))
        except EventError:
            pytest.fail(f"seed {seed}: an event error without a place")
