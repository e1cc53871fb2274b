"""Where the programs of a MariaDB version are, and how to call them without installing them. They are the system's own,
or a tree of unpacked packages, whose programs run through its own dynamic loader, without root and chroot."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ibbmaster.errors import ConfigurationError
from ibbmaster.user_cache import cache_directory, distrust

MARIADB_VERSIONS = ("10.11", "11.8")  # oldest first
SYSTEM = Path("/")
LIBRARIES = ("usr/lib/*-linux-*", "lib/*-linux-*")  # the second in Debian 12


class ProgramsMissingError(ConfigurationError):
    """The programs of a version are missing; the text says what to do."""


def installed_versions() -> list[str]:
    return [version for version in MARIADB_VERSIONS if _is_installed(version)]


def _is_installed(version: str) -> bool:
    try:
        find_programs(version)
    except ProgramsMissingError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPrograms:
    version: str
    root: Path

    def command(self, program: str) -> list[str]:
        """The words that start a program, as `mariadbd`. Raises ProgramsMissingError: it is missing."""
        path = next((p for d in ("usr/sbin", "usr/bin") if (p := self.root / d / program).exists()), None)
        if path is None:
            raise ProgramsMissingError(f"no {program} below {self.root}")
        if self.root == SYSTEM:
            return [str(path)]
        libraries = [directory for pattern in LIBRARIES for directory in self.root.glob(pattern)]
        return [str(self.loader), "--library-path", ":".join(map(str, libraries)), str(path)]

    @property
    def loader(self) -> Path:
        return next(path for pattern in LIBRARIES for path in self.root.glob(f"{pattern}/ld-linux-*.so.*"))

    @property
    def share(self) -> Path:
        """The directory of error messages, character sets and the SQL for system tables."""
        return next(
            p for name in ("mariadb", "mysql") if (p := self.root / "usr/share" / name / "charsets").is_dir()
        ).parent

    def system_tables_sql(self) -> str:
        """The SQL that bootstraps a data directory; root has no password."""
        names = ("system_tables", "performance_tables", "system_tables_data")
        files = [next(self.share.glob(f"m[ya][sr]*_{name}.sql")) for name in names]
        files.append(self.share / "maria_add_gis_sp_bootstrap.sql")
        head = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
        return head + "".join(path.read_text() for path in files)

    def plugins(self) -> list[Path]:
        return [*self.root.glob("usr/lib/mysql/plugin/*.so"), *self.root.glob("usr/lib/*/libmariadb3/plugin/*.so")]


@functools.cache
def find_programs(version: str) -> ServerPrograms:
    """Raises ProgramsMissingError: this machine lacks them."""
    reasons = []
    for root in candidate_roots(version, os.environ):
        programs = ServerPrograms(version=version, root=root)
        try:
            if root_variable(version) not in os.environ and (doubt := distrust(root)) is not None:
                raise ProgramsMissingError(f"nothing is run from {root}: {doubt}")
            command = [*programs.command("mariadbd"), "--no-defaults", "--version"]
            text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
        except (ProgramsMissingError, OSError, StopIteration, subprocess.SubprocessError) as error:
            reasons.append(str(error) or f"no loader below {root}")
            continue
        if f" {version}." in text:
            return programs
        reasons.append(f"below {root} is another version: {text.strip()[:60]}")
    raise ProgramsMissingError(
        f"MariaDB {version}: {'; '.join(reasons)}: install mariadb-server-core and mariadb-client of this version, "
        f"or let {root_variable(version)} name a directory with these packages unpacked"
    )


def root_variable(version: str) -> str:
    return f"IBBMASTER_LANE_{version.replace('.', '')}"


def candidate_roots(version: str, environment: Mapping[str, str]) -> list[Path]:
    """Where a version may be, best first."""
    if variable := environment.get(root_variable(version)):
        return [Path(variable)]
    caches = cache_directory(environment)
    return [SYSTEM] if caches is None else [SYSTEM, caches / f"mariadb-{version}"]
