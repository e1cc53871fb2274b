"""Files that people write, and that are read as a whole: bounded, whatever stands after their names."""

from __future__ import annotations

from pathlib import Path

from ibbmaster.errors import ConfigurationError


def read_small_file(path: Path, size_max: int) -> str:
    """The text of a file; no more is read of a device or a pipe, which have no size. Raises ConfigurationError: it
    cannot be read, is larger, or is no UTF-8."""
    try:
        with path.open("rb") as file:
            data = file.read(size_max + 1)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    if len(data) > size_max:
        raise ConfigurationError(f"{path}: expected a file of at most {size_max} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: no UTF-8 at byte {error.start}") from None
