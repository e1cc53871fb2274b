"""Objects in memory, which fail on cue: `WholeObjects` for tests, with what it is asked."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.object_store import BusyNameError, ChangedError, StoredObject, Version


class KilledError(BaseException):
    """As a kill, nobody catches it."""


class MemoryObjects:
    """`fails_at` is the number of the call that fails, counted from 0: before it did something, or after it with
    `is_lost`. With `kills` nobody catches that. `on_change` hears of each change; `wait` is called before each call."""

    url = "memory"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.calls: list[tuple[str, str]] = []
        self.fails_at: int | None = None
        self.is_lost = self.kills = False
        self.is_dead = False
        self.name_asked = ""  # when `wait` is called
        self.on_change: Callable[[], object] = lambda: None
        self.wait: Callable[[], object] = lambda: None
        self._versions: dict[str, int] = {}
        self._lock = threading.Lock()

    def list(self) -> tuple[list[StoredObject], list[str]]:
        with self._called("list", ""):
            return [StoredObject(name, len(data), 0.0, None) for name, data in self.objects.items()], []

    def get(self, name: str) -> tuple[Buffer, Version]:
        with self._called("get", name):
            if name not in self.objects:
                raise MissingFileError(f"{name}: no such object")
            return self.objects[name], self._version(name)

    def create(self, name: str, data: Buffer) -> None:
        with self._called("create", name):
            if name in self.objects:
                raise BusyNameError(f"{name} is there already")
            self._put(name, data)

    def upload(self, name: str, path: Path, size: int) -> None:
        self.create(name, path.read_bytes()[:size])

    def exchange(self, name: str, data: Buffer, known: Version | None) -> Version:
        with self._called("exchange", name):
            if (None if name not in self.objects else self._version(name)) != known:
                raise ChangedError(f"{name}: another one is there")
            self._put(name, data)
            return self._version(name)

    def remove(self, name: str) -> None:
        with self._called("remove", name):
            self.objects.pop(name, None)
            self.on_change()

    def _version(self, name: str) -> Version:
        return {"e_tag": str(self._versions.get(name, 0))}

    def _put(self, name: str, data: Buffer) -> None:
        self.objects[name] = bytes(data)
        self._versions[name] = self._versions.get(name, 0) + 1
        self.on_change()

    @contextmanager
    def _called(self, what: str, name: str) -> Iterator[None]:
        self.name_asked = name
        self.wait()
        with self._lock:
            fails = self.is_dead or len(self.calls) == self.fails_at
            self.calls.append((what, name))
            error = (KilledError if self.kills else StoreError)(f"{what} {name}: the store is unreachable")
            if fails and not self.is_lost:
                raise error
            try:
                yield
            finally:
                if fails:
                    raise error
