"""The differences between the primaries that we emulate, as data. No other module asks for the name of a profile."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ibbmaster.errors import ConfigurationError
from ibbmaster.facts import NULL, rows_of
from ibbmaster.replication.event.format_description import SERVER_VERSION_SIZE, ChecksumAlgorithm
from ibbmaster.versions import Difference, version_number

_VERSION = re.compile(r"([0-9]+)\.[0-9]+\.[0-9]+[!-~ ]*", re.ASCII)


class LogPosRule(enum.Enum):
    STORED = "what the log holds; in an engine binlog that is 0"
    EVERY = "every event"
    GROUP_BORDERS = "GTID events, those that end a group, and those between groups"

    __hash__ = object.__hash__  # in C: it is a part of the key of each block


class OpeningRotate(enum.Enum):
    """Clients that get a file name before all else, by an artificial ROTATE."""

    OLD_REPLICAS = "registered replicas from before 12.3, whose parallel workers crash without one"
    EVERYBODY = "everybody"


class OpeningTimestamp(enum.Enum):
    """Of the artificial FORMAT_DESCRIPTION that opens an engine's stream."""

    ZERO = "zero"  # as MariaDB 12.3
    FIRST_GROUP = "first-group"  # of the first group read; some clients take it for the time of the event before


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`server_version` appears in the greeting, `@@version` and the FORMAT_DESCRIPTION events: replicas need a major
    number of 10 or more in the greeting. `sql_version` is the result of `VERSION()`; only mariadb-binlog asks for it,
    and refuses a major number newer than its own (10.11 knows 5 and 10, 11.8 also 11)."""

    name: str
    server_version: str
    sql_version: str
    version_comment: str = "ibbmaster"
    storage_engine: str | None  # `@@binlog_storage_engine`; None: there is no such variable
    requires_gtid: bool  # a dump without @slave_connect_state is refused
    type_count: int  # event types a FORMAT_DESCRIPTION announces
    event_checksum: ChecksumAlgorithm
    log_pos_rule: LogPosRule
    opening_rotate: OpeningRotate
    opening_timestamp: OpeningTimestamp = OpeningTimestamp.ZERO  # of streams that do not begin like a file
    opens_with_gtid_list: bool  # the state at the start comes after the FORMAT_DESCRIPTION
    rotates_with_files: bool  # each file has its head; errors name the place in the file
    sends_files: bool = False  # these are traditional files, and go out as they are: heads, positions, checksums
    sends_restarts: bool = False  # the FORMAT_DESCRIPTION a server logs when it starts is passed on
    same_server_id_text: str

    def of_files(self, checksum_algorithm: ChecksumAlgorithm) -> Profile:
        """For a log of traditional files whose last one has such checksums."""
        if not self.rotates_with_files:
            return self
        return replace(self, sends_files=True, event_checksum=checksum_algorithm, log_pos_rule=LogPosRule.STORED)

    def made_of_files(self, checksum_algorithm: ChecksumAlgorithm) -> Profile:
        """For a stream made of such a log, which keeps its checksums."""
        return replace(self, event_checksum=checksum_algorithm) if self.rotates_with_files else self

    def with_version(self, text: str) -> Profile:
        """Raises ConfigurationError: the text is no version, or does not fit into a FORMAT_DESCRIPTION."""
        match = _VERSION.fullmatch(text)
        if match is None or len(text) >= SERVER_VERSION_SIZE:
            raise ConfigurationError(
                f"server version {text[:80]!r}: expected three numbers and up to {SERVER_VERSION_SIZE - 1} characters "
                "in all, as in 12.3.2-MariaDB-log"
            )
        return replace(self, server_version=text, sql_version=text)


_READ: dict[str, Callable[[str], object]] = {  # the cells of a field, by its type
    "str": str,
    "int": int,
    "bool": "yes".__eq__,
    "str | None": lambda cell: None if cell == NULL else cell,
    **{kind.__name__: kind.__getitem__ for kind in (ChecksumAlgorithm, LogPosRule, OpeningRotate, OpeningTimestamp)},
}


def _profiles() -> Iterator[Profile]:
    fields, *rows = zip(*rows_of(__package__, "profiles"), strict=True)
    for row in rows:
        values: dict[str, Any] = {
            field: _READ[Profile.__annotations__[field]](cell) for field, cell in zip(fields, row, strict=True)
        }
        yield Profile(**values)


PROFILES: dict[str, Profile] = {profile.name: profile for profile in _profiles()}


def profile_of_server(written: str, *, version: str | None = None) -> Profile:
    """Of the server that wrote traditional files, perhaps under another version. Raises ConfigurationError: the text is
    none."""
    is_old = Difference.STREAMS_AS_OLD.holds(version_number(written))
    return PROFILES["classic-10.11" if is_old else "classic-11.8"].with_version(version or written)
