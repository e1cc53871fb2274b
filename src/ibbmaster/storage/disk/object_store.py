"""Requests to object stores, by URL.

The library `obstore` reads credentials, endpoint, region and timeouts from the environment (AWS_ENDPOINT_URL, …)."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from ibbmaster.errors import ConfigurationError, MissingFileError, StoreError
from ibbmaster.extras import needed_for
from ibbmaster.storage.codec.buffer import Buffer

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutResult
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

STORES_MAX = 64  # clients that are kept, each of one directory
RETRIES_MAX = 4
RETRY_S = 30.0  # for all attempts of one request together
CONNECT_S, ANSWER_S = 5, 60
PROBLEM_SIZE_MAX = 300  # characters of what a store says
PARTS_FROM_BYTES = 32 << 20
PART_BYTES, PARTS_AT_ONCE = 8 << 20, 4
EXISTS = "is there already, and objects are never overwritten"
NO_BUCKET = "there is no such bucket"
REFUSAL = "the object store refuses access: credentials or rights are missing"

_REFUSED = re.compile(r"status code: 40[13]\b", re.ASCII)
_REQUEST = re.compile(
    r"Error performing [A-Z]+ (https?://[^/\s]+)\S* in [^,\s]+(?:, after (\d+) retries)?.*? - (.*)", re.ASCII
)
_ENDPOINTS = (
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT",
    "AWS_ENDPOINT_URL_S3",
    "AZURE_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT",
    "GOOGLE_BASE_URL",
)
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_METADATA_SERVICES = ("169.254.169.254", "metadata.google.internal", "169.254.170.2")


class StoredObject(NamedTuple):
    name: str
    size: int
    modified_at: float  # in seconds since 1970
    version: str | None  # of these bytes, as If-Match takes it


Version = Mapping[str, str]  # of an object that was read whole, for its exchange


class ChangedError(StoreError):
    """Another object has replaced the one found before."""


class BusyNameError(StoreError):
    """An object has that name already."""


class RefusalError(StoreError):
    """The store refuses access, or has no such bucket: another attempt does not change that."""


class ObjectClient:
    """Requests to one directory: the objects whose names begin with a URL and a slash. Thread-safe. Raises
    ConfigurationError: the URL or the environment cannot be used; ExtraMissingError: the library is not installed; each
    request, StoreError: the store cannot be reached, or refuses."""

    def __init__(self, url: str) -> None:
        self.url = url
        with needed_for(url):
            import obstore
            from obstore.exceptions import BaseError
            from obstore.store import from_url

        self._library = obstore
        scheme, _, rest = url.partition("://")
        retries: RetryConfig = {"max_retries": RETRIES_MAX, "retry_timeout": timedelta(seconds=RETRY_S)}
        try:
            self._store: ObjectStore = from_url(
                f"{scheme}://{quote(rest, safe='/@:._-')}", client_options=_client_options(), retry_config=retries
            )
        except (BaseError, ValueError) as error:
            raise ConfigurationError(f"{url}: {_said(error)}") from None

    def list(self) -> tuple[list[StoredObject], list[str]]:
        """The objects, and the directories below, in no order."""
        with self._errors(""):
            answer = self._library.list_with_delimiter(self._store)
            below = [prefix.rstrip("/").rpartition("/")[2] for prefix in answer["common_prefixes"]]
            return [_found(one) for one in answer["objects"]], below

    def head(self, name: str) -> StoredObject | None:
        try:
            with self._errors(name):
                return _found(self._library.head(self._store, name))
        except MissingFileError:
            return None

    def read(self, found: StoredObject, start: int, end: int) -> Buffer:
        """Raises ChangedError, MissingFileError: it is no longer as it was found."""
        with self._errors(found.name):
            options = {"range": (start, end)}
            if found.version is not None:
                options["if_match"] = found.version  # type: ignore[assignment]
            data = self._library.get(self._store, found.name, options=options).bytes()  # type: ignore[arg-type]
        if len(data) != end - start:
            raise StoreError(f"{self.url}/{found.name}: {len(data)} bytes at offset {start} in place of {end - start}")
        return memoryview(data)

    def get(self, name: str) -> tuple[Buffer, Version]:
        with self._errors(name):
            found = self._library.get(self._store, name)
            return memoryview(found.bytes()), _whole_version(found.meta)

    def exchange(self, name: str, data: Buffer, known: Version | None) -> Version:
        """Raises BusyNameError, ChangedError: another object is there; without conditional puts it is replaced."""
        from obstore.exceptions import NotSupportedError

        with self._errors(name):
            mode: Any = "create" if known is None else known
            try:
                put = self._library.put(self._store, name, bytes(data), mode=mode)
            except (NotImplementedError, NotSupportedError):
                put = self._library.put(self._store, name, bytes(data))
            return _whole_version(put)

    def create(self, name: str, data: Buffer) -> None:
        """Put a new object, whole or not at all. Raises BusyNameError: one has that name."""
        with self._errors(name):
            self._library.put(self._store, name, bytes(data), mode="create")

    def replace(self, name: str, data: Buffer) -> None:
        with self._errors(name):
            self._library.put(self._store, name, bytes(data))

    def upload(self, name: str, path: Path, size: int) -> None:
        """Put the first bytes of a file as a new object; a large one in parts, which replace any object that came
        meanwhile: a place allows one upload at a time. Raises BusyNameError: an object has that name."""
        if size <= PARTS_FROM_BYTES:
            with path.open("rb") as file:
                self.create(name, file.read(size))
            return
        if self.head(name) is not None:
            raise BusyNameError(f"{self.url}/{name} {EXISTS}")
        with self._errors(name), path.open("rb") as file:
            parts = (file.read(min(PART_BYTES, size - at)) for at in range(0, size, PART_BYTES))
            self._library.put(self._store, name, parts, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)

    def remove(self, name: str) -> None:
        with self._errors(name), suppress(FileNotFoundError):  # S3 alone says nothing of it
            self._library.delete(self._store, name)

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        from obstore import exceptions

        where = f"{self.url}/{name}" if name else self.url
        try:
            yield
        except exceptions.AlreadyExistsError:
            raise BusyNameError(f"{where} {EXISTS}") from None
        except exceptions.PreconditionError:
            raise ChangedError(f"{where}: another object has taken its place while it was read") from None
        except (exceptions.BaseError, OSError, ValueError) as error:
            if any(code in str(error) for code in _NO_BUCKET):
                raise MissingFileError(f"{self.url}: {NO_BUCKET}") from None
            if isinstance(error, FileNotFoundError):
                raise MissingFileError(f"{where}: no such object, or no such bucket") from None
            is_refusal = isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError)
            if is_refusal or _REFUSED.search(str(error)):
                raise RefusalError(f"{where}: {REFUSAL}") from None
            raise StoreError(f"{where}: {_said(error)}") from None


def client_of(url: str) -> ObjectClient:
    """After a fork another one."""
    return _client_of(url, os.getpid())


@functools.lru_cache(maxsize=STORES_MAX)
def _client_of(url: str, process: int) -> ObjectClient:
    return ObjectClient(url)


def _found(meta: ObjectMeta) -> StoredObject:
    name = meta["path"].rpartition("/")[2]
    version = meta["e_tag"]
    if version and not version.endswith('"'):
        version = f'"{version}"'  # as If-Match and all answers but Azure's listings have it
    return StoredObject(name, meta["size"], meta["last_modified"].timestamp(), version)


def _whole_version(found: ObjectMeta | PutResult) -> Version:
    return {name: value for name in ("e_tag", "version") if (value := found.get(name))}  # type: ignore[misc]


def storage_options() -> dict[str, str] | None:
    """Further settings, in delta-rs's form."""
    return {"allow_http": "true"} if _client_options().get("allow_http") else None


def _client_options() -> ClientConfig:
    options: ClientConfig = {}
    if not os.environ.get("AWS_CONNECT_TIMEOUT"):
        options["connect_timeout"] = timedelta(seconds=CONNECT_S)
    if not os.environ.get("AWS_TIMEOUT"):
        options["timeout"] = timedelta(seconds=ANSWER_S)
    if any(os.environ.get(name, "").startswith("http://") for name in _ENDPOINTS):
        options["allow_http"] = True
    return options


def _said(error: Exception) -> str:
    text = str(error).partition("\n")[0].strip()
    if any(address in str(error) for address in _METADATA_SERVICES):
        return (
            "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the variables of the store "
            "(AWS_SKIP_SIGNATURE=true for a public bucket)"
        )
    if failed := _REQUEST.search(text):
        tries = f", {failed[2]} retries" if failed[2] else ""
        text = f"{failed[3]} ({failed[1]}{tries})"
    return text.partition(": <?xml")[0][:PROBLEM_SIZE_MAX] or type(error).__name__
