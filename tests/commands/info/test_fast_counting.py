import random
import shutil
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.info import log_info
from ibbmaster.commands.info.log_info import statistics_facts, summarize
from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel.loading import load
from ibbmaster.tables.arrow import collecting

FIXTURES = Path(__file__).parents[3] / "fixtures"
LOGS = [f"ibb/{path.name}" for path in sorted((FIXTURES / "ibb").iterdir())]
LOGS += [f"ibb-mariadb/{path.name}" for path in sorted((FIXTURES / "ibb-mariadb").iterdir())]
LOGS += [
    f"classic/{path.parent.relative_to(FIXTURES / 'classic')}"
    for path in sorted((FIXTURES / "classic").glob("*/*/expected.json"))
    if path.parent.name not in ("big", "big-none", "encrypted")
]


@pytest.fixture(scope="module", autouse=True)
def _kernels():
    assert load() is not None


def counted(monkeypatch, path, *, by_kernels):
    monkeypatch.setattr(log_info, "do_pay", lambda size: by_kernels)
    with ibbmaster.open(path) as log:
        return statistics_facts(summarize(log.engine, log.stored_bytes))


@pytest.mark.parametrize("name", LOGS)
def test_both_count_the_same(monkeypatch, name):
    reference = counted(monkeypatch, FIXTURES / name, by_kernels=False)
    assert reference["groups"]
    assert counted(monkeypatch, FIXTURES / name, by_kernels=True) == reference
    if name in ("ibb/domains", "ibb/types", "classic/11.8/large-commit", "classic/11.8/domains"):  # in small batches
        monkeypatch.setattr(collecting, "DATA_BYTES", collecting.ROOM_BYTES + (64 << 10))
        monkeypatch.setattr(collecting, "GROUPS_MAX", 3)
        assert counted(monkeypatch, FIXTURES / name, by_kernels=True) == reference


@pytest.mark.parametrize("seed", range(12))
def test_of_a_file_without_checksums_both_count_the_same_or_refuse_it(monkeypatch, tmp_path, seed):
    chance = random.Random(seed)
    shutil.copytree(FIXTURES / "classic/11.8/types-minimal-none", tmp_path / "log")
    path = tmp_path / "log/binlog.000001"
    data = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(300, len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    found = []
    for by_kernels in (False, True):
        try:
            found.append(counted(monkeypatch, tmp_path / "log", by_kernels=by_kernels))
        except IbbMasterError as error:
            found.append(type(error))
    if isinstance(found[0], dict) and isinstance(found[1], dict):
        for tables in (one.pop("tables") for one in found):
            assert tables
    assert found[0] == found[1]
