"""What callers are told of the kernels, against the library."""

import ctypes.util

import pytest

from ibbmaster.kernel.building import digest
from ibbmaster.kernel.entries import LIBRARY, Entries


def test_the_library_was_made_of_these_sources():
    """Else: python -m ibbmaster.kernel.building."""
    assert Entries(LIBRARY).digest == digest()


def test_a_library_without_a_kernel_is_refused():
    with pytest.raises(AttributeError, match="ibbmaster_index_chunks"):
        Entries(ctypes.util.find_library("c"))
