"""Fixtures for tests of binlog readers: `ibb_primary`, and the log that it serves; a fixture of the same name in a
`conftest.py` replaces one here.

pytest rewrites the assertions of every module of a plugin, here hundreds without tests. So this module puts Python's
own finder before that of pytest for the modules of this package."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .api.writing import WritableLog
    from .testkit.primary import FixturePrimary


class _OwnFinder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """The module of that name; None leaves it to the finders after this one."""
        return PathFinder.find_spec(name, path) if name.startswith("ibbmaster.") else None


if _OwnFinder not in sys.meta_path:
    sys.meta_path.insert(0, _OwnFinder)


@pytest.fixture
def ibb_log(tmp_path: Path) -> Iterator[WritableLog]:
    """A new log of `.ibb` files; the test fails at its end if it is not sound."""
    from .testkit.fixture_logs import expect_sound, fixture_log

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
    from .testkit.primary import FixturePrimary

    with FixturePrimary(ibb_log, **ibb_options) as primary:
        yield primary
