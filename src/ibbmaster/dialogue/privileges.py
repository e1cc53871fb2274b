"""What an account may do, in MariaDB's words."""

from __future__ import annotations

from collections.abc import Iterable

from ibbmaster.errors import ConfigurationError

SELECT = "SELECT"
RELOAD = "RELOAD"
PROCESS = "PROCESS"
SHOW_DATABASES = "SHOW DATABASES"
SUPER = "SUPER"
LOCK_TABLES = "LOCK TABLES"
REPLICATION_SLAVE = "REPLICATION SLAVE"
BINLOG_MONITOR = "BINLOG MONITOR"
CONNECTION_ADMIN = "CONNECTION ADMIN"
REPLICATION_MASTER_ADMIN = "REPLICATION MASTER ADMIN"
SLAVE_MONITOR = "SLAVE MONITOR"

#: All there are here, in the order of SHOW GRANTS. Those that change something are for others.
PRIVILEGES = (
    SELECT,
    RELOAD,
    PROCESS,
    SHOW_DATABASES,
    SUPER,
    LOCK_TABLES,
    REPLICATION_SLAVE,
    BINLOG_MONITOR,
    CONNECTION_ADMIN,
    REPLICATION_MASTER_ADMIN,
    SLAVE_MONITOR,
)
#: What lets an account end the connections of others.
ADMINISTRATING = frozenset((SUPER, CONNECTION_ADMIN))
#: What an account has that is given nothing else: all that replicas and CDC clients ask for, and nothing of others.
READING = frozenset(PRIVILEGES) - ADMINISTRATING
_SAME = {
    "REPLICATION CLIENT": BINLOG_MONITOR,
    "REPLICA MONITOR": SLAVE_MONITOR,
    "REPLICATION REPLICA": REPLICATION_SLAVE,
}


def parse_privileges(text: str) -> frozenset[str]:
    """The privileges that a list names, as `REPLICATION SLAVE, CONNECTION ADMIN`; ALL is all of them. Raises
    ConfigurationError: there is no such privilege."""
    found: set[str] = set()
    for word in filter(None, (" ".join(part.upper().split()) for part in text.split(","))):
        name = _SAME.get(word, word)
        if name in ("ALL", "ALL PRIVILEGES"):
            found.update(PRIVILEGES)
        elif name in PRIVILEGES:
            found.add(name)
        elif name != "USAGE":
            raise ConfigurationError(f"there is no privilege {word[:80]!r}: expected some of {', '.join(PRIVILEGES)}")
    return frozenset(found)


def grant_text(user: str, privileges: Iterable[str]) -> str:
    """The line of SHOW GRANTS for an account that may come from everywhere."""
    held = set(privileges)
    names = [name for name in PRIVILEGES if name in held]
    quoted = user.replace("`", "``")
    return f"GRANT {', '.join(names) or 'USAGE'} ON *.* TO `{quoted}`@`%`"
