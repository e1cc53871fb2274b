"""The variables of one session: its user variables, and system variables on top of those of the primary, whose values
`variables.tsv` has, a row each.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from ibbmaster import versions
from ibbmaster.facts import NULL, rows_of
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.replication.dump.request import check_variable
from ibbmaster.replication.wire.refusal import (
    RefusedError,
    missing_privilege,
    not_supported,
    out_of_memory,
    unknown_variable,
)
from ibbmaster.replication.wire.response import COLLATION_BINARY, COLLATION_DEFAULT
from ibbmaster.schema.collations import (
    character_sets,
    charset_of_collation,
    find_charset,
    find_collation,
    sent_collation_number,
)
from ibbmaster.sqltext.expression import SystemVariable
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.moment import parse_time_zone
from ibbmaster.sqltext.sql_mode import MODES, sql_mode_of, sql_mode_text
from ibbmaster.sqltext.token import words
from ibbmaster.versions import Difference
from .log_tables import ServerFacts
from .relation import matcher, text_of
from .statement import CharsetAssignment

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
BINLOG_STATE = "gtid_binlog_state"
FROM_THE_DISK = frozenset((*OF_THE_LOG, LOWER_CASE_TABLE_NAMES))  # asking for them may take long
#: Values of primaries that keep their binlog in the engine.
OF_THE_ENGINE: Mapping[str, Callable[[ServerFacts], SystemValue]] = {
    "binlog_directory": lambda _: "",  # clients need not know it
    "binlog_storage_engine": lambda facts: facts.profile.storage_engine,
    "innodb_binlog_state_interval": lambda _: 2 << 20,  # bytes: the default
}
_NAMES = sorted({*FIXED, *COMPUTED, *OF_THE_LOG, *SESSION_DEFAULTS, *OF_THE_ENGINE})
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


SETTING_SIZE_MAX = 16_384  # characters of a system variable
COUNT_MAX = 1000  # user variables
SIZE_MAX = 1 << 20  # characters of one of them
TOTAL_SIZE_MAX = 4 << 20  # of all of a session
_SQL_MODE_DEFAULT = sql_mode_of(str(FIXED["sql_mode"]))
CHARSETS = ("character_set_client", "character_set_connection", "character_set_results")
_SAME = {
    "tx_isolation": "transaction_isolation",
    "tx_read_only": "transaction_read_only",
    "storage_engine": "default_storage_engine",
}
_SAME_NAMES = {**_SAME, **{name: alias for alias, name in _SAME.items()}}


class UserVariables(dict[str, Value]):
    """Named with @, by lower-case name, within limits."""

    def __init__(self, hold: Callable[[str, int], None] = lambda what, size: None) -> None:
        super().__init__()
        self._hold = hold
        self._size = 0

    def assign(self, name: str, value: Value) -> None:
        """Raises RefusedError: the variable steers dumps and cannot have this value, or all together are too large."""
        problem = check_variable(name, value)
        if problem is not None:
            raise RefusedError(problem.code, problem.sqlstate, f"{problem.text}, in '@{name}'")
        size = _size_of(value)
        total = self._size + size - (_size_of(self[name]) if name in self else 0)
        is_one_more = name not in self
        if size > SIZE_MAX or total > TOTAL_SIZE_MAX or (is_one_more and len(self) >= COUNT_MAX):
            raise out_of_memory(f"too much in user variables, at '@{name}'")
        if total != self._size:
            self._hold("user variables", total)
        self[name] = value
        self._size = total


def _size_of(value: Value) -> int:
    if isinstance(value, str | bytes):
        return len(value) * (1 if value.isascii() else 4)
    return 8 if value is None else len(text_of(value))


class Settings:
    """What a session has set, by lower-case name. `state`: what it sees of the log."""

    def __init__(self, facts: ServerFacts, state: Callable[[], GtidState] | None = None) -> None:
        self._facts = facts
        self._state = state or facts.binlog_state
        self.values: dict[str, SystemValue] = {}
        self._results_collation: str | None = None  # None: the default one of the server

    def names(self, pattern: str | None = None) -> Sequence[str]:
        return variable_names(self._facts, pattern)

    @staticmethod
    def is_of_sessions(name: str) -> bool:
        return name in SESSION_ONLY

    def value(self, name: str, scope: str = "") -> SystemValue:
        """In this session, or with scope 'global' of the primary. Raises RefusedError: the scope lacks it."""
        if not has_variable(self._facts, name):
            raise unknown_variable(name)
        if scope == "global" and name in SESSION_ONLY:
            raise RefusedError(1238, "HY000", f"Variable '{name}' is a SESSION variable")
        if scope == "session" and name not in SESSION_DEFAULTS:
            raise RefusedError(1238, "HY000", f"Variable '{name}' is a GLOBAL variable")
        if scope != "global" and name in self.values:
            return self.values[name]
        if name == "timestamp":
            return self._facts.unix_timestamp()
        if name in OF_THE_LOG:
            return OF_THE_LOG[name](self._state(), self._facts.server_id)
        return variable(self._facts, name)

    def read(self, target: SystemVariable) -> SystemValue:
        if not has_variable(self._facts, target.name):
            raise unknown_variable(target.written)
        return self.value(target.name, target.scope)

    def assign(self, target: SystemVariable, value: Value, *, is_default: bool = False) -> None:
        """Raises RefusedError: there is no such variable, or it may not have this value."""
        name = target.name
        if not has_variable(self._facts, name):
            raise unknown_variable(target.written)
        if name in READ_ONLY or (name not in SESSION_DEFAULTS and name not in SETTABLE_GLOBALS):
            raise RefusedError(1238, "HY000", f"Variable '{target.written}' is a read only variable")
        if target.scope == "global" and name == BINLOG_STATE:
            raise not_supported(f"SET GLOBAL {name} beside others")
        if target.scope == "global":
            raise missing_privilege("SUPER")
        if name not in SESSION_DEFAULTS:
            text = f"Variable '{target.written}' is a GLOBAL variable and should be set with SET GLOBAL"
            raise RefusedError(1229, "HY000", text)
        if is_default:
            for each in (name, _SAME_NAMES.get(name, name)):
                self.values.pop(each, None)
            self._follow(name, None)
            return
        checked = self._checked(name, target.written, value)
        for each in (name, _SAME_NAMES.get(name, name)):
            self.values[each] = checked
        self._follow(name, checked)

    def assign_charset(self, assignment: CharsetAssignment) -> None:
        """SET NAMES and SET CHARACTER SET. Raises RefusedError: one does not exist, or they do not go together."""
        if assignment.charset is None:
            for name in (*CHARSETS, "collation_connection"):
                self.values.pop(name, None)
            self._results_collation = None
            return
        charset = find_charset(assignment.charset)
        if charset is None:
            raise RefusedError(1115, "42000", f"Unknown character set: '{assignment.charset}'")
        collation = self._default_collation(charset)
        if assignment.collation is not None:
            collation = self._collation(assignment.collation, charset)
            if charset_of_collation(collation) != charset:
                text = f"COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'"
                raise RefusedError(1253, "42000", text)
        self.values.update(character_set_client=charset, character_set_results=charset)
        self._results_collation = collation if assignment.is_names else None
        if assignment.is_names:
            self.values.update(character_set_connection=charset, collation_connection=collation)
        else:
            self.values["character_set_connection"] = self.value("character_set_database")
            self.values["collation_connection"] = self.value("collation_database")

    @property
    def time_zone_s(self) -> int:
        """Seconds before UTC."""
        return parse_time_zone(str(self.value("time_zone"))) or 0

    @property
    def sql_mode(self) -> int:
        if not self.values:
            return _SQL_MODE_DEFAULT
        return sql_mode_of(str(self.value("sql_mode")))

    @property
    def collation(self) -> str:
        return str(self.value("collation_connection"))

    @property
    def results_collation_number(self) -> int:
        """Of columns of texts: from SET NAMES or the login; after SET character_set_results the first one of its
        character set. Source: MariaDB 11.8, protocol.cc, Protocol_text::store_field_metadata().
        """
        charset = self.value("character_set_results")
        if charset is None or charset == "binary":
            return COLLATION_BINARY
        collation = self._results_collation
        if collation is None and "character_set_results" not in self.values:
            collation = self._default_collation(str(charset))
        found = sent_collation_number(collation or character_sets()[str(charset)].old_default)
        return COLLATION_DEFAULT if found is None else found

    def _checked(self, name: str, written: str, value: Value) -> SystemValue:
        is_charset = name.startswith("character_set_") and name != "character_set_collations"
        if name in CHARSETS or (is_charset and isinstance(value, str)):
            if value is None and name == "character_set_results":
                return None
            charset = find_charset(text_of(value)) if value is not None else None
            if charset is None:
                raise RefusedError(1115, "42000", f"Unknown character set: '{_shown(value)}'")
            return charset
        if name.startswith("collation_") and isinstance(value, str):
            return self._collation(value, None)
        if name == "time_zone":
            if value is None or parse_time_zone(text_of(value)) is None:
                raise RefusedError(1298, "HY000", f"Unknown or incorrect time zone: '{_shown(value)}'")
            return text_of(value)
        if name == "session_track_system_variables" and isinstance(value, str):
            for part in filter(None, map(str.strip, value.split(","))):
                if part != "*" and not has_variable(self._facts, part.lower()):
                    raise unknown_variable(part)
        if name == "sql_mode":
            return _sql_mode(written, value)
        match SESSION_DEFAULTS[name]:
            case bool():
                return _switch(written, value)
            case int() if isinstance(value, int):
                return value
            case float() if isinstance(value, int | float | Decimal):
                return float(value)
            case int() | float():
                raise RefusedError(1232, "42000", f"Incorrect argument type to variable '{written}'")
            case _:
                return _text(name, written, value)

    def _follow(self, name: str, value: SystemValue) -> None:
        """Set what depends on a variable; None: to its default."""
        if name == "character_set_results":
            self._results_collation = None
        elif value is None:
            return
        elif name == "character_set_connection":
            self.values["collation_connection"] = self._default_collation(str(value))
        elif name == "collation_connection":
            self.values["character_set_connection"] = charset_of_collation(str(value))

    def _collation(self, name: str, charset: str | None) -> str:
        found = find_collation(name, charset or str(self.value("character_set_connection")))
        if found is None:
            raise RefusedError(1273, "HY000", f"Unknown collation: '{name}'")
        return found

    def _default_collation(self, charset: str) -> str:
        return character_sets()[charset].default_collation(is_uca=is_uca_default(self._facts))


def _wrong_value(name: str, value: Value) -> RefusedError:
    return RefusedError(1231, "42000", f"Variable '{name}' can't be set to the value of '{_shown(value)}'")


def _shown(value: Value) -> str:
    return "NULL" if value is None else text_of(value)[:64]


def _switch(name: str, value: Value) -> bool:
    words: Mapping[str, bool] = {"1": True, "ON": True, "TRUE": True, "0": False, "OFF": False, "FALSE": False}
    found = words.get(_shown(value).upper())
    if found is None:
        raise _wrong_value(name, value)
    return found


def _text(name: str, written: str, value: Value) -> str:
    if value is None:
        raise _wrong_value(written, value)
    text = text_of(value)
    if len(text) > SETTING_SIZE_MAX:
        raise not_supported(f"a value of more than {SETTING_SIZE_MAX} characters for {written}")
    choices = CHOICES.get(name)
    if choices is None:
        return text
    if isinstance(value, int) and 0 <= value < len(choices):
        return choices[value]
    found = next((choice for choice in choices if choice.upper() == text.upper()), None)
    if found is None:
        raise _wrong_value(written, value)
    return found


def _sql_mode(name: str, value: Value) -> str:
    try:
        if isinstance(value, int) and 0 <= value < 1 << len(MODES):
            return sql_mode_text(value)
        return sql_mode_text(sql_mode_of("NULL" if value is None else text_of(value)))
    except ValueError as error:
        raise _wrong_value(name, str(error)) from None
