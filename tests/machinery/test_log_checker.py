"""The second opinion on a directory: it agrees where nothing is wrong, and says so where something is."""

import random
from pathlib import Path

import pytest

from tests.machinery.events import groups_behind
from tests.machinery.log_checker import CheckError, check_log
from tests.machinery.stores import open_files

IBB = Path(__file__).parents[2] / "fixtures" / "ibb"


@pytest.mark.parametrize("directory", sorted(IBB.iterdir()), ids=lambda path: path.name)
def test_it_finds_the_groups_that_the_reader_finds(directory):
    found = check_log({path.name: path.read_bytes() for path in directory.glob("binlog-*.ibb")})
    log = open_files(directory)
    groups = [((one.domain_id, one.server_id, one.seq_no), data) for one, data in groups_behind(log) if one is not None]
    assert [(group.gtid, group.events) for group in found.groups] == groups
    assert found.state == {(gtid.domain_id, gtid.server_id): gtid.seq_no for gtid in log.state()}


def test_a_flipped_bit_in_what_is_used_is_found():
    rng = random.Random(random.randrange(2**32))
    files = {path.name: path.read_bytes() for path in (IBB / "types").glob("binlog-*.ibb")}
    for _ in range(50):
        name = rng.choice(sorted(name for name in files if any(files[name])))
        data = bytearray(files[name])
        data[rng.randrange(len(data.rstrip(b"\0")))] ^= 1 << rng.randrange(8)
        with pytest.raises(CheckError):
            check_log({**files, name: bytes(data)})


def test_a_missing_file_is_found():
    files = {path.name: path.read_bytes() for path in (IBB / "types").glob("binlog-*.ibb")}
    with pytest.raises(CheckError):
        check_log({name: data for name, data in files.items() if not name.endswith("001.ibb")})
