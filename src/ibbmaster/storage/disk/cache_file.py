"""A file that may vanish at any time: read as a whole, replaced as a whole, never an error."""

import contextlib
import logging
import stat
import tempfile
from pathlib import Path

from ibbmaster.user_cache import distrust, make_directory

log = logging.getLogger(__name__)

MODE = 0o640


class CacheFile:
    """A faulty file counts as missing, as one that another user may have written; beside a log its owner may, who could
    have written the log, too. With `count_max` the directory is made when needed, and holds at most that many files."""

    def __init__(self, path: Path, *, size_max: int, count_max: int | None = None) -> None:
        self.path = path
        self._size_max = size_max
        self._count_max = count_max
        self._has_warned = False

    def read(self) -> bytes | None:
        """None if it is missing, no plain file, too large, not to be trusted, or unreadable."""
        try:
            found = self.path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > self._size_max or self._is_doubtful():
                return None
            with self.path.open("rb") as file:
                return file.read(self._size_max)
        except OSError:
            return None

    def _is_doubtful(self) -> bool:
        owners = [self.path.parent.stat().st_uid] if self._count_max is None else []
        doubt = distrust(self.path, owners=owners)
        if doubt is not None and not self._has_warned:
            self._has_warned = True
            log.warning("%s is not used, others may have written it: %s", self.path, doubt)
        return doubt is not None

    def write(self, data: bytes) -> bool:
        """Readers see the old content or the new; returns whether that succeeded."""
        try:
            if self._count_max is not None:
                make_directory(self.path.parent)
                self._make_room(self._count_max)
            with tempfile.NamedTemporaryFile(dir=self.path.parent, prefix=f"{self.path.name}.", delete=False) as file:
                new = Path(file.name)
                try:
                    file.write(data)
                    file.close()
                    new.chmod(MODE)
                    new.replace(self.path)
                except OSError:
                    new.unlink(missing_ok=True)
                    return False
        except OSError:
            return False
        return True

    def _make_room(self, count_max: int) -> None:
        others = [path for path in self.path.parent.iterdir() if path != self.path]
        written: dict[Path, int] = {}
        for path in others:
            with contextlib.suppress(FileNotFoundError):
                written[path] = path.lstat().st_mtime_ns
        for path in sorted(written, key=written.__getitem__, reverse=True)[count_max - 1 :]:
            path.unlink(missing_ok=True)
