"""How a primary presents itself, and to whom."""

from __future__ import annotations

from dataclasses import dataclass

from ibbmaster.dump.profile import Profile
from ibbmaster.server.certificate import Certificate
from ibbmaster.wire.auth import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryOptions:
    """What the operator decides. `profile` has the version to claim."""

    host: str
    port: int  # 0: any free one
    account: Account
    certificate: Certificate | None  # None: no TLS offered
    profile: Profile
    server_id: int = 1
    connections_max: int = 151  # MariaDB's default for max_connections
