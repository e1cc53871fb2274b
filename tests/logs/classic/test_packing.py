import random
import sys

import brotli
import pytest

from ibbmaster.extras import ExtraMissingError
from ibbmaster.logs.classic.packing import PACKINGS, PackedDataError, holds_traditional, packing_of, unpacked_name
from tests.machinery.packers import PACK, zstd


@pytest.mark.parametrize("packing", PACKINGS, ids=lambda packing: packing.name)
@pytest.mark.parametrize("step", [1, 1000, 1 << 20])
def test_any_step_gives_all_of_it(packing, step):
    data = random.randbytes(3000) + bytes(300_000)
    packed = PACK[packing.suffix](data)
    assert packed.startswith(packing.magic)
    after = b"" if packing.name == "brotli" else b"after"  # what follows its stream is damage
    unpacker, unpacked = packing.new_unpacker(), b""
    more = iter([packed[:100], packed[100:] + after])
    while not unpacker.eof:
        piece = packing.unpack(unpacker, next(more) if unpacker.needs_input else b"", step * 100)
        assert len(piece) <= step * 100
        unpacked += piece
    assert (unpacked, unpacker.unused_data) == (data, after)


@pytest.mark.parametrize("packing", PACKINGS, ids=lambda packing: packing.name)
def test_damage_is_named(packing):
    with pytest.raises(PackedDataError, match=f"damaged {packing.name} data"):
        packing.unpack(packing.new_unpacker(), packing.magic + b"\xff" * 100, 100)


def test_names_say_how_a_file_is_packed():
    assert packing_of("binlog.000001") is None
    for suffix in PACK:
        assert packing_of(f"binlog.000001{suffix}").suffix == suffix
        assert unpacked_name(f"binlog.000001{suffix}") == "binlog.000001"


@pytest.mark.parametrize(("suffix", "module"), [(".zst", zstd.__name__), (".lz4", "lz4.frame"), (".br", "brotli")])
def test_a_packing_says_which_extra_it_needs(monkeypatch, suffix, module):
    if module == "compression.zstd":
        pytest.skip("Python has it")
    monkeypatch.setitem(sys.modules, module, None)
    packing = packing_of(f"binlog.000001{suffix}")
    assert packing is not None
    with pytest.raises(ExtraMissingError, match=r"pip install 'ibbmaster\[zstd\]'"):
        packing.new_unpacker()


def test_a_brotli_that_unpacks_all_at_once_is_refused(monkeypatch):
    monkeypatch.setattr(brotli, "Decompressor", object)
    with pytest.raises(ExtraMissingError, match=r"brotli 1\.2 or later: pip install 'ibbmaster\[zstd\]'"):
        packing_of("binlog.000001.br").new_unpacker()


HELD = {  # files of a directory -> whether they are traditional ones
    "a server's": (["binlog.000001", "binlog.000002", "binlog.index"], True),
    "packed": (["mysql-bin.000001.xz"], True),
    "the engine's": (["binlog-000000.ibb"], False),
    "both": (["binlog-000000.ibb", "binlog.000001"], False),
    "an archive of wal-g": (["basebackups_005", "binlog_005"], True),
    "one of mariadb-operator": (["index.yaml", "server-10", "server-11"], True),
    "the engine's beside one": (["binlog-000000.ibb", "server-10"], False),
    "something else": (["notes.txt"], False),
    "nothing": ([], False),
}


@pytest.mark.parametrize(("names", "is_traditional"), HELD.values(), ids=HELD)
def test_a_directory_is_known_by_the_names_in_it(tmp_path, names, is_traditional):
    for name in names:
        (tmp_path / name).touch()
        assert holds_traditional(tmp_path / name) is not name.endswith(".ibb")  # a file alone
    assert holds_traditional(tmp_path) is is_traditional
    assert not holds_traditional(tmp_path / "nowhere")
