import shutil
from dataclasses import replace

import pytest

import ibbmaster
from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel.loading import load
from ibbmaster.logs.classic import exporting, page_groups, series_writer
from ibbmaster.logs.classic.exporting import export_traditional
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.storage.disk.local import RealDisk
from tests.built_logs import FIXTURES, captures
from tests.damage import flip
from tests.machinery.stores import bytes_at

OURS = [f"{path.parent.name}/{path.name}" for name in ("ibb", "ibb-mariadb") for path in (FIXTURES / name).iterdir()]


@pytest.fixture(scope="module")
def ready():
    found = load()
    assert found is not None
    return found


@pytest.fixture
def written(monkeypatch, tmp_path, ready):
    alone = []

    def write(source, *, by_kernels, profile="classic-11.8", checksum=ChecksumAlgorithm.CRC32, size=20_000):
        monkeypatch.setattr(exporting, "kernels", lambda *parts: ready if by_kernels else None)
        target = tmp_path / f"out-{by_kernels}"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        like = replace(PROFILES[profile], event_checksum=checksum)
        alone.clear()
        try:
            with ibbmaster.open(source) as log:
                report = export_traditional(log.engine, RealDisk(target), like, max_file_bytes=size)
        except IbbMasterError as error:
            return str(error), len(alone)
        return (report, bytes_at(target)), len(alone)

    real = series_writer.ClassicWriter.write_group
    monkeypatch.setattr(series_writer.ClassicWriter, "write_group", lambda *given: (alone.append(0), real(*given))[1])
    return write


@pytest.mark.parametrize("name", captures("big", "big-none", "encrypted"))
def test_of_each_capture(written, imported, name):
    source, profile = imported(name), f"classic-{name.partition('/')[0]}"
    (reference, count), (found, alone) = (
        written(source, by_kernels=by_kernels, profile=profile) for by_kernels in (False, True)
    )
    assert found == reference
    assert alone < count  # some came from the kernel


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("checksum", ChecksumAlgorithm)
def test_of_each_log_or_the_same_error(written, name, checksum):
    (reference, _), (found, _) = (
        written(FIXTURES / name, by_kernels=by_kernels, checksum=checksum, size=1 << 20) for by_kernels in (False, True)
    )
    assert found == reference


def test_with_little_room(written, monkeypatch, imported):
    source = imported("11.8/types-full-crc32")
    reference, _ = written(source, by_kernels=False)
    monkeypatch.setattr(page_groups, "BLOCK_PAGES", 2)
    monkeypatch.setattr(page_groups, "GROUPS_MAX", 3)
    monkeypatch.setattr(series_writer, "OUT_BYTES", 9000)
    found, alone = written(source, by_kernels=True)
    assert found == reference
    assert alone > 5  # those for which there was no room


def test_damage_is_the_same_error(written, tmp_path):
    source = tmp_path / "log"
    shutil.copytree(FIXTURES / "ibb/types", source)
    flip(source / "binlog-000001.ibb", 7 * 16384 + 99, 4)
    (reference, _), (found, _) = (written(source, by_kernels=by_kernels) for by_kernels in (False, True))
    assert found == reference
    assert found.startswith("binlog-000001.ibb page 7 ")
