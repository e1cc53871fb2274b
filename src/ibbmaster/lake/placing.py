"""A table that is written as a whole takes its place in one step, or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.errors import StoreError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DONE = "_SUCCESS"  # Spark's mark of a directory that is whole


def write_whole(frame: DataFrame, place: Path) -> int:
    """Write a frame as Parquet in the place of what an earlier run has written; returns how many rows it has.

    Until everything is written the old table stays; a run that was killed leaves it as it was.

    Raises:
        StoreError: the directory holds something else.
    """
    fresh, old = (place.with_name(f".{place.name}.{what}") for what in ("new", "old"))
    if not place.exists() and old.exists():  # killed between the two renames
        os.rename(old, place)
    _check_replaceable(place)
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)
    frame.write.parquet(str(fresh))
    count = frame.sparkSession.read.parquet(str(fresh)).count()
    if place.exists():
        os.rename(place, old)
    os.rename(fresh, place)
    shutil.rmtree(old, ignore_errors=True)
    return count


def _check_replaceable(place: Path) -> None:
    """Nothing but an empty directory or an earlier table may be replaced."""
    if not place.exists():
        return
    if not place.is_dir():
        raise StoreError(f"{place}: this is no directory")
    names = sorted(path.name for path in place.iterdir())
    others = [name for name in names if name != DONE and not name.removesuffix(".crc").endswith(".parquet")]
    others = [name for name in others if name != f".{DONE}.crc"]
    if others or (names and DONE not in names):
        raise StoreError(f"{place}: holds {(others or names)[0]}, and no table written before: give another directory")
