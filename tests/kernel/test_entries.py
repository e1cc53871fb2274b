import ctypes.util
import gc
import weakref

import numpy as np
import pytest

from ibbmaster.kernel import entries
from ibbmaster.kernel.calls import Checking
from ibbmaster.kernel.entries import LIBRARY, Entries
from ibbmaster.kernel.fields import PAIR_COLUMNS, ChunkColumn, Field, Status
from ibbmaster.kernel.plain_memory import RowTable, numbers, scratch, short_rows
from ibbmaster.storage.ibb.page import PAGE_SIZE

VERIFY = """
import sys
from ibbmaster.commands.cli.main import main
from ibbmaster.kernel import loading

loading.WORK_TO_LOAD = 0
assert main(["verify", {log!r}]) == 0
assert loading.load() is not None
print(*({{"numpy", "ibbmaster.kernel.entries", "ibbmaster.logs.store.redo_log"}} & set(sys.modules)))
"""


def zeros(kind, *sizes):
    return np.zeros(sizes, dtype=kind)


def make_checking(**changed):
    state = zeros(np.int64, Field.SIZE)
    state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
    tables = zeros(np.int32, 16, ChunkColumn.COLUMNS), zeros(np.int64, 4, PAIR_COLUMNS), zeros(np.int64, 1, 8)
    return Checking(state, *tables, zeros(np.uint8, 64))._replace(**changed)


@pytest.mark.parametrize("is_read_only", [False, True])
def test_arrays_are_taken_whether_they_can_be_written_or_not(kernels, is_read_only):
    pages = zeros(np.uint8, PAGE_SIZE)
    pages.flags.writeable = not is_read_only
    assert kernels.check_table(pages, 1, make_checking()) == (0, Status.FALLBACK)  # blank: no data is there


def plain_checking():
    state = numbers(Field.SIZE)
    state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
    tables = (RowTable(4, PAIR_COLUMNS).memory, RowTable(1, 8).memory)
    return Checking(state, short_rows(16, ChunkColumn.COLUMNS), *tables, scratch(64))


def test_memory_without_numpy_is_taken_as_an_array_is(kernels):
    for pages in (scratch(PAGE_SIZE), memoryview(b"")):
        assert kernels.check_table(pages, len(pages) // PAGE_SIZE, plain_checking()) == (0, Status.FALLBACK)
    written = plain_checking()
    pages = np.zeros(PAGE_SIZE, dtype=np.uint8)
    pages[:] = 1  # no page
    assert kernels.check_table(memoryview(pages), 1, written) == kernels.check_table(pages, 1, make_checking())


def test_arrays_without_items_are_taken(kernels):
    assert kernels.check_table(zeros(np.uint8, 0), 0, make_checking()) == (0, Status.FALLBACK)


WRONG = {
    "another type": lambda: (zeros(np.int8, PAGE_SIZE), 1, make_checking()),
    "other dimensions": lambda: (zeros(np.uint8, 1, PAGE_SIZE), 1, make_checking()),
    "holes": lambda: (zeros(np.uint8, 2 * PAGE_SIZE)[::2], 1, make_checking()),
    "memory of another type": lambda: (memoryview(bytearray(PAGE_SIZE)).cast("b"), 1, make_checking()),
    "memory of other dimensions": lambda: (scratch(PAGE_SIZE).cast("B", [1, PAGE_SIZE]), 1, make_checking()),
    "memory with holes": lambda: (scratch(2 * PAGE_SIZE)[::2], 1, make_checking()),
    "another type in a tuple": lambda: (zeros(np.uint8, PAGE_SIZE), 1, make_checking(state=zeros(np.int32, 22))),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_an_array_of_another_kind_is_refused(kernels, make):
    with pytest.raises(TypeError, match=r"expected [12] of (uint8|int64), in one piece"):
        kernels.check_table(*make())


def test_other_arguments_are_refused(kernels):
    with pytest.raises(ValueError, match="argument"):
        kernels.check_table(zeros(np.uint8, PAGE_SIZE), 1)
    with pytest.raises(ValueError, match="argument"):
        kernels.check_table(zeros(np.uint8, PAGE_SIZE), 1, make_checking()[:-1])


def test_arrays_in_a_tuple_are_not_kept_and_new_ones_in_their_place_are_seen(kernels):
    pages, checking = zeros(np.uint8, PAGE_SIZE), make_checking()
    for _ in range(3):
        kernels.check_table(pages, 1, checking)
    other = make_checking(scratch=checking.scratch)
    pages[:] = 1  # not blank, and no page
    other.state[Field.PAGE] = checking.state[Field.PAGE] = 0
    kernels.check_table(pages, 1, other)
    gone = weakref.ref(checking.state)
    del checking
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("log", ["ibb/domains", "classic/10.11/domains/binlog.000001"])
def test_who_verifies_with_kernels_loads_no_numpy_and_nothing_that_reads_redo_logs(fixtures, said_by, log):
    assert said_by(VERIFY.format(log=str(fixtures / log))).splitlines()[-1] == "ibbmaster.kernel.entries"


def test_a_library_of_other_sources_or_without_a_kernel_is_refused(monkeypatch):
    """It would write where these have other fields."""
    Entries(LIBRARY)
    monkeypatch.setattr(entries, "digest", lambda: "of others")
    with pytest.raises(OSError, match=r"is of other sources: python -m ibbmaster\.kernel\.building makes it anew"):
        Entries(LIBRARY)
    with pytest.raises(AttributeError, match="ibbmaster_index_chunks"):
        Entries(ctypes.util.find_library("c"))
