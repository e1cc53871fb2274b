"""Many groups at once, or one by one: an import writes the same bytes and finds the same damage."""

import random
import struct
import zlib
from pathlib import Path

import pytest

from ibbmaster.classic import convert
from ibbmaster.disk.local import RealDisk
from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel import loading
from ibbmaster.log.directory import BinlogDirectory
from tests.machinery.importing import import_classic

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic"
CAPTURES = sorted(path.parent for path in CLASSIC.glob("*/*/expected.json") if not list(path.parent.glob("*.xz")))


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """What an import of files comes to: the bytes of each file, the report or the error."""
    count = 0

    def imported(files, *, is_fast, **options):
        nonlocal count
        count += 1
        target = tmp_path / f"target-{count}"
        target.mkdir()
        monkeypatch.setattr(convert, "kernels", loading.load if is_fast else lambda *parts: None)
        options.setdefault("max_file_bytes", 1 << 24)  # what is compared is read whole
        try:
            said = import_classic(files, RealDisk(target), **options)
        except IbbMasterError as error:
            said = str(error).replace(target.name, "target")
        return {path.name: path.read_bytes() for path in target.iterdir()}, said

    return imported


def binlogs(capture):
    return [path for path in sorted(capture.iterdir()) if path.suffix[1:].isdigit()]


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.parametrize("sizes", [(1 << 24, 1 << 21), (1 << 18, 1 << 15), (1 << 16, 1 << 17)], ids=str)
def test_a_capture_becomes_the_same_bytes(imported, capture, sizes):
    options = {"max_file_bytes": sizes[0], "state_interval_bytes": sizes[1]}
    fast = imported(binlogs(capture), is_fast=True, **options)
    assert fast == imported(binlogs(capture), is_fast=False, **options)


def renumbered(path, numbers):
    """A traditional file whose groups have other sequence numbers; what is behind the list counts on."""
    data = bytearray(path.read_bytes())
    numbers, latest, offset = iter(numbers), 0, 4
    while offset < len(data):
        (size,) = struct.unpack_from("<I", data, offset + 9)
        if data[offset + 4] == 162:
            latest = next(numbers, latest + 1)
            struct.pack_into("<Q", data, offset + 19, latest)
            struct.pack_into("<I", data, offset + size - 4, zlib.crc32(data[offset : offset + size - 4]))
        offset += size
    return bytes(data)


@pytest.mark.parametrize("start", [1, 2**63 - 12, 2**64 - 200], ids=["small", "over 2^63", "up to 2^64"])
def test_what_a_lenient_primary_wrote_is_kept_and_told(imported, tmp_path, start):
    """Numbers that repeat, go back and leave gaps, also where many groups are taken at once."""
    offsets = [0, 1, 1, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 3, 18, 19, 25]
    path = tmp_path / "binlog.000001"
    path.write_bytes(renumbered(CLASSIC / "10.11" / "types-full-crc32" / "binlog.000001", [start + o for o in offsets]))
    fast = imported([path], is_fast=True)
    assert fast == imported([path], is_fast=False)
    report = fast[1]
    assert report.out_of_order_count == 3
    assert report.notices[-1].startswith(
        f"3 groups are not newer than what their domain had, the first is 0-1-{start + 1} at binlog.000001 "
    )
    log = BinlogDirectory(RealDisk(tmp_path / "target-1"))
    reader = log.groups(log.start_of_file(0))
    assert [reader.next_group().gtid.seq_no - start for _ in offsets] == offsets


@pytest.mark.parametrize("name", ["10.11/types-full-crc32", "11.8/statement", "10.11/domains", "11.8/chained"])
def test_a_flipped_bit_is_met_at_the_same_place(imported, tmp_path, name):
    rng, files = random.Random(random.randrange(2**32)), []
    for path in binlogs(CLASSIC / name):
        files.append(tmp_path / path.name)
        files[-1].write_bytes(path.read_bytes())
    for _ in range(25):
        path = rng.choice(files)
        data = path.read_bytes()
        changed = bytearray(data)
        place = rng.randrange(len(data))
        changed[place] ^= 1 << rng.randrange(8)
        path.write_bytes(changed[: rng.choice([len(data), len(data), place])])
        options = {"max_file_bytes": 1 << 18, "state_interval_bytes": 1 << 15}
        assert imported(files, is_fast=True, **options) == imported(files, is_fast=False, **options)
        path.write_bytes(data)


def test_the_kernel_is_used_where_it_can_be(tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "kernels", loading.load)
    converters = []

    class Watched(convert.GroupConverter):
        def __init__(self, *args):
            super().__init__(*args)
            converters.append(self)

    monkeypatch.setattr(convert, "GroupConverter", Watched)
    report = import_classic(binlogs(CLASSIC / "11.8" / "types-full-crc32"), RealDisk(tmp_path))
    assert converters[0].group_count > report.group_count / 2
