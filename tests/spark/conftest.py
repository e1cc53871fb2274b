"""One Spark session for all tests, and logs that grow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ibbmaster.store.convert import import_classic
from ibbmaster.store.disk import RealDisk

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture
def grow(tmp_path: Path) -> Callable[[int], Path]:
    """Makes a log of the first files of a capture with five domains, or adds the next ones to it."""
    directory = tmp_path / "log"
    files = sorted(path for path in (FIXTURES / "classic/11.8/domains").glob("binlog.0*") if path.suffix != ".idx")

    def grow_to(count: int) -> Path:
        directory.mkdir(exist_ok=True)
        import_classic(
            files[:count], RealDisk(directory), max_file_bytes=64 << 10, state_interval_bytes=16 << 10, append=True
        )
        return directory

    return grow_to


@pytest.fixture
def imported(tmp_path: Path) -> Callable[[str], Path]:
    """A capture as `.ibb` files so small that groups reach over pages, states and files."""

    def make(capture: str) -> Path:
        directory = tmp_path / capture.replace("/", "-")
        directory.mkdir()
        import_classic(
            [FIXTURES / "classic" / capture],
            RealDisk(directory),
            max_file_bytes=256 << 10,
            state_interval_bytes=16 << 10,
        )
        return directory

    return make
