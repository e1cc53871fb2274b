"""The kernels, built with AddressSanitizer and UBSan, over pages and files with changed bytes under right checksums.

`IBBMASTER_SANITIZED_PAGES=1000000` tries a million; the line tries a sample.
"""

import os
import platform
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ibbmaster.kernel.building import BuildError, compile_library
from ibbmaster.kernel.entries import SOURCES, digest

ROOT = Path(__file__).parents[2]
PAGES = int(os.environ.get("IBBMASTER_SANITIZED_PAGES", "3000"))
FLAGS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-sanitize=alignment")
PROGRAM = '''
import random, sys, zlib
from pathlib import Path

library, seed, count, root = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
from ibbmaster.kernel.calls import Collecting, FileRange, Framing
from ibbmaster.kernel.entries import Entries
from ibbmaster.kernel.fields import CHUNKS_PER_PAGE_MAX, ChunkColumn, Field, GroupColumn, PAIR_COLUMNS, EventColumn
from ibbmaster.kernel.plain_memory import NOTHING, RowTable, kept, numbers, scratch
from ibbmaster.logs.classic.roles import kernel_roles
from ibbmaster.storage.ibb.page import PAGE_SIZE, seal_page

BLOCK = 8
rng, kernels = random.Random(seed), Entries(library)


def change(data, first, last):
    for _ in range(rng.choice((0, 1, 1, 2, 8))):
        data[rng.randrange(first, last)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def shorts(rows):
    """On the heap, where the sanitizer knows its end; `short_rows` maps pages."""
    return memoryview(bytearray(4 * rows * ChunkColumn.COLUMNS)).cast("i", shape=[rows, int(ChunkColumn.COLUMNS)])


def framing_of(out_size):
    state = numbers(Field.SIZE)
    state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
    parts = scratch(32), scratch(64), scratch(8), RowTable(64, PAIR_COLUMNS).memory
    return Framing(state, *parts, shorts(rng.choice((4, 64, 4096))), scratch(out_size), NOTHING)


def try_pages(pages):
    pages, size = kept(pages), len(pages) // PAGE_SIZE
    for call in (kernels.frame_table, lambda *given: kernels.skip_table(*given, NOTHING), kernels.frame_node):
        framing = framing_of(rng.choice((0, 100, 3 * PAGE_SIZE * BLOCK)))
        call(pages, size, framing)
    state = numbers(Field.SIZE)
    state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
    rows, data = RowTable(64, GroupColumn.COLUMNS), scratch(rng.choice((64, PAGE_SIZE, (BLOCK + 1) * PAGE_SIZE)))
    collecting = Collecting(state, shorts(CHUNKS_PER_PAGE_MAX), rows.memory, data)
    kernels.collect_table(pages, size, collecting, FileRange(0, 0, 1 << 40))
    if state[Field.GROUPS]:
        events = RowTable(256, EventColumn.COLUMNS)
        kernels.index_events(data, rows.memory, state[Field.GROUPS], events.memory)
    kernels.index_chunks(pages, size, numbers(Field.SIZE), shorts(rng.choice((1, 2, 64))), 0)


def try_window(data, begin):
    window = kept(data)
    for out_size in (0, 200, 2 * len(data)):
        framing = framing_of(out_size)
        framing.state[Field.CHECKSUM_BYTES], framing.state[Field.FILE_SIZE] = 4, begin + len(data)
        framing.state[Field.PASSES_OVER] = not out_size
        framing.state[Field.SOURCE_OFFSET] = begin
        kernels.frame_classic(window, len(data), framing, kernel_roles(), NOTHING)


def with_checksums(data):
    """Events with right checksums as far as their sizes lead."""
    at = 0
    while at + 23 <= len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        if not 23 <= size <= len(data) - at:
            return data
        data[at + size - 4 : at + size] = zlib.crc32(data[at : at + size - 4]).to_bytes(4, "little")
        at += size
    return data


logs = [path.read_bytes() for path in sorted(root.glob("fixtures/ibb*/*/*.ibb")) if path.stat().st_size > 2 * PAGE_SIZE]
files = [path.read_bytes() for path in sorted(root.glob("fixtures/classic/1*/*/binlog.0*[0-9]"))]
assert logs and files
tried = 0
while tried < count:
    log = rng.choice(logs)
    first = rng.randrange(1, len(log) // PAGE_SIZE)
    block = bytearray(log[first * PAGE_SIZE : (first + rng.randrange(1, BLOCK + 1)) * PAGE_SIZE])
    sealed = bytearray()
    for at in range(0, len(block) // PAGE_SIZE * PAGE_SIZE, PAGE_SIZE):
        page = block[at : at + PAGE_SIZE]
        change(page, 0, rng.choice((16, 200, PAGE_SIZE - 4)))
        seal_page(page)
        sealed += page
        tried += 1
    try_pages(bytes(sealed))
    file = rng.choice(files)
    begin = rng.choice((4, 256, rng.randrange(4, len(file))))
    data = bytearray(file[begin : begin + rng.randrange(64, 1 << 14)])
    change(data, 0, min(len(data), rng.choice((64, 1 << 14))))
    try_window(bytes(with_checksums(data)), begin)
    tried += 1
print("tried", tried)
'''


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory) -> Path:
    """The library with checks of every access."""
    target = tmp_path_factory.mktemp("sanitized") / "kernels.so"
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler `cc`, whose runtime of the sanitizers is needed")
    try:
        compile_library(SOURCES / "kernels.c", target, platform.machine(), *FLAGS, f'-DDIGEST="{digest()}"')
    except BuildError as error:
        pytest.skip(f"this compiler has no sanitizers: {str(error).splitlines()[-1]}")
    return target


def runtime(name: str) -> str:
    found = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def lift_limit() -> None:
    """The shadow of all memory is reserved, which the limit of the suite does not allow."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def test_no_changed_byte_leads_a_kernel_beyond_its_buffers(sanitized):
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(sanitized), str(seed), str(PAGES), str(ROOT)],
        env={**os.environ, "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libubsan.so')}",
             "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"},
        capture_output=True, text=True, check=False, preexec_fn=lift_limit,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout.startswith("tried ")
