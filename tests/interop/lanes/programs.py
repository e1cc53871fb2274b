"""Where the programs of a MariaDB version are, and how to call them without installing them.

10.11 is usually the system's own. 11.8 is a tree of unpacked packages made by
`.ci/prepare tests`; its programs run through that tree's own dynamic loader, so they need
neither root nor chroot.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("10.11", "11.8")
ROOT_VARIABLES = {"10.11": "IBBMASTER_LANE_1011", "11.8": "IBBMASTER_LANE_118"}  # override the places below
PREPARE_HINT = "run `sh .ci/prepare tests`"


class LaneMissingError(Exception):
    """The programs of a version are not on this machine; the text says what to do."""


def installed_versions() -> list[str]:
    """The versions that are on this machine."""
    return [version for version in VERSIONS if _is_installed(version)]


def _is_installed(version: str) -> bool:
    try:
        find_lane(version)
    except LaneMissingError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The programs of one MariaDB version below `root`."""

    version: str
    root: Path

    def command(self, program: str) -> list[str]:
        """The words that start a program, `mariadbd` or `mariadb-binlog` for instance.

        Raises:
            LaneMissingError: it is not there.
        """
        path = next((p for d in ("usr/sbin", "usr/bin") if (p := self.root / d / program).exists()), None)
        if path is None:
            raise LaneMissingError(f"no {program} below {self.root}: {PREPARE_HINT}")
        if self.root == Path("/"):
            return [str(path)]
        return [str(self.loader), "--library-path", str(self.loader.parent), str(path)]

    @property
    def loader(self) -> Path:
        """The dynamic loader of an unpacked tree; the libraries lie beside it."""
        return next(self.root.glob("usr/lib/*-linux-*/ld-linux-*.so.*"))

    @property
    def share(self) -> Path:
        """Error messages, character sets and the SQL that makes the system tables."""
        return next(
            p for name in ("mariadb", "mysql") if (p := self.root / "usr/share" / name / "charsets").is_dir()
        ).parent

    def system_tables_sql(self) -> str:
        """What a new data directory is bootstrapped with; root has no password."""
        names = ("system_tables", "performance_tables", "system_tables_data")
        files = [next(self.share.glob(f"m[ya][sr]*_{name}.sql")) for name in names]
        files.append(self.share / "maria_add_gis_sp_bootstrap.sql")
        head = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
        return head + "".join(path.read_text() for path in files)

    def plugins(self) -> list[Path]:
        """Server plugins and the client's, which a replica needs to log in."""
        return [*self.root.glob("usr/lib/mysql/plugin/*.so"), *self.root.glob("usr/lib/*/libmariadb3/plugin/*.so")]


@functools.cache
def find_lane(version: str) -> Lane:
    """The lane of a version.

    Raises:
        LaneMissingError: not prepared on this machine.
    """
    reasons = []
    for root in candidate_roots(version, os.environ):
        lane = Lane(version=version, root=root)
        try:
            command = [*lane.command("mariadbd"), "--no-defaults", "--version"]
            text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
        except (LaneMissingError, OSError, StopIteration, subprocess.SubprocessError) as error:
            reasons.append(str(error) or f"no loader below {root}")
            continue
        if f" {version}." in text:
            return lane
        reasons.append(f"below {root} is another version: {text.strip()[:60]}")
    raise LaneMissingError(f"MariaDB {version}: {'; '.join(reasons)}")


def candidate_roots(version: str, environment: Mapping[str, str]) -> list[Path]:
    """Where a lane may be, best first."""
    if variable := environment.get(ROOT_VARIABLES[version]):
        return [Path(variable)]
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ibbmaster" / f"mariadb-{version}"
    return [cache] if version != "10.11" else [Path("/"), cache]
