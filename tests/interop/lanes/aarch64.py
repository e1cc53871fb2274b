"""A Python for ARM's servers, which QEMU runs on this machine; `.ci/prepare tests` unpacks it.

It has NumPy, and takes packages that are pure Python from
the environment of the tests.
"""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from ibbmaster.user_cache import program_directory

ENVIRONMENT = "IBBMASTER_LANE_AARCH64"
EMULATOR = "qemu-aarch64-static"
TIMEOUT_S = 900
ROOT = Path(__file__).parents[3]


class Aarch64MissingError(Exception):
    """It is not on this machine; the text says what."""


def run_on_aarch64(*arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """What that Python does with some arguments, here in the checkout. Raises Aarch64MissingError: there is none."""
    named = os.environ.get(ENVIRONMENT)
    root = Path(named) if named else program_directory() / "aarch64"
    emulator = shutil.which(EMULATOR)
    packages = root / "packages"
    if emulator is None or not packages.is_dir():
        raise Aarch64MissingError(f"no {EMULATOR}, or no Python for ARM in {root}: sh .ci/prepare tests")
    path = os.pathsep.join(map(str, (ROOT / "src", packages, sysconfig.get_path("purelib"))))
    return subprocess.run(
        [emulator, "-L", str(root), str(root / "usr/bin/python3.11"), *arguments],
        env={**os.environ, **environment, "PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
