"""System variables as this primary has them: what clients ask for, with the values a MariaDB server would have.

What is known of each is a row in `variables.tsv`. Nothing here depends on any variable of a session but those named in
`dump/settings.py`: they are kept, and shown again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ibbmaster import versions
from ibbmaster.dialogue.matching import matcher
from ibbmaster.dump.profile import Profile
from ibbmaster.facts import NULL, rows_of
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.versions import Difference

SystemValue = bool | int | float | str | None

_READERS: Mapping[str, Callable[[str], bool | int | float | str]] = {
    "switch": lambda cell: cell == "ON",
    "integer": int,
    "real": float,
    "text": str,
}
_ROWS = rows_of("ibbmaster.dialogue", "variables")

#: True and False are shown as ON and OFF. The type of the value is the type of the variable.
SESSION_DEFAULTS: Mapping[str, SystemValue] = {
    name: _READERS[kind](value) for name, kind, _, _, value, _ in _ROWS if value != NULL
}
#: Values of this primary that do not depend on anything.
FIXED: Mapping[str, SystemValue] = {name: _READERS[kind](value) for name, kind, *_, value in _ROWS if value != NULL}
#: What a variable may be, where that is one of a few words.
CHOICES = {name: tuple(words.split()) for name, _, _, words, *_ in _ROWS if words != NULL}
#: Those that have no global value.
SESSION_ONLY = frozenset(name for name, _, scope, *_ in _ROWS if scope == "session only")
#: Variables of the whole primary that a real one lets its administrators set.
SETTABLE_GLOBALS = frozenset(name for name, _, scope, *_ in _ROWS if scope == "global")


class NamedTables(Protocol):
    """Tables with names that a server compares."""

    def name_case(self) -> int:
        """`lower_case_table_names`: how the server of the log compares names of tables."""


class ServerFacts(Protocol):
    """What the conversation needs to know of the primary around it. Its methods may read the disk."""

    server_id: int
    server_version: str
    profile: Profile

    @property
    def tables(self) -> NamedTables:
        """The tables of the log."""

    def binlog_state(self) -> GtidState:
        """What is logged."""

    def binlog_end(self) -> tuple[str, int]:
        """Name of the active file, and where it ends."""

    def binary_logs(self) -> list[tuple[str, int]]:
        """Name and size in bytes of every file, the oldest first."""

    def binlog_events(self, file_name: str | None, offset: int) -> Iterator[BinlogEventRow]:
        """The events of one file, the oldest file without a name, from the first group at or after `offset`. Raises
        KeyError: there is no such file."""

    def gtid_position_at(self, file_name: str, offset: int) -> str | None:
        """The GTID position a replica has at an offset of a file, which may be that of any byte; the first file is ''.
        None: there is no such file, or it ends before."""

    def replica_hosts(self) -> list[tuple[int, str, int]]:
        """Server id, host and port of every registered replica."""

    def processes(self) -> list[ProcessRow]:
        """Every connection."""

    def unix_timestamp(self) -> float:
        """Seconds since 1970."""

    def uptime_s(self) -> int:
        """How long the primary has been serving."""

    def status(self) -> Mapping[str, int]:
        """What was counted of all connections, by the names that SHOW STATUS has."""

    def without_paths(self, text: str) -> str:
        """The text of an error as it may be shown to clients on other machines: where files lie is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogEventRow:
    """One line of SHOW BINLOG EVENTS; an engine binlog has no positions of events: both are 0."""

    file_name: str
    event_type: str
    server_id: int
    info: str
    position: int = 0
    end_position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One line of SHOW PROCESSLIST."""

    connection_id: int
    user: str
    host: str
    command: str
    seconds: int
    state: str


LOWER_CASE_TABLE_NAMES = "lower_case_table_names"
#: Values that follow from the server.
COMPUTED: Mapping[str, Callable[[ServerFacts], SystemValue]] = {
    "collation_connection": lambda facts: _default_collation(facts),
    "collation_database": lambda facts: _default_collation(facts),
    "collation_server": lambda facts: _default_collation(facts),
    "binlog_row_event_max_size": lambda facts: (
        65536 if Difference.LARGE_ROW_EVENTS.holds(version_number(facts)) else 8192
    ),
    "binlog_checksum": lambda facts: facts.profile.event_checksum.name,
    LOWER_CASE_TABLE_NAMES: lambda facts: facts.tables.name_case(),
    "server_id": lambda facts: facts.server_id,
    "version": lambda facts: facts.server_version,
    "version_comment": lambda facts: facts.profile.version_comment,
}
#: Values that follow from what is logged, and the server id: to ask for them may read the disk.
OF_THE_LOG: Mapping[str, Callable[[GtidState, int], SystemValue]] = {
    "gtid_binlog_pos": lambda state, _: str(state.position()),
    "gtid_binlog_state": lambda state, _: str(state),
    "gtid_current_pos": lambda state, server_id: str(own_position(state, server_id)),
}
FROM_THE_DISK = frozenset((*OF_THE_LOG, LOWER_CASE_TABLE_NAMES))  # to ask for them may take long
#: Values that only primaries have that keep their binlog in the engine.
OF_THE_ENGINE: Mapping[str, Callable[[ServerFacts], SystemValue]] = {
    "binlog_directory": lambda _: "",  # where files lie is nothing for clients
    "binlog_storage_engine": lambda facts: facts.profile.storage_engine,
    "innodb_binlog_state_interval": lambda _: 2 << 20,  # bytes: the default
}
_NAMES = sorted({*FIXED, *COMPUTED, *OF_THE_LOG, *SESSION_DEFAULTS, *OF_THE_ENGINE})
READ_ONLY = frozenset(
    (
        *(LOWER_CASE_TABLE_NAMES, "version", "version_comment", "server_id"),
        *("gtid_binlog_pos", "gtid_current_pos", "log_bin"),
    )
)


def version_number(facts: ServerFacts) -> int:
    """The version the primary claims as conditional comments count it: 120302 is 12.3.2."""
    return versions.version_number(facts.server_version)


def is_uca_default(facts: ServerFacts) -> bool:
    """Whether SET NAMES utf8mb4 means utf8mb4_uca1400_ai_ci."""
    return Difference.UCA_1400_IS_DEFAULT.holds(version_number(facts))


def _default_collation(facts: ServerFacts) -> str:
    return "utf8mb4_uca1400_ai_ci" if is_uca_default(facts) else "utf8mb4_general_ci"


def own_position(state: GtidState, server_id: int) -> GtidPosition:
    """What a primary that was never a replica holds for its own position: the domains it wrote to last itself."""
    return GtidPosition(gtid for gtid in state.position().values() if gtid.server_id == server_id)


def has_variable(facts: ServerFacts, name: str) -> bool:
    """Whether this primary has a system variable of that name, in lower case."""
    is_there = name in FIXED or name in COMPUTED or name in OF_THE_LOG or name in SESSION_DEFAULTS
    return is_there or (name in OF_THE_ENGINE and facts.profile.storage_engine is not None)


def variable(facts: ServerFacts, name: str) -> SystemValue:
    """The value of a variable that `has_variable`, and is not of the log."""
    if name in COMPUTED:
        return COMPUTED[name](facts)
    if name in OF_THE_ENGINE:
        return OF_THE_ENGINE[name](facts)
    return FIXED[name] if name in FIXED else SESSION_DEFAULTS[name]


def variable_names(facts: ServerFacts, pattern: str | None = None) -> Sequence[str]:
    """Every name, or those that are LIKE a pattern, sorted."""
    names = _NAMES if pattern is None else _names_like(pattern)
    has_engine = facts.profile.storage_engine is not None
    return names if has_engine else [name for name in names if name not in OF_THE_ENGINE]


@functools.lru_cache(64)
def _names_like(pattern: str) -> Sequence[str]:
    return list(filter(matcher(pattern), _NAMES))


def shown(value: SystemValue) -> str:
    """A value as SHOW VARIABLES has it."""
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    if isinstance(value, float):
        return f"{value:.6f}"
    return "" if value is None else str(value)
