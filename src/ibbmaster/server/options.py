"""How a primary presents itself, and to whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ibbmaster.dialogue import privileges
from ibbmaster.dump.profile import Profile
from ibbmaster.schema.name_case import NameCase
from ibbmaster.server.certificate import Certificate
from ibbmaster.server.observing import Observer
from ibbmaster.server.registry import Session
from ibbmaster.streaming.sink import Stage
from ibbmaster.wire.auth import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryOptions:
    """What the operator decides. `profile` has the version to claim."""

    host: str
    port: int  # 0: any free one
    account: Account
    held: frozenset[str] = privileges.READING  # what the account may do
    other_accounts: tuple[tuple[Account, frozenset[str]], ...] = ()
    certificate: Certificate | None  # None: no TLS offered
    profile: Profile
    server_id: int = 1
    connections_max: int = 151  # MariaDB's default for max_connections
    statement_s: float = 3600.0  # that one may be at work, while it does not wait for a thread or its client
    base: Path | None = None  # a dump that the log goes on from
    name_case: NameCase | None = None  # lower_case_table_names of the server that wrote the log; None: what that says
    row_event_max: int | None = None  # bytes of one, put together and unpacked, in SELECT; None: what a log can have
    stages: tuple[Callable[[Session], Stage | None], ...] = ()  # what the bytes of each dump go through, in this order
    closes_at_end: bool = False  # a dump ends where the log is over, instead of staying with heartbeats
    has_kernels: bool = True  # compiled kernels are loaded, in a thread
    observer: Observer | None = None  # who is asked at each step of a connection

    def held_by(self, user: str) -> frozenset[str]:
        """The privileges of an account that has logged in."""
        if user == self.account.user:
            return self.held
        return next(held for account, held in self.other_accounts if account.user == user)
