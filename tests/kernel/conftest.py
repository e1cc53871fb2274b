"""Caches of compiled kernels, and processes that have loaded none."""

import os
import subprocess
import sys

import pytest

from ibbmaster.kernel.cache import KernelCache, cache_key
from ibbmaster.kernel.compiling import compile_elsewhere
from ibbmaster.kernel.parts import KernelSet


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    """A cache with the kernels that verify; not to be changed."""
    cache = KernelCache(tmp_path_factory.mktemp("kernels") / cache_key())
    assert cache.make()
    compile_elsewhere(cache, [KernelSet.VERIFY])
    return cache


@pytest.fixture
def said_by():
    """What a fresh process prints, on both channels."""

    def run(program, **environment):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        return (done.stdout + done.stderr).strip()

    return run
