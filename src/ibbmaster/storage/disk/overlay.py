"""A directory with changes in memory alone: the result of recovery, without writing."""

from collections.abc import Sequence

from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.ibb.page import PAGE_SIZE
from .interface import ReadDisk


class _Changed:
    def __init__(self, size: int, below: int) -> None:
        self.size = size
        self.below = below
        self.pages: dict[int, bytes] = {}


class OverlayDisk:
    """A `Disk` that hides its changes from the one below, at a memory cost of about its writes. Reading is thread-safe,
    changing is not. With `is_empty` it hides all that is below."""

    def __init__(self, disk: ReadDisk, *, is_empty: bool = False) -> None:
        self._disk = disk
        self._changed: dict[str, _Changed] = {}
        self._gone: set[str] = set(disk.list()) if is_empty else set()

    def __str__(self) -> str:
        return str(self._disk)

    def changed_pages(self, name: str) -> list[int]:
        changed = self._changed.get(name)
        return [] if changed is None else sorted(changed.pages)

    @property
    def changed_files(self) -> list[str]:
        return sorted(self._changed)

    def lock(self) -> None: ...

    def list(self) -> Sequence[str]:
        return [*(name for name in self._disk.list() if name not in self._gone | self._changed.keys()), *self._changed]

    def size(self, name: str) -> int:
        changed = self._changed.get(name)
        return self._below(name).size(name) if changed is None else changed.size

    def modified_at(self, name: str) -> float:
        return self._below(name).modified_at(name)

    def read(self, name: str, offset: int, size: int) -> bytes:
        changed = self._changed.get(name)
        if changed is None:
            return self._below(name).read(name, offset, size)
        end = min(offset + size, changed.size)
        if end <= offset:
            return b""
        data = bytearray(end - offset)
        if offset < changed.below:
            below = self._disk.read(name, offset, min(end, changed.below) - offset)
            data[: len(below)] = below
        for page_no in range(offset // PAGE_SIZE, -(-end // PAGE_SIZE)):
            page = changed.pages.get(page_no)
            if page is not None:
                start = page_no * PAGE_SIZE
                first, last = max(start, offset), min(start + PAGE_SIZE, end)
                data[first - offset : last - offset] = page[first - start : last - start]
        return bytes(data)

    def read_into(self, name: str, offset: int, target: memoryview, *, only_cached: bool = False) -> int | None:
        if name not in self._changed:
            return self._below(name).read_into(name, offset, target, only_cached=only_cached)
        if only_cached:
            return None
        data = self.read(name, offset, len(target))
        target[: len(data)] = data
        return len(data)

    def next_data(self, name: str, offset: int) -> int:
        return offset if name in self._changed else self._below(name).next_data(name, offset)

    def open(self, name: str) -> int | None:
        return None if name in self._changed else self._below(name).open(name)

    def create(self, name: str) -> None:
        if name in self.list():
            raise StoreError(f"{self}: {name} is there already")
        self._gone.discard(name)
        self._changed[name] = _Changed(0, 0)

    def write(self, name: str, offset: int, data: Buffer) -> None:
        changed = self._change(name)
        done = 0
        while done < len(data):
            page_no, start = divmod(offset + done, PAGE_SIZE)
            piece = bytes(data[done : done + PAGE_SIZE - start])
            page = bytearray(self.read(name, page_no * PAGE_SIZE, PAGE_SIZE).ljust(PAGE_SIZE, b"\0"))
            page[start : start + len(piece)] = piece
            changed.pages[page_no] = bytes(page)
            done += len(piece)
        changed.size = max(changed.size, offset + len(data))

    def publish(self, name: str, data: Buffer) -> None: ...

    def allocate(self, name: str, size: int) -> None:
        changed = self._change(name)
        changed.size = max(changed.size, size)

    def truncate(self, name: str, size: int) -> None:
        changed = self._change(name)
        changed.size, changed.below = size, min(changed.below, size)
        for page_no in [page_no for page_no in changed.pages if page_no * PAGE_SIZE >= size]:
            del changed.pages[page_no]
        last_no, kept = divmod(size, PAGE_SIZE)
        if last_no in changed.pages:  # what is cut off must not come back when the file grows again
            changed.pages[last_no] = changed.pages[last_no][:kept].ljust(PAGE_SIZE, b"\0")

    def sync(self, name: str) -> None:
        self.size(name)

    def sync_dir(self) -> None: ...

    def unlink(self, name: str) -> None:
        self.size(name)
        self._changed.pop(name, None)
        self._gone.add(name)

    def close(self) -> None: ...

    def _below(self, name: str) -> ReadDisk:
        if name in self._gone:
            raise MissingFileError(f"{self}: {name}: no such file or directory")
        return self._disk

    def _change(self, name: str) -> _Changed:
        if name not in self._changed:
            size = self._below(name).size(name)
            self._changed[name] = _Changed(size, size)
        return self._changed[name]
