"""What callers are told of the kernels, against the library."""

import ctypes.util

import pytest

from ibbmaster.kernel import entries
from ibbmaster.kernel.entries import LIBRARY, Entries


def test_a_library_of_other_sources_is_refused(monkeypatch):
    """It would write where these have other fields."""
    Entries(LIBRARY)
    monkeypatch.setattr(entries, "digest", lambda: "of others")
    with pytest.raises(OSError, match=r"is of other sources: python -m ibbmaster\.kernel\.building makes it anew"):
        Entries(LIBRARY)


def test_a_library_without_a_kernel_is_refused():
    with pytest.raises(AttributeError, match="ibbmaster_index_chunks"):
        Entries(ctypes.util.find_library("c"))
