"""A file that may be deleted at any time: read as a whole, replaced as a whole, never an error."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

MODE = 0o640


class CacheFile:
    """One file beside others. Whatever is wrong with it, it is as if it were not there."""

    def __init__(self, path: Path, *, size_max: int) -> None:
        self.path = path
        self._size_max = size_max

    def read(self) -> bytes | None:
        """All of it; None if there is none, or it is no plain file, too large, or cannot be read."""
        try:
            found = self.path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > self._size_max:
                return None
            with self.path.open("rb") as file:
                return file.read(self._size_max)
        except OSError:
            return None

    def write(self, data: bytes) -> bool:
        """Put other content in its place, so that readers see the old or the new; whether that could be done."""
        try:
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
