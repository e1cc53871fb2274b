"""A log as traditional binlog files, as the server writes them that a profile names."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from ibbmaster.api.log import Log
from ibbmaster.classic.series import INDEX_SUFFIX, MAGIC
from ibbmaster.dump.profile import LogPosRule, Profile
from ibbmaster.errors import ConfigurationError, IbbMasterError
from ibbmaster.event.control import (
    GtidList,
    Rotate,
    encode_binlog_checkpoint,
    encode_gtid_list,
    encode_rotate,
    encode_stop,
)
from ibbmaster.event.format_description import FLAGS_OFFSET, describe_format, encode_format_description
from ibbmaster.event.group import EventGroup
from ibbmaster.event.header import (
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    HEADER,
    HeaderFields,
    append_checksum,
    decode_event_header,
)
from ibbmaster.event.types import EventFlag
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.testkit.clock import FixtureClock

log = logging.getLogger(__name__)

STEM = "binlog"


class ClassicFiles:
    """Writes the groups of a log into a directory, which is made; a file begins where the log has begun one.

    With `follow`, each group that becomes durable is in its file before its commit returns, until
    `close`. The time in heads and ends is that of `clock`. May be used by many threads.
    """

    def __init__(self, log: Log, directory: Path, profile: Profile, *, server_id: int, clock: FixtureClock) -> None:
        """Write what is logged now.

        Raises:
            ConfigurationError: a server like that writes no such files, or the directory is there.
        """
        if not profile.rotates_with_files:
            raise ConfigurationError(
                f"a primary as {profile.name!r} has no traditional files: take a classic-… profile"
            )
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            raise ConfigurationError(f"{directory} is there already") from None
        self.paths: list[Path] = []
        self._directory = directory
        self._profile = profile
        self._server_id, self._clock = server_id, clock
        self._state = GtidState()
        self._offset = 0
        self._lock = threading.Lock()
        self._stop_following: Callable[[], None] | None = None
        self._read_from(log)
        self._file_no = self._groups.position.file_no
        self._begin_file()
        self._catch_up()

    def follow(self, log: Log) -> None:
        """Go on with a log, or with the same one once it was recovered."""
        with self._lock:
            self._end_following()
            self._read_from(log)
        self._stop_following = log.engine.tell_growth(self._catch_up)
        self._catch_up()

    def close(self) -> None:
        """End the last file as a server does that shuts down; a second call does nothing."""
        with self._lock:
            self._end_following()
            if not self._file.closed:
                self._end_file(self._placed(encode_stop(**self._header)))

    def _end_following(self) -> None:
        stop, self._stop_following = self._stop_following, None
        if stop is not None:
            stop()
        self._groups.close()

    def _read_from(self, log: Log) -> None:
        files = log.files
        self._groups = log.engine.groups(log.engine.start_of_file(files[0].file_no if files else None))

    def _catch_up(self) -> None:
        """Write what has become durable. Called by the thread that has made it so, which it must not fail."""
        with self._lock:
            try:
                while not self._file.closed and (group := self._groups.next_group()) is not None:
                    if group.gtid is not None and not self._has(group.gtid):
                        self._go_to_file(group.start.file_no)
                        self._write_group(group)
                        self._state.log(group.gtid)
                if not self._file.closed:
                    self._go_to_file(self._groups.position.file_no)
            except (IbbMasterError, OSError) as error:
                log.warning("%s ends here: %s", self.paths[-1], error)
                self._file.close()

    def _has(self, gtid: Gtid) -> bool:
        return (self._state.seq_no(gtid.domain_id, gtid.server_id) or 0) >= gtid.seq_no

    def _go_to_file(self, file_no: int) -> None:
        """Begin a file for each that the log has begun."""
        for _ in range(self._file_no, file_no):
            rotate = Rotate(position=len(MAGIC), file_name=_name(len(self.paths) + 1))
            self._end_file(self._placed(encode_rotate(rotate, **self._header)))
            self._begin_file()
        self._file_no = max(self._file_no, file_no)

    def _write_group(self, group: EventGroup) -> None:
        data, starts = b"".join((group.gtid_event, *group.body)), [0]
        while starts[-1] < len(data):
            starts.append(starts[-1] + decode_event_header(data, starts[-1]).size)
        says_all = self._profile.log_pos_rule is LogPosRule.EVERY
        last = len(starts) - 2
        self._file.write(
            b"".join(
                self._placed(data[start:end], says_end=says_all or number in (0, last))
                for number, (start, end) in enumerate(pairwise(starts))
            )
        )

    @property
    def _header(self) -> HeaderFields:
        return {"server_id": self._server_id, "timestamp": self._clock.timestamp}

    def _begin_file(self) -> None:
        name = _name(len(self.paths) + 1)
        self._file = (self._directory / name).open("xb", buffering=0)
        timestamp = self._clock.timestamp
        described = describe_format(
            self._profile.server_version,
            type_count=self._profile.type_count,
            algorithm=self._profile.event_checksum,
            created=0 if self.paths else timestamp,
        )
        self.paths.append(self._directory / name)
        size = len(encode_format_description(described, server_id=self._server_id))
        self._offset = len(MAGIC) + size
        format_description = encode_format_description(
            described,
            server_id=self._server_id,
            timestamp=timestamp,
            log_pos=self._offset,
            flags=EventFlag.IN_USE,
        )
        gtid_list = self._placed(encode_gtid_list(GtidList(gtids=tuple(self._state)), **self._header))
        checkpoint = self._placed(encode_binlog_checkpoint(name, **self._header))
        self._file.write(MAGIC + format_description + gtid_list + checkpoint)
        with (self._directory / f"{STEM}{INDEX_SUFFIX}").open("a") as index:
            index.write(f"./{name}\n")

    def _end_file(self, last: bytes) -> None:
        self._file.write(last)
        self._file.seek(len(MAGIC) + FLAGS_OFFSET)
        self._file.write(bytes(2))  # it is not in use any more
        self._file.close()

    def _placed(self, event: bytes, *, says_end: bool = True) -> bytes:
        """The next event, with its checksum and with where it ends."""
        size = len(event) + CHECKSUM_SIZE
        self._offset += size
        header = decode_event_header(event)._replace(size=size, log_pos=self._offset if says_end else 0)
        return append_checksum(HEADER.pack(*header) + event[EVENT_HEADER_SIZE:])


def _name(number: int) -> str:
    return f"{STEM}.{number:06}"
