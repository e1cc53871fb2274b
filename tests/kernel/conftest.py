"""Caches of compiled kernels, for tests that need one of their own."""

from __future__ import annotations

import pytest

from ibbmaster.kernel.cache import KernelCache, KernelSet, cache_key
from ibbmaster.kernel.compiling import compile_elsewhere


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    """A cache with the kernels that verify; not to be changed."""
    cache = KernelCache(tmp_path_factory.mktemp("kernels") / cache_key())
    assert cache.make()
    compile_elsewhere(cache, [KernelSet.VERIFY])
    return cache
