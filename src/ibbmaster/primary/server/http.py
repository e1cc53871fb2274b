"""`/metrics`, `/healthz` and `/readyz` over HTTP, in a thread of its own: a busy primary is still seen, and a busy or
hostile client takes nothing from it. Needs the extra `metrics`.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import socket
import threading
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import h11
import prometheus_client
import trio
from prometheus_client import core

from ibbmaster.errors import ConfigurationError, IbbMasterError
from ibbmaster.storage.codec.printable import address
from .figures import KINDS, Figure

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 16  # further ones wait in the kernel
HEAD_BYTES_MAX = 8 << 10
REQUEST_S = 5.0  # to come
ANSWER_S = 10.0  # to be taken
RECEIVE_SIZE = 4 << 10
SILENT_S = 30.0  # of an event loop that is called alive


class Answer(NamedTuple):
    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


class Source(Protocol):
    """What is asked, in worker threads."""

    def figures(self) -> Iterable[Figure]: ...

    def problems(self) -> Iterable[str]:
        """Why it is not ready."""

    def silent_s(self) -> float:
        """For how long nothing was seen of what does the work."""


class Watched:
    """`source` is set once there is one."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.source: Source | None = None

    def answer(self, path: str) -> Answer:
        source = self.source
        match path.partition("?")[0]:
            case "/metrics":
                figures = () if source is None else source.figures()
                return Answer(HTTPStatus.OK, exposition(figures), prometheus_client.CONTENT_TYPE_LATEST)
            case "/healthz":
                silent_s = 0.0 if source is None else source.silent_s()
                return _verdict([f"nothing was done for {silent_s:.0f} s"] if silent_s > SILENT_S else [])
            case "/readyz":
                return _verdict(["it has not begun"] if source is None else list(source.problems()))
        return Answer(HTTPStatus.NOT_FOUND, b"/metrics, /healthz and /readyz are here\n")


def _verdict(problems: list[str]) -> Answer:
    if not problems:
        return Answer(HTTPStatus.OK, b"ok\n")
    return Answer(HTTPStatus.SERVICE_UNAVAILABLE, "".join(f"{problem}\n" for problem in problems).encode())


def exposition(figures: Iterable[Figure]) -> bytes:
    """As Prometheus reads it."""
    families: dict[str, Any] = {}
    for figure in figures:
        if figure.name not in families:
            kind = KINDS[figure.name]
            family = getattr(core, f"{kind.kind.capitalize()}MetricFamily")
            families[figure.name] = family(figure.name, kind.meaning, labels=list(figure.labels))
        families[figure.name].add_metric(list(map(str, figure.labels.values())), figure.value)
    registry: Any = SimpleNamespace(collect=families.values)
    return prometheus_client.generate_latest(registry)


@contextlib.contextmanager
def watching(host: str, port: int) -> Iterator[Watched]:
    """Answer while the block runs. Raises ConfigurationError: cannot listen there."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {address(host, port)}: {error.strerror or error}") from error
    watched = Watched(host, listener.getsockname()[1])
    begun: list[tuple[trio.lowlevel.TrioToken, trio.CancelScope]] = []
    is_running = threading.Event()

    async def serve() -> None:
        with trio.CancelScope() as scope:
            begun.append((trio.lowlevel.current_trio_token(), scope))
            is_running.set()
            await _accept(trio.SocketListener(trio.socket.from_stdlib_socket(listener)), watched)

    thread = threading.Thread(target=trio.run, args=(serve,), name="ibbmaster-http", daemon=True)
    thread.start()
    try:
        is_running.wait()
        log.info("figures are at http://%s/metrics", address(host, watched.port))
        yield watched
    finally:
        [(token, scope)] = begun
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(scope.cancel)
        thread.join()


async def _accept(listener: trio.SocketListener, watched: Watched) -> None:
    places = trio.Semaphore(CONNECTIONS_MAX)
    async with listener, trio.open_nursery() as nursery:
        while True:
            await places.acquire()
            try:
                stream = await listener.accept()
            except OSError as error:
                log.warning("no connection for figures can be taken: %s", error)
                places.release()
                await trio.sleep(1)
                continue
            nursery.start_soon(_serve, stream, watched, places)


async def _serve(stream: trio.SocketStream, watched: Watched, places: trio.Semaphore) -> None:
    """One request, and the end: nobody keeps a place."""
    try:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        with trio.move_on_after(REQUEST_S) as late:
            try:
                answer = await _answered(stream, connection, watched)
            except h11.RemoteProtocolError as error:
                answer = Answer(HTTPStatus(error.error_status_hint), b"this is not a request that is understood\n")
        if late.cancelled_caught:
            return
        with trio.move_on_after(ANSWER_S):
            await _send(stream, connection, answer)
    except (trio.BrokenResourceError, trio.ClosedResourceError, h11.LocalProtocolError):
        pass  # it has left
    except Exception:
        log.exception("figures could not be sent")
    finally:
        places.release()
        await trio.aclose_forcefully(stream)


async def _answered(stream: trio.SocketStream, connection: h11.Connection, watched: Watched) -> Answer:
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await stream.receive_some(RECEIVE_SIZE))
    if not isinstance(event, h11.Request):
        raise trio.BrokenResourceError("it has left before it asked")
    if event.method != b"GET":
        return Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"expected GET\n")
    try:
        ask = functools.partial(watched.answer, event.target.decode("ascii", "replace"))
        return await trio.to_thread.run_sync(ask)
    except IbbMasterError as error:
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"the log cannot be read: {error}\n".encode())


async def _send(stream: trio.SocketStream, connection: h11.Connection, answer: Answer) -> None:
    headers = [("Content-Type", answer.content_type), ("Content-Length", str(len(answer.body)))]
    status, reason = answer.status, answer.status.phrase.encode()
    response = h11.Response(status_code=status, reason=reason, headers=[*headers, ("Connection", "close")])
    events = (response, h11.Data(data=answer.body), h11.EndOfMessage())
    await stream.send_all(b"".join(connection.send(event) or b"" for event in events))
    await stream.send_eof()
