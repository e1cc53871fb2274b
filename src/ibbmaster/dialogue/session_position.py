"""Where in the log one session sees the tables: at its end, or where the session has stopped or gone.

A lock or a transaction with a consistent snapshot stops a session at the end of that moment;
`SET @ibb_position = '0-1-100'` takes it to any other place. Rules: protocol/wire/sql.md.
"""

from __future__ import annotations

from ibbmaster.dialogue.conversion import text_of
from ibbmaster.dialogue.log_tables import LogFacts, LogSnapshot
from ibbmaster.dialogue.user_variables import UserVariables
from ibbmaster.errors import DuplicateDomainError, GtidError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.wire.refusal import RefusedError

POSITION_VARIABLE = "ibb_position"


class SessionPosition:
    """What one session sees of the log. `variables` are its own."""

    def __init__(self, facts: LogFacts, variables: UserVariables) -> None:
        self._facts = facts
        self._tables = facts.tables
        self._variables = variables
        self._locked: LogSnapshot | None = None
        self._of_transaction: LogSnapshot | None = None
        self._chosen: tuple[str, LogSnapshot] | None = None  # the text it was chosen by

    @property
    def stopped(self) -> LogSnapshot | None:
        """Where the session has stopped; None at the end of the log.

        Raises:
            RefusedError: `@ibb_position` is none that can be gone to.
        """
        value = self._variables.get(POSITION_VARIABLE)
        text = "" if value is None else text_of(value).strip()
        if not text:
            self._chosen = None
            return self._of_transaction or self._locked
        if self._chosen is None or self._chosen[0] != text:
            self._chosen = text, self._tables.snapshot_at(_parse(text))
        return self._chosen[1]

    def snapshot(self) -> LogSnapshot:
        """What the session sees now."""
        return self.stopped or self._tables.newest()

    def state(self) -> GtidState:
        """What is logged up to where the session is."""
        stopped = self.stopped
        return self._facts.binlog_state() if stopped is None else stopped.state

    def end(self) -> tuple[str, int]:
        """File and offset where the session is."""
        stopped = self.stopped
        return self._facts.binlog_end() if stopped is None else (stopped.file_name, stopped.end.offset)

    def lock(self) -> None:
        """LOCK TABLES … READ, FLUSH TABLES WITH READ LOCK: stop here until UNLOCK TABLES; a transaction ends."""
        self._of_transaction = None
        self._locked = self._tables.newest()

    def unlock(self) -> None:
        """UNLOCK TABLES: a transaction that has begun since stays where it is."""
        self._locked = None

    def begin(self, *, has_snapshot: bool) -> None:
        """BEGIN, or START TRANSACTION: with a consistent snapshot, or under a lock, stop until its end."""
        self._of_transaction = self._locked or (self._tables.newest() if has_snapshot else None)

    def end_transaction(self) -> None:
        """COMMIT, or ROLLBACK."""
        self._of_transaction = None


def _parse(text: str) -> GtidPosition:
    try:
        return GtidPosition.parse(text)
    except DuplicateDomainError as error:
        raise RefusedError(1943, "HY000", f"@{POSITION_VARIABLE}: {error}") from None
    except GtidError as error:
        raise RefusedError(1941, "HY000", f"@{POSITION_VARIABLE}: {error}") from None
