"""A consumer that costs little, the same for every server: it reads large pieces and walks the packet headers.

`python -m benchmarks.consumer PORT CONNECTIONS` dumps everything over so many connections,
in one thread, to the EOF that follows; with `--raw` it reads what a server of plain bytes
sends, to the end of the connection. It prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import struct
import time

import numpy as np
import pymysql
from numba import njit

RECEIVE_BYTES = 1 << 20
DUMP_FLAGS = 3  # end with EOF where a replica would wait; with annotations
FIRST_SERVER_ID = 1000
SETTINGS = (
    "SET @mariadb_slave_capability=4",
    "SET @master_binlog_checksum='NONE'",
    "SET @slave_connect_state=''",
)
LEFT, HELD, LENGTH, EVENTS, ENDED = range(5)  # the state of a walk; HELD and LENGTH are of a header that was cut


@njit(cache=True)
def walk(data, size, state):  # type: ignore[no-untyped-def]
    """Pass over the packets in data[:size]; ENDED becomes 1 at EOF, 2 at an error."""
    offset = 0
    while offset < size:
        if state[LEFT] > 0:
            step = min(state[LEFT], size - offset)
            state[LEFT] -= step
            offset += step
            continue
        if state[HELD] < 4:
            if state[HELD] < 3:
                state[LENGTH] |= np.int64(data[offset]) << (8 * state[HELD])
            state[HELD] += 1
            offset += 1
            continue
        first = data[offset]
        if first == 0xFE and state[LENGTH] < 9:
            state[ENDED] = 1
        elif first == 0xFF:
            state[ENDED] = 2
        state[LEFT] = state[LENGTH]
        state[HELD] = state[LENGTH] = 0
        state[EVENTS] += 1


def open_dump(port: int, user: str, password: str, number: int) -> tuple[pymysql.Connection, bytes]:
    """A connection that is ready to dump, and the packet that begins it."""
    connection = pymysql.connect(host="127.0.0.1", port=port, user=user, password=password, ssl_disabled=True)
    with connection.cursor() as cursor:
        for statement in SETTINGS:
            cursor.execute(statement)
    body = struct.pack("<BIHI", 0x12, 4, DUMP_FLAGS, FIRST_SERVER_ID + number)
    return connection, len(body).to_bytes(3, "little") + b"\0" + body


def consume(sockets: list[socket.socket], *, is_raw: bool) -> tuple[int, int, float]:
    """Bytes and events of all of them, and when the first byte came."""
    buffer = bytearray(RECEIVE_BYTES)
    data = np.frombuffer(buffer, dtype=np.uint8)
    total = events = 0
    first_at = 0.0
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            one.setblocking(False)
            selector.register(one, selectors.EVENT_READ, np.zeros(5, dtype=np.int64))
        while selector.get_map():
            for key, _ in selector.select():
                size = key.fileobj.recv_into(buffer)  # type: ignore[union-attr]
                first_at = first_at or time.perf_counter()
                total += size
                if size and not is_raw:
                    walk(data, size, key.data)
                if key.data[ENDED] == 2 or (not size and not is_raw):
                    raise SystemExit("the server ended a dump with an error")
                if not size or key.data[ENDED]:
                    events += int(key.data[EVENTS])
                    selector.unregister(key.fileobj)
    return total, events, first_at


def main() -> None:
    """Read, and say how much it was and how long it took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.consumer", description=main.__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("connections", type=int)
    parser.add_argument("--raw", action="store_true", help="plain bytes to the end of the connection")
    parser.add_argument("--user", default="bench")
    parser.add_argument("--password", default="bench")
    args = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # not where it is woken: there the server runs
    walk(np.zeros(1, dtype=np.uint8), 0, np.zeros(5, dtype=np.int64))  # compiled before the clock runs
    if args.raw:
        begun = time.perf_counter()
        sockets = [socket.create_connection(("127.0.0.1", args.port)) for _ in range(args.connections)]
    else:
        dumps = [open_dump(args.port, args.user, args.password, number) for number in range(args.connections)]
        begun = time.perf_counter()
        sockets = [connection._sock for connection, _ in dumps]
        for one, (_, packet) in zip(sockets, dumps, strict=True):
            one.sendall(packet)
    total, events, first_at = consume(sockets, is_raw=args.raw)
    seconds = time.perf_counter() - begun
    print(json.dumps({"bytes": total, "events": events, "seconds": seconds, "first_s": first_at - begun}))


if __name__ == "__main__":
    main()
