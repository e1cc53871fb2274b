"""A place for objects that are put and read whole: in an object store, or a directory of this machine that plays one.

Objects are created once; one that changes is exchanged for another only while it is still the one that was read."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from ibbmaster.errors import ConfigurationError, MissingFileError, StoreError
from ibbmaster.storage.codec.buffer import Buffer
from .interface import owning
from .local import RealDisk
from .object_store import EXISTS, BusyNameError, ChangedError, StoredObject, Version, client_of
from .place import ObjectPath

STAGED = ".put-"  # begins the names of files that are half written


class WholeObjects(Protocol):
    """Thread-safe. Every call may raise StoreError."""

    url: str

    def list(self) -> tuple[list[StoredObject], list[str]]: ...

    def get(self, name: str) -> tuple[Buffer, Version]:
        """All of an object. Raises MissingFileError: there is none."""

    def create(self, name: str, data: Buffer) -> None:
        """Raises BusyNameError: one has that name."""

    def upload(self, name: str, path: Path, size: int) -> None:
        """`create` with the first bytes of a file."""

    def exchange(self, name: str, data: Buffer, known: Version | None) -> Version:
        """Put it in place of the known one, or of none. Raises BusyNameError, ChangedError: another one is there."""

    def remove(self, name: str) -> None:
        """One that is missing is no error."""


def objects_at(place: Path) -> WholeObjects:
    """Raises ConfigurationError: it is a file, or a URL that cannot be used."""
    if isinstance(place, ObjectPath):
        return client_of(str(place))
    if place.exists() and not place.is_dir():
        raise ConfigurationError(f"{place} is a file: expected a directory, or a URL of an object store")
    return LocalObjects(place)


class LocalObjects:
    """What was put is durable."""

    def __init__(self, directory: Path) -> None:
        self.url = str(directory)
        self._directory = directory
        self._disk = RealDisk(directory)

    def list(self) -> tuple[list[StoredObject], list[str]]:
        if not self._directory.is_dir():
            return [], []
        names = [name for name in self._disk.list() if not name.startswith(STAGED)]
        return [StoredObject(name, self._disk.size(name), self._disk.modified_at(name), None) for name in names], []

    def get(self, name: str) -> tuple[Buffer, Version]:
        with self._errors(name):
            data = (self._directory / name).read_bytes()
        return data, _version(data)

    def create(self, name: str, data: Buffer) -> None:
        with self._staged(name, data) as staged:
            (self._directory / name).hardlink_to(staged)

    def upload(self, name: str, path: Path, size: int) -> None:
        with path.open("rb") as file:
            self.create(name, file.read(size))

    def exchange(self, name: str, data: Buffer, known: Version | None) -> Version:
        if known is None:
            self.create(name, data)
            return _version(data)
        disk = RealDisk(self._directory)  # whose lock is not that of another thread
        with owning(disk), contextlib.closing(disk), self._staged(name, data) as staged:
            if self.get(name)[1] != known:
                raise ChangedError(f"{self.url}/{name}: another process has changed it")
            staged.replace(self._directory / name)
        return _version(data)

    def remove(self, name: str) -> None:
        with contextlib.suppress(MissingFileError):
            self._disk.unlink(name)

    @contextlib.contextmanager
    def _staged(self, name: str, data: Buffer) -> Iterator[Path]:
        staged = self._directory / f"{STAGED}{name}"
        with self._errors(name):
            self._directory.mkdir(parents=True, exist_ok=True)
            staged.unlink(missing_ok=True)  # a killed process left it
        self._disk.create(staged.name)
        try:
            self._disk.write(staged.name, 0, data)
            self._disk.sync(staged.name)
            with self._errors(name):
                yield staged
        finally:
            self.remove(staged.name)
        self._disk.sync_dir()

    @contextlib.contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise BusyNameError(f"{self.url}/{name} {EXISTS}") from None
        except FileNotFoundError:
            raise MissingFileError(f"{self.url}/{name}: no such file or directory") from None
        except OSError as error:
            raise StoreError(f"{self.url}/{name}: {error.strerror}") from None


def _version(data: Buffer) -> Version:
    return {"e_tag": hashlib.sha256(data).hexdigest()}
