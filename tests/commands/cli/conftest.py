"""Commands as a user calls them, and logs for them."""

import os
import random
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from ibbmaster.storage.disk.local import RealDisk
from tests.machinery import stores


@pytest.fixture
def feed() -> Callable[..., None]:
    def feed(directory: Path, seq_nos: Iterable[int], size: int = 3000, *, crash: bool = False) -> None:
        directory.mkdir(exist_ok=True)
        disk = RealDisk(directory)
        store = stores.new_store(disk, max_file_bytes=1 << 17, is_sparse=True)
        stores.feed(store, seq_nos, size)
        (disk if crash else store).close()

    return feed


@pytest.fixture
def damaged(tmp_path: Path) -> Callable[..., Iterator[Path]]:
    def damage(source: Path, name: str, *, copies: int, seed: int, begin: int = 0) -> Iterator[Path]:
        data, rng, path = source.read_bytes(), random.Random(seed), tmp_path / name
        path.parent.mkdir(exist_ok=True)
        for _ in range(copies):
            copy = bytearray(data[: rng.choice([len(data), rng.randrange(begin, len(data))])])
            for _ in range(rng.randrange(3) if len(copy) > begin else 0):
                copy[rng.randrange(begin, len(copy))] ^= 1 << rng.randrange(8)
            path.write_bytes(copy)
            yield path

    return damage


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "small"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=150k", "tmpfs", directory]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield directory
    subprocess.run(["umount", "--lazy", directory], check=True)  # PyArrow leaves a file open whose writing failed
