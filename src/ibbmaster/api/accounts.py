"""Accounts out of a my.cnf-style file with a section for each."""

import configparser
import difflib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ibbmaster.errors import ConfigurationError
from ibbmaster.primary.dialogue import privileges
from ibbmaster.replication.wire.auth import Account, make_account, parse_hosts

SECRETS = ("password", "password-file", "password-hash")
KEYS = (*SECRETS, "auth", "grant", "hosts", "require-tls")
SWITCH = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
FILE_SIZE_MAX = 1 << 20  # a credentials file is small; anything larger is a mistake


def read_accounts(path: Path, *, requires_tls: bool) -> list[tuple[Account, frozenset[str]]]:
    """Accounts with their privileges; a section is named for its account. Raises ConfigurationError: the file cannot be
    read, or what it says of an account cannot be used."""
    found = []
    for name, section in read_sections(path).items():
        where = f"{path}, account {name!r}"
        expect_keys(section, KEYS, where)
        try:
            account = _account(path, name, section, requires_tls=requires_tls)
            grant = section.get("grant")
            found.append((account, privileges.READING if grant is None else privileges.parse_privileges(grant)))
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from None
    return found


def _account(path: Path, name: str, section: Mapping[str, str | None], *, requires_tls: bool) -> Account:
    given = [key for key in SECRETS if section.get(key)]
    if len(given) != 1:
        raise ConfigurationError(f"expected one of {', '.join(SECRETS)}, found {' and '.join(given) or 'none'}")
    secret = section[given[0]] or ""
    if given[0] == "password-file":
        secret = private_line(Path(secret))
    else:
        expect_private(path)
    if not secret:
        raise ConfigurationError(f"{section[given[0]]} has no password in its first line")
    tls = SWITCH.get((section.get("require-tls", "off") or "on").lower())
    if tls is None:
        raise ConfigurationError(f"require-tls {section['require-tls']!r}: expected on or off")
    hosts = () if "hosts" not in section else parse_hosts(section["hosts"] or "")
    plugin, is_hash = section.get("auth") or "native", given[0] == "password-hash"
    account = make_account(name, secret, plugin=plugin, requires_tls=tls or requires_tls, is_hash=is_hash)
    return replace(account, hosts=hosts)


def first_line(path: Path) -> str:
    """Of a file that holds a secret. Raises ConfigurationError: it cannot be read."""
    return small_text(path).split("\n", 1)[0].removesuffix("\r")


def private_line(path: Path) -> str:
    """As `first_line`. Raises ConfigurationError: others may read it, too."""
    line = first_line(path)
    expect_private(path)
    return line


def read_sections(path: Path) -> dict[str, dict[str, str | None]]:
    """A my.cnf-style file. Raises ConfigurationError: it cannot be read, or is no such file."""
    parser = configparser.ConfigParser(allow_no_value=True, interpolation=None, strict=False, comment_prefixes="#;")
    text = "\n".join(line for line in small_text(path).splitlines() if not line.lstrip().startswith("!"))
    try:
        parser.read_string(text, source=str(path))
    except configparser.Error as error:
        problem = str(error).splitlines()[0]
        raise ConfigurationError(
            f"{path} is not a my.cnf-style file: {problem}"
        ) from None  # the text may hold a secret
    return {section: {key: _unquoted(value) for key, value in parser.items(section)} for section in parser.sections()}


def expect_keys(section: Mapping[str, str | None], known: Sequence[str], where: str) -> None:
    """Raises ConfigurationError: a section has an unknown key."""
    unknown = sorted(set(section) - set(known))
    if not unknown:
        return
    if section[unknown[0]] is None:  # it may be a secret
        raise ConfigurationError(f"{where}: a line without a value, expected KEY=VALUE with {', '.join(known)}")
    raise ConfigurationError(f"{where}: {unknown[0]!r} is none of {', '.join(known)}{did_you_mean(unknown[0], known)}")


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A hint at the nearest known word; empty if none is near."""
    nearest = difflib.get_close_matches(word, known, 1)
    return f" (did you mean {nearest[0]!r}?)" if nearest else ""


def expect_private(path: Path) -> None:
    """Of a file with a secret, as `ssh` does of keys. Raises ConfigurationError: it is ours, and every user of this
    machine may read or write it."""
    status = path.stat()
    is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    if is_ours and status.st_mode & (stat.S_IROTH | stat.S_IWOTH):
        text = f"{path} has a password, and every user of this machine may read it: `chmod o= {path}`"
        raise ConfigurationError(text)


def _unquoted(value: str | None) -> str | None:
    if value is not None and len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def small_text(path: Path) -> str:
    """Of a file that a person wrote. Raises ConfigurationError: it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_SIZE_MAX + 1)
        if len(data) > FILE_SIZE_MAX:
            raise ConfigurationError(f"{path} is larger than {FILE_SIZE_MAX} bytes: it is another file")
        return data.decode()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text") from None
