"""How a primary presents itself, and to whom; and its observer, asked at each step of a connection."""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ibbmaster.primary.dialogue import privileges
from ibbmaster.primary.streaming.sink import Stage
from ibbmaster.replication.dump.profile import Profile
from ibbmaster.replication.wire.auth import Account
from ibbmaster.replication.wire.command import AnyCommand
from ibbmaster.replication.wire.response import Response
from ibbmaster.schema.name_case import NameCase
from .certificate import Certificate
from .registry import Session


class ConnectionStep(enum.Enum):
    ACCEPTED = "is there; the greeting comes next"
    GREETED = "has the greeting, and has said nothing yet"
    TLS = "asks for TLS, which begins next"
    LOGGED_IN = "has given a right password; the OK comes next"
    ASKED = "has sent a command; its answer, or the preparation of its dump, comes next"
    ANSWERED = "has its answer"
    DUMPING = "gets its dump; the first event comes next"


class Observer(Protocol):
    """Follows every connection, in the event loop; without one, connections pay nothing for it."""

    async def reached(
        self, step: ConnectionStep, session: Session, command: AnyCommand | None
    ) -> Sequence[Response] | None:
        """Let a connection continue by returning None; `command` is that of the last three steps.

        Responses at ACCEPTED, LOGGED_IN and ASKED replace what would have come: an `Err`, which ends the connection, or
        the whole answer to a command other than a dump. Raise `trio.BrokenResourceError` to cut the connection, by a
        reset if SO_LINGER of `session.socket` is on and zero. The time limits of the login do not run meanwhile.
        """

    def left(self, session: Session) -> None:
        """The connection has ended, as `session.reason` says; its socket is still open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryOptions:
    """The operator's decisions; `profile` has the version to claim."""

    host: str
    port: int  # 0: any free one
    account: Account
    held: frozenset[str] = privileges.READING
    other_accounts: tuple[tuple[Account, frozenset[str]], ...] = ()
    certificate: Certificate | None  # None: no TLS offered
    profile: Profile
    server_id: int = 1
    connections_max: int = 151  # MariaDB's default for max_connections
    statement_s: float = 3600.0  # of work for one, without waits for a thread or its client
    hold_s: float | None = None  # for which a dump may keep a file from being removed; None: no limit
    base: Path | None = None  # a dump that the log goes on from
    name_case: NameCase | None = None  # lower_case_table_names of the log's server; None: as the log says
    row_event_max: int | None = None  # bytes of one in SELECT, unpacked; None: all that a log can have
    stages: tuple[Callable[[Session], Stage | None], ...] = ()  # of each dump, in this order
    closes_at_end: bool = False  # dumps end where the log is over, instead of waiting
    has_kernels: bool = True  # load compiled kernels, in a thread
    observer: Observer | None = None

    @property
    def accounts(self) -> tuple[Account, ...]:
        return self.account, *(account for account, _ in self.other_accounts)

    def held_by(self, user: str) -> frozenset[str]:
        if user == self.account.user:
            return self.held
        return next(held for account, held in self.other_accounts if account.user == user)
