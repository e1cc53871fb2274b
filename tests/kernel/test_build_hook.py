"""Wheels for other machines: of either CPU, for every Linux system of the last years."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ibbmaster.kernel.building import CPUS

ROOT = Path(__file__).parents[2]
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
GLIBC = 28  # the least minor version of 2 that the name of the wheel promises


@pytest.mark.parametrize("machine", CPUS)
def test_a_wheel_for_a_kind_of_cpu_has_kernels_for_it_and_needs_no_newer_system(machine, tmp_path):
    pytest.importorskip("ziglang")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "IBBMASTER_WHEEL_FOR": machine},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.iterdir()
    assert wheel.name.endswith(f"-py3-none-manylinux_2_{GLIBC}_{machine}.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        library = archive.read(name)
    assert name.endswith(f"kernels-{machine}.so")
    assert int.from_bytes(library[18:20], "little") == ELF_MACHINES[machine]
    needed = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", library)]
    assert needed
    assert max(needed) <= GLIBC
