"""Where a command finds user and password.

The first wins: the option, the `…_FILE` variable, the plain variable, the file of `--config`, section `[ibbmaster]` of
a my.cnf-style file. A file with a password is refused if every user of the machine may read it; only those that a
variable names may have any mode, as secrets are mounted so in containers.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibbmaster.api.accounts import expect_keys, expect_private, first_line, private_line, read_sections
from ibbmaster.errors import ConfigurationError

if TYPE_CHECKING:
    from ibbmaster.api.following import SourceOptions
    from ibbmaster.logs.capture.client import PrimaryAddress

PRIMARY = re.compile(r"(?P<host>[^/]+):(?P<port>\d{1,5})")
SERVER_ID = 4_000_000_002  # of a command that reads a primary
SECTION = "ibbmaster"
USER_VARIABLE = "IBBMASTER_USER"
PASSWORD_VARIABLE = "IBBMASTER_PASSWORD"
SOURCE_VARIABLE = "IBBMASTER_SOURCE_PASSWORD"
TARGET_VARIABLE = "IBBMASTER_TARGET_PASSWORD"


def add_arguments(parser: argparse._ActionsContainer) -> None:
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
    """User and password; `repl` and no password otherwise. Raises ConfigurationError: a named file is unreadable."""
    section = _read_section(args.defaults_file) if args.defaults_file else {}
    file = _configured(args)
    user = _first(
        args.user, _from_environment(environment, USER_VARIABLE), file.get("user"), section.get("user"), "repl"
    )
    password = _first(
        args.password,
        private_line(args.password_file) if args.password_file else None,
        _from_environment(environment, PASSWORD_VARIABLE),
        file.get("password"),
        private_line(file["password-file"]) if "password-file" in file else None,
        section.get("password"),
        "",
    )
    return user, password


def running_primary(text: str, args: argparse.Namespace) -> PrimaryAddress | None:
    """The primary that `HOST:PORT` names, with the account of the flags; None: it is a path. Raises ConfigurationError:
    a file with a password cannot be used."""
    named = PRIMARY.fullmatch(text)
    if named is None or Path(text).exists():
        return None
    from ibbmaster.logs.capture.client import PrimaryAddress

    user, password = find_account(args)
    return PrimaryAddress(
        host=named["host"].strip("[]"),
        port=int(named["port"]),
        user=user,
        password=password,
        uses_tls=args.tls,
        server_id=SERVER_ID,
    )


def target_password(file: Path | None) -> str:
    """Of a server that is restored. Raises ConfigurationError: the file cannot be used."""
    return _first(private_line(file) if file else None, _from_environment(os.environ, TARGET_VARIABLE), "")


def source_options(args: argparse.Namespace) -> SourceOptions:
    """How to follow, as flags say. Raises ConfigurationError: the file with the password cannot be read."""
    file = _configured(args)
    password = _first(
        private_line(args.source_password_file) if args.source_password_file else None,
        _from_environment(os.environ, SOURCE_VARIABLE),
        private_line(file["source-password-file"]) if "source-password-file" in file else None,
        "",
    )
    from ibbmaster.api.following import SourceOptions

    return SourceOptions(
        start=args.start,
        password=password,
        tls=args.source_tls,
        ca=None if args.source_ca is None else str(args.source_ca),
        server_id=args.source_server_id,
        semi_sync=args.semi_sync,
        buffer_bytes=args.buffer,
    )


def _configured(args: argparse.Namespace) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(args, "configured", {})
    return found


def _first(*candidates: str | None) -> str:
    return next(candidate for candidate in candidates if candidate is not None)


def _from_environment(environment: Mapping[str, str], variable: str) -> str | None:
    if (file_name := environment.get(f"{variable}_FILE")) is not None:
        return first_line(Path(file_name))
    return environment.get(variable)


def _read_section(path: Path) -> Mapping[str, str | None]:
    sections = read_sections(path)
    if SECTION not in sections:
        raise ConfigurationError(f"{path} has no section [{SECTION}]")
    expect_keys(sections[SECTION], ("user", "password"), f"{path}, section [{SECTION}]")
    if sections[SECTION].get("password"):
        expect_private(path)
    return sections[SECTION]
