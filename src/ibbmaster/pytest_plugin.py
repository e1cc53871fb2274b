"""Fixtures for the tests of whatever reads binlogs: `ibb_primary`, and the log that it writes.

The plugin works by being installed. A fixture of the same name in a `conftest.py` takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ibbmaster.api.writing import WritableLog
    from ibbmaster.testkit.primary import FixturePrimary


@pytest.fixture
def ibb_log(tmp_path: Path) -> Iterator[WritableLog]:
    """A new log of `.ibb` files; the test fails at its end if it is not sound."""
    from ibbmaster.testkit.primary import expect_sound, fixture_log

    with fixture_log(tmp_path / "ibb-log") as log:
        yield log
        expect_sound(log)


@pytest.fixture
def ibb_primary(ibb_log: WritableLog) -> Iterator[FixturePrimary]:
    """A primary that serves `ibb_log`, and writes to it what the test says."""
    from ibbmaster.testkit.primary import FixturePrimary

    with FixturePrimary(ibb_log) as primary:
        yield primary
