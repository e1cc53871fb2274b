"""A dump file that a log continues: its tables at a position, and their rows."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ibbmaster.errors import ConfigurationError, PositionError, PositionPurgedError, StoreError
from ibbmaster.gtid import GtidPosition
from ibbmaster.schema.base_dump import BaseRows, BaseSchema, read_base, read_rows
from ibbmaster.work import check_wanted
from .interface import LogEngine

PIECE_SIZE = 1 << 20


def base_schema(path: Path) -> BaseSchema:
    """The tables of a dump, and its position, if it states one. Raises ConfigurationError, StoreError."""
    try:
        status = path.stat()
        return _schema(path, status.st_mtime_ns, status.st_size)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error


def base_position(path: Path) -> GtidPosition:
    """The position of a dump. Raises as `base_schema`; also ConfigurationError: it states none."""
    found = base_schema(path).position
    if found is None:
        raise ConfigurationError(f"{path}: says no GTID position: mariadb-dump writes it with --master-data --gtid")
    return found


def base_rows(path: Path) -> Iterator[BaseRows]:
    with _opened(path) as file:
        yield from read_rows(_pieces(file))


def expect_continued(log: LogEngine, position: GtidPosition) -> None:
    """Raises PositionPurgedError: a log lacks groups after the position of a dump, which it may have yet to reach."""
    try:
        log.seek(position)
    except PositionPurgedError as error:
        raise PositionPurgedError(f"the base is of GTID position {position}: {error}") from None
    except PositionError:  # not reached yet: a SELECT reports where known rows begin
        return


@functools.lru_cache(1)
def _schema(path: Path, changed_at: int, size: int) -> BaseSchema:
    with _opened(path) as file:
        return read_base(_pieces(file))


def _opened(path: Path) -> TextIO:
    return path.open(encoding="utf-8", errors="surrogateescape", newline="")


def _pieces(file: TextIO) -> Iterator[str]:
    while piece := file.read(PIECE_SIZE):
        check_wanted()
        yield piece
