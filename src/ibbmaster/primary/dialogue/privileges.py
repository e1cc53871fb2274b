"""Privileges of accounts, by MariaDB's names."""

from collections.abc import Iterable

from ibbmaster.errors import ConfigurationError

SELECT = "SELECT"
RELOAD = "RELOAD"
PROCESS = "PROCESS"
SHOW_DATABASES = "SHOW DATABASES"
SUPER = "SUPER"
SHUTDOWN = "SHUTDOWN"
LOCK_TABLES = "LOCK TABLES"
REPLICATION_SLAVE = "REPLICATION SLAVE"
BINLOG_MONITOR = "BINLOG MONITOR"
BINLOG_ADMIN = "BINLOG ADMIN"
CONNECTION_ADMIN = "CONNECTION ADMIN"
REPLICATION_MASTER_ADMIN = "REPLICATION MASTER ADMIN"
SLAVE_MONITOR = "SLAVE MONITOR"

#: All privileges here, in the order of SHOW GRANTS; those to change tables are missing.
PRIVILEGES = (
    *(SELECT, RELOAD, SHUTDOWN, PROCESS, SHOW_DATABASES, SUPER, LOCK_TABLES, REPLICATION_SLAVE, BINLOG_MONITOR),
    *(BINLOG_ADMIN, CONNECTION_ADMIN, REPLICATION_MASTER_ADMIN, SLAVE_MONITOR),
)
#: An account with one of them may end the connections of others.
ADMINISTRATING = frozenset((SUPER, CONNECTION_ADMIN))
#: The default of an account: all that replicas and CDC clients need.
READING = frozenset(PRIVILEGES) - ADMINISTRATING - {BINLOG_ADMIN, SHUTDOWN}
_SAME = {
    "REPLICATION CLIENT": BINLOG_MONITOR,
    "REPLICA MONITOR": SLAVE_MONITOR,
    "REPLICATION REPLICA": REPLICATION_SLAVE,
}


def parse_privileges(text: str) -> frozenset[str]:
    """The privileges of a list such as `REPLICATION SLAVE, CONNECTION ADMIN`, or ALL. Raises ConfigurationError: one is
    unknown."""
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
    held = set(privileges)
    names = [name for name in PRIVILEGES if name in held]
    quoted = user.replace("`", "``")
    return f"GRANT {', '.join(names) or 'USAGE'} ON *.* TO `{quoted}`@`%`"
