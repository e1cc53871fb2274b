"""A log as traditional binlog files, as the server writes them that a profile names."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from ibbmaster.api.group import Group
from ibbmaster.api.log import Log
from ibbmaster.classic.series import MAGIC
from ibbmaster.dump.profile import LogPosRule, Profile
from ibbmaster.errors import ConfigurationError
from ibbmaster.event.control import (
    GtidList,
    Rotate,
    encode_binlog_checkpoint,
    encode_gtid_list,
    encode_rotate,
    encode_stop,
)
from ibbmaster.event.format_description import describe_format, encode_format_description
from ibbmaster.event.header import (
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    HEADER,
    HeaderFields,
    append_checksum,
    decode_event_header,
)
from ibbmaster.gtid import GtidState

STEM = "binlog"


def write_classic_files(log: Log, directory: Path, profile: Profile, *, server_id: int, timestamp: int) -> list[Path]:
    """Write the groups of a log into `directory`, which is made; a file begins where the log has begun one.

    `timestamp` is the time in their heads and ends, in seconds since 1970.

    Raises:
        ConfigurationError: a server like that writes no such files, or the directory is there.
    """
    if not profile.rotates_with_files:
        raise ConfigurationError(f"a primary as {profile.name!r} has no traditional files: take a classic-… profile")
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        raise ConfigurationError(f"{directory} is there already") from None
    writing = _Writing(profile, {"server_id": server_id, "timestamp": timestamp})
    runs = [list(groups) for _, groups in itertools.groupby(log.groups(), key=lambda group: group.start.file_no)] or [
        []
    ]
    paths = []
    for number, groups in enumerate(runs, start=1):
        following = number + 1 if number < len(runs) else None
        paths.append(directory / _name(number))
        with paths[-1].open("xb") as file:
            for part in writing.file(number, groups, following):
                file.write(part)
    return paths


class _Writing:
    """Remembers what was logged, and where the file has come to."""

    def __init__(self, profile: Profile, header: HeaderFields) -> None:
        self._profile = profile
        self._header = header
        self._state = GtidState()
        self._offset = 0

    def file(self, number: int, groups: list[Group], following: int | None) -> Iterator[bytes]:
        """The parts of a file; `following` is the number of the next one."""
        yield from self._head(number)
        for group in groups:
            events = list(group.events())
            for place, event in enumerate(events):
                is_border = place in (0, len(events) - 1)
                yield self._placed(event.data, says_end=is_border or self._profile.log_pos_rule is LogPosRule.EVERY)
            if group.gtid is not None:
                self._state.log(group.gtid)
        if following is None:
            yield self._placed(encode_stop(**self._header))
        else:
            rotate = Rotate(position=len(MAGIC), file_name=_name(following))
            yield self._placed(encode_rotate(rotate, **self._header))

    def _head(self, number: int) -> Iterator[bytes]:
        server_id, timestamp = self._header["server_id"], self._header.get("timestamp", 0)
        described = describe_format(
            self._profile.server_version,
            type_count=self._profile.type_count,
            algorithm=self._profile.event_checksum,
            created=timestamp if number == 1 else 0,
        )
        size = len(encode_format_description(described, server_id=server_id))
        self._offset = len(MAGIC) + size
        yield MAGIC
        yield encode_format_description(described, server_id=server_id, timestamp=timestamp, log_pos=self._offset)
        yield self._placed(encode_gtid_list(GtidList(gtids=tuple(self._state)), **self._header))
        yield self._placed(encode_binlog_checkpoint(_name(number), **self._header))

    def _placed(self, event: bytes, *, says_end: bool = True) -> bytes:
        """The next event, with its checksum and with where it ends."""
        size = len(event) + CHECKSUM_SIZE
        self._offset += size
        header = decode_event_header(event)._replace(size=size, log_pos=self._offset if says_end else 0)
        return append_checksum(HEADER.pack(*header) + event[EVENT_HEADER_SIZE:])


def _name(number: int) -> str:
    return f"{STEM}.{number:06}"
