"""A directory in memory, to be read, damaged and counted at will."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.ibb.appender import PageChange
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE, seal_page

ALLOCATED_MAX = 128 << 20  # bytes of a file


def check_size(name: str, size: int) -> None:
    assert size <= ALLOCATED_MAX, f"{name} would take {size} bytes of memory: give the log a smaller max_file_bytes"


class MemoryFiles(ABC):
    @abstractmethod
    def read(self, name: str, offset: int, size: int) -> bytes: ...

    def read_into(self, name: str, offset: int, target: memoryview, *, only_cached: bool = False) -> int:
        data = self.read(name, offset, len(target))
        target[: len(data)] = data
        return len(data)

    def next_data(self, name: str, offset: int) -> int:
        return offset

    def open(self, name: str) -> int | None:
        return None


class MemoryDisk(MemoryFiles):
    """A `Disk` that holds its `files`: name -> bytes. `reads` counts calls of `read`, `pages_read` pages."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files: dict[str, bytearray] = {}
        for name, content in (files or {}).items():
            check_size(name, len(content))
            self.files[name] = bytearray(content)
        self.reads = 0
        self.pages_read = 0

    def __str__(self) -> str:
        return "(memory)"

    def lock(self) -> None:
        pass

    def close(self) -> None:
        pass

    def list(self) -> list[str]:
        return list(self.files)

    def size(self, name: str) -> int:
        return len(self._file(name))

    def modified_at(self, name: str) -> float:
        self._file(name)
        return 0.0

    def read(self, name: str, offset: int, size: int) -> bytes:
        data = bytes(self._file(name)[offset : offset + size])
        self.reads += 1
        self.pages_read += -(-len(data) // PAGE_SIZE)
        return data

    def create(self, name: str) -> None:
        if name in self.files:
            raise StoreError(f"{name}: file exists")
        self.files[name] = bytearray()

    def write(self, name: str, offset: int, data: Buffer) -> None:
        file = self._file(name)
        if len(file) < offset:
            file.extend(bytes(offset - len(file)))
        file[offset : offset + len(data)] = data

    def publish(self, name: str, data: Buffer) -> None:
        pass

    def allocate(self, name: str, size: int) -> None:
        self.truncate(name, max(size, self.size(name)))

    def truncate(self, name: str, size: int) -> None:
        check_size(name, size)
        file = self._file(name)
        del file[size:]
        file.extend(bytes(size - len(file)))

    def sync(self, name: str) -> None:
        self._file(name)

    def sync_dir(self) -> None:
        pass

    def unlink(self, name: str) -> None:
        self._file(name)
        del self.files[name]

    def place(self, changes: Iterable[PageChange], *, size_pages: int) -> None:
        for change in changes:
            name = format_file_name(change.file_no)
            if name not in self.files:
                self.create(name)
                self.allocate(name, size_pages * PAGE_SIZE)
            start = change.page_no * PAGE_SIZE
            self.write(name, start + change.page_offset, change.data)
            if change.page_no:  # a header comes sealed
                page = bytearray(self.files[name][start : start + PAGE_SIZE])
                page[DATA_SIZE:] = bytes(PAGE_SIZE - DATA_SIZE)
                seal_page(page)
                self.write(name, start, page)

    def _file(self, name: str) -> bytearray:
        try:
            return self.files[name]
        except KeyError:
            raise MissingFileError(f"{name}: no such file or directory") from None
