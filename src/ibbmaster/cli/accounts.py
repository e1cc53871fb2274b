"""Accounts of `ibbmaster serve` beside the first one: a my.cnf-style file with a section for each."""

from __future__ import annotations

from pathlib import Path

from ibbmaster.cli.credentials import first_line, read_sections
from ibbmaster.dialogue import privileges
from ibbmaster.errors import ConfigurationError
from ibbmaster.wire.auth import Account, make_account

KEYS = ("password", "password-file", "auth", "grant")


def read_accounts(path: Path, *, requires_tls: bool) -> list[tuple[Account, frozenset[str]]]:
    """Every account of a file, with what it may do; a section's name is the account's.

    Raises:
        ConfigurationError: the file cannot be read, or an account lacks a password.
    """
    found = []
    for name, section in read_sections(path).items():
        unknown = set(section) - set(KEYS)
        if unknown:
            raise ConfigurationError(f"{path}, account {name!r}: {min(unknown)!r} is none of {', '.join(KEYS)}")
        password = section.get("password") or ""
        if (file_name := section.get("password-file")) is not None:
            password = first_line(Path(file_name))
        if not password:
            raise ConfigurationError(f"{path}, account {name!r}: expected a password or a password-file")
        account = make_account(name, password, plugin=section.get("auth") or "native", requires_tls=requires_tls)
        grant = section.get("grant")
        held = privileges.READING if grant is None else privileges.parse_privileges(grant)
        found.append((account, held))
    return found
