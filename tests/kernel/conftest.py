"""The kernels, pieces of them, and processes that have loaded none."""

import ctypes
import os
import platform
import subprocess
import sys

import pytest

from ibbmaster.kernel import loading
from ibbmaster.kernel.building import compile_library

PIECES = """
#define DIGEST ""
#include "kernels.c"
int64_t crc32_of(const uint8_t *bytes, int64_t size, int64_t before, int lanes) {
    lanes_at_once = min64(lanes, lanes_at_once);
    return crc32(bytes, size, before);
}
int day_of(int64_t year, int64_t month, int64_t day, int64_t *days) { return days_of(year, month, day, days); }
int decimal_of(uint8_t *at, int64_t size, int64_t digits, int64_t scale, __int128 *value) {
    return read_decimal((Bytes){at, size}, 0, digits, scale, value);
}
int64_t fraction(uint8_t *at, int64_t size, int64_t digits) { return fraction_of((Bytes){at, size}, 0, digits); }
int64_t crc32c_of(const uint8_t *page) { return page_crc(page); }
int64_t is_good(const uint8_t *page) { return is_page_good(page); }
int64_t end_of(int64_t position, int64_t size) { return place_record(NULL, size, NULL, position); }
int64_t place(const uint8_t *record, int64_t size, uint8_t *pages, int64_t at) {
    return place_record(record, size, pages, at);
}
"""


@pytest.fixture(scope="session")
def pieces(tmp_path_factory):
    """Functions that kernels are made of."""
    source = tmp_path_factory.mktemp("pieces") / "pieces.c"
    source.write_text(PIECES)
    compile_library(source, source.with_suffix(".so"), platform.machine())
    loaded = ctypes.CDLL(str(source.with_suffix(".so")))
    for function in (loaded.crc32_of, loaded.crc32c_of, loaded.is_good, loaded.end_of, loaded.place, loaded.fraction):
        function.restype = ctypes.c_int64
    return loaded


@pytest.fixture(scope="session")
def kernels():
    found = loading.load()
    assert found is not None
    return found


@pytest.fixture
def said_by():
    """What a fresh process prints, on both channels."""

    def run(program, **environment):
        env, command = {**os.environ, **environment}, [sys.executable, "-c", program]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=True)
        return (done.stdout + done.stderr).strip()

    return run
