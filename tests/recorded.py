"""A recorder in this process, between a primary and what connects to it."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import trio

from ibbmaster.commands.recorder.recorded_connection import RecordedConnection
from ibbmaster.commands.recorder.recording import Recording
from ibbmaster.commands.recorder.relay import Relay, listen_on

TIMEOUT_S = 60.0


@dataclass(slots=True)
class Recorder:
    port: int
    recording: Recording
    directory: Path

    @property
    def text(self) -> str:
        return (self.directory / "scenario.toml").read_text()


@contextlib.contextmanager
def relaying(relay: Relay) -> Iterator[int]:
    begun, found = threading.Event(), {}

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            found["scope"], found["token"] = nursery.cancel_scope, trio.lowlevel.current_trio_token()
            _, found["port"] = await nursery.start(relay.serve, await listen_on("127.0.0.1", 0))
            begun.set()
            await trio.sleep_forever()

    thread = threading.Thread(target=trio.run, args=(run,), daemon=True)
    thread.start()
    assert begun.wait(TIMEOUT_S)
    try:
        yield found["port"]
    finally:
        found["token"].run_sync_soon(found["scope"].cancel)
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


@contextlib.contextmanager
def recording(port: int, directory: Path) -> Iterator[Recorder]:
    """Record what passes to the primary on a port, until the end of the block."""
    made = Recording(directory, f"127.0.0.1:{port}")
    one_by_one = trio.CapacityLimiter(1)
    relay = Relay(("127.0.0.1", port), lambda client, peer: RecordedConnection(made, one_by_one, peer))
    try:
        with relaying(relay) as own_port:
            yield Recorder(own_port, made, directory)
    finally:
        made.close()
    assert made.problem == ""
