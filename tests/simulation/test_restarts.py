"""A start does as much as the log behind the last checkpoint asks, whatever is in doubt.

`python -m benchmarks.table --rows restart` measures the times.
"""

import shutil

from benchmarks.restart import build, copy_of, start
from ibbmaster.storage.disk.local import RealDisk

SIZES_MB = (1, 50)


class CountingDisk(RealDisk):
    calls = 0
    bytes = 0


def counted(verb):
    real = getattr(RealDisk, verb)

    def call(self, *given, **options):
        found = real(self, *given, **options)
        self.calls += 1
        self.bytes += sum(len(one) for one in (*given, found) if isinstance(one, (bytes, bytearray, memoryview)))
        return found

    return call


for verb in ("read", "read_into", "write", "truncate", "sync", "unlink"):
    setattr(CountingDisk, verb, counted(verb))


def test_a_start_after_a_crash_does_no_more_with_50_megabytes_in_doubt(memory_path):
    calls, sizes = {}, {}
    for size_mb in SIZES_MB:
        directory = memory_path / str(size_mb)
        directory.mkdir()
        build(directory, size_mb)
        disk = CountingDisk(copy_of(directory, memory_path / "copy"))
        start(disk)  # up to the first group of a reader
        disk.close()
        calls[size_mb], sizes[size_mb] = disk.calls, disk.bytes
        shutil.rmtree(memory_path / "copy")
        shutil.rmtree(directory)
    print(f"calls {calls}; bytes {sizes}")
    assert max(calls.values()) <= 1.2 * calls[1]
    assert max(sizes.values()) <= 1.2 * sizes[1]
