"""Where a command finds its user and password: options, files, the environment, a my.cnf.

The first that is given wins: the option, the `…_FILE` variable, the plain variable, the
section `[ibbmaster]` of a my.cnf-style file.
"""

from __future__ import annotations

import argparse
import configparser
import os
from collections.abc import Mapping
from pathlib import Path

from ibbmaster.errors import ConfigurationError

SECTION = "ibbmaster"
FILE_SIZE_MAX = 1 << 20  # a credentials file is small; anything larger is a mistake
USER_VARIABLE = "IBBMASTER_USER"
PASSWORD_VARIABLE = "IBBMASTER_PASSWORD"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options every command with an account understands."""
    group = parser.add_argument_group(
        "account",
        f"Also from {USER_VARIABLE} and {PASSWORD_VARIABLE}, or from files named by {USER_VARIABLE}_FILE and "
        f"{PASSWORD_VARIABLE}_FILE. A password on the command line is seen by every user of the machine.",
    )
    group.add_argument("--user", help="account name (default: repl)")
    group.add_argument("--password", help="its password")
    group.add_argument("--password-file", type=Path, metavar="FILE", help="file whose first line is the password")
    group.add_argument(
        "--defaults-file", type=Path, metavar="FILE", help=f"my.cnf-style file with user and password under [{SECTION}]"
    )


def find_account(args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """User name and password, each from the first place that has it; `repl` and no password otherwise.

    Raises:
        ConfigurationError: a file named for the purpose cannot be read.
    """
    section = _read_section(args.defaults_file) if args.defaults_file else {}
    user = _first(args.user, _from_environment(environment, USER_VARIABLE), section.get("user"), "repl")
    password = _first(
        args.password,
        first_line(args.password_file) if args.password_file else None,
        _from_environment(environment, PASSWORD_VARIABLE),
        section.get("password"),
        "",
    )
    return user, password


def _first(*candidates: str | None) -> str:
    return next(candidate for candidate in candidates if candidate is not None)


def _from_environment(environment: Mapping[str, str], variable: str) -> str | None:
    if (file_name := environment.get(f"{variable}_FILE")) is not None:
        return first_line(Path(file_name))
    return environment.get(variable)


def first_line(path: Path) -> str:
    """The first line of a file that holds a secret.

    Raises:
        ConfigurationError: it cannot be read.
    """
    return _read(path).split("\n", 1)[0].removesuffix("\r")


def _read_section(path: Path) -> Mapping[str, str | None]:
    sections = read_sections(path)
    if SECTION not in sections:
        raise ConfigurationError(f"{path} has no section [{SECTION}]")
    return sections[SECTION]


def read_sections(path: Path) -> dict[str, dict[str, str | None]]:
    """What a my.cnf-style file says, by section.

    Raises:
        ConfigurationError: it cannot be read, or is no such file.
    """
    parser = configparser.ConfigParser(allow_no_value=True, interpolation=None, strict=False, comment_prefixes="#;")
    text = "\n".join(line for line in _read(path).splitlines() if not line.lstrip().startswith("!"))
    try:
        parser.read_string(text, source=str(path))
    except configparser.Error as error:
        problem = str(error).splitlines()[0]
        raise ConfigurationError(f"{path} is no my.cnf-style file: {problem}") from None  # the text may hold a secret
    return {section: {key: _unquoted(value) for key, value in parser.items(section)} for section in parser.sections()}


def _unquoted(value: str | None) -> str | None:
    if value is not None and len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_SIZE_MAX + 1)
        if len(data) > FILE_SIZE_MAX:
            raise ConfigurationError(f"{path} is larger than {FILE_SIZE_MAX} bytes: no file of credentials")
        return data.decode()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is no UTF-8 text") from None
