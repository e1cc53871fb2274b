import random

import pytest

from tests.built_logs import FIXTURES
from tests.machinery.events import groups_behind
from tests.machinery.log_checker import CheckError, check_log
from tests.machinery.stores import bytes_at, open_files

IBB = FIXTURES / "ibb"


@pytest.mark.parametrize("directory", sorted(IBB.iterdir()), ids=lambda path: path.name)
def test_it_finds_the_groups_that_the_reader_finds(directory):
    found = check_log(bytes_at(directory))
    log = open_files(directory)
    groups = [((one.domain_id, one.server_id, one.seq_no), data) for one, data in groups_behind(log) if one is not None]
    assert [(group.gtid, group.events) for group in found.groups] == groups
    assert found.state == {(gtid.domain_id, gtid.server_id): gtid.seq_no for gtid in log.state()}


def test_a_flipped_bit_in_what_is_used_and_a_missing_file_are_found():
    rng = random.Random(random.randrange(2**32))
    files = bytes_at(IBB / "types")
    used = sorted(name for name in files if any(files[name]))
    with pytest.raises(CheckError):
        check_log({name: data for name, data in files.items() if not name.endswith("001.ibb")})
    for _ in range(50):
        name = rng.choice(used)
        data = bytearray(files[name])
        data[rng.randrange(len(data.rstrip(b"\0")))] ^= 1 << rng.randrange(8)
        with pytest.raises(CheckError):
            check_log({**files, name: bytes(data)})
