"""An object store for tests: moto's S3 over real HTTP, which counts what it is asked and can be told to fail.

It answers clients of Google Cloud Storage, too, whose XML API is that of S3 but for two headers.
"""

import itertools
import json
import logging
import os
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

BUCKET = "logs"


class Request(NamedTuple):
    method: str
    path: str
    range: str
    query: str


class ObjectStore:
    """A running store.

    Attributes:
        requests: what it was asked.
        fault: of a request the status to refuse it with, or "break" to send half of the answer; None to answer.
    """

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from obstore.store import S3Store
        from werkzeug.serving import make_server

        self._application = DomainDispatcherApplication(create_backend_app)
        self._numbers = itertools.count()
        self.requests: list[Request] = []
        self.fault: Callable[[Request], int | str | None] = lambda request: None
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.endpoint = f"http://127.0.0.1:{self._server.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.make_bucket(BUCKET)
        self._client = S3Store(
            BUCKET,
            endpoint=self.endpoint,
            access_key_id="tests",
            secret_access_key="tests",
            region="us-east-1",
            client_options={"allow_http": True},
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "tests",
            "AWS_REGION": "us-east-1",
        }

    def google_environment(self, directory: Path) -> dict[str, str]:
        """What clients of Google's need to know, for which a file is written."""
        account = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        path = directory / "account.json"
        path.write_text(json.dumps(account | {"disable_oauth": True}))
        return {"GOOGLE_SERVICE_ACCOUNT": str(path), "GOOGLE_BASE_URL": self.endpoint}

    def make_bucket(self, name: str) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")).close()

    def new_place(self) -> str:
        return f"s3://{BUCKET}/{next(self._numbers)}"

    def put(self, url: str, data: bytes) -> None:
        self._client.put(url.removeprefix(f"s3://{BUCKET}/"), data)

    def remove(self, url: str) -> None:
        self._client.delete(url.removeprefix(f"s3://{BUCKET}/"))

    def objects(self, prefix: str) -> list[Any]:
        return [one for page in self._client.list(prefix) for one in page]

    def copy(self, directory: Path) -> str:
        url = self.new_place()
        for path in directory.iterdir():
            if path.is_file():
                self.put(f"{url}/{path.name}", path.read_bytes())
        return url

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _has(self, path: str) -> bool:
        try:
            self._client.head(path.removeprefix(f"/{BUCKET}/"))
        except FileNotFoundError:
            return False
        return True

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(
            environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_RANGE", ""), environ["QUERY_STRING"]
        )
        self.requests.append(request)
        fault = self.fault(request)
        if isinstance(fault, int):
            start_response(f"{fault} refused", [("Content-Length", "0")])
            return [b""]
        if not environ.get("HTTP_AUTHORIZATION", "").startswith("AWS4"):
            if request.method == "DELETE" and not self._has(request.path):
                start_response("404 Not Found", [("Content-Length", "0")])
                return [b""]
            _as_s3(environ)
        if fault is None:
            return self._application(environ, start_response)
        answer = b"".join(self._application(environ, start_response))
        return [answer[: len(answer) // 2]]  # and less than its head has announced


def _as_s3(environ: dict[str, Any]) -> None:
    """Make a request of Google's XML API one of S3: they differ in the login, and in how a new object is asked for."""
    environ["HTTP_AUTHORIZATION"] = "AWS4-HMAC-SHA256 Credential=tests/20260101/us-east-1/s3/aws4_request"
    if environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None) == "0":
        environ["HTTP_IF_NONE_MATCH"] = "*"


@pytest.fixture(scope="session")
def running_object_store() -> Iterator[ObjectStore]:
    store = ObjectStore()
    yield store
    store.close()


@pytest.fixture
def object_store(running_object_store, monkeypatch) -> Iterator[ObjectStore]:
    from ibbmaster.storage.disk import object_store as clients
    from ibbmaster.storage.disk.place import directory_at

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in running_object_store.environment.items():
        monkeypatch.setenv(name, value)
    running_object_store.requests.clear()
    yield running_object_store
    running_object_store.fault = lambda request: None
    clients._client_of.cache_clear()  # one may have another environment
    directory_at.cache_clear()
