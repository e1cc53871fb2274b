"""A log as traditional binlog files."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from ibbmaster.api.log import Log
from ibbmaster.errors import ConfigurationError, IbbMasterError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.classic.series_writer import ClassicWriter
from ibbmaster.replication.dump.profile import Profile
from ibbmaster.storage.disk.local import RealDisk
from .clock import FixtureClock

log = logging.getLogger(__name__)


class ClassicFiles:
    """Writes a log into a new directory as traditional files, which begin where the files of the log do.
    Thread-safe. With `follow`, until `close`, each durable group is in its file before its commit returns. `clock`
    dates heads and ends."""

    def __init__(self, log: Log, directory: Path, profile: Profile, *, server_id: int, clock: FixtureClock) -> None:
        """Raises ConfigurationError: such a server writes no such files, or the directory exists."""
        disk = RealDisk(directory)
        self._writer = ClassicWriter(disk, profile)
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            raise ConfigurationError(f"{directory} is there already") from None
        self._disk = disk
        self._directory = directory
        self._server_id, self._clock = server_id, clock
        self._lock = threading.Lock()
        self._stop_following: Callable[[], None] | None = None
        self._read_from(log)
        self._file_no = self._groups.position.file_no
        self._begin_file()
        self._catch_up()

    def follow(self, log: Log) -> None:
        """Continue with a log, or with the same one after its recovery."""
        with self._lock:
            self._end_following()
            self._read_from(log)
        self._stop_following = log.engine.tell_growth(self._catch_up)
        self._catch_up()

    def close(self) -> None:
        """End the last file as a server shutting down does; a second call does nothing."""
        with self._lock:
            self._end_following()
            if self._writer.is_open:
                self._writer.end_file(is_last=True, **self._header)
            self._disk.close()

    def _end_following(self) -> None:
        stop, self._stop_following = self._stop_following, None
        if stop is not None:
            stop()
        self._groups.close()

    def _read_from(self, log: Log) -> None:
        files = log.files
        self._groups = log.engine.groups(log.engine.start_of_file(files[0].file_no if files else None))

    def _catch_up(self) -> None:
        """Write what became durable. Runs in the thread that made it so, which must not fail."""
        writer = self._writer
        with self._lock:
            try:
                while writer.is_open and (group := self._groups.next_group()) is not None:
                    if group.gtid is not None and not self._has(group.gtid):
                        self._go_to_file(group.start.file_no)
                        writer.write_group(group.gtid_event, group.body)
                        writer.flush()
                        writer.state.log(group.gtid)
                if writer.is_open:
                    self._go_to_file(self._groups.position.file_no)
            except (IbbMasterError, OSError) as error:
                log.warning("%s ends here: %s", self.paths[-1], error)
                writer.is_open = False

    def _has(self, gtid: Gtid) -> bool:
        return (self._writer.state.seq_no(gtid.domain_id, gtid.server_id) or 0) >= gtid.seq_no

    def _go_to_file(self, file_no: int) -> None:
        for _ in range(self._file_no, file_no):
            self._writer.end_file(is_last=False, **self._header)
            self._begin_file()
        self._file_no = max(self._file_no, file_no)

    @property
    def paths(self) -> list[Path]:
        return [self._directory / name for name in self._writer.names]

    @property
    def _header(self) -> dict[str, int]:
        return {"server_id": self._server_id, "timestamp": self._clock.timestamp}

    def _begin_file(self) -> None:
        self._writer.begin_file(is_start=not self._writer.names, **self._header)
