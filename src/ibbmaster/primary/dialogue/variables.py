"""System variables with the values of a MariaDB server: a row each in `variables.tsv`. Sessions show again what they
set; `settings` says what has an effect."""

import functools
from collections.abc import Callable, Mapping, Sequence

from ibbmaster import versions
from ibbmaster.facts import NULL, rows_of
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.sqltext.token import words
from ibbmaster.versions import Difference
from .log_tables import ServerFacts
from .relation import matcher

SystemValue = bool | int | float | str | None

_READERS: Mapping[str, Callable[[str], bool | int | float | str]] = {
    "switch": lambda cell: cell == "ON",
    "integer": int,
    "real": float,
    "text": str,
}
_ROWS = rows_of("ibbmaster.primary.dialogue", "variables")

#: True and False are shown as ON and OFF. A variable has the type of its value.
SESSION_DEFAULTS: Mapping[str, SystemValue] = {
    name: _READERS[kind](value) for name, kind, _, _, value, _ in _ROWS if value != NULL
}
#: Values of this primary that depend on nothing.
FIXED: Mapping[str, SystemValue] = {name: _READERS[kind](value) for name, kind, *_, value in _ROWS if value != NULL}
#: The words that a variable may be, where they are few.
CHOICES = {name: tuple(words.split()) for name, _, _, words, *_ in _ROWS if words != NULL}
#: Variables without a global value.
SESSION_ONLY = frozenset(name for name, _, scope, *_ in _ROWS if scope == "session only")
#: Variables of the whole primary that a real one lets its administrators set.
SETTABLE_GLOBALS = frozenset(name for name, _, scope, *_ in _ROWS if scope == "global")
LOWER_CASE_TABLE_NAMES = "lower_case_table_names"
#: Values that follow from the server.
COMPUTED: Mapping[str, Callable[[ServerFacts], SystemValue]] = {
    **dict.fromkeys(
        ("collation_connection", "collation_database", "collation_server"),
        lambda facts: "utf8mb4_uca1400_ai_ci" if is_uca_default(facts) else "utf8mb4_general_ci",
    ),
    "binlog_row_event_max_size": lambda facts: (
        65536 if Difference.LARGE_ROW_EVENTS.holds(version_number(facts)) else 8192
    ),
    "binlog_checksum": lambda facts: facts.profile.event_checksum.name,
    LOWER_CASE_TABLE_NAMES: lambda facts: facts.tables.name_case(),
    "server_id": lambda facts: facts.server_id,
    "version": lambda facts: facts.server_version,
    "version_comment": lambda facts: facts.profile.version_comment,
}
#: Values that follow from what is logged, and the server id; asking for them may read the disk.
OF_THE_LOG: Mapping[str, Callable[[GtidState, int], SystemValue]] = {
    "gtid_binlog_pos": lambda state, _: str(state.position()),
    "gtid_binlog_state": lambda state, _: str(state),
    "gtid_current_pos": lambda state, server_id: str(own_position(state, server_id)),
}
FROM_THE_DISK = frozenset((*OF_THE_LOG, LOWER_CASE_TABLE_NAMES))  # asking for them may take long
#: Values of primaries that keep their binlog in the engine.
OF_THE_ENGINE: Mapping[str, Callable[[ServerFacts], SystemValue]] = {
    "binlog_directory": lambda _: "",  # clients need not know it
    "binlog_storage_engine": lambda facts: facts.profile.storage_engine,
    "innodb_binlog_state_interval": lambda _: 2 << 20,  # bytes: the default
}
_NAMES = sorted({*FIXED, *COMPUTED, *OF_THE_LOG, *SESSION_DEFAULTS, *OF_THE_ENGINE})
BINLOG_STATE = "gtid_binlog_state"
READ_ONLY = words("lower_case_table_names version version_comment server_id gtid_binlog_pos gtid_current_pos log_bin")


def version_number(facts: ServerFacts) -> int:
    """120302 is 12.3.2."""
    return versions.version_number(facts.server_version)


def is_uca_default(facts: ServerFacts) -> bool:
    """Whether SET NAMES utf8mb4 means utf8mb4_uca1400_ai_ci."""
    return Difference.UCA_1400_IS_DEFAULT.holds(version_number(facts))


def own_position(state: GtidState, server_id: int) -> GtidPosition:
    """The domains that the primary wrote to last itself."""
    return GtidPosition(gtid for gtid in state.position().values() if gtid.server_id == server_id)


def has_variable(facts: ServerFacts, name: str) -> bool:
    is_there = name in FIXED or name in COMPUTED or name in OF_THE_LOG or name in SESSION_DEFAULTS
    return is_there or (name in OF_THE_ENGINE and facts.profile.storage_engine is not None)


def variable(facts: ServerFacts, name: str) -> SystemValue:
    """The value of a variable that is none of the log."""
    if name in COMPUTED:
        return COMPUTED[name](facts)
    if name in OF_THE_ENGINE:
        return OF_THE_ENGINE[name](facts)
    return FIXED[name] if name in FIXED else SESSION_DEFAULTS[name]


def variable_names(facts: ServerFacts, pattern: str | None = None) -> Sequence[str]:
    names = _NAMES if pattern is None else _names_like(pattern)
    has_engine = facts.profile.storage_engine is not None
    return names if has_engine else [name for name in names if name not in OF_THE_ENGINE]


@functools.lru_cache(64)
def _names_like(pattern: str) -> Sequence[str]:
    return list(filter(matcher(pattern), _NAMES))


def shown(value: SystemValue) -> str:
    """As SHOW VARIABLES has it."""
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    if isinstance(value, float):
        return f"{value:.6f}"
    return "" if value is None else str(value)
