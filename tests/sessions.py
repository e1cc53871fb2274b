"""A session without a connection, for what only asks it for values."""

from types import SimpleNamespace

from ibbmaster.gtid import GtidState
from ibbmaster.primary.dialogue.evaluating import Evaluator, Who
from ibbmaster.primary.dialogue.settings import Settings, UserVariables
from ibbmaster.replication.dump.profile import PROFILES


def session_evaluator() -> Evaluator:
    """Of a session whose user is repl, and which has chosen no database."""
    profile = PROFILES["classic-11.8"]
    facts = SimpleNamespace(
        tables=SimpleNamespace(name_case=lambda: 0),
        server_id=1,
        server_version=profile.server_version,
        profile=profile,
        binlog_state=lambda: GtidState.parse("0-1-7"),
        unix_timestamp=lambda: 1778384896.0,
    )
    made = Evaluator(facts, Settings(facts), UserVariables(), Who(connection_id=7, user="repl", host="::1"))
    made.begin_statement()
    return made
