"""The caches of this user, and whether only this user can have written their content.

Readers believe a cache, and even run its programs. So it counts only if each directory on the way, each link and each
file belongs to this user or root, and others may not write there. A sticky directory such as /tmp may be on the way."""

import errno
import os
import pwd
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from .errors import ConfigurationError

ROOT = 0
LINKS_MAX = 40  # as in Linux
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_directory(environment: Mapping[str, str] | None = None) -> Path | None:
    """The directory of all caches, which may be missing; None for a user without a home, as in containers."""
    environment = os.environ if environment is None else environment
    if base := environment.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "ibbmaster"
    try:
        return Path.home() / ".cache" / "ibbmaster"
    except RuntimeError:
        return None


def program_directory() -> Path:
    """The directory of programs that are built once and run from there, in a place for this user alone. Raises
    ConfigurationError: there is none, or others may have put programs there."""
    found = cache_directory()
    if found is None:
        raise ConfigurationError("a user without a home has no cache directory: let XDG_CACHE_HOME name one")
    try:
        doubt = distrust(found)
    except OSError as error:
        doubt = str(error)
    if doubt is not None:
        raise ConfigurationError(f"nothing is run from {found}: {doubt}; let XDG_CACHE_HOME name another directory")
    return found


def make_directory(path: Path) -> None:
    """Make a directory and its missing parents, which others may not write. Raises OSError."""
    if not path.parent.is_dir():
        make_directory(path.parent)
    try:
        path.mkdir(mode=0o755)
    except FileExistsError:
        if not path.is_dir():
            raise


def distrust(path: Path, *, owners: Collection[int] = ()) -> str | None:
    """Why another user may have written, or chosen, the content of a path; None if no other user can. `owners` are
    further trusted user ids. A missing path is judged by the directories above it. Raises OSError: it cannot be looked
    at."""
    trusted = {ROOT, os.geteuid(), *owners}
    ahead = [*reversed(path.absolute().parts)]
    at = Path(ahead.pop())
    found, links = os.lstat(at), 0
    while True:
        if found.st_uid not in trusted:
            return f"{at} belongs to {_user_name(found.st_uid)}"
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > LINKS_MAX:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            ahead += reversed(Path(os.readlink(at)).parts)
            at = at.parent
        elif found.st_mode & WRITABLE_BY_OTHERS and not (found.st_mode & stat.S_ISVTX and ahead):
            return f"other users can write {at}"
        if not ahead:
            return None
        name = ahead.pop()
        at = at.parent if name == os.pardir else at / name
        try:
            found = os.lstat(at)
        except (FileNotFoundError, NotADirectoryError):
            return None


def _user_name(number: int) -> str:
    try:
        return f"user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"user {number}"
