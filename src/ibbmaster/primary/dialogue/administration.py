"""Statements that administrate a primary: who may, and what a session makes of them. Table:
protocol/wire/administration.md.
"""

from __future__ import annotations

from dataclasses import replace

from ibbmaster.gtid import ID_MAX
from ibbmaster.replication.wire.refusal import RefusedError, missing_privilege
from ibbmaster.sqltext.expression import Default, Expression, SystemVariable, interval_before
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.moment import DAY_S, SECOND_US, parse_moment
from ibbmaster.versions import Difference
from . import privileges
from . import statement as verbs
from .evaluating import Evaluator
from .relation import integer_of, text_of
from .settings import BINLOG_STATE
from .show import Note

GTID_DOMAIN = 1076  # of errors and warnings about DELETE_DOMAIN_ID
UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": DAY_S, "WEEK": 7 * DAY_S}
#: All that a statement needs. Any account has RELOAD and REPLICATION MASTER ADMIN unless it is restricted, as clients
#: that only read need them: so BINLOG ADMIN is asked for as well.
_NEEDED: dict[type, tuple[str, ...]] = {
    verbs.PurgeLogs: (privileges.BINLOG_ADMIN,),
    verbs.FlushLogs: (privileges.RELOAD, privileges.BINLOG_ADMIN),
    verbs.ResetLog: (privileges.RELOAD, privileges.BINLOG_ADMIN),
    verbs.SetState: (privileges.REPLICATION_MASTER_ADMIN, privileges.BINLOG_ADMIN),
    verbs.Shutdown: (privileges.SHUTDOWN,),
}


def expect_administrator(held: frozenset[str], kind: type[verbs.Administrative], version: int) -> None:
    """Raises RefusedError: an account with these privileges may not do that."""
    for needed in _NEEDED[kind]:
        is_of_super = needed not in (privileges.RELOAD, privileges.SHUTDOWN)
        includes = is_of_super and Difference.SUPER_ADMINISTRATES.holds(version)
        enough = (privileges.SUPER, needed) if includes else (needed,)
        if not held.intersection(enough):
            raise missing_privilege(", ".join(enough))


def computed(what: verbs.Administrative, evaluator: Evaluator) -> tuple[verbs.Administrative, tuple[Note, ...]]:
    """With values in place of expressions, and warnings about these. Raises RefusedError: one cannot be computed, or a
    domain id is too large."""
    match what:
        case verbs.PurgeLogs(before=before) if before is not None and not isinstance(before, float):
            seconds, notes = _moment(before, evaluator)
            return replace(what, before=seconds), notes
        case verbs.FlushLogs(domain_ids=domain_ids) if (most := max(domain_ids, default=0)) > ID_MAX:
            text = (
                f"The value of gtid domain being deleted ('{most}') exceeds its maximum size of 32 bit unsigned integer"
            )
            raise RefusedError(GTID_DOMAIN, "HY000", text)
    return what, ()


def new_state(statement: verbs.Statement) -> verbs.Assignment | None:
    """SET GLOBAL gtid_binlog_state, alone."""
    match statement:
        case verbs.Set(assignments=(verbs.Assignment(target=SystemVariable(name=name, scope="global")) as found,)):
            return found if name == BINLOG_STATE else None
    return None


def state_of(value: Expression, evaluator: Evaluator) -> verbs.SetState:
    """Raises RefusedError: it is no text."""
    if isinstance(value, Default):
        raise RefusedError(1230, "42000", f"Variable '{BINLOG_STATE}' doesn't have a default value")
    state = evaluator.evaluate(value)
    if not isinstance(state, str | bytes | None):
        raise RefusedError(1232, "42000", f"Incorrect argument type to variable '{BINLOG_STATE}'")
    return verbs.SetState(None if state is None else text_of(state))


def _moment(expression: Expression, evaluator: Evaluator) -> tuple[float, tuple[Note, ...]]:
    """In seconds since 1970; 0, which is before any file, for what is no moment."""
    if (found := interval_before(expression)) is not None:
        start, amount, unit = found
        seconds, notes = _moment(start, evaluator)
        count = integer_of(evaluator.evaluate(amount))
        if unit not in UNITS or count is None:
            known = ", ".join(UNITS)
            raise RefusedError(1235, "42000", f"PURGE BINARY LOGS takes a whole number of {known} as INTERVAL")
        return seconds - count * UNITS[unit], notes
    value: Value = evaluator.evaluate(expression)
    if value is None:
        return 0.0, ()
    microseconds = parse_moment(text := text_of(value))
    if microseconds is None:
        return 0.0, (("Warning", 1292, f"Incorrect datetime value: '{text[:128]}'"),)
    return microseconds / SECOND_US - evaluator.settings.time_zone_s, ()
