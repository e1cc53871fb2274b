"""Fixtures for the tests of whatever reads binlogs: `ibb_primary`, and the log that it writes.

The plugin works by being installed. A fixture of the same name in a `conftest.py` takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ibbmaster.api.writing import WritableLog
    from ibbmaster.testkit.primary import FixturePrimary


@pytest.fixture
def ibb_log(tmp_path: Path) -> Iterator[WritableLog]:
    """A new log of `.ibb` files; the test fails at its end if it is not sound."""
    from ibbmaster.testkit.fixture_logs import expect_sound, fixture_log

    with fixture_log(tmp_path / "ibb-log") as log:
        yield log
        expect_sound(log)


@pytest.fixture
def ibb_options() -> Mapping[str, Any]:
    """Options of `ibb_primary`: `@pytest.mark.parametrize("ibb_options", [{"profile": "classic-11.8"}])`."""
    return {}


@pytest.fixture
def ibb_primary(ibb_log: WritableLog, ibb_options: Mapping[str, Any]) -> Iterator[FixturePrimary]:
    """A primary that serves `ibb_log`, and writes to it what the test says."""
    from ibbmaster.extras import needed_for

    with needed_for("ibb_primary"):
        from ibbmaster.testkit.primary import FixturePrimary

    with FixturePrimary(ibb_log, **ibb_options) as primary:
        yield primary
