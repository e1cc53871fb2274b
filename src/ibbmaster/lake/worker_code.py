"""The code of this package for the workers of a cluster whose Python lacks it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ibbmaster.errors import ConfigurationError

UNPACKED = "ibbmaster-code"  # in the working directory of an executor
OURS = "ibbmaster/__init__.py"


@contextlib.contextmanager
def settings_for(wheel: Path, version: str) -> Iterator[dict[str, str]]:
    """The settings of Spark by which each worker unpacks a wheel of this package, and imports it from there.

    The settings hold as long as the context: Spark unpacks what is called `.zip`, and a wheel is called so meanwhile.
    Queries are planned by the same Python on the machine of the driver, which finds the wheel by PYTHONPATH.

    Raises:
        ConfigurationError: it is no wheel of that version, which the driver is.
    """
    expect_version(wheel, version)
    with tempfile.TemporaryDirectory(prefix="ibbmaster-") as place:
        archive = Path(place) / "ibbmaster.zip"
        archive.symlink_to(wheel.resolve())
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(Path(place) / UNPACKED)
        with _on_the_path(Path(place) / UNPACKED):
            yield {"spark.archives": f"{archive}#{UNPACKED}", "spark.executorEnv.PYTHONPATH": UNPACKED}


@contextlib.contextmanager
def _on_the_path(directory: Path) -> Iterator[None]:
    """Let the Pythons that Java starts here import from a directory."""
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(directory), known]))
    try:
        yield
    finally:
        if known is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = known


def expect_version(wheel: Path, version: str) -> None:
    """Refuse what workers could not import, or what would not understand the driver.

    Raises:
        ConfigurationError: it is no wheel of that version, which the driver is.
    """
    try:
        with zipfile.ZipFile(wheel) as opened:
            names = opened.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        reason = error.strerror if isinstance(error, OSError) else "no wheel or other zip archive"
        raise ConfigurationError(f"--archives: {wheel}: {reason}") from error
    if OURS not in names:
        raise ConfigurationError(f"--archives: {wheel} has no {OURS}: `python -m pip wheel --no-deps .` makes a wheel")
    own = f"ibbmaster-{version}.dist-info/METADATA"
    if own not in names:
        raise ConfigurationError(f"--archives: {wheel} is not of version {version}, which this command is")
