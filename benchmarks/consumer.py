"""A consumer that costs little, the same for every server: it reads large pieces and walks the packet headers.

`python -m benchmarks.consumer PORT CONNECTIONS` dumps everything over CONNECTIONS connections,
in one thread, to the EOF that follows; with `--raw` it reads what a server of plain bytes
sends, to the end of the connection; with `--tls BYTES` it skips that many bytes in records of
TLS without deciphering them, which would cost as much as it costs the server. It stops after
`--seconds`, as a rate is known by then. It prints one line of JSON.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import resource
import selectors
import shutil
import socket
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.replica import TILL_THE_END, Account, dump_packet, log_in
from ibbmaster.kernel.building import compile_library

RECEIVE_BYTES = 1 << 20
RECORD_REST = 17  # bytes of a TLS 1.3 record that are no data: a type, and what proves it
LEFT, HELD, LENGTH, EVENTS, ENDED = range(5)  # the state of a walk; HELD and LENGTH are of a header that was cut


def _compiled() -> ctypes.CDLL:
    directory = Path(tempfile.mkdtemp(prefix="ibbmaster-consumer-"))
    compile_library(Path(__file__).with_suffix(".c"), directory / "consumer.so", platform.machine())
    loaded = ctypes.CDLL(str(directory / "consumer.so"))
    shutil.rmtree(directory)
    return loaded


_WALKS = _compiled()


def walk(data: np.ndarray, size: int, state: np.ndarray) -> None:
    """Skip the packets in data[:size]; ENDED becomes 1 at EOF, 2 at an error."""
    _WALKS.walk(ctypes.c_void_p(data.ctypes.data), ctypes.c_int64(size), ctypes.c_void_p(state.ctypes.data))


def walk_records(data: np.ndarray, size: int, state: np.ndarray) -> None:
    """Skip the TLS records in data[:size]; EVENTS counts down the bytes that are still to come."""
    _WALKS.walk_records(ctypes.c_void_p(data.ctypes.data), ctypes.c_int64(size), ctypes.c_void_p(state.ctypes.data))


class Records:
    """The records of TLS that come over one connection, for those who count what is in them."""

    def __init__(self) -> None:
        self._state = np.zeros(5, dtype=np.int64)

    def skip(self, data: np.ndarray, size: int) -> int:
        """Skip data[:size]; bytes of data in that."""
        before = self._arrived()
        walk_records(data, size, self._state)
        return self._arrived() - before

    def _arrived(self) -> int:
        return -int(self._state[EVENTS] + max(0, self._state[LEFT] - RECORD_REST))


def consume(sockets: list[socket.socket], until: float, *, is_raw: bool, tls_bytes: int) -> tuple[int, int]:
    """Bytes and events of all of them, up to a moment at most."""
    buffer = bytearray(RECEIVE_BYTES)
    data = np.frombuffer(buffer, dtype=np.uint8)
    total = events = 0
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            one.setblocking(False)
            state = np.zeros(5, dtype=np.int64)
            state[EVENTS] = tls_bytes
            selector.register(one, selectors.EVENT_READ, state)
        while selector.get_map() and time.perf_counter() < until:
            for key, _ in selector.select(1.0):
                size = key.fileobj.recv_into(buffer)  # type: ignore[union-attr]
                total += size
                if size and not is_raw:
                    (walk_records if tls_bytes else walk)(data, size, key.data)
                if key.data[ENDED] == 2 or (not size and not is_raw):
                    raise SystemExit("the server ended a dump with an error")
                if not size or key.data[ENDED]:
                    selector.unregister(key.fileobj)
                    events += int(key.data[EVENTS])
        events += sum(int(key.data[EVENTS]) for key in selector.get_map().values())
    return total, events


def main() -> None:
    """Read, and say how much it was and how long it took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.consumer", description=main.__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("connections", type=int)
    parser.add_argument("--raw", action="store_true", help="plain bytes to the end of the connection")
    parser.add_argument("--tls", type=int, default=0, metavar="BYTES", help="over TLS, each so many")
    parser.add_argument("--seconds", type=float, default=600, help="at most (default: %(default)s)")
    parser.add_argument("--user", default="bench")
    parser.add_argument("--password", default="bench")
    args = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # not where it is woken: there the server runs
    account = Account(args.port, args.user, args.password)
    if args.raw:
        begun = time.perf_counter()
        sockets = [socket.create_connection(("127.0.0.1", args.port)) for _ in range(args.connections)]
    else:
        lines = [log_in(account, is_secret=args.tls > 0) for _ in range(args.connections)]
        sockets = [line.socket for line in lines]
        begun = time.perf_counter()
        for line in lines:
            line.send(dump_packet(TILL_THE_END))
    total, events = consume(sockets, begun + args.seconds, is_raw=args.raw, tls_bytes=args.tls)
    print(json.dumps({"bytes": total, "events": events, "seconds": time.perf_counter() - begun}))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    main()
