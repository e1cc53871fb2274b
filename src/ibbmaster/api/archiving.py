"""A log that is archived while it is written, or once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ibbmaster.errors import ConfigurationError
from ibbmaster.logs.archive.archiver import Archiver
from ibbmaster.logs.archive.joined import JoinedLog
from ibbmaster.logs.archive.place import archive_at
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.replication.dump.profile import PROFILES, profile_of_server
from ibbmaster.storage.disk.place import place
from ibbmaster.storage.disk.whole_objects import objects_at
from .log import Log
from .log_files import PathLike

if TYPE_CHECKING:
    from ibbmaster.primary.server.figures import Figure

STOP_S = 30.0  # at the end, for what is not archived yet
DEFAULT_PROFILE = "classic-11.8"


def archiver_of(engine: LogEngine, url: PathLike, *, written: str | None = None, is_origin: bool = True) -> Archiver:
    """Segments are files of the server that has `written` traditional files, of 11.8 for `.ibb` files. Raises
    ConfigurationError: no archive can be at that URL."""
    profile = PROFILES[DEFAULT_PROFILE] if written is None else profile_of_server(written)
    return Archiver(engine, objects_at(place(url)), profile, is_origin=is_origin)


@contextmanager
def archived(store: LogEngine, url: PathLike, *, is_origin: bool = True) -> Iterator[Archiver]:
    """Archive a store meanwhile. Raises BusyError: another process writes the archive; PositionError: it has another
    log; StoreError: the store of objects refuses."""
    archiver = archiver_of(store, url, is_origin=is_origin)
    archiver.start()
    try:
        yield archiver
    finally:
        archiver.stop(STOP_S)


def archive_figures(archiver: Archiver) -> Iterator[Figure]:
    """For /metrics and SHOW GLOBAL STATUS."""
    from ibbmaster.primary.server.figures import Figure

    yield Figure("ibbmaster_archive_groups_total", archiver.groups)
    yield Figure("ibbmaster_archive_failed", int(archiver.problem is not None))
    if (time := archiver.last_recoverable_time) is not None:
        yield Figure("ibbmaster_archive_last_recoverable_timestamp_seconds", time)


def join_archive(log: Log, url: PathLike) -> None:
    """Serve what the archive at a URL has of the past of a log, too. Raises ConfigurationError: it is a log of
    traditional files."""
    if log.stored.server_version is not None:
        raise ConfigurationError(f"{log.path}: --archive joins an archive to a log of .ibb files: convert makes them")
    where = place(url)
    log.served = JoinedLog(log.engine, lambda: archive_at(where))
